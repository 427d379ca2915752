"""A solution's code cell, taken apart into answer, check and what follows.

The check is the call of something in `aiayn_book.checks` on the cell's outermost
level. What it is given decides what a student has to write: the body of a function
that the cell defines, or a value.
"""

import ast
import pkgutil
from dataclasses import dataclass

import aiayn_book.checks

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
TITLE = "# @title "
CHECKS = {module.name for module in pkgutil.iter_modules(aiayn_book.checks.__path__)}


class FormError(ValueError):
    """An exercise that is not written in the form that the course is made from."""


@dataclass(frozen=True)
class Solution:
    """The parts of a solution's cell; each is source text, or empty.

    `answer` is what the student writes, with the solution between two marks. `check`
    marks it. `rest` shows what the answer is good for.
    """

    answer: str
    check: str
    rest: str
    checked: str  # the check alone: "chapter_03.soft_lookup"
    given: str  # what it is given: "my_soft_lookup"
    is_function: bool

    @property
    def again(self) -> str:
        """The check on inputs that nobody has seen; there are such for functions."""
        return f"{self.checked}.again({self.given})" if self.is_function else ""


def take_apart(source: str, number: str) -> Solution:
    """The parts of a cell.

    Args:
        source: the cell's code.
        number: the exercise's number.

    Raises:
        FormError: there are two checks, or a check is given more than one thing.
    """
    lines = source.splitlines()
    if lines[0].startswith(TITLE):
        lines = lines[1:]
    source = "\n".join(lines)
    body = ast.parse(source).body
    calls = [node for node in body if _checked(node)]
    if not calls:
        return Solution(_marked(source), "", "", "", "", is_function=False)
    if len(calls) > 1 or len(calls[0].value.args) != 1:
        raise FormError(
            f"exercise {number}: its solution cell must call one check, with one "
            "argument, on the outermost level."
        )
    (call,) = calls
    rest = "\n".join(lines[call.end_lineno :]).strip("\n")
    given, checked = call.value.args[0], _checked(call)
    for node in body:
        if isinstance(node, ast.FunctionDef) and ast.unparse(given) == node.name:
            end = node.end_lineno
            while lines[end : end + 1] and lines[end].startswith((" ", "\t")):
                end += 1  # a comment, as a mark is, belongs to no statement
            answer = _marked_body(lines[:end], node)
            check = "\n".join(lines[end : call.end_lineno]).strip("\n")
            return Solution(answer, check, rest, checked, node.name, is_function=True)
    name = f"answer_{number.replace('.', '_').lower()}"
    before = "\n".join(lines[: call.lineno - 1]).strip("\n")
    value = ast.get_source_segment(source, given)
    apart = (
        "\n\n\n" if isinstance(body[body.index(call) - 1], ast.FunctionDef) else "\n"
    )
    steps = f"{before}{apart}{name} = {value}" if before else f"{name} = {value}"
    answer = f"# Give your answer the name {name}.\n{_marked(steps)}"
    check = f"{checked}({name})"
    return Solution(answer, check, rest, checked, name, is_function=False)


def todo(number: str) -> list[str]:
    """The lines that a student finds in place of a solution."""
    return [
        "# Put your answer in place of the next line.",
        f'raise NotImplementedError("Exercise {number} is to be done.")',
    ]


def stub(answer: str, number: str) -> str:
    """What a student gets: the answer without what stands between its two marks."""
    lines, inside = [], False
    for line in answer.splitlines():
        if line.strip() == BEGIN:
            indent = line.removesuffix(BEGIN)
            lines += [indent + left for left in todo(number)]
            inside = True
        elif line.strip() == END:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def _checked(node: ast.stmt) -> str:
    """The check that a statement calls, such as ``chapter_03.tie``, or ``""``."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(module), check))):
            return f"{module}.{check}" if module in CHECKS else ""
    return ""


def _marked(text: str) -> str:
    return text if BEGIN in text else f"{BEGIN}\n{text}\n{END}"


def _marked_body(lines: list[str], function: ast.FunctionDef) -> str:
    """The function, its body between marks unless the author has set them."""
    text = "\n".join(lines)
    if BEGIN in text:
        return text
    first = function.body[0]
    if lines[first.lineno - 1][: first.col_offset].strip():
        raise FormError(f"{function.name}: its body must begin on a line of its own.")
    head = min(n.lineno for n in (first, *getattr(first, "decorator_list", ()))) - 1
    while lines[head - 1].strip()[:1] in ("", "#"):
        head -= 1  # a comment above the first statement is in the body too
    indent = " " * first.col_offset
    marked = [*lines[:head], indent + BEGIN, *lines[head:], indent + END]
    return "\n".join(marked)
