"""Exercise checks: right answers pass, typical wrong ones get the words for them."""

import importlib
import pkgutil
from decimal import Decimal
from fractions import Fraction

import pytest
import torch

import aiayn_book.checks
from aiayn_book.checks import FunctionCheck, Mistake, ValueCheck, WrongAnswer, testing

CHAPTERS = [
    module.name
    for module in pkgutil.iter_modules(aiayn_book.checks.__path__)
    if module.name not in {"comparison", "draws", "framework", "testing"}
]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapters_checks_are_sound(chapter):
    """The reference passes, and each typical mistake gets its message."""
    checks = testing.checks_in(importlib.import_module(f"aiayn_book.checks.{chapter}"))
    assert checks
    assert [fault for check in checks.values() for fault in testing.faults(check)] == []


DOUBLE = FunctionCheck(
    exercise="0.1",
    reference=lambda x: 2 * x,
    cases=lambda: [(torch.tensor([1.0, 2.0]),), (torch.tensor([[3.0, 4.0, 5.0]]),)],
    mistakes=(Mistake(lambda x: x * x, "that is the square."),),
)


def in_place(x):
    """Right, but it changes what it was given."""
    return x.mul_(2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: x * x, "that is the square"),
        (lambda x: None, "does your function end with `return`"),
        (lambda x: "two", "a tensor was expected, but str came"),
        (lambda x: x.sum(), r"the shape \(2,\) was expected, but \(\) came"),
        (lambda x: (x, x), "a tensor was expected|the shape"),
        (lambda x: x / 0 * 0, "the answer holds NaN"),
        (lambda x: 2 * x + (x > 1), r"4 was expected at position \[1\], but 5 came"),
        (lambda x: 2 * x + 1e-3, r"2 of 2 entries differ"),
        (lambda x: (2 * x).to(torch.complex64), "complex64 came"),
        (in_place, "your function changed its input"),
        (torch.tensor([2.0, 4.0]), "Hand over its name alone"),
    ],
)
def test_what_is_wrong_is_said(answer, words):
    """Return, type, shape, NaN, values, inputs: each in words."""
    with pytest.raises(WrongAnswer, match=f"(?i){words}"):
        DOUBLE(answer)


def test_a_right_answer_gets_one_line(capsys):
    """Also when it is computed another way, with other rounding."""
    DOUBLE(lambda x: x + x * (1 + 1e-6))
    assert capsys.readouterr().out == "✓ Exercise 0.1: right, on 2 different inputs.\n"


def use_up(numbers):
    """Right, and nothing is left of the list."""
    total = 0
    while numbers:
        total += numbers.pop()
    return total


def test_a_list_may_be_used_up(capsys):
    """The reference, the next answer and their messages have lists of their own."""
    check = FunctionCheck("0.7", sum, lambda: [([1, 2, 3],), ([4],)])
    check(use_up)
    assert capsys.readouterr().out == "✓ Exercise 0.7: right, on 2 different inputs.\n"
    with pytest.raises(WrongAnswer, match=r"With \[1, 2, 3\]: 6 was expected"):
        check(lambda numbers: use_up(numbers) + 1)


def test_every_case_counts():
    """An answer that is right on the first input alone is wrong."""
    with pytest.raises(WrongAnswer, match="With a"):
        DOUBLE(lambda x: 2 * x if x.dim() == 1 else x)


def test_several_results_are_compared_one_by_one():
    """The message says which of them is wrong."""
    check = FunctionCheck("0.2", lambda x: (x, x > 1), DOUBLE.cases)
    with pytest.raises(WrongAnswer, match="2 results were expected, but one thing"):
        check(lambda x: x)
    with pytest.raises(WrongAnswer, match=r"in result 2 of 2, True was expected"):
        check(lambda x: (x, x > 7))
    with pytest.raises(WrongAnswer, match=r"torch.bool was expected, but torch.float"):
        check(lambda x: (x, (x > 1).float()))


def test_values(capsys):
    """A number, with the message for a typical wrong one."""
    check = ValueCheck("0.3", lambda: 8.0, (Mistake(64, "that is d_k, not its root."),))
    check(8)
    assert "right" in capsys.readouterr().out
    with pytest.raises(WrongAnswer, match="not its root"):
        check(64)
    check(Fraction(16, 2))
    check(Decimal(8))
    with pytest.raises(WrongAnswer, match="a number was expected, but ellipsis came"):
        check(...)
    with pytest.raises(WrongAnswer, match="8 was expected, but 7 came"):
        check(7)
    truth = ValueCheck("0.4", lambda: True)
    truth(torch.tensor(True))
    for wrong in (False, torch.tensor(False)):
        with pytest.raises(WrongAnswer, match="True was expected"):
            truth(wrong)
    with pytest.raises(WrongAnswer, match=r"True was .* several of the shape \(2,\)"):
        truth(torch.tensor([True, True]))


def test_a_notebook_shows_one_sentence():
    """IPython asks the exception for its text instead of drawing a stack trace."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shown = []
    shell._showtraceback = lambda kind, value, lines: shown.append(lines)
    shell.user_ns["check"] = DOUBLE
    outcome = shell.run_cell("check(lambda x: x)")
    assert not outcome.success  # so the notebook's run fails as well
    ((line,),) = shown
    assert line.startswith("Not yet. With a (2,) tensor: ")


def test_an_unsound_check_is_found():
    """A mistake that passes, and one that gets other words than its own."""
    passes = Mistake(lambda x: 2 * x, "this can never be said")
    shadowed = Mistake(lambda x: x * x, "another message for the square")
    check = FunctionCheck(
        "0.5", DOUBLE.reference, DOUBLE.cases, (*DOUBLE.mistakes, passes, shadowed)
    )
    found = list(testing.faults(check))
    assert len(found) == 2
    assert found[0].endswith("passes")
    assert "gets 'that is the square.'" in found[1]
    fixed = FunctionCheck("0.6", lambda x, by: by * x, lambda: [(1, 2), (3, 2)])
    assert list(testing.faults(fixed)) == [
        "exercise 0.6: argument 2 is the same in all cases"
    ]
    wrong = FunctionCheck("0.6", lambda x: x * float("nan"), DOUBLE.cases)
    assert "the reference itself is rejected" in "".join(testing.faults(wrong))
