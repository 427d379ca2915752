"""§5.1, packed: several sentence pairs in one row, so that little of it is padding.

The paper batches 'by approximate sequence length', and so does `TokenBatches`. Packing
is the other way to fill a rectangle. It needs no sentences of like length, but a model
that keeps those of a row apart (`aiayn.model.Segments`), and longer rows, whose
attention costs more.
"""

from itertools import chain

import numpy as np

from aiayn.data.encoding import EncodedPairs, TokenRows
from aiayn.errors import InputError


def pack_pairs(pairs: EncodedPairs, row_length: int) -> EncodedPairs:
    """Join pairs to rows that are nearly full, on both sides at once.

    The longest pairs come first, and each goes into the fullest row that still has room
    for it ('best fit, decreasing'): one pass over the pairs, in time that grows with
    their number.

    Args:
        pairs: Pairs that end in EOS, on both sides, and do not hold it elsewhere.
        row_length: The most tokens of a row, on either side; a pair that is longer has
            a row of its own.

    Returns:
        Rows of several pairs; sentence s of a row's target translates sentence s of its
        source. Every pair is in one of them.

    Raises:
        InputError: row_length is not positive.

    Not in the paper. The method is common; Krell et al. (2021) compare its forms.

    >>> pairs = EncodedPairs.from_lists(
    ...     [([7, 2], [8, 2]), ([5, 6, 5, 2], [9, 9, 2]), ([6, 5, 2], [9, 2])]
    ... )
    >>> packed = pack_pairs(pairs, row_length=6)
    >>> [packed.source[row] for row in range(len(packed))]
    [[5, 6, 5, 2, 7, 2], [6, 5, 2]]
    """
    if row_length < 1:
        raise InputError(f"row_length must be 1 or larger, not {row_length}.")
    rows = _fill(pairs.source.lengths, pairs.target.lengths, row_length)
    return EncodedPairs(_joined(pairs.source, rows), _joined(pairs.target, rows))


def _fill(source: np.ndarray, target: np.ndarray, row_length: int) -> list[list[int]]:
    """The pairs of each row."""
    rows: list[list[int]] = []
    free: list[tuple[int, int]] = []  # of each row, on either side
    # Rows by the room on their fuller side, and a number whose bit r says whether there
    # is a row with room for r.
    with_room: list[list[int]] = [[] for _ in range(row_length + 1)]
    rooms = 0
    for pair in np.argsort(-np.maximum(source, target), kind="stable").tolist():
        lengths = int(source[pair]), int(target[pair])
        enough = rooms >> max(lengths)
        if enough:
            room = max(lengths) + (enough & -enough).bit_length() - 1
            row = with_room[room].pop()
            if not with_room[room]:
                rooms ^= 1 << room
        else:
            row = len(rows)
            rows.append([])
            free.append((row_length, row_length))
        rows[row].append(pair)
        free[row] = free[row][0] - lengths[0], free[row][1] - lengths[1]
        room = max(0, min(free[row]))
        with_room[room].append(row)
        rooms |= 1 << room
    return rows


def _joined(side: TokenRows, rows: list[list[int]]) -> TokenRows:
    """Each row's sentences, one after the other."""
    order = np.fromiter(chain.from_iterable(rows), np.int64)
    lengths = side.lengths[order]
    ends = lengths.cumsum()  # of each sentence, where it will stand
    moved = side.starts[order] - (ends - lengths)
    places = np.arange(lengths.sum()) + np.repeat(moved, lengths)
    last = np.cumsum([len(row) for row in rows], dtype=np.int64) - 1
    return TokenRows(side.tokens[places], np.concatenate([[0], ends[last]]))
