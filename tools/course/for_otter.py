"""Assignments in the form of Otter Assign: one master notebook a chapter.

``otter assign`` makes the students' notebook and the autograder's archive out of it.
The tests are of the kind that fails when it raises, so that a student reads the words
of the check.
"""

import copy
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from tools.course.assignments import ANSWER_HERE, FROM_THE_CHAPTER, Assignment
from tools.course.exercises import Exercise
from tools.course.solutions import BEGIN, END, Solution, todo
from tools.site.notebooks import METADATA

TEST = """\
{mark}def test_exercise_{slug}({given}):
    from aiayn_book.checks import {module}

    {call}"""


def write_otter(assignments: list[Assignment], folder: Path, address: str) -> None:
    """Write a folder a chapter, each with its master notebook."""
    for assignment in assignments:
        place = folder / assignment.name
        place.mkdir(parents=True, exist_ok=True)
        notebook = otter_master(assignment, address)
        nbformat.write(notebook, place / f"{assignment.name}.ipynb")


def otter_master(assignment: Assignment, address: str) -> NotebookNode:
    """The master notebook of one assignment."""
    config = {
        "name": assignment.name,
        # Where Otter builds an environment to grade in, it gets the package from here.
        "requirements": [f"aiayn[book] @ git+{address}"],
        "tests": {"ok_format": False},
        "generate": {"show_hidden": False},
        "export_cell": False,
    }
    notebook = new_notebook(metadata=copy.deepcopy(METADATA))
    notebook.cells = [
        _raw("ASSIGNMENT CONFIG", config),
        new_markdown_cell(assignment.introduction),
        new_code_cell(assignment.set_up.source),
    ]
    if assignment.before:
        notebook.cells.append(new_markdown_cell(FROM_THE_CHAPTER))
    notebook.cells += [new_code_cell(cell.source) for cell in assignment.before]
    for exercise in assignment.exercises:
        if exercise.in_words:
            notebook.cells += _question_in_words(exercise)
        else:
            notebook.cells.append(new_markdown_cell(exercise.statement))
        if exercise.checked:
            notebook.cells += _checked_question(exercise)
    nbformat.validate(notebook)
    return notebook


def _raw(words: str, config: dict | None = None) -> NotebookNode:
    """One of the raw cells by which Otter knows its way."""
    text = yaml.safe_dump(config, sort_keys=False) if config else ""
    return new_raw_cell(f"# {words}\n{text}".rstrip())


def _question_in_words(exercise: Exercise) -> list[NotebookNode]:
    config = {
        "name": f"words_{exercise.slug}",
        "manual": True,
        "points": exercise.points[1],
    }
    here = ANSWER_HERE.format(number=exercise.number)
    return [
        _raw("BEGIN QUESTION", config),
        # Otter locks a question's first cell, so that must not be the student's.
        new_markdown_cell(exercise.statement),
        _raw("BEGIN PROMPT"),
        new_markdown_cell(here),
        _raw("END PROMPT"),
        _raw("BEGIN SOLUTION"),
        new_markdown_cell(exercise.model_answer or here),
        _raw("END SOLUTION"),
        _raw("END QUESTION"),
    ]


def _checked_question(exercise: Exercise) -> list[NotebookNode]:
    solution = exercise.solution
    config = {
        "name": f"exercise_{exercise.slug}",
        "points": exercise.points[0],
        "all_or_nothing": True,
    }
    tests = [_test(exercise, f"{solution.checked}({solution.given})")]
    if solution.again:
        tests.append(_test(exercise, solution.again, mark="# HIDDEN\n"))
    return [
        _raw("BEGIN QUESTION", config),
        _raw("BEGIN SOLUTION"),
        new_code_cell(_answer(solution, exercise.number)),
        _raw("END SOLUTION"),
        _raw("BEGIN TESTS"),
        *tests,
        _raw("END TESTS"),
        _raw("END QUESTION"),
    ]


def _test(exercise: Exercise, call: str, mark: str = "") -> NotebookNode:
    solution = exercise.solution
    return new_code_cell(
        TEST.format(
            mark=mark,
            slug=exercise.slug,
            given=solution.given,
            module=solution.checked.partition(".")[0],
            call=call,
        )
    )


def _answer(solution: Solution, number: str) -> str:
    """The answer with Otter's marks, and the stub as its prompt."""
    lines = []
    for line in solution.answer.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() == BEGIN:
            lines.append(f"{indent}# BEGIN SOLUTION NO PROMPT")
        elif line.strip() == END:
            prompt = ['""" # BEGIN PROMPT', *todo(number), '""" # END PROMPT']
            lines += [indent + text for text in ("# END SOLUTION", *prompt)]
        else:
            lines.append(line)
    return "\n".join(lines)
