"""Greedy search beside a beam, on outputs made by hand."""

from types import SimpleNamespace

import pytest

from aiayn_book.chapters import search_and_bleu as chapter
from tests.book.conftest import drawn


def found(tokens, log_probability):
    return SimpleNamespace(tokens=tokens, log_probability=log_probability)


@pytest.fixture
def three():
    """Same and right; the beam right; the beam probable and wrong; greedy ahead."""
    greedy = found([3], -1), found([4, 5], -2), found([6], -2), found([7], -1)
    beam = found([3], -1), found([4], -1), found([9], -1), found([8], -2)
    return greedy, beam, [[3], [4], [6], [1]]


def test_sentences_are_counted_by_both_questions(three):
    counts = chapter.greedy_beside_beam(*three)
    same, beam, greedy = chapter.FOUND
    assert counts.loc[same, "both right"] == 1
    assert counts.loc[beam, "only beam right"] == 1
    assert counts.loc[beam, "only greedy right"] == 1
    assert counts.loc[greedy, "both wrong"] == 1
    assert counts.to_numpy().sum() == 4
    assert "<svg" in drawn(chapter.outcome_chart(counts))


def test_the_case_is_one_that_only_the_beam_gets_right(three):
    assert chapter.instructive_case(*three) == 1
