"""Arithmetic that a file may ask for: numbers, names, + - * / // % **, and calls.

Nothing is evaluated as a program, so a file from somebody else can be computed with.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LARGEST_POWER = 100
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def compute(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Args:
        expression: Such as ``int(sqrt(d_k)) + 1``.
        names: Numbers and functions that it may use.

    Raises:
        ValueError: It is more or less than arithmetic, or uses another name.
    """
    try:
        body = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"it is no arithmetic: {error.msg}") from error
    return _value(body, names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](_value(inner, names))
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            base, exponent = _value(base, names), _value(exponent, names)
            if max(abs(base), abs(exponent)) > LARGEST_POWER:
                raise ValueError("a power of such numbers is too large")
            return base**exponent
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=some, keywords=[]) if name in names:
            return names[name](*(_value(each, names) for each in some))
    raise ValueError(f"{ast.unparse(node)} is no arithmetic with {', '.join(names)}")
