"""Checks of chapter 21, what changed (after the paper; §7)."""

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _pool_heads(weight: Tensor, heads: int, groups: int) -> Tensor:
    """Row by row: each shared row is the mean of its heads' rows."""
    d_k, share = weight.size(0) // heads, heads // groups
    pooled = torch.zeros(groups * d_k, weight.size(1), dtype=weight.dtype)
    for group in range(groups):
        for row in range(d_k):
            for head in range(group * share, (group + 1) * share):
                pooled[group * d_k + row] += weight[head * d_k + row] / share
    return pooled


def _matrices() -> list[tuple[Tensor, int, int]]:
    """Four heads in two groups, six in two, and all heads in one."""
    generator = seeded(21)
    return [
        (torch.randn(heads * d_k, 5, generator=generator), heads, groups)
        for heads, d_k, groups in ((4, 3, 2), (6, 2, 2), (4, 2, 1))
    ]


pool_heads = FunctionCheck(
    exercise="21.1",
    reference=_pool_heads,
    cases=_matrices,
    mistakes=(
        Mistake(
            lambda weight, heads, groups: (
                weight.unflatten(0, (heads // groups, groups, -1)).mean(0).flatten(0, 1)
            ),
            "your groups take every other head: a group's heads stand side by side.",
        ),
        Mistake(
            lambda weight, heads, groups: (
                weight.unflatten(0, (groups, heads // groups, -1)).sum(1).flatten(0, 1)
            ),
            "that is the sum of a group's heads: their mean was asked for.",
        ),
        Mistake(
            lambda weight, heads, groups: weight.unflatten(
                0, (groups, heads // groups, -1)
            )[:, 0].flatten(0, 1),
            "that is the first head of each group. What of the others?",
        ),
        Mistake(
            lambda weight, heads, groups: (
                weight.unflatten(0, (groups, -1, heads // groups)).mean(2).flatten(0, 1)
            ),
            "you average rows of one and the same head: the rows of a head stand "
            "together, so the head comes before the row within it.",
        ),
    ),
)


def _log_sum_exp(tiles: Tensor) -> Tensor:
    """All at once."""
    return tiles.flatten().logsumexp(dim=0)


def _total_not_rescaled(tiles: Tensor) -> Tensor:
    most, total = tiles[0].amax(), torch.zeros((), dtype=tiles.dtype)
    for tile in tiles:
        most = torch.maximum(most, tile.amax())
        total = total + (tile - most).exp().sum()
    return most + total.log()


def _tiles() -> list[tuple[Tensor]]:
    """Small scores, rising ones too large for a plain exponential, and great leaps."""
    generator = seeded(21)
    small = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    rising = torch.arange(3, dtype=torch.float64)[:, None]
    shifts = (0, rising, rising + 1000, -1000, 1000 * rising, -1000 * rising)
    return [(small + shift,) for shift in shifts]


log_sum_exp = FunctionCheck(
    exercise="21.2",
    reference=_log_sum_exp,
    cases=_tiles,
    mistakes=(
        Mistake(
            lambda tiles: tiles.exp().sum().log(),
            "an exponential overflowed, or all of them became zero: subtract the "
            "largest score so far.",
        ),
        Mistake(
            _total_not_rescaled,
            "when a larger score arrives, the sum so far must shrink to match it.",
        ),
        Mistake(
            lambda tiles: tiles.logsumexp(dim=1).sum(),
            "you add the tiles' logarithms: add the exponentials, and take one "
            "logarithm at the end.",
        ),
    ),
)

gated_width = ValueCheck(
    exercise="21.3",
    reference=lambda: 2048,
    mistakes=(
        Mistake(3072, "that is the plain layer's width: three matrices share now."),
        Mistake(1536, "half would do if there were four matrices. How many are there?"),
        Mistake(1024, "a third is too little: the plain layer has two matrices."),
        Mistake(4608, "the other way round: with more matrices each must be narrower."),
    ),
)

cache_slides = ValueCheck(
    exercise="21.4",
    reference=lambda: (True, False),
    mistakes=(
        Mistake((False, True), "the other way round: first rotary, then sinusoids."),
        Mistake(
            (True, True),
            "a key made from word plus sinusoid keeps its old position.",
        ),
        Mistake(
            (False, False),
            "with rotary positions, what does a score depend on if both positions "
            "fall by one?",
        ),
    ),
)

best_offset = ValueCheck(
    exercise="21.5",
    reference=lambda: 2,
    mistakes=(
        Mistake(-2, "the sign: how many positions *after* the key stands the query?"),
        Mistake(0, "with no offset the arrows are still 60° apart. Turn the query."),
        Mistake(4, "you went past it: the arrows are 60° apart again."),
    ),
)
