"""Checks of chapter 10, encoder and decoder (§3.1, Table 3)."""

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck

# The names of the sizes, in the order of the exercise's arguments.
_BASE = (6, 512, 2048, 8, 64, 64)


def _count_core(
    num_layers: int, d_model: int, d_ff: int, heads: int, d_k: int, d_v: int
) -> int:
    """Matrix by matrix, vector by vector."""
    projections = [(d_model, heads * d_k)] * 2 + [(d_model, heads * d_v)] * 2
    networks = [(d_model, d_ff), (1, d_ff), (d_ff, d_model), (1, d_model)]
    norm = [(1, d_model)] * 2
    encoder_layer = projections + networks + norm * 2
    decoder_layer = projections * 2 + networks + norm * 3
    total = 0
    for rows, columns in (encoder_layer + decoder_layer) * num_layers:
        total += rows * columns
    return total


def _closed(attentions: int, biases: bool, norms: int, value_width: bool = True):
    """The closed form, with so many attentions and norms a pair of layers."""

    def count(
        num_layers: int, d_model: int, d_ff: int, heads: int, d_k: int, d_v: int
    ) -> int:
        widths = 2 * heads * (d_k + d_v) if value_width else 4 * heads * d_k
        pair = attentions * d_model * widths + 2 * 2 * d_model * d_ff
        pair += 2 * (d_ff + d_model) * biases + norms * 2 * d_model
        return num_layers * pair

    return count


count_core = FunctionCheck(
    exercise="10.1",
    reference=_count_core,
    cases=lambda: [(1, 4, 8, 2, 2, 2), _BASE, (2, 12, 20, 3, 5, 7), (4, 6, 9, 2, 1, 3)],
    mistakes=(
        Mistake(
            _closed(2, True, 5),
            "a decoder layer has two attentions, and you count one.",
        ),
        Mistake(_closed(3, False, 5), "the two biases of each network are missing."),
        Mistake(_closed(3, True, 0), "the LayerNorms are missing: a gain and a bias."),
        Mistake(
            _closed(3, True, 4),
            "a decoder layer has three sub-layers, and so three LayerNorms.",
        ),
        Mistake(
            _closed(3, True, 5, value_width=False),
            "right where d_v equals d_k. Here values may have another width.",
        ),
    ),
)


def _swap(length: int) -> Tensor:
    """Position by position."""
    move = torch.zeros(length, length)
    for target in range(length):
        move[target + 1 if target % 2 == 0 else target - 1, target] = 1
    return move


swap_neighbours = FunctionCheck(
    exercise="10.2",
    reference=_swap,
    cases=lambda: [(2,), (4,), (6,), (8,)],
    mistakes=(
        Mistake(torch.eye, "every position attends to itself: that is a copy."),
        Mistake(
            lambda length: torch.eye(length).flip(0),
            "that is the reversal, which equals the answer for two positions only.",
        ),
        Mistake(
            lambda length: torch.eye(length).roll(1, 0),
            "every position attends to the next one. The second of a pair goes back.",
        ),
        Mistake(
            lambda length: 2 * _swap(length),
            "right but for the size: zeros and ones, please.",
        ),
    ),
)

fewer = ValueCheck(
    exercise="10.3",
    reference=lambda: _count_core(*_BASE) - _count_core(6, 512, 2048, 8, 16, 64),
    mistakes=(
        Mistake(
            18 * 4 * 512 * 8 * 48,
            "that would be so if values became narrower too. d_v stays.",
        ),
        Mistake(12 * 2 * 512 * 8 * 48, "there are eighteen attentions, not twelve."),
        Mistake(18 * 512 * 8 * 48, "queries become narrower, and keys as well."),
        Mistake(18 * 2 * 512 * 48, "that is one head. There are eight."),
        Mistake(
            18 * 2 * 512 * 8 * 16, "that is what is left of W_Q and W_K. What went?"
        ),
    ),
)

calls = ValueCheck(
    exercise="10.4",
    reference=lambda: 6 + 12 * (6 + 6),
    mistakes=(
        Mistake(18, "that is one pass, for a target that is known already."),
        Mistake(12 * 18, "does the source change while the target is written?"),
        Mistake(6 + 12 * 6, "how many attentions has a decoder layer?"),
        Mistake(6 + 11 * 12, "the end token must be predicted, too."),
    ),
)


def _smallest_vocabulary(networks: int = 12, step: int = 1000) -> int:
    """On the slider: more parameters in the embedding matrix than in the networks."""
    _, d_model, d_ff, *_ = _BASE
    held = networks * (2 * d_model * d_ff + d_ff + d_model)
    return (held // d_model // step + 1) * step


largest_embedding = ValueCheck(
    exercise="10.5",
    reference=_smallest_vocabulary,
    mistakes=(
        Mistake(49_000, "at 49,000 the bar of the networks is still a little longer."),
        Mistake(49_152, "that is the estimate without biases. What says the slider?"),
        Mistake(
            _smallest_vocabulary(6),
            "that is for six networks. Base has twelve of them.",
        ),
        Mistake(37_000, "that is where the slider begins. Move it to the right."),
    ),
)
