"""Writing a file so that it is either whole or not there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aiayn.errors import InputError


@contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes appear at path all at once, or not at all.

    Args:
        path: The file to make or to replace; its folder is made if need be.

    Yields:
        A stream to write to.

    Raises:
        InputError: The disk is full, the folder read-only, …; path is as it was.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Make room, or choose another "
            "folder."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()
