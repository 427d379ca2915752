"""Writing a file so that it is either whole or not there; opening one to read.

Also holding a folder, so that no two programs write to it.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aiayn.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def require_folder(path: Path) -> None:
    """Refuse to make a folder where a file is in the way.

    Args:
        path: The folder, there or not.

    Raises:
        InputError: It, or what it is to lie in, is a file.
    """
    place = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not place.is_dir():
        raise InputError(f"{place} is a file, not a folder: choose another --output.")


@contextmanager
def write_atomically(path: Path, make_folder: bool = True) -> Iterator[BinaryIO]:
    """A stream whose bytes appear at path all at once, or not at all.

    Args:
        path: The file to make or to replace.
        make_folder: Make its folder if need be; without, a folder that is gone is an
            error.

    Yields:
        A stream to write to.

    Raises:
        InputError: The disk is full, the folder read-only, …; path is as it was. Or it
            is no ordinary file, which would be replaced by one.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # whatever its name holds
        raise InputError(
            f"{path} cannot be written: it is a folder, pipe or device. Choose the "
            "name of a file."
        )
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}. Make room, or "
            "choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def open_ordinary(path: Path) -> BinaryIO:
    """Open a file that a program of ours has written.

    Args:
        path: What may be anything: to open a pipe would be to wait for a writer.

    Raises:
        InputError: It is a folder, a pipe or a device.
        OSError: It is missing or may not be read.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be read: it is a folder, pipe or device.")
    return path.open("rb")


def remove_parts(folder: Path, name: str = "", idle: float = 0.0) -> None:
    """Remove what writes that were killed half-way have left in a folder.

    Where nothing may be removed they stay, and the next write says what is wrong.

    Args:
        folder: Where.
        name: Of the file that was written; "": of any.
        idle: Seconds that nobody has written to a part. 0 is only for a folder into
            which nobody else is writing: a part may be somebody's work.
    """
    with suppress(OSError):
        for part in folder.glob(f".{name}*.part"):
            with suppress(OSError):
                if not idle or part.stat().st_mtime < time.time() - idle:
                    part.unlink()


@contextmanager
def hold(folder: Path, make: bool = True) -> Iterator[None]:
    """Keep a folder to this process until the block ends, or the process does.

    Nothing is written, so a kill leaves nothing behind. Where folders cannot be locked
    (Windows, some network disks) everybody gets in, as without.

    Args:
        folder: What to keep. If it is not there, the first write will say so.
        make: Make it if need be.

    Raises:
        InputError: Another process holds it, or it cannot be made.
    """
    if make:
        require_folder(folder)
        _make(folder)
    with ExitStack() as stack:
        try:
            _lock(folder, stack)
        except BlockingIOError:
            raise InputError(
                f"{folder} is in use: another training writes to it. Stop that one "
                "or wait for its end, or choose another folder."
            ) from None
        yield


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made: {error.strerror}. Choose another folder (for "
            "what is fetched, with AIAYN_CACHE)."
        ) from error


def _lock(folder: Path, stack: ExitStack) -> None:
    """Lock a folder, if this system can, until the stack is closed."""
    if fcntl is None:
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass


def _settle(folder: Path) -> None:
    """Have the folder's new entry on the disk too, before anything builds on it."""
    with suppress(OSError):  # a system that cannot open a folder, or not flush one
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
