"""Assignments in nbgrader's form: a course folder with one source notebook a chapter.

``nbgrader generate_assignment`` makes the students' version out of it, which lacks the
solutions and the hidden checks, and ``nbgrader autograde`` marks what they hand in.
"""

import copy
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.course.assignments import ANSWER_HERE, FROM_THE_CHAPTER, Assignment
from tools.course.exercises import Exercise
from tools.site.notebooks import METADATA, SET_UP_ID

SCHEMA = 3  # of nbgrader's cell metadata
CONFIG = '''\
"""nbgrader reads this in the folder in which it is called."""

c = get_config()  # noqa: F821 (nbgrader gives it)
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {
    "python": "# Put your answer in place of the next line.\\n"
    'raise NotImplementedError("This exercise is to be done.")'
}
c.ClearSolutions.text_stub = "*Write your answer here, in words.*"
# The longest chapter's cells take less than a tenth of this on one core.
c.ExecutePreprocessor.timeout = 600
'''


def write_nbgrader(assignments: list[Assignment], folder: Path) -> None:
    """Write the course folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    for assignment in assignments:
        place = folder / "source" / assignment.name
        place.mkdir(parents=True, exist_ok=True)
        notebook = nbgrader_source(assignment)
        nbformat.write(notebook, place / f"{assignment.name}.ipynb")


def nbgrader_source(assignment: Assignment) -> NotebookNode:
    """The source notebook of one assignment."""
    notebook = new_notebook(metadata=copy.deepcopy(METADATA))
    cells = [
        _locked(new_markdown_cell(assignment.introduction, id="introduction")),
        _locked(new_code_cell(assignment.set_up.source, id=SET_UP_ID)),
    ]
    if assignment.before:
        cells.append(
            _locked(new_markdown_cell(FROM_THE_CHAPTER, id="from-the-chapter"))
        )
    cells += [
        _locked(new_code_cell(c.source, id=f"from-{c.id}")) for c in assignment.before
    ]
    for exercise in assignment.exercises:
        cells += _exercise_cells(exercise)
    notebook.cells = cells
    nbformat.validate(notebook)
    return notebook


def _exercise_cells(exercise: Exercise) -> list[NotebookNode]:
    slug, (by_check, in_words) = exercise.slug, exercise.points
    cells = [
        _locked(new_markdown_cell(exercise.statement, id=f"exercise-{slug}")),
    ]
    if exercise.in_words:
        text = exercise.model_answer or ANSWER_HERE.format(number=exercise.number)
        cell = new_markdown_cell(text, id=f"words-{slug}")
        cells.append(_marked(cell, solution=True, points=in_words))
    if exercise.checked:
        solution = exercise.solution
        answer = new_code_cell(solution.answer, id=f"answer-{slug}")
        cells.append(_marked(answer, solution=True))
        text = solution.check
        if solution.again:
            text += f"\n### BEGIN HIDDEN TESTS\n{solution.again}\n### END HIDDEN TESTS"
        check = new_code_cell(text, id=f"check-{slug}")
        cells.append(_marked(check, points=by_check))
    return cells


def _locked(cell: NotebookNode) -> NotebookNode:
    """A cell that a student's copy must have as it is."""
    return _marked(cell, locked=True)


def _marked(
    cell: NotebookNode,
    *,
    solution: bool = False,
    points: int | None = None,
    locked: bool = False,
) -> NotebookNode:
    """The cell with nbgrader's metadata; `points` makes it one that is graded."""
    graded = points is not None
    mark = {
        "schema_version": SCHEMA,
        "grade_id": cell.id,
        "grade": graded,
        "solution": solution,
        "locked": locked or (graded and not solution),
        "task": False,
    }
    if graded:
        mark["points"] = points
    cell.metadata["nbgrader"] = mark
    return cell
