"""The guard of the exercises: stubs, solutions and checks fit together everywhere.

The solved notebooks run as a whole in ``make test``, so what runs here is what the
course is made of: the answers to functions, with the cells that they need.
"""

import ast
import contextlib
import importlib
import io
import re
from collections import Counter

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from aiayn_book.checks import FunctionCheck, WrongAnswer
from aiayn_book.checks.testing import checks_in
from tools.course import solutions
from tools.course.assignments import make_assignment
from tools.course.chapters import ANSWER_BELOW, instructor_chapter, student_chapter
from tools.course.needs import cells_needed
from tools.course.solutions import BEGIN, END, stub, take_apart
from tools.project import ROOT, repository

ADDRESS = "https://github.com/me/my-book"
SITE = "https://me.github.io/my-book/"


def links_of(notebook) -> set[str]:
    """Where the links of a notebook's text lead."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    return set(re.findall(r"\]\(([^)\s]*)\)", text))


def run(source: str, env: dict) -> None:
    """Run a cell, quietly."""
    code = TransformerManager().transform_cell(source)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "cell", "exec"), env)


def hidden_lines(answer: str) -> set[str]:
    """The lines of a solution that nothing else could have given away."""
    inside = answer.partition(BEGIN)[2].partition(END)[0]
    lines = {line.strip() for line in inside.splitlines()}
    return {line for line in lines if len(line) > 25 and not line.startswith("for ")}


def test_every_exercise_has_its_check(name, chapter):
    """Each check of the chapter's module marks one exercise, the one that it names."""
    _, exercises = chapter(name)
    assert exercises
    assert [n for n, k in Counter(e.number for e in exercises).items() if k > 1] == []
    module = (
        "bug_clinic" if name == "bug-clinic" else f"chapter_{name.partition('-')[0]}"
    )
    checks = checks_in(importlib.import_module(f"aiayn_book.checks.{module}"))
    used = {e.solution.checked.partition(".")[2]: e for e in exercises if e.checked}
    assert set(used) == set(checks)
    assert {key: e.number for key, e in used.items()} == {
        key: check.exercise for key, check in checks.items()
    }


def test_functions_solved_and_unsolved(name, chapter):
    """The solution passes both checks; the stub says what to do, and no cell before."""
    notebook, exercises = chapter(name)
    functions = [e for e in exercises if e.checked and e.solution.is_function]
    code = [c for c in notebook.cells if c.cell_type == "code" and c.id != "set-up"]
    env = {"__name__": "__main__"}
    run(f"from aiayn_book import setup\nsetup({name!r})", env)
    for cell in cells_needed(code, functions):
        run(cell.source, env)
    for exercise in functions:
        parts, number = exercise.solution, exercise.number
        run(stub(parts.answer, number), env)
        with pytest.raises(WrongAnswer, match=f"{number} is still to be done"):
            run(parts.check, env)
        run(parts.answer, env)
        run(parts.check, env)
        run(parts.again, env)


def test_values_unsolved(name, chapter):
    """A value's stub names its exercise, and the name to give to the answer."""
    _, exercises = chapter(name)
    for exercise in exercises:
        if exercise.checked and not exercise.solution.is_function:
            text = stub(exercise.solution.answer, exercise.number)
            assert f"Give your answer the name {exercise.solution.given}." in text
            with pytest.raises(NotImplementedError, match=exercise.number):
                run(text, {})
            assert exercise.solution.given in exercise.solution.check


def test_students_get_no_solution(name, chapter):
    """No line of a solution, in code or in words, is left; checks and hints are."""
    notebook, exercises = chapter(name)
    place = ("https://github.com/ORG/book", "main")
    student = student_chapter(name, notebook, exercises, place, {name})
    text = "\n\n".join(cell.source for cell in student.cells)
    for exercise in exercises:
        assert f"Exercise {exercise.number} " in text
        assert f"Solution {exercise.number}" not in text
        if exercise.model_answer:
            assert exercise.model_answer[-60:] not in text
        if exercise.checked:
            assert exercise.solution.check in text
            lines = hidden_lines(exercise.solution.answer)
            # What the chapter itself says, in a cell of its own, is no secret.
            own = [c.source for c in notebook.cells if c.id != exercise.solution_cell]
            open_anyway = "\n".join(own)
            found = {line for line in lines if line in text and line not in open_anyway}
            assert found == set()
    assert "CC BY 4.0" in student.cells[-1].source


