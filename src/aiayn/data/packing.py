"""§5.1, packed: several sentence pairs in one row, so that little of it is padding.

The paper batches 'by approximate sequence length', and so does `TokenBatches`. Packing
is another way to avoid padding. It does not need sentences of similar length, but rows
are longer, so that attention costs more.
"""

import numpy as np

from aiayn.data.pairs import EncodedPairs
from aiayn.data.ragged import RaggedTokens


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
