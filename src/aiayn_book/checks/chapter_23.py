"""Checks of chapter 23, scaling laws (§6.2)."""

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


def _surprise(sizes: Tensor, losses: Tensor) -> Tensor:
    """Through the function of exercise 23.1."""
    height, power = _power_law(sizes[:-1], losses[:-1])
    return losses[-1] / (height * sizes[-1] ** -power) - 1


def _fitted_too(sizes: Tensor, losses: Tensor) -> Tensor:
    height, power = _power_law(sizes, losses)
    return losses[-1] / (height * sizes[-1] ** -power) - 1


def _turned_over(sizes: Tensor, losses: Tensor) -> Tensor:
    return 1 / (_surprise(sizes, losses) + 1) - 1


def _ratio(sizes: Tensor, losses: Tensor) -> Tensor:
    return _surprise(sizes, losses) + 1


def _in_logarithms(sizes: Tensor, losses: Tensor) -> Tensor:
    return (_surprise(sizes, losses) + 1).log()


def _surprises() -> list[tuple[Tensor, Tensor]]:
    """A law with an offset, and losses that vary around a law."""
    generator = seeded(232)
    sizes = torch.tensor([1e3, 1e4, 1e5, 1e6, 3e6], dtype=torch.float64)
    noise = torch.rand(5, generator=generator, dtype=torch.float64) / 5
    return [
        (sizes, 1.5 + 12 * sizes**-0.25),
        (sizes, 5 * sizes**-0.1 * (1 + noise)),
        (sizes[:4], 7 * sizes[:4] ** -0.2 * (1 + noise[1:])),
    ]


surprise = FunctionCheck(
    exercise="23.2",
    reference=_surprise,
    cases=_surprises,
    mistakes=(
        Mistake(_fitted_too, "the last size was among those fitted: leave it out."),
        Mistake(_turned_over, "the measured loss is to be divided by the predicted."),
        Mistake(_ratio, "that is the ratio; subtract 1."),
        Mistake(_in_logarithms, "that is the logarithm of the ratio."),
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

offset = ValueCheck(
    exercise="23.4",
    reference=lambda: 2.5,
    mistakes=(
        Mistake(1.5, "that is E alone. Which other term does not depend on the size?"),
        Mistake(1.0, "that is the text's term alone; E remains as well."),
        Mistake(21.5, "B is still to be divided by the fourth root of D."),
    ),
)
