"""Checks of chapter 18, variations (§6.2)."""

import math
from collections.abc import Sequence

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck

Values = Sequence[float]


def _squares(values: Values) -> float:
    """The summed squares of the distances from the mean."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def _standard_error(one: Values, other: Values) -> float:
    """From each group's own variance."""
    total = 0.0
    for values in (one, other):
        total += _squares(values) / (len(values) - 1) / len(values)
    return math.sqrt(total)


def _root_forgotten(one: Values, other: Values) -> float:
    return _standard_error(one, other) ** 2


def _errors_added(one: Values, other: Values) -> float:
    return sum(
        math.sqrt(_squares(values) / (len(values) - 1) / len(values))
        for values in (one, other)
    )


def _divided_by_n(one: Values, other: Values) -> float:
    return math.sqrt(sum(_squares(v) / len(v) / len(v) for v in (one, other)))


def _of_one_run(one: Values, other: Values) -> float:
    return math.sqrt(sum(_squares(v) / (len(v) - 1) for v in (one, other)))


def _pooled(one: Values, other: Values) -> float:
    freedom = len(one) + len(other) - 2
    variance = (_squares(one) + _squares(other)) / freedom
    return math.sqrt(variance * (1 / len(one) + 1 / len(other)))


def _groups() -> list[tuple[list[float], list[float]]]:
    """Equal and unequal numbers of seeds."""
    return [
        ([25.8, 25.1, 26.2], [24.9, 24.0, 24.1]),
        ([1.0, 2.0, 4.0, 5.0], [3.0, 7.0]),
        ([0.5, 0.25], [0.125, 1.0, 2.0]),
    ]


standard_error = FunctionCheck(
    exercise="18.1",
    reference=_standard_error,
    cases=_groups,
    mistakes=(
        Mistake(
            _root_forgotten,
            "that is the variance of the difference: its root was asked for.",
        ),
        Mistake(
            _errors_added,
            "you add two standard errors. Of independent numbers, variances add up.",
        ),
        Mistake(
            _divided_by_n,
            "the sum of squares is divided by n − 1, not by n: the mean was taken from "
            "the same numbers.",
        ),
        Mistake(
            _of_one_run,
            "that is the standard deviation of the difference of two single runs. The "
            "mean of n runs has a variance n times smaller.",
        ),
        Mistake(
            _pooled,
            "that is the chapter's pooled variance, common to both. Here each group "
            "has a variance of its own.",
        ),
    ),
)

per_word = ValueCheck(
    exercise="18.2",
    reference=lambda: 8.0,
    mistakes=(
        Mistake(6.0, "that is 4 times 1.5. Which of the two multiplies: loss or base?"),
        Mistake(
            4 ** (1 / 1.5),
            "a word has more pieces than one, so it is harder to guess, not easier.",
        ),
        Mistake(4.0, "that is the perplexity per piece again."),
    ),
)

false_alarms = ValueCheck(
    exercise="18.3",
    reference=lambda: 1.9,
    mistakes=(
        Mistake(0.95, "there are two scores for each row."),
        Mistake(0.05, "that is the share for one comparison."),
        Mistake(2.0, "base is not compared with itself: count the rows again."),
    ),
)

opposite = ValueCheck(
    exercise="18.4",
    reference=lambda: 2,
    mistakes=(
        Mistake(1, "one more: look through the rows (C) and (D)."),
        Mistake(
            3,
            "one too many: equal BLEU is not worse, and a lower perplexity is better.",
        ),
        Mistake(0, "look at the rows (D) again: which of their scores is better?"),
    ),
)
