"""§6.3: from sentences to trees, and their score."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiayn.data import Tokenizer
from aiayn.data.text import refuse_text
from aiayn.data.trees import Tree, delinearise
from aiayn.errors import InputError
from aiayn.inference import translate
from aiayn.inference.hypothesis import Model
from aiayn.parsing.scores import BracketScore, bracket_score
from aiayn.parsing.tree_repair import repair, with_tags


@dataclass(frozen=True)
class Parse:
    """What a parser made of a sentence.

    Paper: §6.3.
    """

    tree: Tree
    """Over the sentence's words, its tags all XX; repaired if need be."""
    symbols: tuple[str, ...]
    """What the model wrote."""
    fault: str | None
    """Why that is no tree over these words; None if it is one."""


def parse(
    sentences: Sequence[str],
    model: Model,
    tokenizer: Tokenizer,
    *,
    beam_size: int = 21,
    length_penalty: float = 0.3,
    extra_length: int = 300,
) -> list[Parse]:
    """Parse sentences with a model that was trained on the target "trees".

    Args:
        sentences: Words and punctuation marks, with a space between any two.
        model: On whichever device it should run.
        tokenizer: The one that the model was trained with.
        beam_size: Outputs kept at each step; 1 is greedy search.
        length_penalty: α of the length penalty.
        extra_length: An output may have this many pieces more than its sentence.

    Returns:
        As many parses, in the same order.

    Raises:
        InputError: A sentence is empty or too long, or the tokenizer is not the
            model's.

    Paper: §6.3, with its search by default.
    """
    refuse_text(sentences)
    sentences = list(sentences)  # a generator could be read only once
    for number, sentence in enumerate(sentences, start=1):
        if not sentence.split():
            raise InputError(f"Sentence {number} is empty; leave it out.")
    outputs = translate(
        sentences,
        model,
        tokenizer,
        beam_size=beam_size,
        length_penalty=length_penalty,
        extra_length=extra_length,
    )
    return [
        _read(output.split(), sentence.split())
        for output, sentence in zip(outputs, sentences, strict=True)
    ]


def score_parses(
    gold: Sequence[Tree], parses: Sequence[Parse], *, repaired: bool = True
) -> BracketScore:
    r"""Compare parses with the trees that the sentences have.

    $$F_1 = \frac{2 P R}{P + R}$$

    Args:
        gold: As many trees, in the same order; their tags are put into the parses.
        parses: What `parse` gave.
        repaired: False: an output that was no tree has no brackets.

    Raises:
        InputError: There are not as many of both, or they are of other sentences.

    Paper: §6.3, Table 4.

    >>> from aiayn.parsing import parse_tree
    >>> gold = parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))")
    >>> flat = parse_tree("(S (XX Tea) (VP (XX helps)))")  # no NP
    >>> score = score_parses([gold], [Parse(flat, (), None)])
    >>> score.precision, round(score.recall, 3), round(score.f1, 3)
    (1.0, 0.667, 0.8)
    """
    if [tree.leaves for tree in gold] != [one.tree.leaves for one in parses]:
        raise InputError(
            f"The sentences of the {len(parses)} parses and {len(gold)} gold trees "
            "differ: give both in the same order."
        )
    trees = [
        with_tags(p.tree, g.tags) if repaired or p.fault is None else None
        for g, p in zip(gold, parses, strict=True)
    ]
    return bracket_score(gold, trees)


def _read(symbols: list[str], words: list[str]) -> Parse:
    try:
        return Parse(delinearise(symbols, words), tuple(symbols), None)
    except InputError as error:
        return Parse(repair(symbols, words), tuple(symbols), str(error))
