"""§5.1: sentences as token ids, ready to be cut into batches.

All ids of a text lie one after the other in a single array, with the place where each
sentence begins: a list of lists would take ten times the memory, and a batch could not
be gathered in one step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from aiayn.data.parallel import ParallelText
from aiayn.data.text import refuse_text
from aiayn.data.tokenizer import EOS_ID, Tokenizer
from aiayn.errors import InputError
from aiayn.files import write_atomically

# Sentences that are encoded at a time, to bound the memory of their lists.
CHUNK = 50_000


@dataclass(frozen=True)
class TokenRows:
    """Sentences of unequal length, as ids.

    Row i is ``tokens[starts[i]:starts[i + 1]]``. Make it with `encode_lines` or with
    `TokenRows.from_lists`.

    Not in the paper.

    >>> rows = TokenRows.from_lists([[5, 6, 2], [7, 2]])
    >>> len(rows), rows[1], rows.lengths.tolist()
    (2, [7, 2], [3, 2])
    """

    tokens: Int[np.ndarray, " tokens"]
    """All ids, one sentence after the other."""
    starts: Int64[np.ndarray, " rows_plus_1"]
    """Where each sentence begins, and at last where all end."""

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int]]) -> "TokenRows":
        """Rows of ids, as they are: nothing is appended."""
        rows = list(rows)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        starts = np.concatenate([[0], lengths.cumsum()])
        tokens = np.fromiter(chain.from_iterable(rows), np.int32, starts[-1])
        return cls(tokens, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> list[int]:
        """The ids of one row."""
        row = range(len(self))[row]  # refuses what is outside, understands -1
        return self.tokens[self.starts[row] : self.starts[row + 1]].tolist()

    @property
    def lengths(self) -> Int64[np.ndarray, " rows"]:
        """The number of ids in each row."""
        return np.diff(self.starts)

    def keep(self, wanted: Bool[np.ndarray, " rows"]) -> "TokenRows":
        """The rows that are wanted, in their order."""
        lengths = self.lengths
        starts = np.concatenate([[0], lengths[wanted].cumsum()])
        return TokenRows(self.tokens[np.repeat(wanted, lengths)], starts)

    def padded(
        self, rows: Int64[np.ndarray, " batch"], pad_id: int
    ) -> Int64[Tensor, "batch length"]:
        """Some rows as one tensor, as wide as the longest of them.

        Args:
            rows: Which rows, in which order.
            pad_id: What fills the shorter ones.
        """
        rows = np.arange(len(self))[rows]  # refuses what is outside, understands -1
        starts, lengths = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        columns = np.arange(lengths.max(initial=0))  # (length,)
        places = starts[:, None] + columns  # (batch, length)
        real = columns < lengths[:, None]  # (batch, length)
        ids = np.full(places.shape, pad_id, dtype=np.int64)
        ids[real] = self.tokens[places[real]]
        return torch.from_numpy(ids)

    def save(self, path: Path | str) -> None:
        """Write the rows to ``path.tokens.npy`` and ``path.starts.npy``."""
        path = Path(path)
        for name, array in (("tokens", self.tokens), ("starts", self.starts)):
            with write_atomically(path.with_name(f"{path.name}.{name}.npy")) as stream:
                np.save(stream, array, allow_pickle=False)

    @classmethod
    def open(cls, path: Path | str) -> "TokenRows":
        """What `save` wrote, left on disk: processes share the memory that it takes.

        Raises:
            InputError: A file is missing or cut short, or is another text's.
        """
        path = Path(path)
        try:
            tokens, starts = (
                np.load(path.with_name(f"{path.name}.{name}.npy"), mmap_mode="r")
                for name in ("tokens", "starts")
            )
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"The encoded text {path} cannot be read: {error}."
            ) from error
        if starts.ndim != 1 or not len(starts) or starts[-1] != len(tokens):
            raise InputError(
                f"The encoded text {path} cannot be read: its two files do not belong "
                "together."
            )
        return cls(tokens, starts)


@dataclass(frozen=True)
class EncodedPairs:
    """Sentence pairs as ids: row i of the target translates row i of the source.

    Paper: §5.1.

    >>> pairs = EncodedPairs.from_lists([([5, 6, 2], [7, 2])])
    >>> len(pairs), pairs.source[0], pairs.target[0]
    (1, [5, 6, 2], [7, 2])
    """

    source: TokenRows
    """What the encoder reads."""
    target: TokenRows
    """What the decoder is to write."""

    def __post_init__(self) -> None:
        """Hold the two sides to the same length."""
        if len(self.source) != len(self.target):
            raise InputError(
                f"Encoded pairs need as many rows on both sides: source has "
                f"{len(self.source):,}, target {len(self.target):,}."
            )

    @classmethod
    def from_lists(
        cls, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]
    ) -> "EncodedPairs":
        """Pairs of rows of ids that end in EOS already."""
        pairs = list(pairs)
        return cls(
            TokenRows.from_lists(source for source, _ in pairs),
            TokenRows.from_lists(target for _, target in pairs),
        )

    def __len__(self) -> int:
        return len(self.source)


def encode_lines(lines: Iterable[str], tokenizer: Tokenizer) -> TokenRows:
    """Each line as ids, with EOS at its end.

    Args:
        lines: Sentences.
        tokenizer: Their vocabulary.

    Raises:
        InputError: lines is one text.

    Paper: §5.1.

    >>> text = load_corpus("grammar", size=200).train
    >>> tokenizer = Tokenizer.train([*text.source, *text.target], vocab_size=300)
    >>> *ids, end = encode_lines(text.source, tokenizer)[0]
    >>> tokenizer.decode(ids) == text.source[0], end == EOS_ID
    (True, True)
    """
    refuse_text(lines)
    lines = iter(lines)
    parts = []
    while chunk := list(islice(lines, CHUNK)):
        rows = tokenizer.encode_batch(chunk)
        parts.append(TokenRows.from_lists([*row, EOS_ID] for row in rows))
    lengths = np.concatenate([np.zeros(1, np.int64), *(p.lengths for p in parts)])
    tokens = np.concatenate([np.zeros(0, np.int32), *(p.tokens for p in parts)])
    return TokenRows(tokens, lengths.cumsum())


def encode_pairs(
    text: ParallelText, tokenizer: Tokenizer, max_length: int | None = None
) -> tuple[EncodedPairs, int]:
    """Sentence pairs as ids, without those that are too long.

    Args:
        text: The pairs.
        tokenizer: One vocabulary for both sides.
        max_length: The most tokens that a side may have, EOS included; None: any.

    Returns:
        The pairs that are short enough, in their order; and how many are not.

    Raises:
        InputError: No pair is left.

    Paper: §5.1.

    >>> text = load_corpus("grammar", size=200).train
    >>> tokenizer = Tokenizer.train([*text.source, *text.target], vocab_size=300)
    >>> pairs, left_out = encode_pairs(text, tokenizer, max_length=20)
    >>> len(pairs) + left_out
    200
    """
    source = encode_lines(text.source, tokenizer)
    target = encode_lines(text.target, tokenizer)
    if max_length is None:
        return EncodedPairs(source, target), 0
    wanted = np.maximum(source.lengths, target.lengths) <= max_length
    if len(text) and not wanted.any():
        raise InputError(
            f"All {len(text):,} pairs have more than max_length={max_length} tokens "
            "on one side or both; allow more, or take a larger vocabulary."
        )
    pairs = EncodedPairs(source.keep(wanted), target.keep(wanted))
    return pairs, int((~wanted).sum())
