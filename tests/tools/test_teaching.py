"""The teacher's pages: lesson plans and question bank against the notebooks."""

import json
import math
import re
from collections import Counter

import nbformat
import pytest
import yaml

from aiayn_site.chapters import parts, taught
from aiayn_site.exercises import BOOK, NOTEBOOKS, all_exercises
from tests.tools.conftest import headings
from tools.course import examination
from tools.site import readme
from tools.site.slides.deck import slides_of

TEACH = BOOK / "teach"
BANK = examination.bank()
TEXT_OF_BANK = examination.BANK.read_text(encoding="utf-8")
LISTED = ("question-bank.md", "exercises.md")
CHAPTERS = taught()
EXERCISES = {one.number: one for one in all_exercises()}
MINUTES = 75  # of a lesson; two a week make a term of twelve weeks
KINDS = {
    "Explain",
    "Calculate",
    "Derive",
    "True or false? Say why",
    "Find the mistake",
    "Judge",
}
LINK = re.compile(r"\]\(\.\./\.\./notebooks/([\w-]+)\.ipynb(?:#([\w-]+))?\)")
PLAN = re.compile(
    r"## (?P<title>[^\n]+)\n\n"
    r"\*(?P<question>.+?)\* \[The chapter\]\(\S+/(?P<name>[\w-]+)\.ipynb\)\n\n"
    r"\*\*Open with\.\*\* (?P<open>[^\n]+\?)\n\n"
    r"\*\*The 75 minutes\*\*\n\n(?P<steps>(?:- [^\n]+\n)+)\n"
    r"\*\*Show live\.\*\* The chart \*(?P<chart>.+?)\* in \[.+?\]\(\S+#(?P<at>\S+)\)\. "
    r"(?P<do>[^\n]+)\n\n"
    r"\*\*Expect, and meet\*\*\n\n(?P<expect>(?:- “[^\n]+\n){2,})\n"
    r"\*\*Cut first\.\*\* (?P<cut>[^\n]+)\n\n"
    r"\*\*At home\*\* \((?P<minutes>\d+) minutes\)\. (?P<home>[^\n]+)\.\n"
)
STEP = re.compile(r"- \*\*(\d+)–(\d+)\*\* (.+)")


def plans():
    """The plans by chapter; the lines of a paragraph or an item are joined."""
    for order, part in enumerate(parts(), start=1):
        text = (TEACH / f"lessons-{order}.md").read_text("utf-8")
        _, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
        names = [one["name"] for one in part["chapters"] if one["name"] in CHAPTERS]
        assert len(sections) == len(names), f"plans on page {order}, and its chapters"
        for name, section in zip(names, sections, strict=True):
            lines = re.sub(r"(?<=[^\n])\n(?!\n|- ) *", " ", section.rstrip()) + "\n"
            found = PLAN.fullmatch(lines)
            assert found, f"The plan of {name} has not the parts that PLAN names."
            yield name, found


LESSONS = dict(plans())


def steps_of(name):
    """Begin, end and what is done, of each step."""
    found = STEP.findall(LESSONS[name]["steps"])
    return [(int(begin), int(end), told) for begin, end, told in found]


def exercises_in(told):
    """The exercises that are linked to."""
    return [EXERCISES[one] for one in re.findall(r"\[((?:\d+[a-z]?|B)\.\d)\]", told)]


def described(one):
    """An exercise as a plan names it: number, title, kind, minutes."""
    return f"{one.link()} *{one.title}* ({one.kind.lower()}, {one.minutes} minutes)"


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
    title = headings(name)[slug]
    heading = re.compile(rf"#+ {re.escape(title)}")
    begin = next(n for n, line in enumerate(lines) if heading.fullmatch(bare(line)))
    level = lines[begin].index(" ")
    rest = enumerate(lines[begin + 1 :], start=begin + 1)
    end = next((n for n, line in rest if re.match(rf"#{{1,{level}}} ", line)), None)
    text = "\n".join(lines[begin:end])
    return " ".join(re.sub(r'"\s*\n\s*"', "", text).split())


