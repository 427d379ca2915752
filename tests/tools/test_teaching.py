"""The teacher's pages: lesson plans and question bank against the notebooks."""

import json
import math
import re
from collections import Counter

import nbformat
import pytest
import yaml

from aiayn_site import teaching
from aiayn_site.chapters import taught
from aiayn_site.exercises import NOTEBOOKS, all_exercises
from slides.deck import slides_of

LESSONS = teaching.lessons()
BANK = teaching.questions()
CHAPTERS = taught()
EXERCISES = {one.number: one for one in all_exercises()}


def bare(line):
    """A heading without its emphasis, as `teaching.headings` gives it."""
    return line.replace("*", "").rstrip()


def section(name, slug):
    """The cells under a heading; strings that are only broken between lines joined."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))["cells"]
    lines = [
        line if cell["cell_type"] == "markdown" else f" {line}"  # no heading: "# …"
        for cell in cells
        for line in "".join(cell["source"]).split("\n")
    ]
    title = teaching.headings(name)[slug]
    heading = re.compile(rf"#+ {re.escape(title)}")
    begin = next(n for n, line in enumerate(lines) if heading.fullmatch(bare(line)))
    level = lines[begin].index(" ")
    rest = enumerate(lines[begin + 1 :], start=begin + 1)
    end = next((n for n, line in rest if re.match(rf"#{{1,{level}}} ", line)), None)
    text = "\n".join(lines[begin:end])
    return " ".join(re.sub(r'"\s*\n\s*"', "", text).split())


def steps_with(name, field):
    return [step for step in LESSONS[name]["plan"] if field in step]


def test_every_chapter_has_a_plan_and_questions():
    """In the order of the book."""
    assert list(LESSONS) == CHAPTERS
    assert list(BANK) == CHAPTERS


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_has_its_fields_and_no_others(name):
    """A misspelt field would be left out in silence."""
    plan = LESSONS[name]
    assert set(plan) == {"open", "plan", "show", "expect", "cut", "home"}
    assert set(plan["show"]) == {"at", "chart", "do"}
    for step in plan["plan"]:
        assert {"min", "do"} <= set(step) <= {"min", "do", "at", "exercises"}
    for one in plan["expect"]:
        assert {"says", "meet", "at"} <= set(one) <= {"says", "meet", "at", "from"}
    assert len(plan["expect"]) >= 2
    assert plan["open"].endswith("?")


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_fits_its_lesson(name):
    """75 minutes, and exercises no longer than the time that they are given."""
    steps = LESSONS[name]["plan"]
    assert sum(step["min"] for step in steps) == teaching.MINUTES
    for step in steps_with(name, "exercises"):
        needed = sum(EXERCISES[number].minutes for number in step["exercises"])
        assert needed <= step["min"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_leads_to_places_that_exist(name):
    """Headings and charts of the chapter's own notebook."""
    plan = LESSONS[name]
    slugs = [step["at"] for step in steps_with(name, "at")]
    slugs += [one["at"] for one in plan["expect"]] + [plan["show"]["at"]]
    assert set(slugs) <= set(teaching.headings(name))
    assert plan["show"]["chart"] in section(name, plan["show"]["at"])


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_s_chart_is_on_a_slide(name):
    """A teacher who shows the deck has it there."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    figures = [slide.cell for slide in slides_of(notebook) if slide.kind == "figure"]
    shown = [re.sub(r'"\s*\n\s*"', "", cell.source) for cell in figures if cell]
    assert any(LESSONS[name]["show"]["chart"] in source for source in shown)


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_exercise_is_done_once(name):
    """In class or at home."""
    done = [n for step in steps_with(name, "exercises") for n in step["exercises"]]
    done += LESSONS[name]["home"]
    own = [one.number for one in EXERCISES.values() if one.chapter == name]
    assert sorted(done) == sorted(own)


def test_misconceptions_come_from_readers():
    """Whoever is named asked a question that the book answers."""
    path = teaching.TEACH.parent / "data" / "questions.yml"
    asked = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {
        note for items in asked.values() for item in items for note in item["from"]
    }
    named = [
        one["from"]
        for plan in LESSONS.values()
        for one in plan["expect"]
        if "from" in one
    ]
    assert set(named) <= known
    assert len(named) >= 30


def test_the_bank_is_large_and_mixed():
    """Sixty questions at least, and two kinds or more in each chapter."""
    asked = [question for questions in BANK.values() for question in questions]
    assert len(asked) >= 60
    assert len({question["ask"] for question in asked}) == len(asked)
    assert set(Counter(question["kind"] for question in asked)) == set(teaching.KINDS)
    assert all(len({q["kind"] for q in questions}) >= 2 for questions in BANK.values())


@pytest.mark.parametrize(
    "asked",
    [question for questions in BANK.values() for question in questions],
    ids=lambda question: question["ask"][:30],
)
def test_a_question_says_what_earns_its_marks(asked):
    """And the arithmetic of its answer is true."""
    fields = {"kind", "marks", "ask", "answer", "earns"}
    assert fields <= set(asked) <= fields | {"by"}
    assert sum(asked["earns"].values()) == asked["marks"]
    assert len(asked["earns"]) >= 2
    assert all(isinstance(what, str) for what in asked["earns"])
    assert asked["kind"] != "calculate" or "by" in asked
    if "by" in asked:
        assert eval(asked["by"], {"math": math}) is True


SYLLABUSES = (teaching.TEACH / "syllabuses.md").read_text(encoding="utf-8")


def test_syllabuses_name_exercises_that_exist():
    """Whatever looks like the number of an exercise is one."""
    named = set(re.findall(r"\b(?:\d+[a-z]?|B)\.\d\b", SYLLABUSES))
    assert len(named) > 30
    assert named <= set(EXERCISES)


def test_the_term_has_a_lesson_for_each_chapter():
    """Two a week, in twelve weeks."""
    term = SYLLABUSES[SYLLABUSES.index("## A term") :]
    rows = [line for line in term.splitlines() if re.match(r"\| \d+ \|", line)]
    taught = re.findall(r"notebooks/([\w-]+)\.ipynb\)", "".join(rows))
    assert len(rows) == 12
    assert sorted(taught) == sorted(CHAPTERS)


def test_a_lesson_in_markdown():
    """Times follow one another, and links lead out of the folder of the page."""
    text = "\n\n".join(
        teaching.lesson("03-attention", LESSONS["03-attention"], EXERCISES)
    )
    assert "- **0–10** " in text
    assert "**70–75** " in text
    assert "[3.1](../../notebooks/03-attention.ipynb#exercise-3-1)" in text
    assert "**At home** (25 minutes)." in text
