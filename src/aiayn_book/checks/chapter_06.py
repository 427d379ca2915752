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
            "true and false are exchanged. In this book True means *may attend*.",
        ),
        Mistake(
            _same,
            "sentences are kept apart, but tokens attend to later ones as well.",
        ),
        Mistake(
            lambda d: torch.ones_like(_same(d)).tril(),
            "the mask is causal, but tokens attend to other sentences.",
        ),
        Mistake(
            lambda d: _same(d).tril(-1),
            "no token may attend to itself, so the first of each sentence has no "
            "permitted pair.",
        ),
        Mistake(
            lambda d: _same(d).triu(),
            "each token attends to itself and to later ones. Rows are queries, and "
            "columns are keys.",
        ),
        Mistake(
            lambda d: _same(d) | torch.ones_like(_same(d)).tril(),
            "a pair must pass both rules, not one of them: intersect the two sets.",
        ),
    ),
)

pairs = ValueCheck(
    exercise="6.2",
    reference=lambda: 3 * 4 // 2 + 5 * 6 // 2,
    mistakes=(
        Mistake(36, "that is one sentence of eight tokens, but these are two."),
        Mistake(34, "that is 3² + 5²: pairs with a later key are counted too."),
        Mistake(13, "you left the diagonal out. A token may attend to itself."),
        Mistake(64, "that is every pair, without either rule."),
    ),
)

_PATHS = ("query", "key", "value", "positions")
_PATH_HINTS = {
    "key": "with the diagonal forbidden, the key of row i is not permitted to row i.",
    "value": "with the diagonal forbidden, row i takes values of earlier rows only.",
    "positions": "they say which row this is, and not which token stands there.",
}

path = ValueCheck(
    exercise="6.3",
    reference=lambda: _PATHS[0],
    mistakes=tuple(Mistake(name, hint) for name, hint in _PATH_HINTS.items()),
)

layers = ValueCheck(
    exercise="6.4",
    reference=lambda: (9 - 1) // 2,
    mistakes=(
        Mistake(
            3, "a window of three holds the position itself: a layer goes back two."
        ),
        Mistake(8, "that would be a window of two: one step back in each layer."),
        Mistake(5, "positions 9 and 1 are eight apart, and each layer goes back two."),
        Mistake(1, "a single layer goes back two positions, and not eight."),
    ),
)
