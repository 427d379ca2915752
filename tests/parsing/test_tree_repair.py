"""§6.3: what a model wrote, made a tree."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data.grammar import generate
from aiayn.data.trees import MAX_DEPTH
from aiayn.errors import InputError
from aiayn.parsing import (
    brackets,
    delinearise,
    linearise,
    parse_tree,
    repair,
    with_tags,
)

WORDS = ["a", "b", "c"]
TREES = [sample.source_tree for sample in generate(60, seed=19)]

pieces = st.sampled_from(["(S", "(NP", "(VP", ")S", ")NP", ")VP", "XX", "X", "(", ")"])


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: " ".join(tree.leaves))
def test_a_tree_is_left_as_it_is(tree):
    symbols, words = linearise(tree), tree.leaves
    assert repair(symbols, words) == delinearise(symbols, words)


@given(st.lists(pieces, max_size=25), st.integers(1, 6))
def test_whatever_was_written_a_tree_over_exactly_the_words_comes_back(symbols, count):
    words = tuple("abcdef"[:count])
    tree = repair(symbols, words)
    assert tree.leaves == words
    again = delinearise(linearise(tree), words)  # so it is well-formed, too
    assert with_tags(again, tree.tags) == tree
    with contextlib.suppress(InputError):
        assert delinearise(symbols, words) == tree


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("(S (NP XX )NP (VP XX XX", "(S (NP (XX a)) (VP (XX b) (XX c)))"),
        ("(S (NP XX (VP XX )S XX", "(S (NP (XX a) (VP (XX b))) (XX c))"),
        ("(S (NP XX (PP XX )NP XX )S", "(S (NP (XX a) (PP (XX b))) (XX c))"),
        ("(S (NP XX )VP XX )NP XX )S", "(S (NP (XX a) (XX b)) (XX c))"),
        (  # an end closes the innermost of its name
            "(S (NP (NP XX )NP XX XX )S",
            "(S (NP (NP (XX a)) (XX b) (XX c)))",
        ),
        ("(S (NP DT NN )NP", "(S (NP (DT a) (NN b)) (XX c))"),
        ("(S (NP XX )NP )S", "(S (NP (XX a)) (XX b) (XX c))"),
        ("(S XX XX XX XX (NP XX )NP )S", "(S (XX a) (XX b) (XX c))"),
        ("(S (NP )NP XX XX XX )S", "(S (XX a) (XX b) (XX c))"),
        ("(S XX )S (NP XX )NP XX", "(S (XX a) (NP (XX b)) (XX c))"),
        ("XX (S XX XX )S", "(S (XX a) (XX b) (XX c))"),
        ("XX XX XX", "( (XX a) (XX b) (XX c))"),
        ("", "( (XX a) (XX b) (XX c))"),
    ],
)
def test_each_rule_by_hand(written, expected):
    assert str(repair(written.split(), WORDS)) == expected


def test_a_damaged_tree_keeps_most_of_its_brackets():
    """One symbol lost costs what depends on it, and not the sentence."""
    rng = random.Random(19)
    for tree in TREES:
        gold = brackets(delinearise(linearise(tree), tree.leaves))
        symbols = list(linearise(tree))
        closing = [i for i, symbol in enumerate(symbols) if symbol[0] == ")"]
        del symbols[rng.choice(closing)]
        kept = brackets(repair(symbols, tree.leaves)) & gold
        # A lost end stretches one constituent, and may stretch its last daughters'.
        assert 2 * kept.total() > gold.total()
        assert len(repair(symbols, tree.leaves).spans()) == gold.total()


def test_absurd_depth_is_cut():
    tree = repair(["(X"] * 10_000 + ["XX"], ["a"])
    assert str(tree).count("(") == MAX_DEPTH
    assert tree == parse_tree(str(tree))


def test_no_words_no_tree():
    with pytest.raises(InputError, match="needs words"):
        repair(["(S", "XX", ")S"], [])


def test_gold_tags_come_back_and_nothing_else_changes():
    for tree in TREES:
        bare = delinearise(linearise(tree), tree.leaves)
        assert set(bare.tags) == {"XX"}
        assert with_tags(bare, tree.tags) == tree
    with pytest.raises(InputError, match="1 tags for 2 words"):
        with_tags(parse_tree("(S (XX a) (XX b))"), ["DT"])


def test_punctuation_counts_until_the_tags_are_back():
    """Why `with_tags` is there: without it a perfect parse does not score 1."""
    tree = parse_tree("(S (NP (NN Tea)) (, ,) (VP (VBZ helps)) (. .))")
    bare = delinearise(linearise(tree), tree.leaves)
    assert brackets(bare) != brackets(tree)
    assert brackets(with_tags(bare, tree.tags)) == brackets(tree)
