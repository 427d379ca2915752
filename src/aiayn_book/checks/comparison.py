"""Compares an answer with the reference and says in words where they differ."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import torch
from torch import Tensor

# Float32 sums of a hundred terms of order one differ by some 1e-5 between two orders
# of summation; every mistake worth a message is off by a hundred times this.
TOLERANCE = 1e-4

Hint = tuple[Any, str]  # what a typical wrong answer gives, and the message for it


class WrongAnswer(AssertionError):  # noqa: N818  (it is read, not caught)
    """An exercise's answer that is not right yet; the message says what to look at."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this sentence in place of a stack trace."""
        return [f"Not yet. {self}"]


def compare(got: Any, want: Any, where: str, hints: Callable[[], list[Hint]]) -> None:
    """Raise `WrongAnswer` unless `got` is `want`: parts, then shape, then values.

    Args:
        got: the answer: a tensor, a number, a truth value, or a tuple of those.
        want: the reference, of the same make.
        where: which input gave it, for the message.
        hints: typical wrong outcomes; asked only when the answer is wrong, and the
            first that equals the answer gives the message.
    """
    complaint = _difference(got, want)
    if complaint is None:
        return
    for wrong, message in hints():
        if _difference(got, wrong) is None:
            raise WrongAnswer(message)
    raise WrongAnswer(f"With {where}: {complaint}")


def _difference(got: Any, want: Any) -> str | None:
    """What is wrong with `got`, or None."""
    if got is None:
        return "the answer is None. Does your function end with `return`?"
    if isinstance(want, tuple):
        return _difference_of_parts(got, want)
    if isinstance(want, bool | str):
        shape = tuple(getattr(got, "shape", ()))
        if prod(shape) != 1:  # neither equal to want nor unequal
            return f"{want!r} was expected, but several of the shape {shape} came."
        return None if got == want else f"{want!r} was expected, but {got!r} came."
    if isinstance(got, Fraction | Decimal):  # as exact as one could wish
        got = float(got)
    try:
        got = torch.as_tensor(got)
    except (TypeError, ValueError, RuntimeError):
        wanted = "tensor" if isinstance(want, Tensor) else "number"
        return f"a {wanted} was expected, but {type(got).__name__} came."
    return _difference_of_tensors(got, torch.as_tensor(want))


def _difference_of_parts(got: Any, want: tuple[Any, ...]) -> str | None:
    if not isinstance(got, tuple | list) or len(got) != len(want):
        came = f"{len(got)}" if isinstance(got, tuple | list) else "one thing"
        return f"{len(want)} results were expected, but {came} came."
    for number, (one, other) in enumerate(zip(got, want, strict=True), start=1):
        if (complaint := _difference(one, other)) is not None:
            return f"in result {number} of {len(want)}, {complaint}"
    return None


def _difference_of_tensors(got: Tensor, want: Tensor) -> str | None:
    if got.shape != want.shape:
        return (
            f"the shape {tuple(want.shape)} was expected, but {tuple(got.shape)} came. "
            "Write the shape of each intermediate result beside its line."
        )
    if got.is_complex() or (want.dtype == torch.bool) != (got.dtype == torch.bool):
        return f"{want.dtype} was expected, but {got.dtype} came."
    if want.dtype == torch.bool:
        return None if torch.equal(got, want) else _first_wrong(got != want, got, want)
    got, want = got.detach().double(), want.detach().double()
    if got.isnan().any() and not want.isnan().any():
        return (
            "the answer holds NaN. Is there a division by zero, or a softmax over "
            "nothing but -inf?"
        )
    wrong = ~torch.isclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)
    return _first_wrong(wrong, got, want) if wrong.any() else None


def _first_wrong(wrong: Tensor, got: Tensor, want: Tensor) -> str:
    index = tuple(wrong.nonzero()[0].tolist())
    place = f" at position {list(index)}" if index else ""
    share = f" ({int(wrong.sum())} of {wrong.numel()} entries differ)" if index else ""
    return (
        f"{_written(want[index])} was expected{place}, "
        f"but {_written(got[index])} came{share}."
    )


def _written(entry: Tensor) -> str:
    value = entry.item()
    return str(value) if isinstance(value, bool) else f"{value:.4g}"


def describe(arguments: Iterable[Any]) -> str:
    """The inputs of a call in words, for a message: shapes of tensors, else values."""
    words = [
        f"a {tuple(argument.shape)} tensor"
        if isinstance(argument, Tensor)
        else repr(argument)
        for argument in arguments
    ]
    return ", ".join(words) if words else "no input"
