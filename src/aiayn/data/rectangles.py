"""§5.1: rectangles of tokens, cut from rows of mixed length."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from jaxtyping import Int64
from torch import Tensor

from aiayn.data.ragged import RaggedTokens
from aiayn.data.tokenizer import PAD_ID

Result = TypeVar("Result")


def map_batches(
    function: Callable[[Int64[Tensor, "batch length"]], Sequence[Result]],
    rows: RaggedTokens,
    tokens_per_batch: int,
    *,
    pad_id: int = PAD_ID,
) -> list[Result]:
    """Apply a function to rows of mixed length, batch by batch.

    Rows of similar length share a batch. The longest come first, so that a lack of
    memory shows at once. A row longer than tokens_per_batch is a batch of its own.

    Args:
        function: From a padded tensor to one result for each of its rows.
        rows: Sentences, as `aiayn.data.encode_lines` makes them.
        tokens_per_batch: The largest number of token slots, padding included.
        pad_id: The token that fills short rows.

    Returns:
        The results, in the order of the rows.

    Not in the paper.

    >>> rows = RaggedTokens.from_lists([[7, 2], [5, 6, 2]])
    >>> map_batches(lambda ids: ids.sum(dim=1).tolist(), rows, tokens_per_batch=6)
    [9, 13]
    """
    order = np.argsort(rows.lengths, kind="stable")
    results: dict[int, Result] = {}
    for part in reversed(cut(rows.lengths[order], tokens_per_batch)):
        found = function(rows.padded(order[part], pad_id))
        results.update(zip(order[part].tolist(), found, strict=True))
    return [results[row] for row in range(len(rows))]


def cut(lengths: Int64[np.ndarray, " rows"], slots: int) -> list[slice]:
    """Cut rows, sorted by rising length, into rectangles of at most so many slots."""
    starts: list[int] = []
    for row, length in enumerate(lengths.tolist()):
        if not starts or (row - starts[-1] + 1) * length > slots:
            starts.append(row)
    return [slice(*ends) for ends in pairwise([*starts, len(lengths)])]
