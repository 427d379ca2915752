"""Which cells of a chapter an exercise depends on: those that define what it names.

An assignment repeats these and no others, so that marking a hundred of them does not
run a hundred chapters. A name belongs to the last cell before its use that binds it,
and to those cells in between that may change what it is bound to: an assignment to a
part of it, or a call made for its effect.

This reads the code and runs nothing, so what changes a thing out of its sight escapes
it: a call that returns something too, or a decorator that keeps a list. A cell that an
assignment misses for that gets the tag ``needed``.
"""

import ast
import re

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools.course.exercises import Exercise
from tools.course.names import Names, names_of

TAG = "needed"
IN_BACKTICKS = re.compile(r"`([A-Za-z_]\w*)[`\[.]")


def cells_needed(
    cells: list[NotebookNode], exercises: list[Exercise]
) -> list[NotebookNode]:
    """The cells that answers and checks depend on, in their order, without solutions.

    What is only imported somewhere is imported in a first cell of its own.

    Args:
        cells: a chapter's code cells, in order, set-up excluded.
        exercises: its exercises. What a statement names in backticks is needed too.
    """
    names = [names_of(cell.source) for cell in cells]
    places = {cell.id: place for place, cell in enumerate(cells)}
    asked: list[tuple[str, int]] = []
    for exercise in exercises:
        place = places.get(exercise.solution_cell, len(cells))
        asked += [(name, place) for name in _stated(exercise)]
        if exercise.checked:
            solution = exercise.solution
            own = names_of(f"{solution.answer}\n{solution.check}")
            asked += [(name, place) for name in own.needed | own.needed_later]
    tagged = (cell for cell in cells if TAG in cell.metadata.get("tags", []))
    waiting = [cells.index(cell) for cell in tagged]
    chosen: set[int] = set()
    imports: set[str] = set()
    while waiting or asked:
        for name, place in asked:
            # A function may name what is defined only after it.
            givers = _givers(names, name, place) or _givers(names, name, len(cells))
            for giver in givers:
                if name in names[giver].imported:
                    imports.add(names[giver].imported[name])
                else:
                    waiting.append(giver)
        new = {place for place in waiting if place not in chosen}
        chosen |= new
        asked, waiting = [], []
        for place in new:
            own = names[place]
            inner = own.needed | (own.needed_later - own.bound)
            asked += [(name, place) for name in inner]
    solutions = {exercise.solution_cell for exercise in exercises}
    kept = [
        cells[place] for place in sorted(chosen) if cells[place].id not in solutions
    ]
    if not imports:
        return kept
    return [new_code_cell("\n".join(sorted(imports)), id="imports"), *kept]


def _stated(exercise: Exercise) -> set[str]:
    """Names that the statement speaks of, but for those of the function's arguments."""
    names = {name for name in IN_BACKTICKS.findall(exercise.statement) if name[1:]}
    if exercise.checked and exercise.solution.is_function:
        for node in ast.walk(ast.parse(exercise.solution.answer)):
            if isinstance(node, ast.arg):
                names.discard(node.arg)
    return names


def _givers(names: list[Names], name: str, before: int) -> list[int]:
    """The places of the last binding of a name before a place, and of changes since."""
    found = []
    for place in range(before - 1, -1, -1):
        if name in names[place].imported:
            return [place]  # a module is not changed by a call of what it holds
        if name in names[place].bound:
            return [*found, place]
        if name in names[place].changed:
            found.append(place)
    return []  # it is no name of the notebook's
