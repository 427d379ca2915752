"""Checks of chapter 13, data and batching (§5.1)."""

from collections.abc import Sequence

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _cut(
    lengths: Sequence[int], slots: int, *, extra: int = 0, strict: bool = False
) -> tuple[int, ...]:
    """Try every number of rows for each batch."""
    batches, rest = [], list(lengths)
    most = slots - strict
    while rest:
        fitting = [n for n in range(1, len(rest) + 1) if n * rest[n - 1] <= most]
        rows = min(max(fitting, default=1) + extra, len(rest))
        batches.append(rows)
        rest = rest[rows:]
    return tuple(batches)


def _cut_by_tokens(lengths: Sequence[int], slots: int) -> tuple[int, ...]:
    batches, held, rows = [], 0, 0
    for length in lengths:
        if rows and held + length > slots:
            batches.append(rows)
            held = rows = 0
        held, rows = held + length, rows + 1
    return (*batches, rows)


cut = FunctionCheck(
    exercise="13.1",
    reference=lambda lengths, slots: _cut(lengths, slots),
    cases=lambda: [
        ([2, 3, 3, 4, 6, 6, 9, 10], 12),
        ([1, 1, 1, 5, 5, 5, 5], 10),
        ([4, 4, 4, 4], 8),
        ([3, 7, 7, 11], 100),
    ],
    mistakes=(
        Mistake(
            _cut_by_tokens,
            "these are real tokens. Padding takes slots too: count rows times the "
            "longest.",
        ),
        Mistake(
            lambda lengths, slots: _cut(lengths, slots, strict=True),
            "a rectangle of exactly so many slots still fits.",
        ),
        Mistake(
            lambda lengths, slots: _cut(lengths, slots, extra=1),
            "each batch has a row too many: look before you add it.",
        ),
        Mistake(
            lambda lengths, slots: _cut(lengths, slots)[:-1],
            "the last batch is missing. It is closed by the end of the list.",
        ),
    ),
)

better = ValueCheck(
    exercise="13.3",
    reference=lambda: "B",
    mistakes=(
        Mistake(
            "A", "its loss per token is lower, but it pays for twice as many tokens."
        ),
    ),
)

memory = ValueCheck(
    exercise="13.4",
    reference=lambda: "sorted",
    mistakes=(
        Mistake(
            "as they come",
            "its batches are large, but all about equally: each holds a long sentence.",
        ),
        Mistake("by tokens", "its batches all have nearly the same number of slots."),
    ),
)
