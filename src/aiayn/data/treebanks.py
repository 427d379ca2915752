"""§6.3: treebanks by name, and the pairs of strings that a parser learns from.

A parser is a translator whose target language is "trees": the source is the sentence,
its words and punctuation marks apart, and the target the tree as `linearise` writes it.
`load_corpus(name, target="trees")` gives these strings. The trees themselves, with the
tags that scoring needs, are here, in the same order.
"""

from collections.abc import Iterable, Mapping

from aiayn.data.grammar import HELD_OUT_SIZE, TRAIN_SIZE, load_grammar
from aiayn.data.gum import GUM_CITATION, GUM_LICENCE, read_gum
from aiayn.data.parallel import ParallelText
from aiayn.errors import InputError
from aiayn.trees import Tree, cut_function_tags, linearise

TREES = "trees"
"""What `load_corpus` calls the target language of a parser. Not in the paper."""

TREEBANKS = ("grammar", "gum")
"""The names that `load_treebank` knows. Not in the paper, which parses WSJ text."""


def load_treebank(
    name: str,
    *,
    size: int = TRAIN_SIZE,
    held_out_size: int = HELD_OUT_SIZE,
    seed: int = 0,
) -> Mapping[str, tuple[Tree, ...]]:
    """Gold trees of English sentences, by split.

    Tree i of a split belongs to pair i of `load_corpus(name, target="trees")`.

    Args:
        name: "grammar" (embedded) or "gum" (read from AIAYN_DATA).
        size: Trees to train on; of the grammar, which makes any number.
        held_out_size: Trees of each other split, likewise.
        seed: Of the grammar's draw.

    Raises:
        InputError: There is no such treebank, or its files are not there.

    Paper: §6.3, which takes the Wall Street Journal of the Penn Treebank.

    >>> trees = load_treebank("grammar", size=100, held_out_size=10)
    >>> len(trees["train"]), trees["train"][0].label
    (100, 'S')
    """
    if name == "gum":
        return read_gum()
    if name != "grammar":
        raise InputError(
            f"There is no treebank {name!r}; choose one of {', '.join(TREEBANKS)}."
        )
    drawn = load_grammar(size=size, held_out_size=held_out_size, seed=seed)
    return {
        split: tuple(sample.source_tree for sample in samples)
        for split, samples in drawn.items()
    }


def tree_pairs(trees: Iterable[Tree]) -> ParallelText:
    """Sentences and their linearised trees, without function tags.

    Args:
        trees: Trees of sentences.

    Paper: §6.3; Vinyals et al. (2015).

    >>> from aiayn.trees import parse_tree
    >>> list(tree_pairs([parse_tree("(S (NP-SBJ (NN Tea)) (VP (VBZ helps)))")]))
    [('Tea helps', '(S (NP XX )NP (VP XX )VP )S')]
    """
    trees = tuple(trees)
    return ParallelText(
        tuple(" ".join(tree.leaves) for tree in trees),
        tuple(" ".join(linearise(cut_function_tags(tree))) for tree in trees),
    )


DIRECTIONS = (f"en-{TREES}",)
LICENCE, CITATION = GUM_LICENCE, GUM_CITATION


def load(source: str, target: str) -> dict[str, ParallelText]:
    """GUM's sentences and linearised trees, by split."""
    return {split: tree_pairs(trees) for split, trees in read_gum().items()}
