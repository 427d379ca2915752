"""What an exercise needs of its chapter."""

import pytest
from nbformat.v4 import new_code_cell

from tools.course.exercises import Exercise
from tools.course.names import names_of
from tools.course.needs import cells_needed
from tools.course.solutions import take_apart


@pytest.mark.parametrize(
    ("source", "needed", "bound", "changed"),
    [
        ("y = f(x)", {"f", "x"}, {"y"}, set()),
        ("for n in rows:\n    print(n)", {"rows", "print"}, {"n"}, set()),
        ("n += 1", {"n"}, {"n"}, {"n"}),
        ("a = [x for x in b if x > c]", {"b", "c"}, {"a"}, set()),
        ("rows.append(1)\nz = 1", {"rows"}, {"z"}, {"rows"}),
        ("rows.append(f(x).sum())", {"rows", "f", "x"}, set(), {"rows"}),
        ("train(model)\nz = 1", {"train", "model"}, {"z"}, {"model"}),
        ("chart(model)", {"chart", "model"}, set(), set()),
        ("x[0] = 1", {"x"}, set(), {"x"}),
        ("import a.b as c, d.e", set(), {"c", "d"}, set()),
        ("%pip install x\ny = 1", set(), {"y"}, set()),
    ],
)
def test_names_of_a_cell(source, needed, bound, changed):
    """Order counts, comprehensions keep their own names, calls may change things."""
    names = names_of(source)
    assert names.needed == needed
    assert names.bound == bound
    assert names.changed == changed


def test_names_of_a_function_are_needed_later():
    """But not its own, and not what the cell has bound before."""
    names = names_of("k = 1\ndef f(x, y=z):\n    w = x + k + later\n    return w")
    assert names.needed == {"z"}
    assert names.needed_later - names.needed == {"later"}
    assert names.bound == {"k", "f"}


def needed(*sources: str, statement: str = "", solution: str) -> list[str]:
    """The sources that an exercise needs."""
    cells = [new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    cells.append(new_code_cell(solution, id="solution"))
    exercise = Exercise(
        number="3.5",
        title="",
        kind="code",
        difficulty=1,
        importance=1,
        minutes=5,
        statement=statement,
        model_answer="",
        statement_cell="",
        solution_cell="solution",
        solution=take_apart(solution, "3.5"),
    )
    return [cell.source for cell in cells_needed(cells, [exercise])]


def test_the_last_binding_counts_and_changes_since():
    """And what those cells need in turn."""
    cells = ("a = 1", "x = a", "x = [a]", "x.append(2)\ny = 0", "unused = 3")
    assert needed(*cells, solution="chapter_03.tie(x)") == [cells[0], *cells[2:4]]


def test_what_the_statement_names():
    """A name in backticks, but not an argument of the function to write."""
    cells = ("places = 1", "keys = 2")
    solution = "def f(keys):\n    return 1\n\n\nchapter_03.soft_lookup(f)"
    words = "Use `places`. Write `f(keys)` for `keys`."
    assert needed(*cells, statement=words, solution=solution) == ["places = 1"]
