"""§6.3, Table 4: labelled brackets, compared as `evalb` compares them.

Scores follow the conventions of `evalb` with its usual parameter file: see `brackets`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aiayn.data.trees import Span, Tree, with_tags, without_function
from aiayn.errors import InputError
from aiayn.parsing.parser import Parse

ROOT_LABELS = frozenset({"", "ROOT", "TOP", "S1"})
PUNCTUATION_TAGS = frozenset({",", ".", ":", "``", "''", "$,", "$.", "$("})
TRACE_TAG = "-NONE-"
"""The tag of an empty element, which marks in the Penn Treebank what was moved."""


class BracketScore(NamedTuple):
    """Labelled bracket precision, recall and their harmonic mean, between 0 and 1."""

    precision: float
    """The share of the predicted brackets that are right."""
    recall: float
    """The share of the right brackets that were predicted."""
    f1: float
    """Their harmonic mean."""


def brackets(tree: Tree) -> Counter[Span]:
    """The multiset of labelled constituents that is compared, as `evalb` counts them.

    Left out are preterminals, the document's root (`ROOT`, `TOP`, no label),
    punctuation and traces (`-NONE-`): positions count the other words only, and a
    constituent without any of them is dropped. Function tags are cut off (`NP-SBJ`
    counts as `NP`), and `PRT` counts as `ADVP`.

    Args:
        tree: Its tags must be the sentence's own.
    """
    kept = [0]  # kept[i]: words among the first i that count
    for tag in tree.tags:
        kept.append(kept[-1] + (tag != TRACE_TAG and tag not in PUNCTUATION_TAGS))
    found: Counter[Span] = Counter()
    for label, start, end in tree.spans():
        label = without_function(label)
        if label not in ROOT_LABELS and kept[start] < kept[end]:
            span = Span("ADVP" if label == "PRT" else label, kept[start], kept[end])
            found[span] += 1
    return found


def bracket_score(
    gold: Iterable[Tree], predicted: Iterable[Tree | None]
) -> BracketScore:
    """Labelled bracket precision, recall and F1 over a corpus.

    Counts are summed over the sentences before dividing. Precision is 0 if no bracket
    is predicted, and recall is 0 if the gold trees have none.

    Args:
        gold: The reference trees.
        predicted: As many trees; None stands for an output that is no tree, and counts
            as no bracket at all.

    Raises:
        ValueError: The two have not the same number of trees.

    Paper: §6.3, Table 4.
    """
    matched = found = wanted = 0
    for truth, guess in zip(gold, predicted, strict=True):
        truth_brackets = brackets(truth)
        guess_brackets = Counter() if guess is None else brackets(guess)
        matched += (truth_brackets & guess_brackets).total()
        wanted += truth_brackets.total()
        found += guess_brackets.total()
    precision = matched / found if found else 0.0
    recall = matched / wanted if wanted else 0.0
    f1 = 2 * matched / (found + wanted) if matched else 0.0
    return BracketScore(precision, recall, f1)


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
