"""Chapter 24's drawings, charts and verdict."""

import re

import pytest
import torch

from aiayn_book.chapters import a_model_you_already_use as chapter
from aiayn_book.passages import Passage
from aiayn_book.published import Published

MISSING = Published(None)
MEASURED = MISSING.record["measured"]


def test_the_key_picture_marks_five_differences():
    for phone in (False, True):
        markup = chapter.two_encoders(phone=phone).markup
        for number, name, _ in chapter.PARTS:
            assert name in markup
            assert markup.count(f">{number}</text>") == 2  # in the picture, in the list


def test_the_pieces_of_a_word_are_its_letters():
    markup = chapter.longest_match(MISSING.vocabulary).markup
    assert "##tra" in markup
    assert str(MISSING.vocabulary["##tra"]) in markup


def test_pairs_of_one_meaning_are_the_nearest():
    vectors, _ = MISSING.reference(chapter.EXAMPLES)
    cosines = vectors @ vectors.T - torch.eye(6)
    assert cosines.argmax(dim=-1).tolist() == [1, 0, 3, 2, 5, 4]


def test_a_bag_of_words_would_not_find_the_pairs():
    """5 and 6 share no word; 3 and 5 share *bank*."""
    sets = [set(text.strip("?.").lower().split()) for text in chapter.EXAMPLES]
    assert not sets[4] & sets[5]
    assert "bank" in sets[2] & sets[4]


def test_a_recall_has_its_interval_around_it():
    hits = {"one": {1: [True, False, True, True], 5: [True] * 4}}
    rows = chapter.recall_rows(hits, {1: 0.1, 5: 0.4})
    assert [row["share"] for row in rows] == [0.75, 1.0, 0.1, 0.4]
    assert all(row["low"] <= row["share"] <= row["high"] + 1e-9 for row in rows)
    assert len({row["list"] for row in rows}) == 2


def verdict_of(hits_in_30, right, monkeypatch, words_in_30=30):
    """What is said when encoder and words are right so often in 30 questions."""
    said = {}
    monkeypatch.setattr(chapter, "settle", lambda claim, **rest: said.update(rest))
    hits = {}
    for name, count in (("encoder", hits_in_30), ("bag of words", words_in_30)):
        found = [True] * count + [False] * (30 - count)
        hits[name] = {1: found, 5: found}
    passages = [Passage(name, "", "") for name in "abcdef"]
    chapter.settle_other_tasks(hits, passages, right)
    return said


@pytest.mark.parametrize(
    ("hits_in_30", "words_in_30", "verdict"),
    [(0, 0, False), (5, 0, False), (20, 20, None), (20, 19, None), (25, 10, True)],
)
def test_the_verdict_asks_for_more_than_words_find(
    hits_in_30, words_in_30, verdict, monkeypatch
):
    said = verdict_of(hits_in_30, list("abcdef") * 5, monkeypatch, words_in_30)
    assert said["holds"] is verdict
    assert said["sample"].startswith("30 ")


def test_one_chapter_for_every_question_is_not_enough(monkeypatch):
    said = verdict_of(20, ["a"] * 20 + list("bcdef") * 2, monkeypatch)
    assert said["holds"] is False


def test_the_verdict_says_which_criterion_came_first(monkeypatch):
    said = verdict_of(20, list("abcdef") * 5, monkeypatch)
    assert "asked for after the measurement" in said["expected"]
    smallest = float(re.search(r"a share of (\d+)%", said["detects"])[1]) / 100
    limit = 1 / 6
    assert limit < smallest < 20 / 30


def test_measured_texts_are_short_and_spread():
    passages, _ = MISSING.passages()
    texts = chapter.measured_texts(passages)
    assert len(texts) > 10
    assert max(len(text.split()) for text in texts) <= 70
    chapters = {one.chapter for one in passages if one.text in texts}
    assert len(chapters) > 8


def test_the_record_measured_every_figure():
    layers = torch.tensor(MEASURED["heads"]["[CLS]"]["mass"])
    assert layers.shape == (6, 12)
    assert {one["name"].split(": ")[1] for one in MEASURED["maps"]} == {
        "previous token",
        "same word",
        "[CLS]",
    }
    sinks = chapter.sink_rows(MEASURED["sinks"]["moved"], MEASURED["sinks"]["share"])
    assert len(sinks) == 4 * 6


def test_every_picture_describes_itself():
    pictures = [
        chapter.head_grids(MEASURED["heads"]),
        *chapter.head_maps(MEASURED["maps"]),
        *chapter.similarity_maps(torch.eye(6)),
    ]
    assert all(len(one.description) > 40 for one in pictures)
