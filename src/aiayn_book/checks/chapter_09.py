"""Checks of chapter 9, positional encoding (§3.5)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _encode(place: int, d_model: int) -> list[float]:
    """The formula, number by number."""
    numbers = []
    for i in range(d_model // 2):
        angle = place / 10000 ** (2 * i / d_model)
        numbers += [math.sin(angle), math.cos(angle)]
    return numbers


def _move_on(vectors: Tensor, k: int) -> Tensor:
    """Read each hand's angle, add k times its speed, and write it again."""
    d_model = vectors.size(1)
    moved = torch.zeros_like(vectors)
    for row, vector in enumerate(vectors.tolist()):
        for i in range(d_model // 2):
            angle = math.atan2(vector[2 * i], vector[2 * i + 1])
            angle += k / 10000 ** (2 * i / d_model)
            moved[row, 2 * i] = math.sin(angle)
            moved[row, 2 * i + 1] = math.cos(angle)
    return moved


def _move_on_cases() -> list[tuple[Tensor, int]]:
    return [
        (torch.tensor([_encode(place, d_model) for place in places]), k)
        for places, d_model, k in [
            ((0, 1, 2), 4, 1),
            ((5, 80, 3, 41), 16, 7),
            ((12, 9), 64, -3),
        ]
    ]


def _turned(vectors: Tensor, turn: Tensor) -> Tensor:
    """Each pair turned by its angle: what the mistakes start from."""
    sin, cos = vectors[:, 0::2], vectors[:, 1::2]
    pairs = [sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()]
    return torch.stack(pairs, dim=-1).flatten(1)


def _turns(vectors: Tensor, k: int) -> Tensor:
    d_model = vectors.size(1)
    return k / 10000 ** (torch.arange(0, d_model, 2) / d_model)


def _in_halves(vectors: Tensor, k: int) -> Tensor:
    """Right, but in the other layout."""
    moved = _turned(vectors, _turns(vectors, k))
    return torch.cat([moved[:, 0::2], moved[:, 1::2]], dim=1)


move_on = FunctionCheck(
    exercise="9.1",
    reference=_move_on,
    cases=_move_on_cases,
    mistakes=(
        Mistake(
            lambda vectors, k: _turned(vectors, -_turns(vectors, k)),
            "your hands turn backwards. Look at the signs in the addition theorems.",
        ),
        Mistake(
            lambda vectors, k: _turned(vectors, torch.full((1,), float(k))),
            "all your hands turn by the same angle. Each pair has a speed of its own.",
        ),
        Mistake(
            lambda vectors, k: _turned(
                vectors,
                k / 10000 ** (torch.arange(vectors.size(1) // 2) / vectors.size(1)),
            ),
            "your exponent is i / d_model. What stands in the formula?",
        ),
        Mistake(
            _in_halves,
            "all sines come first and then all cosines. The formula has them in turn.",
        ),
        Mistake(
            lambda vectors, k: vectors,
            "your vectors have not moved at all.",
        ),
        Mistake(
            lambda vectors, k: vectors.roll(-k, dims=0),
            "the rows have moved up. The rows need not be neighbouring positions, and "
            "the last one has no next row: turn the hands within each row.",
        ),
    ),
)


length_squared = ValueCheck(
    exercise="9.2",
    reference=lambda: sum(number**2 for number in _encode(123, 512)),
    mistakes=(
        Mistake(512, "each pair gives 1, not each number. How many pairs are there?"),
        Mistake(16, "that is the length. Its square is asked."),
        Mistake(1, "that is what one pair gives. How many pairs are there?"),
        Mistake(
            math.sqrt(512), "that is √d_model. What is sin² + cos², and how often?"
        ),
    ),
)

_ONE_LAYER = (
    "look at the one layer again: the last word takes a mean over the words before it. "
    "Does a mean depend on the order of its terms?"
)

six_orders = ValueCheck(
    exercise="9.3",
    reference=lambda: (1, 6),
    mistakes=(
        Mistake((1, 1), "look at two layers again: what could the words between see?"),
        Mistake((6, 6), _ONE_LAYER),
        Mistake((6, 1), _ONE_LAYER),
        Mistake(
            (1, 3),
            "with two layers, it matters who stands last of the three, and who stands "
            "before that one as well: each of the three sees another set.",
        ),
        Mistake(
            (1, 2),
            "with two layers each of the three shows which words it could see. How "
            "many of the six orders look different then?",
        ),
    ),
)

once_around = ValueCheck(
    exercise="9.4",
    reference=lambda: 63,
    mistakes=(
        Mistake(6, "that is where the first clock comes round. The second is meant."),
        Mistake(62, "there it is nearly upright; one position later it is more so."),
        Mistake(628, "that is the third clock. The second is meant."),
        Mistake(31, "there the hand points straight down: half a turn."),
        Mistake(0, "that is where it starts. Once around is asked."),
    ),
)
