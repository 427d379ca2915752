"""§5.1: sentences of unequal length as token ids.

All ids of a text are in one array, one sentence after the other. A list of lists would
take ten times the memory, and a batch could not be gathered in one step.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from aiayn.storage import expand, write_atomically


@dataclass(frozen=True)
class RaggedTokens:
    """Sentences of unequal length, as token ids in one array.

    Row i is ``tokens[starts[i]:starts[i + 1]]``. Make it with `encode_lines` or with
    `RaggedTokens.from_lists`.

    Not in the paper.

    >>> rows = RaggedTokens.from_lists([[5, 6, 2], [7, 2]])
    >>> len(rows), rows[1], rows.lengths.tolist()
    (2, [7, 2], [3, 2])
    """

    tokens: Int[np.ndarray, " tokens"]
    """All ids, one sentence after the other."""
    starts: Int64[np.ndarray, " rows_plus_1"]
    """Where each sentence begins; the last entry is where the last one ends."""

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int]]) -> "RaggedTokens":
        """Rows of ids as they are; nothing is appended."""
        tokens, starts = array("i"), array("q", [0])
        for row in rows:
            tokens.extend(row)
            starts.append(len(tokens))
        return cls(np.asarray(tokens), np.array(starts, np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> list[int]:
        """The ids of one row."""
        return self.tokens[self.starts[:-1][row] : self.starts[1:][row]].tolist()

    @property
    def lengths(self) -> Int64[np.ndarray, " rows"]:
        """The number of ids in each row."""
        return np.diff(self.starts)

    def select(self, rows: Int64[np.ndarray, " some"]) -> "RaggedTokens":
        """The rows with these numbers, in this order."""
        begins = self.starts[:-1][rows]
        lengths = self.starts[1:][rows] - begins
        starts = np.concatenate([[0], lengths.cumsum()])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        return RaggedTokens(self.tokens[np.repeat(begins, lengths) + within], starts)

    def keep(self, wanted: Bool[np.ndarray, " rows"]) -> "RaggedTokens":
        """The rows for which wanted is true, in their order."""
        return self.select(wanted.nonzero()[0])

    def padded(
        self, rows: Int64[np.ndarray, " batch"], pad_id: int
    ) -> Int64[Tensor, "batch length"]:
        """Some rows as one tensor, as wide as the longest of them.

        Args:
            rows: The numbers of the rows, in the order wanted.
            pad_id: Fills the shorter rows.
        """
        some = self.select(rows)
        lengths = some.lengths
        real = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (batch, length)
        ids = np.full(real.shape, pad_id, dtype=np.int64)
        ids[real] = some.tokens
        return torch.from_numpy(ids)

    def save(self, path: Path | str) -> None:
        """Write the rows to ``path.tokens.npy`` and ``path.starts.npy``."""
        for name in ("tokens", "starts"):
            with write_atomically(expand(f"{path}.{name}.npy")) as stream:
                np.save(stream, getattr(self, name))

    @classmethod
    def open(cls, path: Path | str) -> "RaggedTokens":
        """Open what `save` wrote and leave it on disk, where processes share it."""
        files = (expand(f"{path}.{name}.npy") for name in ("tokens", "starts"))
        return cls(*(np.load(file, mmap_mode="r") for file in files))
