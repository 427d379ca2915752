"""§6.3: from sentences to trees.

A model may write anything, and the paper does not say what it did with output that is
no tree. Here `repair` makes a tree of it, by rules that leave well-formed output as it
is.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiayn.data import Tokenizer
from aiayn.data.tokenizer import checked_lines
from aiayn.data.trees import ANY_TAG, MAX_DEPTH, Tree, delinearise
from aiayn.errors import InputError
from aiayn.inference import translate
from aiayn.inference.protocol import Model


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
    sentences: Iterable[str], model: Model, tokenizer: Tokenizer, **options: Any
) -> list[Parse]:
    """Parse sentences with a model that was trained on the target "trees".

    Args:
        sentences: Words and punctuation marks, with a space between any two.
        model: On whichever device it should run.
        tokenizer: The one that the model was trained with.
        options: As for `aiayn.translate`. By default they are the paper's: a beam_size
            of 21, a length_penalty of 0.3, and an extra_length of 300.

    Returns:
        As many parses, in the same order.

    Raises:
        InputError: A sentence is empty or too long, or the tokenizer is not the
            model's.

    Paper: §6.3, with its search by default.
    """
    # A list, because a generator could be read only once.
    sentences = list(checked_lines(sentences, "sentences"))
    for number, sentence in enumerate(sentences, start=1):
        if not sentence.split():
            raise InputError(f"Sentence {number} is empty; leave it out.")
    options = {"beam_size": 21, "length_penalty": 0.3, "extra_length": 300} | options
    outputs = translate(sentences, model, tokenizer, **options)
    return [_read(*pair) for pair in zip(outputs, sentences, strict=True)]


def _read(output: str, sentence: str) -> Parse:
    symbols, words = tuple(output.split()), sentence.split()
    try:
        return Parse(delinearise(symbols, words), symbols, None)
    except InputError as error:
        return Parse(repair(symbols, words), symbols, str(error))


def repair(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """A tree over exactly these words, as near to the symbols as they allow.

    Where `delinearise` gives a tree, this is it. Else:

    - The first constituent that is opened is the root. It holds everything and is
      closed last.
    - A closing symbol closes the innermost constituent of its label and all that are
      open inside it; the root stays open. Without such a constituent it is ignored.
    - Tags take the words in turn. Surplus tags are ignored; words without a tag go to
      the end of the root.
    - A constituent without words is left out, and so is one that is nested too deep.

    Args:
        symbols: What a model wrote.
        words: The sentence's.

    Raises:
        InputError: There are no words.

    >>> print(repair(["(S", "(NP", "XX", "(VP", "XX", ")S"], ["Tea", "helps", "."]))
    (S (NP (XX Tea) (VP (XX helps))) (XX .))
    """
    if not words:
        raise InputError("A tree needs words, and there are none.")
    with suppress(InputError):
        return delinearise(symbols, words)
    labels = [symbol[1:] for symbol in symbols if symbol.startswith("(")]
    open_: list[tuple[str, list[Tree | str]]] = [(labels[0] if labels else "", [])]
    root_is_next, used = True, 0
    for symbol in symbols:
        if symbol.startswith("("):
            if not root_is_next and len(open_) < MAX_DEPTH - 1:
                open_.append((symbol[1:], []))
            root_is_next = False
        elif symbol.startswith(")"):
            wanted = [label for label, _ in open_]
            if symbol[1:] in wanted:
                depth = len(wanted) - wanted[::-1].index(symbol[1:])
                _close(open_, max(1, depth - 1))
        elif used < len(words):
            open_[-1][1].append(Tree(symbol, (words[used],)))
            used += 1
    _close(open_, 1)
    label, children = open_[0]
    return Tree(label, (*children, *(Tree(ANY_TAG, (word,)) for word in words[used:])))


def _close(open_: list[tuple[str, list[Tree | str]]], left: int) -> None:
    """Close the innermost constituents until so many are left open."""
    while len(open_) > left:
        label, children = open_.pop()
        if children:
            open_[-1][1].append(Tree(label, tuple(children)))
