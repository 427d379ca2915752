"""Checks of chapter 12, why self-attention (§4, Table 1)."""

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _window_mask(n: int, r: int) -> Tensor:
    """Pair by pair."""
    mask = torch.zeros(n, n, dtype=torch.bool)
    for query in range(n):
        for key in range(n):
            mask[query, key] = query - r < key <= query
    return mask


def _back(n: int) -> Tensor:
    """How far back each key lies: what the mistakes start from."""
    return torch.arange(n)[:, None] - torch.arange(n)


window_mask = FunctionCheck(
    exercise="12.1",
    reference=_window_mask,
    cases=lambda: [(6, 3), (5, 1), (4, 9)],
    mistakes=(
        Mistake(
            lambda n, r: (_back(n) >= 0) & (_back(n) <= r),
            "your window is one word too wide: the query itself counts among the r.",
        ),
        Mistake(
            lambda n, r: (_back(n) > 0) & (_back(n) <= r),
            "your query does not see itself, but it counts among the r.",
        ),
        Mistake(
            lambda n, r: _back(n).abs() < r,
            "your query sees words that come after it.",
        ),
        Mistake(
            lambda n, r: (_back(n) <= 0) & (_back(n) > -r),
            "your query sees what follows it. Rows are queries and columns are keys.",
        ),
        Mistake(
            lambda n, r: ~((_back(n) >= 0) & (_back(n) < r)),
            "your mask is inverted: true means that a query may attend.",
        ),
    ),
)


def _layers_needed(mask: Tensor) -> int:
    """Follow the set of places that the last word knows of, layer by layer."""
    known, layers = {mask.size(0) - 1}, 0
    while 0 not in known:
        known = {key for query in known for key, sees in enumerate(mask[query]) if sees}
        layers += 1
    return layers


def _masks() -> list[tuple[Tensor]]:
    """A window, one that looks back, a bridge to the front, and one by a detour."""
    window = _back(9).abs() <= 2
    bridge = _back(8).abs() <= 1
    bridge[7, 2] = True  # the last word sees far, but is seen only nearby
    detour = _back(9).abs() <= 1
    detour[8, 4] = detour[5, 0] = True  # from 8 to 4, one ahead to 5, and then to 0
    looks_back = _window_mask(10, 3) | (_back(10) == -1)
    return [(window,), (looks_back,), (bridge,), (detour,)]


def _on_powers(mask: Tensor, start: int, layers: int) -> int:
    """By powers of the mask, which is right if it starts with one layer."""
    seen = mask.float()
    while not seen[start, -1 - start]:
        seen, layers = ((seen @ mask.float()) > 0).float(), layers + 1
    return layers


def _farthest_first(mask: Tensor) -> int:
    place, layers = mask.size(0) - 1, 0
    while place:
        place, layers = int(mask[place].nonzero()[0]), layers + 1
    return layers


layers_needed = FunctionCheck(
    exercise="12.2",
    reference=_layers_needed,
    cases=_masks,
    mistakes=(
        Mistake(
            lambda mask: _on_powers(mask, -1, 0),
            "one too few: the first layer counts as well.",
        ),
        Mistake(
            lambda mask: _on_powers(mask, -1, 2),
            "one too many: with the mask itself you are already at one layer.",
        ),
        Mistake(
            lambda mask: _on_powers(mask, 0, 1),
            "that is how the first word comes to depend on the last. Rows are queries.",
        ),
        Mistake(
            _farthest_first,
            "the word that lies farthest back need not be on the shortest path: follow "
            "all words that are seen.",
        ),
    ),
)

multiples = ValueCheck(
    exercise="12.3",
    reference=lambda: (0, 2),
    mistakes=(
        Mistake((0, 1), "that is the GRU's crossing with all four projections."),
        Mistake((0, 4), "nearly: scores and weighted sums take n²d each."),
        Mistake(
            (1, 2),
            "check the plain RNN again: both sides have 2nd². What remains?",
        ),
        Mistake((2, 0), "the other way round: first the plain RNN, then the GRU."),
    ),
)

one_or_hundred = ValueCheck(
    exercise="12.4",
    reference=lambda: (100, 1),
    mistakes=(
        Mistake((100, 100), "the projections work on one word at a time."),
        Mistake((10_000, 1), "there are a hundred notes; add up their scores."),
        Mistake((1, 1), "the scores are n² in each text, not n."),
        Mistake((80, 1), "8000² divided by what? There are a hundred notes of 80."),
    ),
)

corner = ValueCheck(
    exercise="12.5",
    reference=lambda: (8, 3),
    mistakes=(
        Mistake((4, 3), "attention to 5 words carries a word 2 places a layer, not 4."),
        Mistake((8, 2), "check the dilated stack again: 2 layers see 9 words."),
        Mistake((3, 8), "the other way round: first the attention, then the stack."),
        Mistake((8, 8), "that is the contiguous stack. The dilated one is meant."),
        Mistake((8, 4), "3 dilated layers see 27 words. Is that not enough for 17?"),
    ),
)
