"""§5.1: from lines of text to token ids."""

from collections.abc import Iterable
from itertools import islice

from aiayn.data.ragged import RaggedTokens
from aiayn.data.tokenizer import EOS_ID, Tokenizer, checked_lines

# Sentences that are encoded at a time, to bound the memory of their lists.
CHUNK = 50_000


def encode_lines(lines: Iterable[str], tokenizer: Tokenizer) -> RaggedTokens:
    """Encode each line as ids, with EOS at its end.

    Args:
        lines: Sentences.
        tokenizer: Their vocabulary.

    Raises:
        InputError: lines is one text, or holds something else than texts.

    Paper: §5.1.

    >>> text = load_corpus("grammar", size=200).train
    >>> tokenizer = Tokenizer.train([*text.source, *text.target], vocab_size=300)
    >>> *ids, end = encode_lines(text.source, tokenizer)[0]
    >>> tokenizer.decode(ids) == text.source[0], end == EOS_ID
    (True, True)
    """
    lines = checked_lines(lines)
    chunks = iter(lambda: list(islice(lines, CHUNK)), [])
    return RaggedTokens.from_lists(
        [*ids, EOS_ID] for chunk in chunks for ids in tokenizer.encode_batch(chunk)
    )
