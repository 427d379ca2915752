"""Signatures as one would write them, folded so that a phone shows them whole.

Sphinx's own (`maximum_signature_line_length`) puts one parameter on a line and goes no
further, and one with a shape is wider than a phone.
"""

import re
from collections.abc import Iterator

import griffe

WIDTH = 44  # columns that fit beside each other at 390 px
OPENING, CLOSING = "([{", ")]}"

# A shape is a string; Griffe takes it for a name where it could be one.
BARE_SHAPE = re.compile(
    r"((?:Float|Int|Int64|Bool)\[(?:Tensor|np\.ndarray), )([^\]\"]+)"
)


def signature(thing: griffe.Object, name: str) -> str:
    """A function, class or constant, one parameter a line if they do not fit."""
    if isinstance(thing, griffe.Attribute):
        return _constant(thing, name)
    assert isinstance(thing, griffe.Function | griffe.Class)
    keyword = "class " if isinstance(thing, griffe.Class) else ""
    if "dataclass" in thing.labels:  # its fields are listed one by one
        return f"{keyword}{name}"
    returns = ""
    if isinstance(thing, griffe.Function) and thing.returns is not None:
        returns = f" -> {_text(thing.returns)}"
    whole = f"{keyword}{name}({', '.join(_parameters(thing))}){returns}"
    return "\n".join(_fold(whole))


def field(thing: griffe.Attribute) -> str:
    """A dataclass's field or a property: name, type and default."""
    text = thing.name
    if thing.annotation is not None:
        text += f": {_text(thing.annotation)}"
    value = _text(thing.value) if thing.value is not None else ""
    return f"{text} = {value}" if value and "(" not in value else text


def _constant(thing: griffe.Attribute, name: str) -> str:
    value = _text(thing.value) if thing.value is not None else ""
    if len(value) <= WIDTH:
        return f"{name} = {value}"
    return f"{name}: {_text(thing.annotation)}" if thing.annotation else name


def _parameters(thing: griffe.Function | griffe.Class) -> Iterator[str]:
    star = False
    for parameter in thing.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind
        prefix = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(kind, "")
        if kind is griffe.ParameterKind.keyword_only and not star:
            yield "*"
        star = star or kind is griffe.ParameterKind.keyword_only or prefix == "*"
        text = prefix + parameter.name
        if parameter.annotation is not None:
            text += f": {_text(parameter.annotation)}"
        if parameter.default is not None and not prefix:
            equals = " = " if parameter.annotation is not None else "="
            text += f"{equals}{_text(parameter.default)}"
        yield text


def _text(expression: object) -> str:
    """An expression as this code base writes it."""
    return BARE_SHAPE.sub(r'\1"\2"', str(expression).replace("'", '"'))


def _fold(code: str, indent: int = 0) -> list[str]:
    """Lines no longer than the width, as far as brackets and bars let it be cut."""
    pad = " " * indent
    if len(pad + code) <= WIDTH:
        return [pad + code]
    bracket = _first_bracket(code)
    if bracket is None:
        return _fold_union(code, indent)
    start, end = bracket
    inside = [part.strip() for part in _split(code[start + 1 : end], ", ")]
    head, tail = code[: start + 1], code[end + 1 :]
    if not inside or inside[0] in ("Tensor", "np.ndarray"):  # a shape stays whole
        return _fold_union(code, indent)
    lines = [pad + head]
    for part in inside:
        lines += _fold(f"{part},", indent + 4)
    first, *rest = _fold(tail, indent)
    return [*lines, pad + code[end] + first.removeprefix(pad), *rest]


def _fold_union(code: str, indent: int) -> list[str]:
    """Cut before the last bar, with what follows on a line of its own."""
    parts = _split(code, " | ")
    pad = " " * indent
    if len(parts) < 2:
        return [pad + code]
    first, rest = " | ".join(parts[:-1]), parts[-1]
    return [*_fold(first, indent), f"{pad}    | {rest}"]


def _first_bracket(code: str) -> tuple[int, int] | None:
    """Where the first bracket that stands in no other opens and closes."""
    depth, start = 0, 0
    for place, character in enumerate(code):
        if character in OPENING:
            start = place if not depth else start
            depth += 1
        elif character in CLOSING:
            depth -= 1
            if not depth:
                return start, place
    return None


def _split(code: str, separator: str) -> list[str]:
    """The parts between separators that stand in no bracket and no string."""
    parts, depth, quoted, begin = [], 0, False, 0
    for place, character in enumerate(code):
        quoted ^= character == '"'
        depth += (character in OPENING) - (character in CLOSING)
        if not depth and not quoted and code.startswith(separator, place):
            parts.append(code[begin:place])
            begin = place + len(separator)
    return [*parts, code[begin:]] if code[begin:] else parts
