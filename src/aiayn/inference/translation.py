"""§6.1: from text to translated text.

Sentences are sorted by length, so that a batch holds hardly any padding, and the
translations come back in the order of the sentences.
"""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from jaxtyping import Int
from torch import Tensor

from aiayn.data import RaggedTokens, Tokenizer, encode_lines, map_batches
from aiayn.data.tokenizer import checked_lines
from aiayn.errors import InputError
from aiayn.inference.beam import beam_search
from aiayn.inference.greedy import greedy_search
from aiayn.inference.hypothesis import Hypothesis
from aiayn.inference.protocol import Model

MAX_PIECES = 1000
"""Longest sentence: the memory of attention grows with the square of its length."""


def translate(
    lines: Iterable[str],
    model: Model,
    tokenizer: Tokenizer,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    max_pieces: int = MAX_PIECES,
    batch_tokens: int = 2048,
    first_line: int = 1,
) -> list[str]:
    """Translate sentences, one a line; as many translations come, in the same order.

    Under ``torch.autocast`` the model computes in 16 bits, and scores are summed in 32.

    Args:
        lines: Sentences. One that is empty, or nothing but white space and control
            characters, has an empty translation.
        model: A `Transformer`, or another that `beam_search` takes, on any device.
        tokenizer: The one that the model was trained with.
        beam_size: Outputs kept at each step; 1 is greedy search.
        length_penalty: α of the length penalty.
        extra_length: A translation may have this many pieces more than its sentence.
        max_pieces: Longest sentence, in pieces.
        batch_tokens: Source pieces translated at once, padding included.
        first_line: Number of the first line, for messages.

    Raises:
        InputError: A line is too long or no text (before any is translated), the
            tokenizer is not the model's, or a choice is no number or out of its range.

    Paper: §6.1.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> [german] = translate(["The old dog sleeps."], model, tokenizer)
    """
    if not isinstance(max_pieces, Integral) or not isinstance(batch_tokens, Integral):
        raise InputError(
            "max_pieces and batch_tokens must be whole numbers; they are "
            f"{max_pieces} and {batch_tokens}."
        )
    rows = encode_sources(lines, model, tokenizer, max_pieces, first_line)
    options = {"beam_size": beam_size, "length_penalty": length_penalty}

    def write(source: Tensor) -> list[str]:
        found = search(model, source, tokenizer, extra_length=extra_length, **options)
        return tokenizer.decode_batch([hypothesis.tokens for hypothesis in found])

    full, pad_id = rows.lengths > 1, model.config.pad_id  # more than the end token
    texts = iter(map_batches(write, rows.keep(full), batch_tokens, pad_id=pad_id))
    return [next(texts) if line_is_full else "" for line_is_full in full]


def search(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    tokenizer: Tokenizer,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    **limits: Any,
) -> list[Hypothesis]:
    """Greedy search for a beam of one (the same outputs, sooner), else beam search."""
    limits |= {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    if beam_size == 1:
        return greedy_search(model, source, **limits)
    limits |= {"beam_size": beam_size, "length_penalty": length_penalty}
    return beam_search(model, source, **limits)


def check_vocabulary(
    model: Model, tokenizer: Tokenizer, called: str = "The tokenizer"
) -> None:
    """Raise InputError if the tokenizer cannot be the model's."""
    if tokenizer.vocab_size != model.config.vocab_size:
        raise InputError(
            f"{called} has {tokenizer.vocab_size:,} entries and the model "
            f"{model.config.vocab_size:,}; use the one that the model was trained with."
        )


def encode_sources(
    lines: Iterable[str],
    model: Model,
    tokenizer: Tokenizer,
    max_pieces: int = MAX_PIECES,
    first_line: int = 1,
) -> RaggedTokens:
    """Sentences as ids, none of which is too long for the model."""
    lines = checked_lines(lines, first_line=first_line)
    check_vocabulary(model, tokenizer)
    config = model.config
    if getattr(config, "positions", None) == "learned":
        max_pieces = min(max_pieces, config.max_length - 1)  # one for the end token
    rows = encode_lines(lines, tokenizer)
    pieces = rows.lengths - 1
    if (pieces > max_pieces).any():
        line = int((pieces > max_pieces).argmax())
        raise InputError(
            f"Line {first_line + line} has {pieces[line]:,} pieces, more than the "
            f"{max_pieces:,} that are allowed: split it into sentences, one a line."
        )
    return rows
