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

from aiayn.data.tokenizer import checked_lines
from aiayn.errors import InputError
from aiayn.storage import expand, write_atomically


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
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; check its name.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} is damaged or not packed with gzip ({error}); download or pack it "
            "again."
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


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
            "as old Macs wrote them, and would be read as "
            f"{number:,} line{'s' * (number > 1)}: replace each by a line feed (tr "
            "'\\r' '\\n')."
        )


class MemmapLines(Sequence[str]):
    """The lines of a text that is too large for the memory, as a sequence of strings.

    The text is one UTF-8 file, and a second file beside it says where each line begins.
    A line is read when it is asked for. Processes on one machine share the part
    of the file that the system keeps in memory. Make one with `MemmapLines.write` and
    open it again with `MemmapLines.open`. A slice is a `MemmapLines` too.

    Args:
        text: The bytes of the file.
        starts: Where each line begins.
        ends: Where the next line begins.

    Not in the paper.

    >>> lines = MemmapLines.write("large.en", ["a dog", "a cat"])
    >>> len(lines), lines[1]
    (2, 'a cat')
    """

    def __init__(self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        self._text, self._starts, self._ends = text, starts, ends

    @classmethod
    def open(cls, path: Path | str) -> "MemmapLines":
        """Open a file that `write` made.

        Raises:
            InputError: One of the two files is missing, or they do not belong together.
        """
        path = expand(path)
        try:
            text = np.memmap(path, np.uint8, "r")
            starts = np.load(_starts_of(path), mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be opened: {error}.") from error
        if starts[-1] != len(text):
            raise InputError(
                f"{path} and {_starts_of(path).name} do not belong together; "
                "remove both, so that they are made again."
            )
        return cls(text, starts[:-1], starts[1:])

    @classmethod
    def write(cls, path: Path | str, lines: Iterable[str]) -> "MemmapLines":
        """Write lines to path, and where each begins to a file beside it.

        Raises:
            InputError: A line is no text or contains a line feed, or the file cannot be
                written; then no file is left behind.
        """
        lines = checked_lines(lines)
        path, starts = expand(path), [0]
        with write_atomically(path) as stream:
            for line in lines:
                if "\n" in line:
                    raise InputError(
                        f"Line {len(starts)} contains a line feed and would become "
                        "two lines: remove it."
                    )
                starts.append(starts[-1] + stream.write(line.encode() + b"\n"))
            # Written before the text appears, which is never without it.
            with write_atomically(_starts_of(path)) as beside:
                np.save(beside, np.array(starts, np.int64))
        return cls.open(path)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def raw(self) -> memoryview:
        """The bytes of the lines, from the first to the last, with their line feeds."""
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


def _starts_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.starts.npy")