def test_instructors_get_everything(name, chapter):
    """Solutions open, model answers, points, and the hidden checks."""
    notebook, exercises = chapter(name)
    result = instructor_chapter(name, notebook, exercises, ADDRESS, {name})
    text = "\n\n".join(cell.source for cell in result.cells)
    for exercise in exercises:
        assert f"Points of exercise {exercise.number}:* {sum(exercise.points)}" in text
        if exercise.checked:
            assert exercise.solution.again in text
    by_id = {cell.id: cell for cell in result.cells}
    for exercise in exercises:
        if exercise.solution_cell:
            assert "tags" not in by_id[exercise.solution_cell].metadata


def test_an_assignment_needs_no_solution_of_another_exercise(name, assignment):
    """So that one unanswered exercise fails alone."""
    made = assignment(name)
    answers = {}
    for exercise in made.exercises:
        if exercise.checked:
            body = ast.parse(exercise.solution.answer).body
            names = {n.name for n in body if isinstance(n, ast.FunctionDef)}
            answers[exercise.number] = names or {exercise.solution.given}
    for exercise in made.exercises:
        if exercise.checked:
            others = set().union(
                *(names for n, names in answers.items() if n != exercise.number)
            )
            used = {
                node.id
                for node in ast.walk(ast.parse(exercise.solution.answer))
                if isinstance(node, ast.Name)
            }
            assert used & others == set()


def test_an_assignments_links_lead_to_the_site(name, chapter):
    """A heading of the chapter is not in the assignment, nor is the solved chapter."""
    made = make_assignment(name, *chapter(name), ADDRESS)
    texts = [made.introduction]
    texts += [text for e in made.exercises for text in (e.statement, e.model_answer)]
    assert f"({SITE}notebooks/{name}.html)" in made.introduction
    for to in re.findall(r"\]\(([^)\s]*)\)", "\n".join(texts)):
        assert to.startswith("https://")
        assert to.startswith(SITE) or "my-book" not in to


@pytest.mark.parametrize("here", [[], ["03-attention", "04-scaling"]], ids=len)
def test_a_copys_links_lead_to_itself_to_its_neighbours_or_to_the_site(
    name, chapter, here
):
    """In Colab a student opens the student's chapter, and no link is dead."""
    notebook, exercises = chapter(name)
    here = {name, *here}
    student = student_chapter(name, notebook, exercises, (ADDRESS, "main"), here)
    teacher = instructor_chapter(name, notebook, exercises, ADDRESS, here)
    colab = "https://colab.research.google.com/github/"
    (own,) = (to for to in links_of(student) if to.startswith(colab))
    before = repository()[0].removeprefix("https://github.com/")
    assert own == f"{colab}{before}/blob/students/{name}.ipynb"
    assert not [to for to in links_of(teacher) if to.startswith(colab)]
    for to in links_of(student) | links_of(teacher):
        if to.startswith(SITE):
            page = to.partition("#")[0].removeprefix(SITE).removesuffix(".html")
            assert list(ROOT.glob(f"{page}.*"))
        else:
            beside = to.partition(".ipynb")[0] in here
            assert beside or to.startswith(("#", "https://"))


def test_no_stub_stands_below_words_that_ask_for_a_new_cell(name, chapter):
    """The student's chapter has the cell already."""
    notebook, exercises = chapter(name)
    student = student_chapter(name, notebook, exercises, (ADDRESS, "main"), {name})
    text = "\n\n".join(c.source for c in student.cells if c.cell_type == "markdown")
    assert not re.search(r"(?i)\b(new|another|own|empty)\s+cell\b", text)
    assert text.count(ANSWER_BELOW) == 1
    assert f"## Exercises\n\n{ANSWER_BELOW}" in text


