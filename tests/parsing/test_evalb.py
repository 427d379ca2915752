"""§6.3, Table 4: our bracket counts are those of evalb, the scorer behind the table.

`evalb.json` holds pairs of trees with the counts that evalb itself gave (the C program
by Sekine and Collins, with its usual parameters, COLLINS.prm): sentences of the
grammar, dressed with function tags, and damaged.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.parsing import Tree, bracket_score, brackets, parse_tree

CASES = json.loads(Path(__file__).with_name("evalb.json").read_text(encoding="utf-8"))

# The example in evalb's own distribution: one gold tree, and what parsers might say,
# with the counts that its sample.rsl prints: matched, in gold, in the parse.
SAMPLE_GOLD = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
SAMPLE = [
    ("(S (A (P this)) (B (Q is) (A (R a) (T test))))", 4, 4, 4),
    ("(S (A (P this)) (B (Q is) (C (R a) (T test))))", 3, 4, 4),
    ("(S (A (P this)) (B (Q is) (A (R a) (U test))))", 4, 4, 4),
    ("(S (C (P this)) (B (Q is) (A (R a) (U test))))", 3, 4, 4),
    ("(S (A (P this)) (B (Q is) (R a) (A (T test))))", 3, 4, 4),
    ("(S (A (P this) (Q is)) (A (R a) (T test)))", 2, 4, 3),
    ("(S (P this) (Q is) (R a) (T test))", 1, 4, 1),
    ("(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", 4, 4, 5),
    ("(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", 4, 4, 8),
    ("(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))", 4, 4, 4),
]


def counts(gold: Tree, predicted: Tree) -> tuple[int, int, int]:
    """Matched, in gold, predicted."""
    wanted, found = brackets(gold), brackets(predicted)
    return (wanted & found).total(), wanted.total(), found.total()


@pytest.mark.parametrize(("predicted", *"mgp"), SAMPLE)
def test_the_example_that_comes_with_evalb(predicted, m, g, p):
    assert counts(parse_tree(SAMPLE_GOLD), parse_tree(predicted)) == (m, g, p)


def test_an_output_that_is_no_tree_as_in_evalbs_example():
    """Its line 8 parses to four words without a bracket: recall 0, precision 0."""
    assert bracket_score([parse_tree(SAMPLE_GOLD)], [None]) == (0, 0, 0)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_counts_are_evalbs(case):
    gold, predicted = parse_tree(case["gold"]), parse_tree(case["predicted"])
    expected = case["matched"], case["in_gold"], case["in_predicted"]
    assert counts(gold, predicted) == expected
    assert slow_counts(gold, predicted) == expected


def test_the_cases_show_what_they_are_for():
    """All but a few are damaged, and they hold particles, commas and function tags."""
    kinds = ("matched", "in_gold", "in_predicted")
    perfect = [case for case in CASES if len({case[kind] for kind in kinds}) == 1]
    assert len(perfect) < len(CASES) / 5
    texts = [case["gold"] for case in CASES]
    for mark in ("(PRT", "(, ,)", "-SBJ", "=3"):
        assert any(mark in text for text in texts)


def test_the_corpus_score_is_the_ratio_of_evalbs_sums():
    sums = [sum(c[k] for c in CASES) for k in ("matched", "in_gold", "in_predicted")]
    score = bracket_score(
        [parse_tree(case["gold"]) for case in CASES],
        [parse_tree(case["predicted"]) for case in CASES],
    )
    assert score.recall == sums[0] / sums[1]
    assert score.precision == sums[0] / sums[2]
    assert score.f1 == pytest.approx(2 * sums[0] / (sums[1] + sums[2]), rel=1e-12)


def slow_brackets(tree: Tree) -> list[tuple[str, int, int]]:
    """evalb's definition by recursion, sharing nothing with the library's walk."""
    found, place = [], 0

    def visit(node: Tree) -> None:
        nonlocal place
        if len(node.children) == 1 and isinstance(node.children[0], str):
            place += node.label not in (",", ".", ":", "``", "''", "-NONE-")
            return
        slot, start = len(found), place
        found.append(None)
        for child in node.children:
            visit(child)
        label = node.label[:1] + node.label[1:].split("-")[0].split("=")[0]
        label = {"PRT": "ADVP"}.get(label, label)
        if place > start and label not in ("TOP", "ROOT", "S1", ""):
            found[slot] = (label, start, place)

    visit(tree)
    return [bracket for bracket in found if bracket is not None]


def slow_counts(gold: Tree, predicted: Tree) -> tuple[int, int, int]:
    """Cross out each bracket of the gold tree once it is matched."""
    wanted, found = slow_brackets(gold), slow_brackets(predicted)
    remaining = list(wanted)
    for bracket in found:
        if bracket in remaining:
            remaining.remove(bracket)
    return len(wanted) - len(remaining), len(wanted), len(found)


tags = st.sampled_from(["NN", "DT", ",", ".", "''", "-NONE-"])
labels = st.sampled_from(["S", "NP", "NP-SBJ", "PRT", "ADVP", "TOP", "VP=2"])
trees = st.recursive(
    st.builds(lambda tag: Tree(tag, ("w",)), tags),
    lambda inner: st.builds(
        lambda label, children: Tree(label, tuple(children)),
        labels,
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(trees, trees)
def test_the_counts_are_those_of_a_slow_reading_of_the_definition(gold, predicted):
    assert counts(gold, predicted) == slow_counts(gold, predicted)
    assert Counter(slow_brackets(gold)) == brackets(gold)
