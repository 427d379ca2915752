"""Arithmetic is computed, and a program is not run."""

import math

import pytest

from tools.course.arithmetic import compute

NAMES = {"sqrt": math.sqrt, "int": int, "max": max, "d_k": 64, "heads": 8}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("heads * d_k", 512),
        (" int(sqrt(d_k)) + 1 ", 9),
        ("-7 // 2 % 3 + 1.5", -7 // 2 % 3 + 1.5),
        ("2**10 - max(1, heads)", 1016),
        ("1 / (3 - 1)", 0.5),
    ],
)
def test_arithmetic(expression, value):
    assert compute(expression, NAMES) == value


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__.__bases__",
        "__import__('os').system('x')",
        "[x for x in (1,)]",
        "lambda: 1",
        "'a' * 10",
        "unknown + 1",
        "sqrt(x=4)",
        "sqrt.__self__",
        "9**9**9",
        "True if d_k else 1 and 2",
    ],
)
def test_anything_else_is_refused(expression):
    with pytest.raises(ValueError, match=r"no arithmetic with|too large"):
        compute(expression, NAMES)


@pytest.mark.parametrize("expression", ["1 +", "", "a b", "(1"])
def test_what_is_less_than_arithmetic_is_refused_too(expression):
    with pytest.raises(ValueError, match="it is no arithmetic: "):
        compute(expression, NAMES)
