"""What the teacher's pages draw from data: ``{lesson-plans}`` and ``{question-bank}``.

``book/teach/lessons.yml`` holds for each notebook

- ``open``: the question to begin with;
- ``plan``: steps, each with its minutes (``min``), what to ``do``, and where it applies
  a heading of the notebook (``at``) or ``exercises``;
- ``show``: a demonstration to run live: heading (``at``), ``chart``, what to ``do``;
- ``expect``: what students get wrong (``says``), how to ``meet`` it, ``at`` which
  heading, and the reader's note that it was taken ``from``, if one was;
- ``cut``: what to leave out first;
- ``home``: the exercises that remain.

``book/teach/questions.yml`` holds the questions for examinations, by notebook. Both
become Markdown and are read as such, so the build checks every link.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from docutils import nodes
from mdit_py_plugins.anchors.index import slugify
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_site.chapters import number, parts
from aiayn_site.exercises import NOTEBOOKS, Exercise, all_exercises

TEACH = Path(__file__).resolve().parents[2] / "teach"
LESSONS = TEACH / "lessons.yml"
QUESTIONS = TEACH / "questions.yml"
MINUTES = 75  # of a lesson; two a week make a term of twelve weeks

KINDS = {
    "explain": "Explain",
    "calculate": "Calculate",
    "derive": "Derive",
    "decide": "True or false? Say why",
    "debug": "Find the mistake",
    "judge": "Judge",
}
HEADING = re.compile(r'"#{2,4} (.+?)(?:\\n)?"')


def lessons() -> dict[str, dict]:
    """The lesson plans, by notebook."""
    return yaml.safe_load(LESSONS.read_text(encoding="utf-8"))


def questions() -> dict[str, list[dict]]:
    """The question bank, by notebook."""
    return yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))


def headings(name: str) -> dict[str, str]:
    """The headings of a notebook by the anchors that links use."""
    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    titles = [title.replace("*", "").strip() for title in HEADING.findall(text)]
    return {slugify(title): title for title in titles}


def place(name: str, slug: str) -> str:
    """A link to a heading of a notebook, with its words."""
    return f"[{headings(name)[slug]}](../../notebooks/{name}.ipynb#{slug})"


def title_of(name: str, title: str) -> str:
    """A chapter's heading: with its number where it has one."""
    return f"{number(name)}. {title}" if number(name) else title


def lesson(name: str, plan: dict, exercises: dict[str, Exercise]) -> Iterator[str]:
    """One lesson plan in Markdown, paragraph by paragraph, without its heading."""
    yield f"**Open with.** {plan['open']}"
    yield f"**The {MINUTES} minutes**"
    yield "\n".join(_timeline(name, plan["plan"], exercises))
    show = plan["show"]
    yield (
        f"**Show live.** The chart *{show['chart']}* in {place(name, show['at'])}. "
        f"{show['do']}"
    )
    yield "**Expect, and meet**"
    yield "\n".join(
        f"- “{one['says']}” {one['meet']} ({place(name, one['at'])})"
        for one in plan["expect"]
    )
    yield f"**Cut first.** {plan['cut']}"
    home = [exercises[key] for key in plan["home"]]
    yield (
        f"**At home** ({sum(one.minutes for one in home)} minutes). "
        + "; ".join(map(described, home))
        + "."
    )


def described(exercise: Exercise) -> str:
    """An exercise in a line: number, title, kind, minutes."""
    kind = exercise.kind.lower()
    return f"{exercise.link()} *{exercise.title}* ({kind}, {exercise.minutes} minutes)"


def _timeline(name: str, plan: list[dict], by_number: dict) -> Iterator[str]:
    begin = 0
    for step in plan:
        end = begin + step["min"]
        told = step["do"]
        if "exercises" in step:
            told += " " + "; ".join(described(by_number[n]) for n in step["exercises"])
            told += "."
        if "at" in step:
            told += f" ({place(name, step['at'])})"
        yield f"- **{begin}–{end}** {told}"
        begin = end


def question(chapter: str, order: int, asked: dict) -> Iterator[str]:
    """One question in Markdown, its answer folded."""
    name = f"{chapter}{chr(ord('a') + order)}"
    kind, marks = KINDS[asked["kind"]], asked["marks"]
    yield f"**{name}.** *{kind} · {marks} marks.* {asked['ask'].strip()}"
    yield "<details><summary>Answer</summary>"
    yield asked["answer"].strip()
    earned = "; ".join(f"{what} ({many})" for what, many in asked["earns"].items())
    yield f"**Marks, {marks}:** {earned}."
    yield "</details>"


class LessonPlans(SphinxDirective):
    """The lesson plans of one part of the book, which the argument counts from 1."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        exercises = {one.number: one for one in all_exercises()}
        plans = lessons()
        written = []
        for chapter in parts()[int(self.arguments[0]) - 1]["chapters"]:
            name = chapter["name"]
            if name not in plans:  # an appendix
                continue
            self.env.note_dependency(str(NOTEBOOKS / f"{name}.ipynb"))
            written.append(f"## {title_of(name, chapter['title'])}")
            written.append(
                f"*{chapter['question']}* [The chapter](../../notebooks/{name}.ipynb)"
            )
            written += lesson(name, plans[name], exercises)
        text = "\n\n".join(written)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class QuestionBank(SphinxDirective):
    """All questions, chapter by chapter."""

    def run(self) -> list[nodes.Node]:
        bank = questions()
        written = []
        for part in parts():
            for chapter in part["chapters"]:
                name = chapter["name"]
                if name not in bank:  # an appendix
                    continue
                written.append(f"## {title_of(name, chapter['title'])}")
                for order, asked in enumerate(bank[name]):
                    written += question(number(name) or "B", order, asked)
        text = "\n\n".join(written)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict:
    """Register the directives."""
    app.add_directive("lesson-plans", LessonPlans)
    app.add_directive("question-bank", QuestionBank)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
