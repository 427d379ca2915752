"""§5.1: how the vocabulary of a tokenizer is learned: byte-pair encoding.

sentencepiece starts from characters and merges the most frequent pair of neighbours
again and again (Sennrich et al., 2016); the vocabulary is the characters and all that
was merged.
"""

import io
import random
import re
from collections.abc import Iterable
from typing import Any

import sentencepiece

from aiayn.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, UNKNOWN_AS, normalise
from aiayn.errors import InputError

# sentencepiece ignores the names of its special tokens, and lines with its mark ▅ for
# the unknown, when it learns. A space inside a name keeps the name's characters.
_RESERVED = re.compile("(?<=<)(?=(?:unk|s|/s|pad)>)|▅")

# sentencepiece's own limit is 4,192 bytes, and it ignores longer lines silently.
MAX_LINE_BYTES = 65_536


def learn_vocabulary(
    lines: Iterable[str], vocab_size: int, *, whole_symbols: bool, **options: Any
) -> bytes:
    """A serialised sentencepiece model; arguments as for `Tokenizer.train`.

    Raises:
        InputError: The lines contain no text, or vocab_size is too large or too small.

    Paper: §5.1.
    """
    texts = [_RESERVED.sub(" ", text) for text in map(normalise, lines) if text]
    if not texts:
        raise InputError("A tokenizer needs text: every line given was empty.")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            split_by_unicode_script=not whole_symbols,
            pad_id=PAD_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            unk_surface=UNKNOWN_AS,
            normalization_rule_name="identity",
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=1,
            minloglevel=2,
            **options,
        )
    except (RuntimeError, ValueError, SyntaxError) as error:  # the last: 0.2.0
        raise InputError(_explain(str(error), vocab_size)) from error
    return model.getvalue()


def random_sample(lines: Iterable[str], count: int, seed: int) -> list[str]:
    """At most count lines, each with the same probability, in one pass."""
    generator = random.Random(seed)
    kept: list[str] = []
    for seen, line in enumerate(lines):
        if seen < count:
            kept.append(line)
        elif (replaced := generator.randrange(seen + 1)) < count:
            kept[replaced] = line
    return kept


def _explain(message: str, vocab_size: int) -> str:
    """sentencepiece's error message as a sentence for a student."""
    size = f"vocab_size={vocab_size}"
    if found := re.search(r"set it to a value <= (\d+)", message):
        return f"{size} is too large for this text; the largest possible is {found[1]}."
    if found := re.search(r"smaller than required_chars. -?\d+ vs (\d+)", message):
        return f"{size} is too small for this text; it needs at least {found[1]}."
    return f"sentencepiece cannot learn a vocabulary from this text: {message.strip()}"
