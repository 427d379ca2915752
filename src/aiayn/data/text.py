"""§5.1: lines of text from files that nobody has vouched for.

A line ends at a line feed and nowhere else: a corpus may hold other characters that
Unicode calls line separators, and splitting at them on one side only would shift every
pair that follows. Plain files, gzip files and members of zip archives are read as
streams; nothing is unpacked to disk, so no name inside an archive can lead anywhere.
"""

import codecs
import gzip
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from aiayn.errors import InputError

# The longest line that is read: more than any sentence, less than the memory.
MAX_LINE_BYTES = 16 * 2**20

# Text shrinks to a third or a tenth. An archive that grows beyond the larger of these
# is no text but an attack on the memory (gzip reaches 1000 to 1 on zeros).
MAX_RATIO = 100
MIN_BOUND_BYTES = 64 * 2**20

# gzip's streams and, as the type checkers have it, zip's.
Stream = BufferedIOBase | IO[bytes]

# What the standard library raises on archives that are damaged or made to harm.
_DAMAGED = (
    EOFError,  # gzip: cut short
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    RuntimeError,  # zip: encrypted, or an unknown compression
    ValueError,  # zip: impossible offsets or names
)


def refuse_text(lines: object) -> None:
    """One text is an iterable too: of characters, each of which would be a sentence.

    Raises:
        InputError: It is one text.
    """
    if isinstance(lines, str):
        raise InputError("lines must be a list of sentences, not a text: give [text].")


def read_lines(path: str | Path, *, member: str | None = None) -> Iterator[str]:
    r"""The lines of a UTF-8 text, one by one, without their line ends.

    A byte-order mark at the start and a carriage return before a line feed are removed;
    nothing else is touched.

    Args:
        path: A text file; with the ending .gz, a gzip file.
        member: The name of the text inside path, which is then a zip archive.

    Yields:
        One line after the other.

    Raises:
        InputError: The file is missing, cannot be read, is damaged, is not UTF-8, or
            holds far more than a text of its size can.

    Not in the paper.

    >>> _ = Path("some.en").write_text("a dog\na cat\n")
    >>> list(read_lines("some.en"))
    ['a dog', 'a cat']
    """
    path = Path(path)
    name = str(path) if member is None else f"{member} in {path}"
    try:
        with _open(path, member) as stream:
            yield from _decode(stream, name, _bound(path, member))
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; check its name.") from None
    except KeyError:
        raise InputError(f"The archive {path} holds no file {member}.") from None
    except _DAMAGED as error:
        raise InputError(
            f"{name} is damaged or not what its ending says ({error}); fetch or pack "
            "it again."
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def read_stream(stream: Stream, name: str) -> Iterator[str]:
    r"""The lines of a stream that is open already, such as standard input.

    Args:
        stream: Of bytes.
        name: What messages call it.

    Yields:
        One line after the other, as `read_lines` gives them.

    Raises:
        InputError: A line is not UTF-8, or too long.

    Not in the paper.

    >>> from io import BytesIO
    >>> list(read_stream(BytesIO(b"a dog\na cat\n"), "my text"))
    ['a dog', 'a cat']
    """
    yield from _decode(stream, name, sys.maxsize)


@contextmanager
def _open(path: Path, member: str | None) -> Iterator[Stream]:
    if member is not None:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed:
            yield packed
    elif path.suffix == ".gz":
        with gzip.open(path) as packed:
            yield packed
    else:
        with path.open("rb") as plain:
            yield plain


def _bound(path: Path, member: str | None) -> int:
    """The most bytes that may come out of the file."""
    if member is None and path.suffix != ".gz":
        return sys.maxsize  # it is as large as it is
    return max(MIN_BOUND_BYTES, MAX_RATIO * path.stat().st_size)


def _decode(stream: Stream, name: str, bound: int) -> Iterator[str]:
    number = read = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        read += len(raw)
        if len(raw) > MAX_LINE_BYTES:
            raise InputError(
                f"Line {number} of {name} is longer than {MAX_LINE_BYTES:,} bytes; "
                "expected one sentence a line."
            )
        if read > bound:
            raise InputError(
                f"{name} grows beyond {bound:,} bytes when it is unpacked, more than "
                "a text of its size can; if you trust it, unpack it yourself."
            )
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Line {number} of {name} is not UTF-8 ({error.reason} at its byte "
                f"{error.start + 1}); save the file as UTF-8."
            ) from None
