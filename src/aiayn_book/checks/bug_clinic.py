"""Checks of the bug clinic."""

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _leaks(logits: Tensor, changed: Tensor, position: int) -> bool:
    """Row i has read the tokens before i, so not the one at position ≥ i."""
    moved = [bool((a != b).any()) for a, b in zip(logits, changed, strict=True)]
    return any(moved[row] for row in range(len(moved)) if row <= position)


def _cases() -> list[tuple[Tensor, Tensor, int]]:
    generator = seeded(6)
    cases = []
    for position, moved in ((4, []), (2, [0]), (2, [3, 4]), (2, [2, 3, 4]), (1, [1])):
        logits = torch.randn(5, 4, generator=generator)
        changed = logits.clone()
        changed[moved] += 1
        cases.append((logits, changed, position))
    return cases


leaks = FunctionCheck(
    exercise="B.1",
    reference=_leaks,
    cases=_cases,
    mistakes=(
        Mistake(
            lambda a, b, position: not a[:position].equal(b[:position]),
            "row number `position` itself must not move either: it is about to write "
            "that very token.",
        ),
        Mistake(
            lambda a, b, position: not a.equal(b),
            "you look at all rows. Those after `position` have a right to move.",
        ),
        Mistake(
            lambda a, b, position: not a[position:].equal(b[position:]),
            "later rows may move: they have read the token. Look at the rows before.",
        ),
        Mistake(
            lambda a, b, position: not _leaks(a, b, position),
            "true and false are exchanged: the answer is whether it leaks.",
        ),
    ),
)

factor = ValueCheck(
    exercise="B.2",
    reference=lambda: (511 / 512) ** 0.5,
    mistakes=(
        Mistake((512 / 511) ** 0.5, "that is how much the deviation is too large."),
        Mistake(511 / 512, "that is the ratio of the variances. The root is missing."),
        Mistake(0.5 / 512, "that is how far the factor is from one, nearly."),
    ),
)

rates_off = ValueCheck(
    exercise="B.3",
    reference=lambda: (8.0, 8**-0.5),
    mistakes=(
        Mistake(
            (8.0, 8.0), "after the warm-up the rate no longer grows with the step."
        ),
        Mistake(
            (8.0, 8**0.5),
            "at step 100,000 the rate is too small: less than 1 times the right one.",
        ),
        Mistake(
            (8**-0.5, 8**-0.5), "at step 100 both rates are still in their warm-up."
        ),
        Mistake(
            (8.0, 1 / 8), "after the warm-up the rate falls with the root of the step."
        ),
        Mistake(
            (1 / 8, 8**0.5), "the other way round: patient 8 is ahead of its time."
        ),
    ),
)

fewest = ValueCheck(
    exercise="B.4",
    reference=lambda: 9,
    mistakes=(
        Mistake(13, "that is all of them. Some patients are caught more than once."),
        Mistake(8, "one patient is still free: look at the bottom row."),
    ),
)
