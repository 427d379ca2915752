"""The book as passages, and searching them."""

import math
from pathlib import Path

import pytest
import torch
import yaml

from aiayn_book.passages import (
    PAGES,
    SHORTEST,
    Passage,
    bm25,
    book_passages,
    by_chance,
    difference,
    found_at,
    fused,
    interval,
    passages_of,
    plain,
    readers_questions,
)
from aiayn_book.records import load_record, repeats

ROOT = Path(__file__).resolve().parents[2]
RECORD = load_record("published")
LONG = " ".join(["word"] * SHORTEST)


def test_a_section_is_cut_into_passages():
    """Short paragraphs join the next; code, tables and solutions are left out."""
    text = (
        f"# Title\n\nshort\n\n{LONG}\n\n| a | b |\n|--|--|\n\n## Next\n\n{LONG}\n\n"
        f"```python\n{LONG} code\n```\n\n<details>\n\n{LONG}\n\n</details>\n\n"
        f"## Exercises\n\n{LONG}\n"
    )
    found = passages_of(text, "03-attention")
    assert found == [
        Passage("03-attention", "Title", f"short {LONG}"),
        Passage("03-attention", "Next", LONG),
    ]


def test_marks_are_taken_away():
    assert plain("> **Take-away.** See {term}`head`: $\\textcolor{#a65a00}{q}$") == (
        "Take-away. See head: ${q}$"
    )


def test_bm25_by_hand():
    """One word, two texts of equal length, of which one has it twice."""
    scores = bm25(["cat cat dog", "dog dog dog"], ["the cat"])
    rare = math.log(1 + 1.5 / 1.5)
    assert scores[0, 0].item() == pytest.approx(rare * 2 * 2.2 / (2 + 1.2))
    assert scores[0, 1] == 0


def test_a_question_is_found_if_any_passage_fits():
    passages = [Passage(name, "", "") for name in "aab"]
    scores = torch.tensor([[3.0, 2, 1], [1.0, 3, 2]])
    assert found_at(scores, passages, ["b", "b"], 1) == [False, False]
    assert found_at(scores, passages, ["b", "b"], 2) == [False, True]


def test_chance_is_a_draw_of_passages():
    passages = [Passage(name, "", "") for name in "aaab"]
    assert by_chance(passages, ["a", "b"], 1) == pytest.approx(0.5)
    assert by_chance(passages, ["b"], 2) == pytest.approx(1 - 0.75**2)


def test_an_interval_holds_its_share_and_stays_within_zero_and_one():
    low, high = interval(0, 20)
    assert low == pytest.approx(0, abs=1e-9)
    assert 0.1 < high < 0.2
    low, high = interval(40, 73)
    assert low < 40 / 73 < high


def test_a_difference_is_paired():
    """Two methods that miss the same questions do not differ at all."""
    same = [True, False, True, False]
    assert difference(same, same) == (0, 0)
    mean, error = difference([True, True, False, True], same)
    assert mean == pytest.approx(0.25 - 0.0)
    assert error > 0


def test_fusion_prefers_what_both_like():
    one, other = torch.tensor([[9.0, 8, 1, 0]]), torch.tensor([[0.0, 8, 1, 9]])
    assert fused(one, other).argmax().item() == 1


def test_the_record_holds_the_book_as_it_is_or_nearly():
    """Chapters change; when a fifth of the passages has, record them again."""
    today = {one.text for one in book_passages(ROOT)}
    recorded = [one["text"] for one in RECORD["passages"]]
    kept = sum(text in today for text in recorded)
    assert kept > 0.8 * len(recorded), (
        f"Only {kept} of {len(recorded)} recorded passages stand in the book today: "
        f"run {repeats(RECORD)} again."
    )


def test_the_record_asks_the_readers_questions():
    """All but those that came later or were reworded."""
    table = yaml.safe_load((ROOT / "book/data/questions.yml").read_text("utf-8"))
    recorded = {(one["ask"], one["chapter"]) for one in RECORD["questions"]}
    assert len(recorded & set(readers_questions(table))) > 0.9 * len(recorded)
    chapters = {one["chapter"] for one in RECORD["passages"]}
    assert {chapter for _, chapter in recorded} <= chapters
    assert set(PAGES) <= chapters
    assert not any(name.startswith("24-") for name in chapters)
