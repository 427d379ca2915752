"""Checks of chapter 16, train a translator (§5)."""

from aiayn_book.checks.framework import FunctionCheck, Mistake


def _operations(parameters: float, pieces: float) -> float:
    """Slow and obviously right, for numbers small enough to count."""
    total = 0.0
    for _ in range(int(pieces)):
        for _ in range(int(parameters)):
            total += 2  # forward: a product and a sum
            total += 4  # backward: the same for the input's and the weight's gradient
    return total


training_flops = FunctionCheck(
    exercise="16.1",
    reference=_operations,
    cases=lambda: [(3.0, 5.0), (10.0, 1.0), (7.0, 11.0)],
    mistakes=(
        Mistake(
            lambda parameters, pieces: 2.0 * parameters * pieces,
            "that is the way forward alone: the way back costs twice as much again",
        ),
        Mistake(
            lambda parameters, pieces: 4.0 * parameters * pieces,
            "that is the way back alone, or a way back as cheap as the way forward: "
            "it needs two products, one for each gradient",
        ),
        Mistake(
            lambda parameters, pieces: 3.0 * parameters * pieces,
            "each weight takes part in a product and in a sum: count both",
        ),
    ),
)
