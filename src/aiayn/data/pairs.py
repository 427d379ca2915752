"""§5.1: sentence pairs as token ids, ready to be cut into batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from aiayn.data.parallel import ParallelText
from aiayn.data.ragged import RaggedTokens, encode_lines
from aiayn.data.tokenizer import Tokenizer
from aiayn.errors import InputError


@dataclass(frozen=True)
class EncodedPairs:
    """Sentence pairs as ids: row i of the target translates row i of the source.

    Paper: §5.1.

    >>> pairs = EncodedPairs.from_lists([([5, 6, 2], [7, 2])])
    >>> len(pairs), pairs.source[0], pairs.target[0]
    (1, [5, 6, 2], [7, 2])
    """

    source: RaggedTokens
    """What the encoder reads."""
    target: RaggedTokens
    """What the decoder is to write."""
    packed: bool = False
    """Whether a row contains several sentences, each ended by EOS (`pack_pairs`)."""

    @classmethod
    def from_lists(cls, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Self:
        """Pairs of rows of ids that already end in EOS."""
        source, target = tuple(zip(*pairs, strict=True)) or ((), ())
        return cls(RaggedTokens.from_lists(source), RaggedTokens.from_lists(target))

    def __len__(self) -> int:
        return len(self.source)


def encode_pairs(
    text: ParallelText,
    tokenizer: Tokenizer,
    max_length: int | None = None,
    called: str = "pairs",
) -> tuple[EncodedPairs, int]:
    """Encode sentence pairs as ids and leave out those that are too long.

    Args:
        text: The pairs.
        tokenizer: One vocabulary for both sides.
        max_length: The largest number of tokens of a side, EOS included; None: no
            limit.
        called: What messages call the pairs.

    Returns:
        The pairs that are short enough, in their order; and the number of the others.

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
    limit = np.inf if max_length is None else max_length
    wanted = np.maximum(source.lengths, target.lengths) <= limit
    if len(text) and not wanted.any():
        raise InputError(
            f"All {len(text):,} {called} have more than max_length={max_length} tokens "
            "on one side or both; allow more, or take a larger vocabulary."
        )
    pairs = EncodedPairs(source.keep(wanted), target.keep(wanted))
    return pairs, int((~wanted).sum())
