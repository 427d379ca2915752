"""§6.3: the gold trees that a parser's sentences have.

A parser is a translator whose target language is "trees": the source is the sentence,
its words and punctuation marks apart, and the target the tree as `linearise` writes it.
`load_corpus("grammar", target="trees")` gives these strings. The trees themselves, with
the tags that scoring needs, are here, in the same order.
"""

from collections.abc import Mapping

from aiayn.data.grammar import HELD_OUT_SIZE, TRAIN_SIZE, load_grammar
from aiayn.data.trees import Tree


def load_treebank(
    *,
    size: int = TRAIN_SIZE,
    held_out_size: int = HELD_OUT_SIZE,
    seed: int = 0,
) -> Mapping[str, tuple[Tree, ...]]:
    """Gold trees of the grammar's English sentences, by split.

    Tree i of a split belongs to pair i of `load_corpus("grammar", target="trees")` with
    the same arguments.

    Args:
        size: Trees to train on.
        held_out_size: Trees of each other split.
        seed: Of the grammar's draw.

    Paper: §6.3, which takes the Wall Street Journal of the Penn Treebank.

    >>> trees = load_treebank(size=100, held_out_size=10)
    >>> len(trees["train"]), trees["train"][0].label
    (100, 'S')
    """
    drawn = load_grammar(size=size, held_out_size=held_out_size, seed=seed)
    return {
        split: tuple(sample.source_tree for sample in samples)
        for split, samples in drawn.items()
    }
