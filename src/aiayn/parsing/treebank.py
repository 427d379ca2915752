"""§6.3: the gold trees that a parser's sentences have.

A parser is a translator whose target language is "trees": the source is the sentence,
its words and punctuation marks apart, and the target the tree as `linearise` writes it.
`load_corpus("grammar", target="trees")` gives these strings. The trees themselves, with
the tags that scoring needs, are here, in the same order.
"""

from collections.abc import Mapping

from aiayn.data.grammar import load_grammar
from aiayn.data.trees import Tree


def load_treebank(**options: int) -> Mapping[str, tuple[Tree, ...]]:
    """Gold trees of the grammar's English sentences, by split.

    Tree i of a split belongs to pair i of `load_corpus("grammar", target="trees")` with
    the same options.

    Args:
        options: `size` (trees to train on), `held_out_size` (trees of each other split)
            and `seed`, as for `aiayn.data.grammar.load_grammar`.

    Paper: §6.3, which takes the Wall Street Journal of the Penn Treebank.

    >>> trees = load_treebank(size=100, held_out_size=10)
    >>> len(trees["train"]), trees["train"][0].label
    (100, 'S')
    """
    return {
        split: tuple(sample.source_tree for sample in samples)
        for split, samples in load_grammar(**options).items()
    }
