"""Checks of chapter 23, scaling and what the model is good for (§6.2, §7)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _power_law(sizes: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    """Number by number: the least squares of two columns of logarithms."""
    points = [
        (math.log(size), math.log(loss))
        for size, loss in zip(sizes.tolist(), losses.tolist(), strict=True)
    ]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    together = sum((x - mean_x) * (y - mean_y) for x, y in points)
    alone = sum((x - mean_x) ** 2 for x, _ in points)
    slope = together / alone
    height = math.exp(mean_y - slope * mean_x)
    return (
        torch.tensor(height, dtype=torch.float64),
        torch.tensor(-slope, dtype=torch.float64),
    )


def _points() -> list[tuple[Tensor, Tensor]]:
    """On a line, and near one."""
    generator = seeded(23)
    sizes = torch.tensor([1e3, 1e4, 3e5, 1e6], dtype=torch.float64)
    noise = torch.rand(4, generator=generator, dtype=torch.float64) / 10
    return [
        (sizes, 6 * sizes**-0.1),
        (sizes, 5 * sizes**-0.2 * (1 + noise)),
        (sizes[:3], 9 * sizes[:3] ** -0.3 * (1 + noise[1:])),
    ]


def _sign(sizes: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    height, power = _power_law(sizes, losses)
    return height, -power


def _still_a_logarithm(sizes: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    height, power = _power_law(sizes, losses)
    return height.log(), power


def _swapped(sizes: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    height, power = _power_law(sizes, losses)
    return power, height


power_law = FunctionCheck(
    exercise="23.1",
    reference=_power_law,
    cases=_points,
    mistakes=(
        Mistake(_sign, "your α has the other sign: L = A · N^(−α) falls for α > 0."),
        Mistake(
            _still_a_logarithm,
            "your A is still a logarithm: the line's height is ln A.",
        ),
        Mistake(_swapped, "the other way round: first A, then α."),
    ),
)


def _add(one: Tensor, other: Tensor) -> Tensor:
    """Digit by digit."""
    total = torch.zeros_like(one)
    for row in range(len(one)):
        digits = int(one[row].argmax()) + int(other[row].argmax())
        total[row, digits % one.size(1)] = 1
    return total


def _digits() -> list[tuple[Tensor, Tensor]]:
    """Every pair of digits of three bases."""
    cases = []
    for base in (3, 5, 10):
        digit = torch.eye(base)
        cases.append((digit.repeat_interleave(base, dim=0), digit.repeat(base, 1)))
    return cases


def _without_a_bias(one: Tensor, other: Tensor) -> Tensor:
    base = one.size(1)
    pairs = one[:, :, None] + other[:, None, :]  # (n, base, base)
    total = torch.zeros_like(one)
    for i in range(base):
        for j in range(base):
            total[:, (i + j) % base] += pairs[:, i, j]
    return total


def _clipped(one: Tensor, other: Tensor) -> Tensor:
    total = torch.zeros_like(one)
    for row in range(len(one)):
        digits = int(one[row].argmax()) + int(other[row].argmax())
        total[row, min(digits, one.size(1) - 1)] = 1
    return total


def _difference(one: Tensor, other: Tensor) -> Tensor:
    total = torch.zeros_like(one)
    for row in range(len(one)):
        digits = int(one[row].argmax()) - int(other[row].argmax())
        total[row, digits % one.size(1)] = 1
    return total


add = FunctionCheck(
    exercise="23.2",
    reference=_add,
    cases=_digits,
    mistakes=(
        Mistake(
            _without_a_bias,
            "hidden units fire that have only one of their two digits: which bias "
            "makes a unit wait for both?",
        ),
        Mistake(_clipped, "the sum is modulo the base: after the last digit comes 0."),
        Mistake(_difference, "that is the difference of the two digits."),
    ),
)

price = ValueCheck(
    exercise="23.3",
    reference=lambda: 18,
    mistakes=(
        Mistake(1024, "that halves the loss; asked is for three quarters of it."),
        Mistake(1, "the exponent of the size is 1/α = 10, not 0.1."),
        Mistake(13, "4/3 to the tenth power, not ten times 4/3."),
        Mistake(1048576, "three quarters are left, not one quarter."),
    ),
)

lengths = ValueCheck(
    exercise="23.4",
    reference=lambda: 2,
    mistakes=(
        Mistake(1, "six is right. But if there is only one word, where else to look?"),
        Mistake(6, "place i asks for place 5 - i. Is that the one, in a short input?"),
        Mistake(0, "with six words nothing is padding."),
        Mistake(5, "place i asks for place 5 - i. Is that the one, in a short input?"),
    ),
)
