"""Checks of chapter 22, long sequences (§4, §7)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _fixed_mask(n: int, r: int) -> Tensor:
    """Pair by pair."""
    mask = torch.zeros(n, n, dtype=torch.bool)
    for query in range(n):
        for key in range(query + 1):
            last_of_block = (key + 1) % r == 0
            mask[query, key] = key // r == query // r or last_of_block
    return mask


def _parts(n: int, r: int) -> tuple[Tensor, Tensor, Tensor]:
    """What lies behind, what is in one block, and what ends a block."""
    place = torch.arange(n)
    same = place[:, None] // r == place // r
    return place <= place[:, None], same, (place % r == r - 1).expand(n, n)


def _without_look_back(n: int, r: int) -> Tensor:
    _, same, ends = _parts(n, r)
    return same | ends


def _first_words(n: int, r: int) -> Tensor:
    behind, same, _ = _parts(n, r)
    return behind & (same | (torch.arange(n) % r == 0))


def _block_only(n: int, r: int) -> Tensor:
    behind, same, _ = _parts(n, r)
    return behind & same


def _strided(n: int, r: int) -> Tensor:
    back = torch.arange(n)[:, None] - torch.arange(n)
    return (back >= 0) & ((back < r) | (back % r == 0))


def _rows_and_columns_swapped(n: int, r: int) -> Tensor:
    return _fixed_mask(n, r).T


fixed_mask = FunctionCheck(
    exercise="22.1",
    reference=_fixed_mask,
    cases=lambda: [(9, 3), (8, 2), (11, 4)],
    mistakes=(
        Mistake(_without_look_back, "your query sees words that come after it."),
        Mistake(
            _first_words,
            "of an earlier block the last word is seen; yours shows the first.",
        ),
        Mistake(
            _block_only,
            "your query never leaves its block: where is the last word of each earlier "
            "one?",
        ),
        Mistake(
            _strided,
            "that is the strided pattern. Here the columns stand at fixed positions, "
            "whatever the query.",
        ),
        Mistake(
            _rows_and_columns_swapped,
            "your query sees what comes after it. Rows are queries, columns are keys.",
        ),
    ),
)


def _write_over(state: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Column by column: take out what lies along the key, then put the value there."""
    written = torch.zeros_like(state)
    for place in range(len(value)):
        column = state[:, place]
        along = sum(k * c for k, c in zip(key, column, strict=True))
        written[:, place] = column - along * key + value[place] * key
    return written


def _writings() -> list[tuple[Tensor, Tensor, Tensor]]:
    """A state that holds something, and one that is empty."""
    generator = seeded(22)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return [
        (state, F.normalize(draw(len(state)), dim=0), draw(state.size(1)))
        for state in (draw(4, 3), torch.zeros(3, 2).double())
    ]


def _added(state: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return state + torch.outer(key, value)


def _forgotten(state: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.outer(key, value)


def _erased(state: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return state - torch.outer(key, key @ state)


def _the_wrong_way(state: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return state + torch.outer(key, key @ state - value)


write_over = FunctionCheck(
    exercise="22.2",
    reference=_write_over,
    cases=_writings,
    mistakes=(
        Mistake(
            _added,
            "your state still holds what it answered to this key before: the new value "
            "comes on top of it.",
        ),
        Mistake(
            _forgotten,
            "your state forgets all other keys, but those orthogonal to this one "
            "should keep their values.",
        ),
        Mistake(_erased, "the old value is gone, but the new one is not written."),
        Mistake(
            _the_wrong_way,
            "your state moves away from the new value: write what is missing, and that "
            "is value minus answer.",
        ),
    ),
)

best_stride = ValueCheck(
    exercise="22.3",
    reference=lambda: (100, 200),
    mistakes=(
        Mistake((100, 100), "near and far words count, √n of each."),
        Mistake((200, 100), "the other way round: first r, then the number of keys."),
        Mistake((5000, 5002), "set the derivative of r + n/r to zero, not to one."),
    ),
)

twice = ValueCheck(
    exercise="22.4",
    reference=lambda: (2, 4),
    mistakes=(
        Mistake(
            (2, 2),
            "each query still has a score for each key: how many pairs are there?",
        ),
        Mistake((4, 4), "that is attention step by step, which writes the map."),
        Mistake((4, 2), "the other way round: first the memory, then the work."),
        Mistake((1, 4), "what goes in and comes out doubles as well."),
    ),
)

creeping = ValueCheck(
    exercise="22.5",
    reference=lambda: (7, 2),
    mistakes=(
        Mistake(
            (14, 2),
            "that is chapter 12's centred window, which reaches half as far to each "
            "side. All r positions of this one lie at or behind the query.",
        ),
        Mistake(
            (6, 2),
            "r = 6 counts the query itself: a layer moves information by 5 positions.",
        ),
        Mistake((2, 7), "the other way round: first the window."),
        Mistake((7, 1), "in one layer the strided pattern leaves gaps."),
        Mistake((7, 7), "the strided pattern reaches far columns: count again."),
    ),
)
