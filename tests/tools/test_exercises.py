"""The exercises of all notebooks: their form, their number, and what helps."""

import importlib
import json
import re
from collections import Counter, defaultdict

import pytest

from aiayn_site import chapters, exercises, teaching
from aiayn_site.chapters import taught
from aiayn_site.exercises import KINDS, NOTEBOOKS, OPENING, all_exercises

EXERCISES = all_exercises()
LINK = re.compile(r"\[[^\]]+\]\((?P<file>[^)#]*)#(?P<slug>[^)]+)\)")
NAMES = [one.number for one in EXERCISES]
GOOD = (
    "> **Exercise 3.1 — a look-up.** *Code · difficulty 2/3 · importance 3/3 ·\n"
    "> 10 minutes · needs [Many](#many) and exercise 2.1.* Write it.\n"
)


def notebook(path, *cells):
    """A notebook of (kind, text, tags) on disk."""
    made = [
        {"cell_type": kind, "source": [text], "metadata": {"tags": tags}}
        for kind, text, tags in cells
    ]
    path.write_text(json.dumps({"cells": made}), encoding="utf-8")
    return path


def test_an_exercise_is_read_whole(tmp_path):
    """Header, hints, solution with its marks, and the cell below."""
    text = (
        f"Before it.\n\n{GOOD}\n"
        "<details><summary>Hint 1</summary>\n\nFirst.\n\n</details>\n\n"
        "<details><summary>Hint 2</summary>\n\nThen.\n\n</details>\n\n"
        "<details><summary>Solution 3.1 in words</summary>\n\nSo.\n\n"
        "**Marks, 3:** the one (2); 4\nthings $f(3)$ (1).\n\n</details>"
    )
    path = notebook(
        tmp_path / "03-x.ipynb",
        ("markdown", text, []),
        ("code", "solution", ["hide-cell"]),
    )
    (one,) = exercises.exercises_in(path)
    assert (one.number, one.title, one.kind) == ("3.1", "a look-up", "Code")
    assert (one.difficulty, one.importance, one.minutes) == (2, 3, 10)
    assert one.needs == "[Many](#many) and exercise 2.1"
    assert one.hints == ("First.", "Then.")
    assert one.marks == (3, [2, 1])
    assert one.solution_in_code
    assert one.anchor == "exercise-3-1"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("difficulty 2/3", "difficulty 2"),
        ("difficulty 2/3", "difficulty 4/3"),
        ("Code", "code"),
        (" · needs [Many](#many) and exercise 2.1", ""),
        ("10 minutes", "10 min"),
    ],
)
def test_another_header_is_refused(tmp_path, right, wrong):
    """In words that show the form."""
    text = GOOD.replace("·\n> 10", "· 10").replace(right, wrong)
    path = notebook(tmp_path / "03-x.ipynb", ("markdown", text, []))
    with pytest.raises(ValueError, match="should read"):
        list(exercises.exercises_in(path))


def test_no_exercise_is_overlooked():
    """Each quote that opens as one is one; numbers follow the chapter, from 1 on."""
    opened = sum(
        len(OPENING.findall("".join(cell["source"])))
        for path in NOTEBOOKS.glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    assert len(EXERCISES) == opened
    by_chapter = defaultdict(list)
    for one in EXERCISES:
        by_chapter[one.chapter].append(one.number)
    for chapter, numbers in by_chapter.items():
        own = chapters.number(chapter) or "B"
        assert numbers == [f"{own}.{n}" for n in range(1, len(numbers) + 1)]


def test_there_are_enough_of_each_kind():
    """A hundred over the book, and all four kinds in every chapter but an appendix."""
    assert len(EXERCISES) >= 100
    kinds = defaultdict(Counter)
    for one in EXERCISES:
        kinds[one.chapter][one.kind] += 1
    written = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert set(kinds) == written & set(taught())
    assert all(set(counts) == set(KINDS) for counts in kinds.values())


@pytest.mark.parametrize("one", EXERCISES, ids=NAMES)
def test_each_has_hints_and_a_solution(one):
    """Two hints at least where it is difficult; marks where words are asked for."""
    assert len(one.hints) >= (1 if one.difficulty == 1 else 2)
    assert one.solution or one.solution_in_code
    if one.kind in ("Derive", "Think"):
        assert one.solution, "a model answer in words"
        total, parts = one.marks
        assert total == sum(parts) >= 2
        assert len(parts) >= 2


@pytest.mark.parametrize("one", EXERCISES, ids=NAMES)
def test_what_an_exercise_needs_is_there_before_it(one):
    """A heading of its own chapter or another's, or an exercise."""
    found = list(LINK.finditer(one.needs))
    named = re.findall(r"exercise ((?:\d+[a-z]?|[A-Z])\.\d)", one.needs)
    assert found or named
    for link in found:
        name = link["file"].removesuffix(".ipynb") or one.chapter
        assert link["slug"] in teaching.headings(name)
    for number in named:
        assert NAMES.index(number) < NAMES.index(one.number)


@pytest.mark.parametrize("one", [e for e in EXERCISES if e.kind == "Code"], ids=str)
def test_code_is_checked(one):
    """The text names the check, and the chapter's module has it."""
    numbered = chapters.number(one.chapter)
    module = one.chapter.partition("-")[0]
    name = f"chapter_{module}" if numbered else "bug_clinic"
    checks = importlib.import_module(f"aiayn_book.checks.{name}")
    named = re.findall(rf"`{name}\.(\w+)\(", one.text)
    assert named
    assert all(hasattr(checks, check) for check in named)
    assert one.solution_in_code


def test_the_page_lists_them_all():
    """A row each, whose links lead from the page to the chapters."""
    rows = exercises.table(EXERCISES).splitlines()[2:]
    assert len(rows) == len(EXERCISES)
    for row in rows:
        assert row.count("](") == row.count("](../../notebooks/") >= 1
    counts = [int(n) for n in re.findall(r"\d+", exercises.summary(EXERCISES))]
    assert counts[0] == sum(counts[1:5]) == len(EXERCISES)
