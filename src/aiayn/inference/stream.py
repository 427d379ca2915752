"""§6.1: translations of a text that is too long for memory, or still being written."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from aiayn.data import Tokenizer
from aiayn.data.tokenizer import checked_lines
from aiayn.errors import InputError
from aiayn.inference.protocol import Model
from aiayn.inference.translation import translate


def translate_stream(
    lines: Iterable[str],
    model: Model,
    tokenizer: Tokenizer,
    *,
    chunk_lines: int = 1000,
    **options: Any,
) -> Iterator[str]:
    """Translate lines as they come, in order, in bounded memory.

    Args:
        lines: Any number of sentences, for instance standard input.
        model: As for `translate`.
        tokenizer: As for `translate`.
        chunk_lines: Lines that are read before they are sorted and translated. 1: each
            is translated before the next is read.
        options: As for `translate`.

    Yields:
        One translation after the other.

    Raises:
        InputError: As `translate`, once the chunks before the line were yielded; or
            lines is one text.

    Not in the paper.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> lines = iter(["The old dog sleeps.", "The cat eats."])  # an open file, say
    >>> sum(1 for german in translate_stream(lines, model, tokenizer, beam_size=1))
    2
    """
    first_line = options.pop("first_line", 1)
    lines = checked_lines(lines, first_line=first_line)
    if chunk_lines < 1:
        raise InputError(f"chunk_lines must be at least 1, not {chunk_lines}.")
    while chunk := list(islice(lines, chunk_lines)):
        yield from translate(chunk, model, tokenizer, first_line=first_line, **options)
        first_line += len(chunk)
