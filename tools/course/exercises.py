"""The exercises of a chapter, with the cells that they stand in, and their solutions.

Their form is that of ``aiayn_site.exercises``, which reads their headers here too. What
stands in code is a folded cell, known by its label *Show solution 3.1*, which
`course.solutions` takes apart. Folded parts that are no solutions, hints say, belong
to the statement.
"""

import re
from dataclasses import dataclass

from nbformat import NotebookNode

from aiayn_site.exercises import MARKS, OPENING, header_of
from tools.course.solutions import FormError, Solution, take_apart

SOLUTION_FOLDED = re.compile(
    r"<details>\s*<summary>\s*Solution (?P<number>\w+\.\d+) in words</summary>"
    r"(?P<body>.*?)</details>",
    re.DOTALL,
)
SOLUTION_LABEL = re.compile(r"Show solution (?P<number>\w+\.\d+)")
HEADING = re.compile(r"^#{1,6} ", re.M)


@dataclass(frozen=True)
class Exercise:
    """One exercise, and in which cells of its notebook it stands."""

    number: str  # "3.1", or "B.1" in the bug clinic
    title: str
    kind: str  # "code", "derive", "think" or "play"
    difficulty: int
    importance: int
    minutes: int
    statement: str  # Markdown, hints included, without the solution
    model_answer: str  # Markdown, or ""
    statement_cell: str  # the cells' identifiers
    solution_cell: str  # or ""
    solution: Solution | None

    @property
    def slug(self) -> str:
        """The number as part of a name: ``3_1``."""
        return self.number.replace(".", "_").lower()

    @property
    def checked(self) -> bool:
        """Whether a check marks the answer, or a part of it."""
        return self.solution is not None and bool(self.solution.check)

    @property
    def in_words(self) -> bool:
        """Whether a person reads the answer, or a part of it."""
        argued = self.kind in {"derive", "think"} and bool(self.model_answer)
        return argued or not self.checked

    @property
    def points(self) -> tuple[int, int]:
        """For the check, and for the words: two for every five minutes in all.

        Where the model answer says what earns marks, the words have those instead.
        """
        total = 2 * max(1, round(self.minutes / 5))
        if self.in_words and (said := MARKS.search(self.model_answer)):
            return (total // 2 if self.checked else 0), int(said[1])
        if self.checked and self.in_words:
            return total // 2, total // 2
        return (total, 0) if self.checked else (0, total)


def without_solutions(markdown: str) -> str:
    """What is left of a Markdown cell when its solutions are taken out."""
    markdown = SOLUTION_FOLDED.sub("", markdown)
    return re.sub(r"\n{3,}", "\n\n", markdown).strip("\n")


def read_exercises(notebook: NotebookNode) -> list[Exercise]:
    """The exercises of a notebook, in their order.

    Raises:
        FormError: an exercise has no rating, or a solution no exercise.
    """
    words = _solutions_in_words(notebook)
    code = _solutions_in_code(notebook)
    exercises = []
    for cell, following in _markdown_with_following(notebook):
        for text in _statements(cell.source, following):
            try:
                header = header_of(text)
            except ValueError as error:
                raise FormError(str(error)) from None
            number = header["number"]
            solution = code.pop(number, None)
            exercises.append(
                Exercise(
                    number=number,
                    title=header["title"],
                    kind=header["kind"].lower(),
                    difficulty=int(header["difficulty"]),
                    importance=int(header["importance"]),
                    minutes=int(header["minutes"]),
                    statement=text,
                    model_answer=words.pop(number, ""),
                    statement_cell=cell.id,
                    solution_cell=solution.id if solution else "",
                    solution=take_apart(solution.source, number) if solution else None,
                )
            )
    if left := sorted({*words, *code}):
        raise FormError(f"solutions without an exercise: {', '.join(left)}.")
    return exercises


def _solutions_in_words(notebook: NotebookNode) -> dict[str, str]:
    found = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for folded in SOLUTION_FOLDED.finditer(cell.source):
                found[folded["number"]] = folded["body"].strip("\n")
    return found


def _solutions_in_code(notebook: NotebookNode) -> dict[str, NotebookNode]:
    found = {}
    for cell in notebook.cells:
        label = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
        if cell.cell_type == "code" and (match := SOLUTION_LABEL.match(label)):
            if match["number"] in found:
                raise FormError(f"exercise {match['number']} has two solution cells.")
            found[match["number"]] = cell
    return found


def _markdown_with_following(notebook: NotebookNode):
    """Each Markdown cell that holds exercises, with those after it up to the next."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    for place, cell in enumerate(cells):
        if not OPENING.search(cell.source):
            continue
        following = []
        for other in cells[place + 1 :]:
            if OPENING.search(other.source) or not other.source.startswith("<details"):
                break
            following.append(without_solutions(other.source))
        yield cell, following


def _statements(source: str, following: list[str]):
    """Each exercise's text in a cell, up to the next thing."""
    found = list(OPENING.finditer(source))
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(source)
        text = source[match.start() : end]
        if heading := HEADING.search(text):
            text = text[: heading.start()]
        last = place + 1 == len(found)
        parts = [without_solutions(text), *(following if last else [])]
        yield "\n\n".join(part for part in parts if part)
