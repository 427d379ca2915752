"""§5.1, packed: several sentence pairs in one row, so that little of it is padding.

The paper batches 'by approximate sequence length', and so does `TokenBatches`. Packing
is another way to avoid padding. It does not need sentences of similar length, but rows
are longer, so that attention costs more. For each sentence to be processed as it is in
a row of its own, the masks, the positions and the shift of the target have to know
where each sentence of a row begins; `Batch` computes them with the functions below.
"""

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from aiayn.data.encoding import EncodedPairs, RaggedTokens


def pack_pairs(pairs: EncodedPairs, row_length: int) -> EncodedPairs:
    """Join pairs to rows that are nearly full, on both sides at once.

    The longest pairs come first, and each goes into the fullest row that still has room
    for it ('best fit, decreasing'): one pass over the pairs, in linear time.

    Args:
        pairs: Pairs that end in EOS on both sides and do not contain it elsewhere.
        row_length: The largest number of tokens of a row, on either side; a longer pair
            gets a row of its own.

    Returns:
        Rows of several pairs; sentence s of a row's target translates sentence s of its
        source. Every pair is in exactly one row.

    Not in the paper. The method is common; Krell et al. (2021) compare its variants.

    >>> pairs = EncodedPairs.from_lists(
    ...     [([7, 2], [8, 2]), ([5, 6, 5, 2], [9, 9, 2]), ([6, 5, 2], [9, 2])]
    ... )
    >>> packed = pack_pairs(pairs, row_length=6)
    >>> [packed.source[row] for row in range(len(packed))]
    [[5, 6, 5, 2, 7, 2], [6, 5, 2]]
    """
    rows = _best_fit(pairs.source.lengths, pairs.target.lengths, row_length)
    order = np.fromiter((pair for row in rows for pair in row), np.int64)
    ends = np.cumsum([0, *map(len, rows)])

    def joined(side: RaggedTokens) -> RaggedTokens:
        side = side.select(order)
        return RaggedTokens(side.tokens, side.starts[ends])

    return EncodedPairs(joined(pairs.source), joined(pairs.target), packed=True)


def _best_fit(source: np.ndarray, target: np.ndarray, slots: int) -> list[list[int]]:
    """The pairs of each row of so many slots, given their lengths on both sides."""
    rows: list[list[int]] = []
    free: list[tuple[int, int]] = []  # free slots of each row, on both sides
    # Rows by their free slots on the fuller side.
    by_free: list[list[int]] = [[] for _ in range(slots + 1)]
    for pair in np.argsort(-np.maximum(source, target), kind="stable").tolist():
        lengths = int(source[pair]), int(target[pair])
        with_room = filter(None, by_free[max(lengths) :])
        if fullest := next(with_room, None):
            row = fullest.pop()
        else:
            row = len(rows)
            rows.append([])
            free.append((slots, slots))
        rows[row].append(pair)
        free[row] = free[row][0] - lengths[0], free[row][1] - lengths[1]
        by_free[max(0, min(free[row]))].append(row)
    return rows


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
