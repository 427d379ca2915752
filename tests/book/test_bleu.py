"""BLEU from its counts: by hand, against sacreBLEU, and resampled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.inference import evaluate_bleu
from aiayn_book.bleu import (
    bleu,
    bootstrap_differences,
    sentence_counts,
    split_compounds,
    words_13a,
)

words = st.lists(st.sampled_from("abc"), max_size=7)


def total(pairs):
    return np.sum([sentence_counts(*pair) for pair in pairs], axis=0)


def test_by_hand():
    """Clipped: 'the' stands once in the reference. Brevity: three words for four."""
    counts = total([(["the", "the", "cat"], ["the", "cat", "sat", "down"])])
    assert counts.tolist() == [4, 2, 1, 0, 0, 3, 2, 1, 0]
    assert bleu(counts) == 0.0
    counts = total([(["a", "b", "c", "d", "x"], ["a", "b", "c", "d", "e", "f"])])
    by_hand = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25 * np.exp(1 - 6 / 5)
    assert bleu(counts) == pytest.approx(by_hand)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=4))
def test_as_sacrebleu(pairs):
    """Any words: empty sentences, no match at all, matches of low orders only."""
    ours, theirs = (
        [" ".join(side) for side in sides] for sides in zip(*pairs, strict=True)
    )
    expected = evaluate_bleu(ours, theirs, tokenize="none").score
    # sacreBLEU goes through logarithms: rounding alone may differ.
    assert bleu(total(pairs)) == pytest.approx(expected, abs=1e-6)


def test_sums_may_be_many_at_once():
    rows = np.array(
        [total([(list("abcd"), list("abce"))]), [4, 4, 3, 2, 1, 4, 3, 2, 1]]
    )
    assert bleu(rows).tolist() == [bleu(row) for row in rows]


def system(wrong):
    """Nine sentences of 5 to 13 words, at the end of each so many wrong ones."""
    references = [list("abcdefghijklm"[:length]) for length in range(5, 14)]
    return np.array(
        [sentence_counts(r[: len(r) - wrong] + ["?"] * wrong, r) for r in references]
    )


def test_a_system_does_not_differ_from_itself():
    """Sentences are unlike, so it would if each side had a draw of its own."""
    assert not bootstrap_differences(system(1), system(1)).any()


def test_a_system_that_is_better_everywhere_is_better_in_each_draw():
    good, bad = system(0), system(2)
    differences = bootstrap_differences(good, bad, resamples=50, seed=3)
    assert (differences > 0).all()
    assert differences.shape == (50,)
    assert np.unique(differences).size > 1  # the draws are not one and the same
    assert np.array_equal(
        differences, bootstrap_differences(good, bad, resamples=50, seed=3)
    )


def test_words_are_those_that_the_reported_score_counts():
    ours = ["Ein Hund, ein T-Shirt.", "1,5 Meter (etwa)", "„Nein“, sagt er: 3-4 mal"]
    theirs = ["Ein Hund und ein T-Shirt.", "etwa 1,5 Meter!", "„Nein“, sagte er: 3-4"]
    pairs = [(words_13a(a), words_13a(b)) for a, b in zip(ours, theirs, strict=True)]
    expected = evaluate_bleu(ours, theirs).score
    assert bleu(total(pairs)) == pytest.approx(expected, abs=1e-6)


def test_compounds_are_split_at_inner_hyphens_only():
    assert split_compounds(["-", "x-", "-x", "a"]) == ["-", "x-", "-x", "a"]
    middle = "##AT##-##AT##"
    assert split_compounds(["ab-cd-ef"]) == ["ab", middle, "cd", middle, "ef"]
