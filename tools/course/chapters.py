"""Whole chapters for a course: one copy for students, one for whoever teaches.

The student's chapter is the book's, with a line to replace where a solution stood and
without the solutions in words; visible checks stay. The instructor's has everything
open: solutions, model answers, points, and the checks that students do not see.
"""

import copy
import re
from collections.abc import Collection

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools.course.exercises import Exercise, without_solutions
from tools.course.links import to_itself_in_colab, to_the_site, without_colab
from tools.course.solutions import stub

LICENCE = (
    "*From* Attention Is All You Need, executable *({address}). Text and figures: CC "
    "BY 4.0. Code: MIT licence.*"
)
WHERE_TO_ANSWER = re.compile(r"(?<=^## Exercises\n\n)[^\n]*(?:\n[^\n]+)*", re.MULTILINE)
ANSWER_BELOW = (
    "Put your answer in place of the line that raises `NotImplementedError`. The cell "
    "after it checks your answer and says what is wrong, if anything is."
)
ANSWER_IN_WORDS = "*Exercise {number}, in your own words:* …"


def student_chapter(
    name: str,
    notebook: NotebookNode,
    exercises: list[Exercise],
    place: tuple[str, str],
    here: Collection[str],
) -> NotebookNode:
    """The chapter with a stub for each solution.

    Args:
        name: the notebook's name without its ending.
        notebook: the solved chapter.
        exercises: its exercises.
        place: the repository's address and branch.
        here: the names of all chapters that will stand beside it.
    """
    address, branch = place
    by_cell = {e.solution_cell: e for e in exercises if e.solution_cell}
    result = copy.deepcopy(notebook)
    result.cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if text := without_solutions(cell.source):
                text = to_the_site(text, name, address, here)
                text = to_itself_in_colab(text, branch)
                text = WHERE_TO_ANSWER.sub(ANSWER_BELOW, text)
                result.cells.append(new_markdown_cell(text, id=cell.id))
            result.cells += _answers_in_words(exercises, cell.id)
        elif cell.id in by_cell:
            result.cells += _stub_cells(by_cell[cell.id])
        else:
            result.cells.append(copy.deepcopy(cell))
    result.cells.append(
        new_markdown_cell(LICENCE.format(address=address), id="licence")
    )
    nbformat.validate(result)
    return result


def _answers_in_words(
    exercises: list[Exercise], statement_cell: str
) -> list[NotebookNode]:
    return [
        new_markdown_cell(ANSWER_IN_WORDS.format(number=e.number), id=f"words-{e.slug}")
        for e in exercises
        if e.in_words and e.statement_cell == statement_cell
    ]


def _stub_cells(exercise: Exercise) -> list[NotebookNode]:
    """What the student writes, the check, and what the answer is good for."""
    solution = exercise.solution
    if not exercise.checked:
        text = f"# Exercise {exercise.number}: a cell to try things in."
        return [new_code_cell(text, id=f"answer-{exercise.slug}")]
    answer = stub(solution.answer, exercise.number)
    cells = [
        new_code_cell(answer, id=f"answer-{exercise.slug}"),
        new_code_cell(solution.check, id=f"check-{exercise.slug}"),
    ]
    # What follows the check of a value retraces how it is found.
    if solution.rest and solution.is_function:
        cells.append(new_code_cell(solution.rest, id=f"rest-{exercise.slug}"))
    return cells


def instructor_chapter(
    name: str,
    notebook: NotebookNode,
    exercises: list[Exercise],
    address: str,
    here: Collection[str],
) -> NotebookNode:
    """The chapter with every solution open, points, and the hidden checks."""
    by_cell = {e.solution_cell: e for e in exercises if e.solution_cell}
    result = copy.deepcopy(notebook)
    cells, result.cells = result.cells, []
    for cell in cells:
        if cell.cell_type == "code" and cell.id in by_cell:
            cell.metadata = {}
            result.cells += [cell, *_hidden_check(by_cell[cell.id])]
            continue
        if cell.cell_type == "markdown":
            text = cell.source.replace("<details>", "<details open>")
            cell.source = without_colab(to_the_site(text, name, address, here))
        result.cells.append(cell)
        result.cells += [
            new_markdown_cell(_points_in_words(e), id=f"points-{e.slug}")
            for e in exercises
            if e.statement_cell == cell.id
        ]
    nbformat.validate(result)
    return result


def _hidden_check(exercise: Exercise) -> list[NotebookNode]:
    if not exercise.solution.again:
        return []
    text = f"# Hidden from students.\n{exercise.solution.again}"
    return [new_code_cell(text, id=f"hidden-{exercise.slug}")]


def _points_in_words(exercise: Exercise) -> str:
    by_check, in_words = exercise.points
    parts = []
    if by_check:
        parts.append(f"{by_check} by the check")
    if in_words:
        parts.append(f"{in_words} for the words, read by a person")
    return (
        f"*Points of exercise {exercise.number}:* {by_check + in_words} "
        f"({', '.join(parts)})."
    )
