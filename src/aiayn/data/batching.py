"""§5.1: 'Sentence pairs were batched together by approximate sequence length.'

'Each training batch contained a set of sentence pairs containing approximately 25000
source tokens and 25000 target tokens.' A tensor is a rectangle, so short rows are
filled up with padding, which is computed and thrown away. Here the limit is on the
whole rectangle, padding included, because that is what takes memory and time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from aiayn.data.encoding import EncodedPairs, TokenRows
from aiayn.data.tokenizer import PAD_ID
from aiayn.errors import InputError

Result = TypeVar("Result")
Indices = Int64[np.ndarray, " rows"]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs side by side; every row ends in EOS, then padding.

    The target has no BOS: it is the labels. The decoder's input is the target shifted
    right (`aiayn.model.shift_right`).

    Paper: §5.1.

    >>> source = torch.tensor([[5, 6, 2], [7, 2, 0]])
    >>> batch = Batch(source, target=torch.tensor([[8, 2], [9, 2]]))
    >>> batch.source_tokens, batch.target_tokens  # padding does not count
    (5, 4)
    """

    source: Int64[Tensor, "batch source_length"]
    """What the encoder reads."""
    target: Int64[Tensor, "batch target_length"]
    """What the decoder is to write."""
    pad_id: int = PAD_ID
    """What fills short rows."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return Batch(self.source.to(device), self.target.to(device), self.pad_id)

    @property
    def source_tokens(self) -> int:
        """Source tokens, EOS included, padding not; asking a GPU waits for it."""
        return int((self.source != self.pad_id).sum())

    @property
    def target_tokens(self) -> int:
        """Target tokens, counted likewise: what the loss is averaged over."""
        return int((self.target != self.pad_id).sum())

    def __len__(self) -> int:
        return len(self.source)


class TokenBatches:
    """Batches of similar length, in another order each epoch.

    In an epoch every pair comes once. Its batches are a function of the seed and the
    epoch's number alone, so that a stopped run can resume in the middle of any epoch.

    Args:
        pairs: What to cut into batches.
        tokens_per_batch: The most places a batch may have on either side, padding
            included.
        seed: Of the order.
        pad_id: What fills short rows.

    Raises:
        InputError: There are no pairs, or one that does not fit into a batch, or the
            seed is negative; or (in `plan` and `epoch`) an epoch's number is.

    Paper: §5.1, about 25,000 tokens on each side.

    >>> pairs = EncodedPairs.from_lists([([5, 6, 2], [7, 2]), ([8, 2], [9, 2])])
    >>> [batch] = TokenBatches(pairs, tokens_per_batch=6).epoch(0)
    >>> sorted(batch.source.tolist())
    [[5, 6, 2], [8, 2, 0]]
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        tokens_per_batch: int,
        *,
        seed: int = 0,
        pad_id: int = PAD_ID,
    ) -> None:
        self.pairs, self.seed, self.pad_id = pairs, seed, pad_id
        self._source, self._target = pairs.source.lengths, pairs.target.lengths
        self._longer = np.maximum(self._source, self._target)
        self._check(tokens_per_batch)
        self._slices = _cut(np.sort(self._longer), tokens_per_batch)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._slices)

    def plan(self, epoch: int) -> list[Indices]:
        """Which pairs stand in which batch: an epoch without its tensors."""
        if epoch < 0:
            raise InputError(f"Epochs are counted from 0: none has the number {epoch}.")
        generator = np.random.default_rng([self.seed, epoch])
        order = self._by_length(generator.random(len(self.pairs)))
        batches = [order[rows] for rows in self._slices]
        return [batches[i] for i in generator.permutation(len(batches))]

    def epoch(self, number: int, first: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from its first-th on.

        Args:
            number: Which epoch, counted from 0.
            first: How many batches of it to pass over, because they were done before.
        """
        return map(self._batch, self.plan(number)[first:])

    @property
    def source_tokens(self) -> int:
        """Source tokens of an epoch, EOS included."""
        return int(self._source.sum())

    @property
    def target_tokens(self) -> int:
        """Target tokens of an epoch, counted likewise."""
        return int(self._target.sum())

    def padding_share(self) -> float:
        """The share of all places, on both sides, that hold padding; in [0, 1)."""
        places = sum(
            len(rows) * int(side[rows].max())
            for rows in self.plan(0)
            for side in (self._source, self._target)
        )
        return 1 - (self.source_tokens + self.target_tokens) / places

    def _batch(self, rows: Indices) -> Batch:
        source = self.pairs.source.padded(rows, self.pad_id)
        target = self.pairs.target.padded(rows, self.pad_id)
        return Batch(source, target, self.pad_id)

    def _by_length(self, random: np.ndarray) -> Indices:
        """The pairs, sorted so that neighbours need little padding.

        First by the longer side, which the limit is on; then by how much longer the
        source is than the target, rising and falling in turn, so that this is alike on
        both sides of each step of the longer one; then at random. In batches of 4,096
        tokens of Multi30k, 3 % is padding; sorting by the longer side alone leaves 7 %.
        """
        turn = np.where(self._longer % 2, 1, -1)
        return np.lexsort((random, turn * (self._source - self._target), self._longer))

    def _check(self, tokens_per_batch: int) -> None:
        if self.seed < 0:
            raise InputError(f"seed must be 0 or larger, not {self.seed}.")
        if not len(self.pairs):
            raise InputError("There are no sentence pairs to cut into batches.")
        worst = int(self._longer.argmax())
        if self._longer[worst] > tokens_per_batch:
            raise InputError(
                f"Pair {worst + 1} has {self._source[worst]} source and "
                f"{self._target[worst]} target tokens, which do not fit into "
                f"tokens_per_batch={tokens_per_batch}; allow more, or leave out long "
                "pairs with max_length."
            )


def map_batches(
    function: Callable[[Int64[Tensor, "batch length"]], Sequence[Result]],
    rows: TokenRows,
    tokens_per_batch: int,
    *,
    pad_id: int = PAD_ID,
) -> list[Result]:
    """Apply a function to rows of mixed length, batch by batch.

    Rows of similar length go together, the longest first: if they do not fit into
    memory, that shows at once. A row longer than tokens_per_batch goes alone.

    Args:
        function: From a padded tensor to one result for each of its rows.
        rows: Sentences, as `aiayn.data.encode_lines` makes them.
        tokens_per_batch: The most places a tensor may have, padding included.
        pad_id: What fills short rows.

    Returns:
        The results, in the order of the rows.

    Not in the paper.

    >>> rows = TokenRows.from_lists([[7, 2], [5, 6, 2]])
    >>> map_batches(lambda ids: ids.sum(dim=1).tolist(), rows, tokens_per_batch=6)
    [9, 13]
    """
    order = np.argsort(rows.lengths, kind="stable")
    results: list[Result | None] = [None] * len(rows)
    for part in reversed(_cut(rows.lengths[order], tokens_per_batch)):
        batch = order[part]
        found = function(rows.padded(batch, pad_id))
        for row, result in zip(batch, found, strict=True):
            results[row] = result
    return results  # type: ignore[return-value]


def _cut(lengths: Indices, places: int) -> list[slice]:
    """Cut rows, sorted by rising length, into rectangles of at most so many places."""
    slices, start = [], 0
    while start < len(lengths):
        most = max(1, places // max(1, lengths[start]))
        window = lengths[start : start + most]
        fitting = int((window * np.arange(1, len(window) + 1) <= places).sum())
        stop = start + max(1, fitting)
        slices.append(slice(start, stop))
        start = stop
    return slices
