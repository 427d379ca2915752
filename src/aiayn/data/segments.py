"""§5.1, packed rows: which sentence of its row each token belongs to.

For each sentence of a row to be processed as it is in a row of its own, the masks, the
positions and the shift of the target have to know where it begins.
"""

import torch
from jaxtyping import Int, Int64
from torch import Tensor


def segment_ids(
    tokens: Int[Tensor, "batch length"], eos_id: int
) -> Int64[Tensor, "batch length"]:
    """Which sentence of its row each token belongs to, counted from 0.

    Args:
        tokens: Rows of sentences, each ended by EOS; padding follows the last.
        eos_id: The token that ends a sentence.

    Returns:
        The number of each token's sentence; padding has that of the last sentence.

    Not in the paper, where a row is one sentence.

    >>> segment_ids(torch.tensor([[5, 6, 2, 7, 2, 0]]), eos_id=2)
    tensor([[0, 0, 0, 1, 1, 1]])
    """
    ends = (tokens == eos_id).long()
    last = (ends.sum(dim=1, keepdim=True) - 1).clamp(min=0)
    return (ends.cumsum(dim=1) - ends).minimum(last)


def positions_within(
    segment_ids: Int64[Tensor, "batch length"],
) -> Int64[Tensor, "batch length"]:
    """The position of each token in its own sentence, counted from 0.

    Args:
        segment_ids: The sentence of each token, from `segment_ids`.

    Not in the paper, where a row is one sentence.

    >>> positions_within(torch.tensor([[0, 0, 0, 1, 1]]))
    tensor([[0, 1, 2, 0, 1]])
    """
    positions = torch.arange(segment_ids.size(1), device=segment_ids.device)
    begins = torch.where(_is_first(segment_ids), positions, 0).cummax(dim=1).values
    return positions - begins


def shift_right_packed(
    target: Int[Tensor, "batch length"],
    segment_ids: Int64[Tensor, "batch length"],
    bos_id: int,
) -> Int[Tensor, "batch length"]:
    """Shift every sentence of packed rows to the right, each behind its own BOS.

    Args:
        target: Rows that contain several targets.
        segment_ids: The sentence of each token, from `segment_ids`.
        bos_id: The token that stands before every target.

    Not in the paper, where a row is one sentence.

    >>> target = torch.tensor([[8, 2, 9, 8, 2]])  # 8 2 | 9 8 2
    >>> shift_right_packed(target, torch.tensor([[0, 0, 1, 1, 1]]), bos_id=1)
    tensor([[1, 8, 1, 9, 8]])
    """
    return target.roll(1, dims=1).masked_fill(_is_first(segment_ids), bos_id)


def _is_first(segment_ids: Tensor) -> Tensor:
    """True where a sentence begins."""
    return segment_ids.diff(dim=1, prepend=segment_ids[:, :1] - 1) != 0