def by_heart(check: FunctionCheck):
    """An answer that knows the visible inputs and nothing else."""
    known = [(case, check.reference(*case)) for case in check.cases()]

    def answer(*arguments):
        for case, result in known:
            if all(
                str(one) == str(two) for one, two in zip(case, arguments, strict=True)
            ):
                return result
        return known[0][1]

    return answer


def test_who_knows_the_inputs_by_heart_fails_the_hidden_check(name, chapter):
    """Where inputs are drawn; some checks go through fixed cases instead."""
    _, exercises = chapter(name)
    for exercise in exercises:
        if not (exercise.checked and exercise.solution.is_function):
            continue
        module, _, key = exercise.solution.checked.partition(".")
        check = getattr(importlib.import_module(f"aiayn_book.checks.{module}"), key)
        source = importlib.import_module(check.cases.__module__)
        if (
            not hasattr(source, "seeded")
            or "seeded" not in check.cases.__code__.co_names
        ):
            continue
        answer = by_heart(check)
        run_quietly = contextlib.redirect_stdout(io.StringIO())
        with run_quietly:
            check(answer)
            with pytest.raises(WrongAnswer):
                check.again(answer)


def test_hidden_inputs_are_fair(name, chapter):
    """On other draws the reference passes still, and no typical mistake does."""
    _, exercises = chapter(name)
    for exercise in exercises:
        if not (exercise.checked and exercise.solution.is_function):
            continue
        module, _, key = exercise.solution.checked.partition(".")
        check = getattr(importlib.import_module(f"aiayn_book.checks.{module}"), key)
        with contextlib.redirect_stdout(io.StringIO()):
            for shift in (1_000_000, 2, 3):
                check.again(check.reference, shift)
                for mistake in check.mistakes:
                    with pytest.raises(WrongAnswer):
                        check.again(mistake.answer, shift)


def test_taking_a_cell_apart():
    """Functions with and without marks, values, what follows, what cannot be read."""
    parts = take_apart(
        "# @title Solution 3.1\ndef f(x):\n    # why\n    return x\n\n\n"
        "chapter_03.soft_lookup(f)\nprint(f(1))",
        "3.1",
    )
    assert parts.answer == f"def f(x):\n    {BEGIN}\n    # why\n    return x\n    {END}"
    assert (parts.check, parts.rest) == ("chapter_03.soft_lookup(f)", "print(f(1))")
    assert parts.again == "chapter_03.soft_lookup.again(f)"
    assert "why" not in stub(parts.answer, "3.1")
    value = take_apart("x = 2\nchapter_03.tie(x + 1)", "3.5")
    assert value.answer.splitlines()[2:4] == ["x = 2", "answer_3_5 = x + 1"]
    assert (value.check, value.again) == ("chapter_03.tie(answer_3_5)", "")
    with pytest.raises(solutions.FormError, match="one check, with one argument"):
        take_apart("chapter_03.tie(1)\nchapter_03.tie(2)", "3.5")
    with pytest.raises(solutions.FormError, match="f: its body must begin on a line"):
        take_apart("def f(x): return x\n\n\nchapter_03.soft_lookup(f)", "3.1")


@pytest.mark.parametrize(
    "head",
    [
        "def f(q):  # (n, d)",
        "def f(\n    q,\n    k,  # keys: as many\n) -> dict[str, int]:  # by name",
        'def f(q, sign=":"):',
        "@torch.no_grad()\ndef f(q):",
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        "    for x in q:\n        print(x)",
        '    """What it does:\n\n    all.\n    """\n    return q',
        "    # why:\n\n    return q",
        "    @wraps(q)\n    def g():\n        return q\n\n    return g",
    ],
)
def test_a_solution_begins_where_the_functions_head_ends(head, body):
    """Whatever stands behind its colon, and whatever comes first below it."""
    parts = take_apart(f"{head}\n{body}\n\n\nchapter_03.soft_lookup(f)", "3.1")
    assert parts.answer == f"{head}\n    {BEGIN}\n{body}\n    {END}"
