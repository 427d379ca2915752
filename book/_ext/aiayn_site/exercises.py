"""The exercises of all notebooks, and the page that lists them.

An exercise is a quote in a Markdown cell that any reader of notebooks can show::

    > **Exercise 3.1 — a soft look-up.** *Code · difficulty 1/3 · importance 3/3 ·
    > 10 minutes · needs [Many queries at once](#many-queries-at-once).* Write …

Folded hints follow it, and, where words are asked for, a folded solution that ends in
``**Marks, 3:** the one (1); the other (2).`` Code has its solution in the cell below.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

BOOK = Path(__file__).resolve().parents[2]
NOTEBOOKS = BOOK.parent / "notebooks"
PAGE = "book/teach/exercises"  # tools/site/readme.py writes its table
KINDS = ("Code", "Derive", "Think", "Play")

OPENING = re.compile(r"^> \*\*Exercise ", re.MULTILINE)
HEADER = re.compile(
    r"\*\*Exercise (?P<number>(?:\d+[a-z]?|[A-Z])\.\d+) — (?P<title>.+?)\*\* "
    rf"\*(?P<kind>{'|'.join(KINDS)}) · difficulty (?P<difficulty>[123])/3 · "
    r"importance (?P<importance>[123])/3 · (?P<minutes>\d+) minutes · "
    r"needs (?P<needs>.+?)\.\* (?P<text>.+)"
)
FORM = (
    "**Exercise 3.1 — title.** *Code · difficulty 1/3 · importance 3/3 · 10 minutes · "
    "needs [heading](#heading).* …"
)
HINT = re.compile(
    r"<details><summary>Hint(?: \d)?</summary>\n\n(.+?)\n\n</details>", re.S
)
SOLUTION = "<details><summary>Solution {} in words</summary>\n\n(.+?)\n\n</details>"
MARKS = re.compile(r"^\*\*Marks, (\d+):\*\* (.+?)\.$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r" \((\d+)\)(?:;|$)")
LOCAL_LINK = re.compile(r"\]\(#")


@dataclass(frozen=True)
class Exercise:
    """One exercise, as its notebook states it; words of it are Markdown."""

    chapter: str  # the notebook's name: 03-attention
    number: str  # 3.1
    title: str
    kind: str
    difficulty: int
    importance: int
    minutes: int
    needs: str  # links within the notebook, or to another one
    text: str
    hints: tuple[str, ...]
    solution: str | None  # words; None where the code below says all
    solution_in_code: bool

    @property
    def anchor(self) -> str:
        """Where it stands on its chapter's page."""
        return f"exercise-{self.number.lower().replace('.', '-')}"

    @property
    def marks(self) -> tuple[int, list[int]] | None:
        """How many marks the solution promises, and what each of its parts earns."""
        found = MARKS.search(self.solution or "")
        if found is None:
            return None
        parts = " ".join(found[2].split())
        return int(found[1]), [int(mark) for mark in MARK.findall(parts)]

    def link(self, folder: str = "../../notebooks") -> str:
        """Its number, in Markdown, as a link from a page of the book."""
        return f"[{self.number}]({folder}/{self.chapter}.ipynb#{self.anchor})"


def exercises_in(path: Path) -> Iterator[Exercise]:
    """The exercises of one notebook, in its order.

    Raises:
        ValueError: If a header has not the form that this module's docstring shows.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell, below in zip(cells, [*cells[1:], None], strict=True):
        text = "".join(cell["source"])
        starts = [found.start() for found in OPENING.finditer(text)]
        if cell["cell_type"] != "markdown" or not starts:
            continue
        ends = [*starts[1:], len(text)]
        for start, end in zip(starts, ends, strict=True):
            in_code = end == len(text) and _is_solution(below)
            yield _exercise(path.stem, text[start:end], in_code)


def all_exercises() -> list[Exercise]:
    """The exercises of the book, in its order."""
    return [e for path in sorted(NOTEBOOKS.glob("*.ipynb")) for e in exercises_in(path)]


def header_of(text: str) -> dict[str, str]:
    """The parts of an exercise's header, by the names in `HEADER`.

    Args:
        text: A Markdown text that begins with the exercise's quote.

    Raises:
        ValueError: If the header has not the form that this module's docstring shows.
    """
    quote = text.partition("\n\n")[0]
    line = " ".join(part.removeprefix(">").strip() for part in quote.splitlines())
    found = HEADER.fullmatch(line)
    if found is None:
        raise ValueError(
            f"The header of an exercise should read '{FORM}', but one reads "
            f"'{line[:160]}'."
        )
    words = found.groupdict()
    return words | {"title": words["title"].rstrip(".")}


def _exercise(chapter: str, text: str, in_code: bool) -> Exercise:
    try:
        words = header_of(text)
    except ValueError as error:
        raise ValueError(f"{chapter}: {error}") from None
    rest = text.partition("\n\n")[2]
    solution = re.search(SOLUTION.format(re.escape(words["number"])), rest, re.DOTALL)
    sizes = {
        name: int(words.pop(name)) for name in ("difficulty", "importance", "minutes")
    }
    return Exercise(
        chapter=chapter,
        hints=tuple(HINT.findall(rest)),
        solution=solution[1] if solution else None,
        solution_in_code=in_code,
        **words,
        **sizes,
    )


def _is_solution(cell: dict | None) -> bool:
    return bool(
        cell
        and cell["cell_type"] == "code"
        and "hide-cell" in cell["metadata"].get("tags", [])
    )


def table(exercises: list[Exercise]) -> str:
    """All exercises as a Markdown table; the script of the page adds the filter."""
    rows = [
        "| exercise | kind | difficulty | importance | minutes | needs |",
        "|--|--|--:|--:|--:|--|",
    ]
    for one in exercises:
        place = f"../../notebooks/{one.chapter}.ipynb"
        needs = LOCAL_LINK.sub(f"]({place}#", one.needs)
        needs = re.sub(r"\]\((\d\d[a-z]?-)", r"](../../notebooks/\1", needs)
        rows.append(
            f"| {one.link()} {one.title} | {one.kind.lower()} | {one.difficulty} "
            f"| {one.importance} | {one.minutes} | {needs} |"
        )
    return "\n".join(rows)


def summary(exercises: list[Exercise]) -> str:
    """How many there are of each kind, and how long they take together."""
    kinds = Counter(one.kind for one in exercises)
    listed = ", ".join(f"{kinds[kind]} *{kind.lower()}*" for kind in KINDS)
    hours = sum(one.minutes for one in exercises) / 60
    return f"{len(exercises)} exercises: {listed}. Together some {hours:.0f} hours."


def listed() -> str:
    """The summary and the table of all exercises, in Markdown."""
    exercises = all_exercises()
    return f"{summary(exercises)}\n\n{table(exercises)}"


def mark_table(app: Sphinx, doctree: nodes.document) -> None:
    """Let the style and the filter know the table of the page."""
    if app.env.docname == PAGE:
        for found in doctree.findall(nodes.table):
            found["classes"].append("exercise-list")


def add_script(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Give the page that holds the table its filter; no other page asks for it."""
    if "exercise-list" in (context.get("body") or ""):
        app.add_js_file("exercises.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Register the table's mark, the filter's script and its looks."""
    app.connect("doctree-read", mark_table)
    app.add_css_file("teach.css")
    app.connect("html-page-context", add_script)
