"""The assignment of a chapter, before it takes the form of nbgrader or of Otter.

Its cells are the set-up, those cells of the chapter that the exercises depend on, and
the exercises. It is short on purpose: marking runs it once for each student.
"""

from dataclasses import dataclass, replace

from nbformat import NotebookNode

from aiayn_book.html import pages_address
from tools.course.exercises import Exercise
from tools.course.links import to_the_site
from tools.course.needs import cells_needed
from tools.site.notebooks import SET_UP_ID

INTRODUCTION = """\
# {title}: exercises

These are the exercises of
[chapter {name}]({chapter}).
Work through the chapter first, and keep it open: it has the text and the figures.

Run the cells from top to bottom. Where a line raises `NotImplementedError`, put your
answer in its place. The cell after it checks your answer and says what is wrong, if
anything is."""
FROM_THE_CHAPTER = """\
## What the exercises use

The cells below are from the chapter. Run them, and leave them as they are."""
ANSWER_HERE = "*Write your answer to exercise {number} here, in words.*"


@dataclass(frozen=True)
class Assignment:
    """What both tools make their notebook from."""

    name: str  # the chapter's: "03-attention"
    introduction: str
    set_up: NotebookNode
    before: list[NotebookNode]  # code cells of the chapter, in order
    exercises: list[Exercise]


def make_assignment(
    name: str, notebook: NotebookNode, exercises: list[Exercise], address: str
) -> Assignment:
    """The assignment of one chapter.

    Args:
        name: the notebook's name without its ending.
        notebook: the solved chapter.
        exercises: its exercises.
        address: the repository's.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    (set_up,) = (cell for cell in code if cell.id == SET_UP_ID)
    code.remove(set_up)
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    return Assignment(
        name=name,
        introduction=INTRODUCTION.format(
            title=title,
            name=name,
            chapter=f"{pages_address(address)}notebooks/{name}.html",
        ),
        set_up=set_up,
        before=cells_needed(code, exercises),
        exercises=[
            replace(
                exercise,
                statement=to_the_site(exercise.statement, name, address, here=()),
                model_answer=to_the_site(exercise.model_answer, name, address, here=()),
            )
            for exercise in exercises
        ],
    )
