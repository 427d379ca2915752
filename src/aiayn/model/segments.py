"""§5.1, packed: several sentences in one row, none of which may know of the others.

The paper pads: a row is one sentence, and padding fills it up. A row can also hold the
next sentences instead. For each of them to come out as it does alone, three things have
to know where it begins: the masks, the positions, and the shift of the target.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Int64
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """Which sentence of its row each token belongs to, on both sides, counted from 0.

    Sentence s of a row's target translates sentence s of its source.

    Not in the paper, where a row is one sentence.

    >>> source = torch.tensor([[5, 6, 2, 7, 2]])  # two sentences, each ended by a 2
    >>> target = torch.tensor([[8, 2, 9, 8, 2, 0]])
    >>> segments = Segments.of(source, target, end_id=2)
    >>> segments.source, segments.target  # padding goes with the last sentence
    (tensor([[0, 0, 0, 1, 1]]), tensor([[0, 0, 1, 1, 1, 1]]))
    """

    source: Int64[Tensor, "batch source_length"]
    """Of each token that the encoder reads."""
    target: Int64[Tensor, "batch target_length"]
    """Of each token that the decoder is to write."""

    @classmethod
    def of(
        cls,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        end_id: int,
    ) -> "Segments":
        """Those of rows in which every sentence ends in end_id, and none holds it."""
        return cls(_numbered(source, end_id), _numbered(target, end_id))


def positions_within(
    segments: Int64[Tensor, "batch length"],
) -> Int64[Tensor, "batch length"]:
    """The place of each token in its own sentence, counted from 0.

    Args:
        segments: The sentence of each token, as `Segments` holds them.

    Not in the paper, where a row is one sentence.

    >>> positions_within(torch.tensor([[0, 0, 0, 1, 1]]))
    tensor([[0, 1, 2, 0, 1]])
    """
    places = torch.arange(segments.size(1), device=segments.device)
    begun = torch.where(_first(segments), places, 0).cummax(dim=1).values
    return places - begun


def restart(
    shifted: Int[Tensor, "batch length"],
    segments: Int64[Tensor, "batch length"],
    start_id: int,
) -> Int[Tensor, "batch length"]:
    """Begin every sentence with start_id, where a whole row was shifted right.

    Args:
        shifted: What `shift_right` made of rows that hold several targets.
        segments: The target's, as `Segments` holds them.
        start_id: The token that stands before every target.

    Not in the paper, where a row is one sentence.

    >>> shifted = torch.tensor([[1, 8, 2, 9, 8]])  # 8 2 | 9 8 2, shifted right
    >>> restart(shifted, torch.tensor([[0, 0, 1, 1, 1]]), start_id=1)
    tensor([[1, 8, 1, 9, 8]])
    """
    return shifted.masked_fill(_first(segments), start_id)


def _numbered(tokens: Tensor, end_id: int) -> Tensor:
    """The number of ends before each token; padding counts with the last sentence."""
    ends = (tokens == end_id).long()
    last = (ends.sum(dim=1, keepdim=True) - 1).clamp(min=0)
    return (ends.cumsum(dim=1) - ends).minimum(last)


def _first(segments: Tensor) -> Tensor:
    """True where a sentence begins."""
    first = torch.ones_like(segments, dtype=torch.bool)
    first[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return first
