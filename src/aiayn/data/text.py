"""Lines of text: read from files, or kept on disk because they are too many.

A line ends at a line feed and nowhere else. A corpus may contain other characters that
Unicode counts as line separators, and splitting at them on one side only would shift
all the pairs that follow.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from aiayn.errors import InputError
from aiayn.storage import expand

# Bytes of a large file that are searched for line feeds at a time.
SCANNED = 2**26


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Read a UTF-8 text line by line, without the line ends.

    A byte-order mark at the start and a carriage return before a line feed are removed;
    nothing else is changed.

    Args:
        path: A text file; with the ending .gz, a gzip file.

    Yields:
        One line after the other.

    Raises:
        InputError: The file is missing, cannot be read, is damaged, is not UTF-8, or
            has the line ends of old Macs.

    Not in the paper.

    >>> _ = Path("some.en").write_text("a dog\na cat\n")
    >>> list(read_lines("some.en"))
    ['a dog', 'a cat']
    """
    path = expand(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield from read_stream(stream, str(path))
    except (OSError, EOFError, zlib.error) as error:  # the others: of a damaged archive
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}.") from error


def read_stream(stream: Iterable[bytes], name: str) -> Iterator[str]:
    r"""Read the lines of a stream that is already open, such as standard input.

    Args:
        stream: Lines of bytes.
        name: What error messages call it.

    Yields:
        One line after the other, as `read_lines` gives them.

    Raises:
        InputError: A line is not UTF-8; or, at the end, most lines have ended in a
            carriage return alone.

    Not in the paper.

    >>> from io import BytesIO
    >>> list(read_stream(BytesIO(b"a dog\na cat\n"), "my text"))
    ['a dog', 'a cat']
    """
    number = inside = 0
    for number, raw in enumerate(stream, 1):
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        inside += raw.count(b"\r")
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Line {number} of {name} is not UTF-8 ({error.reason} at its byte "
                f"{error.start + 1}); save the file as UTF-8."
            ) from None
    if inside >= max(2, number):
        raise InputError(
            f"{name} has carriage returns alone ({inside:,}) where lines should end, "
            "as old Macs wrote them: replace each by a line feed (tr '\\r' '\\n')."
        )


class MemmapLines(Sequence[str]):
    r"""The lines of a text that is too large for the memory, as a sequence of strings.

    A line is read from its file when it is asked for. Processes on one machine share
    what the system keeps of the file in memory. A slice is a `MemmapLines` too.

    Args:
        text: The bytes of the file.
        starts: Where each line begins.
        ends: Where the next line begins.

    Not in the paper.

    >>> _ = Path("large.en").write_text("a dog\na cat\n")
    >>> lines = MemmapLines.open("large.en")
    >>> len(lines), lines[1]
    (2, 'a cat')
    """

    def __init__(self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        self._text, self._starts, self._ends = text, starts, ends

    @classmethod
    def open(cls, path: Path | str) -> "MemmapLines":
        """Open a UTF-8 file, of which each line ends in a line feed, the last one too.

        Raises:
            InputError: The file is missing, empty, not ended by a line feed, or cannot
                be read.
        """
        try:
            text = np.memmap(expand(path), np.uint8, "r")
            if text[-1] != ord("\n"):
                raise ValueError("its last line is not ended by a line feed")
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be opened: {error}.") from error
        parts = [slice(at, at + SCANNED) for at in range(0, len(text), SCANNED)]
        ends = [np.flatnonzero(text[p] == ord("\n")) + p.start + 1 for p in parts]
        starts = np.concatenate([[0], *ends])
        return cls(text, starts[:-1], starts[1:])

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def raw(self) -> memoryview:
        """The bytes of the lines, with their line feeds."""
        if (self._starts[1:] != self._ends[:-1]).any():  # of a slice with steps
            parts = map(slice, self._starts, self._ends)
            return np.concatenate([self._text[part] for part in parts]).data
        ends = slice(self._starts[0], self._ends[-1]) if len(self) else slice(0)
        return self._text[ends].data

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "MemmapLines": ...
    def __getitem__(self, index: int | slice) -> "str | MemmapLines":
        """One line, or some of them."""
        starts, ends = self._starts[index], self._ends[index]
        if isinstance(index, slice):
            return MemmapLines(self._text, starts, ends)
        return bytes(self._text[starts : ends - 1]).decode()
