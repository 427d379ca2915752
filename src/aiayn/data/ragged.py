"""§5.1: sentences of unequal length as token ids, and rectangles cut from them.

All ids of a text are in one array, one sentence after the other. A list of lists would
take ten times the memory, and a batch could not be gathered in one step.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from aiayn.data.tokenizer import EOS_ID, PAD_ID, Tokenizer, checked_lines
from aiayn.storage import expand, write_atomically

Result = TypeVar("Result")

CHUNK = 50_000  # sentences that are encoded at a time, to bound the memory


@dataclass(frozen=True)
class RaggedTokens:
    """Sentences of unequal length, as token ids in one array.

    Row i is ``tokens[starts[i]:starts[i + 1]]``; `encode_lines` makes it of a text.

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
        """The rows with these numbers as one tensor, as wide as the longest of them."""
        some = self.select(rows)
        lengths = some.lengths
        real = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (batch, length)
        ids = np.full(real.shape, pad_id, dtype=np.int64)
        ids[real] = some.tokens
        return torch.from_numpy(ids)

    def save(self, path: Path | str, make_folder: bool = True) -> None:
        """Write the rows to ``path.tokens.npy`` and ``path.starts.npy``.

        Args:
            path: The beginning of both names.
            make_folder: Make their folder if it is missing; otherwise that is an error.

        Raises:
            InputError: A file cannot be written.
        """
        for name in ("tokens", "starts"):
            with write_atomically(expand(f"{path}.{name}.npy"), make_folder) as stream:
                np.save(stream, getattr(self, name))

    @classmethod
    def open(cls, path: Path | str) -> "RaggedTokens":
        """Open what `save` wrote and leave it on disk, where processes share it."""
        files = (expand(f"{path}.{name}.npy") for name in ("tokens", "starts"))
        return cls(*(np.load(file, mmap_mode="r") for file in files))


def encode_lines(lines: Iterable[str], tokenizer: Tokenizer) -> RaggedTokens:
    """Encode each line as ids, with EOS at its end.

    Args:
        lines: Sentences.
        tokenizer: Their vocabulary.

    Raises:
        InputError: lines is one text, or holds something else than texts.

    Paper: §5.1.
    """
    lines = checked_lines(lines)
    chunks = iter(lambda: list(islice(lines, CHUNK)), [])
    return RaggedTokens.from_lists(
        [*ids, EOS_ID] for chunk in chunks for ids in tokenizer.encode_batch(chunk)
    )


def map_batches(
    function: Callable[[Int64[Tensor, "batch length"]], Sequence[Result]],
    rows: RaggedTokens,
    tokens_per_batch: int,
    *,
    pad_id: int = PAD_ID,
) -> list[Result]:
    """Apply a function to rows of mixed length in batches; results in the rows' order.

    Rows of similar length share a batch. The longest come first, so that a lack of
    memory shows at once. A row longer than tokens_per_batch is a batch of its own.

    Args:
        function: From a padded tensor to one result for each of its rows.
        rows: Sentences.
        tokens_per_batch: The largest number of token slots, padding included.
        pad_id: The token that fills short rows.

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
