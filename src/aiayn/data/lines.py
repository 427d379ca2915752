"""§5.1: the lines of a text that is too large for the memory.

The text lies in one file, and beside it where each line begins. A line is read when it
is asked for, and the processes of one machine share what the system keeps of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
from jaxtyping import Int64

from aiayn.data.text import refuse_text
from aiayn.errors import InputError
from aiayn.files import write_atomically


class LinesOnDisk(Sequence[str]):
    """The lines of a UTF-8 file, as a sequence of strings.

    Make one with `LinesOnDisk.write`, open it again with `LinesOnDisk.open`. A slice
    without a step is a `LinesOnDisk` too.

    Args:
        path: The text.
        starts: Where each line begins, in bytes, and at last where the text ends.

    Not in the paper.

    >>> lines = LinesOnDisk.write("large.en", ["a dog", "a cat"])
    >>> len(lines), lines[1]
    (2, 'a cat')
    """

    def __init__(
        self, path: Path | str, starts: Int64[np.ndarray, " lines_plus_1"]
    ) -> None:
        path = Path(path)
        self._path, self._starts = path, starts
        self._bytes = np.memmap(path, np.uint8, "r") if path.stat().st_size else b""

    @classmethod
    def open(cls, path: Path | str) -> "LinesOnDisk":
        """A file that `write` made.

        Raises:
            InputError: The file or its list of lines is missing, or they do not belong
                together.
        """
        path = Path(path)
        try:
            starts = np.load(_starts_of(path), mmap_mode="r", allow_pickle=False)
            size = path.stat().st_size
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be opened: {error}.") from error
        if starts.ndim != 1 or not len(starts) or starts[-1] != size:
            raise InputError(
                f"{path} and {_starts_of(path).name} do not belong together; remove "
                "both, so that they are made again."
            )
        return cls(path, starts)

    @classmethod
    def write(cls, path: Path | str, lines: Iterable[str]) -> "LinesOnDisk":
        """Write lines, none of which holds a line feed, and the list of their places.

        Raises:
            InputError: It is one text, a line holds a line feed or half a character,
                the disk is full or the folder read-only; nothing is left over.
        """
        refuse_text(lines)
        path = Path(path)
        lengths = []
        with write_atomically(path) as stream:
            for line in lines:
                if "\n" in line:
                    raise InputError(
                        f"Line {len(lengths) + 1} holds a line feed, so that it would "
                        "be two: cut it there, or put a space in its place."
                    )
                try:
                    raw = line.encode() + b"\n"
                except UnicodeEncodeError:
                    raise InputError(
                        f"Line {len(lengths) + 1} holds half of a character that "
                        "UTF-16 writes in two: read the text as what it is."
                    ) from None
                lengths.append(len(raw))
                stream.write(raw)
            starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            # Before the text is there: whoever finds that finds these too.
            with write_atomically(_starts_of(path)) as places:
                np.save(places, starts.astype(np.int64), allow_pickle=False)
        return cls.open(path)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        """One line, or some of them."""
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            stop = max(start, stop)
            return LinesOnDisk(self._path, self._starts[start : stop + 1])
        place = range(len(self))[place]  # refuses what is outside, understands -1
        first, after = self._starts[place], self._starts[place + 1]
        return bytes(self._bytes[first : after - 1]).decode()


def _starts_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.starts.npy")
