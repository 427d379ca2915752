"""Checks of chapter 6, masks (§3.1, §3.2.3)."""

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _packed_mask(documents: Tensor) -> Tensor:
    """Pair by pair."""
    length = len(documents)
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        for key in range(length):
            same = bool(documents[query] == documents[key])
            mask[query, key] = same and key <= query
    return mask


def _same(documents: Tensor) -> Tensor:
    return documents[:, None] == documents[None, :]


packed_mask = FunctionCheck(
    exercise="6.1",
    reference=_packed_mask,
    cases=lambda: [
        (torch.tensor(documents),)
        for documents in ([0, 0, 0, 1, 1], [3, 1, 1, 2, 2, 2], [0, 0, 0, 0])
    ],
    mistakes=(
        Mistake(
            lambda d: ~_packed_mask(d),
            "true and false are exchanged. Here True means: may look.",
        ),
        Mistake(
            _same,
            "sentences are kept apart, but each word sees those after it as well.",
        ),
        Mistake(
            lambda d: torch.ones_like(_same(d)).tril(),
            "nobody looks ahead, but words look into other sentences.",
        ),
        Mistake(
            lambda d: _same(d).tril(-1),
            "nobody sees itself. The first word of each sentence sees nothing.",
        ),
        Mistake(
            lambda d: _same(d).triu(),
            "each word sees itself and those after it. Rows are queries: who asks?",
        ),
        Mistake(
            lambda d: _same(d) | torch.ones_like(_same(d)).tril(),
            "a look must pass both rules, not one of them: intersect the two sets.",
        ),
    ),
)

looks = ValueCheck(
    exercise="6.2",
    reference=lambda: 3 * 4 // 2 + 5 * 6 // 2,
    mistakes=(
        Mistake(36, "that is one row of eight words. These are two sentences."),
        Mistake(34, "that is 3² + 5²: looks ahead are counted too."),
        Mistake(13, "you left the diagonal out. A word may look at itself."),
        Mistake(64, "that is every pair. Neither rule is applied."),
    ),
)

_PATHS = ("self-attention", "residual", "cross-attention", "positions")
_PATH_HINTS = {
    "self-attention": "with the diagonal forbidden, row i looks at rows before i only.",
    "cross-attention": "keys and values come from the source, which does not hold the "
    "target.",
    "positions": "they say which row this is, and not which word stands there.",
}

path = ValueCheck(
    exercise="6.3",
    reference=lambda: _PATHS[1],
    mistakes=tuple(Mistake(name, hint) for name, hint in _PATH_HINTS.items()),
)

layers = ValueCheck(
    exercise="6.4",
    reference=lambda: (9 - 1) // 2,
    mistakes=(
        Mistake(
            3, "a window of three holds the word itself: each layer goes back two."
        ),
        Mistake(8, "that would be a window of two: one step back in each layer."),
        Mistake(
            5, "count the steps from word 9 to word 1: they are eight places apart."
        ),
        Mistake(1, "a single layer goes back two places, and not eight."),
    ),
)