def test_every_chapter_has_a_plan_and_questions():
    """In the order of the book, under its title and its question."""
    assert list(LESSONS) == CHAPTERS
    chapters = [one for part in parts() for one in part["chapters"]]
    numbers = []
    for chapter in chapters:
        if chapter["name"] not in CHAPTERS:
            continue
        head = chapter["name"].partition("-")[0]
        number = head.lstrip("0") if head[0].isdigit() else ""
        title = f"{number}. {chapter['title']}" if number else chapter["title"]
        plan = LESSONS[chapter["name"]]
        assert (plan["title"], plan["question"]) == (title, chapter["question"])
        assert plan["name"] == chapter["name"]
        assert f"\n## {title}\n\n**{number or 'B'}a.** " in TEXT_OF_BANK
        numbers.append(number or "B")
    assert list(dict.fromkeys(name[:-1] for name in BANK)) == numbers


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_fits_its_lesson(name):
    """75 minutes without a gap, and exercises no longer than the time given them."""
    steps = steps_of(name)
    times = [time for begin, end, _ in steps for time in (begin, end)]
    assert times[0] == 0
    assert times[-1] == MINUTES
    assert times[1:-1:2] == times[2::2]
    assert times == sorted(times)
    for begin, end, told in steps:
        assert sum(one.minutes for one in exercises_in(told)) <= end - begin


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_leads_to_places_that_exist(name):
    """Headings, charts and exercises of the chapter's own notebook."""
    plan = LESSONS[name]
    own = {one.anchor for one in EXERCISES.values() if one.chapter == name}
    found = LINK.findall(plan[0])
    assert plan[0].count("](") == len(found)
    assert {chapter for chapter, _ in found} == {name}
    assert {slug for _, slug in found if slug} <= set(headings(name)) | own
    assert plan["chart"] in section(name, plan["at"])


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_plan_s_chart_is_on_a_slide(name):
    """A teacher who shows the deck has it there."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    figures = [slide.cell for slide in slides_of(notebook) if slide.kind == "figure"]
    shown = [re.sub(r'"\s*\n\s*"', "", cell.source) for cell in figures if cell]
    assert any(LESSONS[name]["chart"] in source for source in shown)


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_exercise_is_done_once(name):
    """In class or at home, and the plan says of each what the notebook says."""
    plan = LESSONS[name]
    home = exercises_in(plan["home"])
    done = [*exercises_in(plan["steps"]), *home]
    own = [one for one in EXERCISES.values() if one.chapter == name]
    assert sorted(done, key=lambda one: one.number) == own
    for one in own:
        assert described(one) in plan[0]
    assert int(plan["minutes"]) == sum(one.minutes for one in home)


def test_misconceptions_come_from_readers():
    """Whoever is named asked a question that the book answers."""
    path = BOOK / "data" / "questions.yml"
    asked = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {
        note for items in asked.values() for item in items for note in item["from"]
    }
    expected = "".join(plan["expect"] for plan in LESSONS.values())
    named = re.findall(r"<!-- reader (\S+) -->", expected)
    assert set(named) <= known
    assert len(named) == expected.count("<!--") >= 30


def test_the_bank_is_large_and_mixed():
    """Sixty questions at least, and two kinds or more in each chapter."""
    asked = list(BANK.values())
    assert len(asked) >= 60
    assert len(asked) == TEXT_OF_BANK.count("<details>")  # none is overlooked
    assert len({question["ask"] for question in asked}) == len(asked)
    assert set(Counter(question["kind"] for question in asked)) == KINDS
    kinds = {}
    for name, question in BANK.items():
        kinds.setdefault(name[:-1], set()).add(question["kind"])
    assert all(len(some) >= 2 for some in kinds.values())
    for name in kinds:
        letters = "".join(one[-1] for one in BANK if one[:-1] == name)
        assert "abcdefgh".startswith(letters)


@pytest.mark.parametrize("name", BANK)
def test_a_question_says_what_earns_its_marks(name):
    """And the arithmetic of its answer is true."""
    asked = BANK[name]
    assert sum(asked["earns"].values()) == asked["marks"]
    assert len(asked["earns"]) >= 2
    assert asked["kind"] != "Calculate" or asked["by"]
    if asked["by"]:
        assert eval(asked["by"], {"math": math}) is True


def test_the_pages_that_a_clone_shows_are_up_to_date():
    """All exercises are listed without a build, and so are the chapters."""
    for file, (name, make) in readme.LISTS.items():
        page = (BOOK.parent / file).read_text(encoding="utf-8")
        assert readme.updated(page, name, make()) == page, "run 'make format'"


def test_what_a_teacher_reads_needs_no_build():
    """Plans, questions and exercises are there in a clone, as plain Markdown."""
    pages = [*TEACH.glob("lessons-*.md"), *map(TEACH.joinpath, LISTED)]
    assert len(pages) == len(parts()) + 2
    for page in pages:
        assert "```{" not in page.read_text(encoding="utf-8"), page


SYLLABUSES = (TEACH / "syllabuses.md").read_text(encoding="utf-8")


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
