"""§5.1: a corpus file on this machine, fetched once and checked by its hash.

A file is looked for in the folder that the environment variable AIAYN_DATA names, then
in the cache (AIAYN_CACHE, else the user's cache folder), then fetched from the first of
several mirrors that sends the expected bytes. It is in the cache whole or not at all.
Of a few large files nobody has published a checksum; a warning says so.
"""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from aiayn.errors import InputError
from aiayn.files import remove_parts, write_atomically

# A mirror that sends less than this over the whole file is given up.
SLOWEST_BYTES_PER_SECOND = 10_000

# Seconds after which a part that grows no more is nobody's work.
HOUR = 3600

# A file of which nobody has published the size may have this many bytes.
LARGEST = 4 * 2**30


@dataclass(frozen=True)
class RemoteFile:
    """A file of a corpus, and where to get it."""

    path: str  # below AIAYN_DATA and below the cache: "multi30k/train.en.gz"
    size: int | None  # bytes; None: nobody has published it
    sha256: str | None
    mirrors: tuple[str, ...]  # addresses, the first to be tried first
    md5: str | None = None  # only where nobody has published a sha256

    @property
    def verified(self) -> bool:
        """Whether there is a checksum to hold the file to."""
        return self.checksum is not None

    @property
    def checksum(self) -> tuple[str, str] | None:
        """The kind of the checksum and its value."""
        for kind in ("sha256", "md5"):
            if value := getattr(self, kind):
                return kind, value
        return None

    def fault(self, path: Path) -> str | None:
        """What is wrong with the copy at path; None if it is the expected file."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"it has {size:,} bytes instead of {self.size:,}"
        if self.checksum is None:
            return None
        kind, expected = self.checksum
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, kind).hexdigest()
        return None if found == expected else f"its {kind} is {found}, not {expected}"

    def __str__(self) -> str:
        """What is known of it, for a message."""
        size = "size unknown" if self.size is None else f"{self.size:,} bytes"
        return f"{size}, {' '.join(self.checksum or ('no published checksum',))}"


def mirrors_of(repository: str, commit: str, path: str, sha256: str) -> tuple[str, ...]:
    """Three hosts, run by different people, of one file in a public git repository.

    Args:
        repository: Owner and name on GitHub.
        commit: The commit that holds the file.
        path: The file in the repository.
        sha256: Its hash, by which the third host, an archive of source code, knows it.

    Returns:
        Addresses, the fastest first.
    """
    return (
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
        f"https://archive.softwareheritage.org/api/1/content/sha256:{sha256}/raw/",
    )


class _MirrorFailedError(Exception):
    """Why a mirror did not give the file: the rest of a sentence."""


def cache_folder() -> Path:
    """Where fetched files are kept: AIAYN_CACHE, else aiayn in the user's cache.

    Raises:
        InputError: Nobody knows where the user's home is.
    """
    if chosen := os.environ.get("AIAYN_CACHE"):
        return _expanded(chosen)
    return _expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "aiayn"


def _expanded(folder: str) -> Path:
    """The folder that is meant by a path that may begin with ~."""
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise InputError(
            f"{folder} is in a home folder that is not known here: name whole paths in "
            "AIAYN_CACHE and AIAYN_DATA."
        ) from None


def find(file: RemoteFile) -> Path | None:
    """The path of a file that is on this machine already; None if it is not.

    Raises:
        InputError: AIAYN_DATA holds another file of that name.
    """
    own = _in_data_folder(file)
    if own is not None:
        return own
    path = cache_folder() / file.path
    return path if os.path.isfile(path) and file.fault(path) is None else None


def fetch(file: RemoteFile, *, progress: bool = True, timeout: float = 20.0) -> Path:
    """The path of a file that has the expected bytes, downloaded if need be.

    Args:
        file: What to get.
        progress: Show a bar on standard error while it is fetched.
        timeout: Seconds that a mirror may stay silent.

    Returns:
        The file in AIAYN_DATA or in the cache.

    Raises:
        InputError: AIAYN_DATA holds another file of that name; no mirror gave the
            file; or the cache cannot be written.
    """
    found = find(file)
    if found is not None:
        return found
    path = cache_folder() / file.path
    remove_parts(path.parent, path.name, idle=HOUR)
    failures = []
    for url in file.mirrors:
        try:
            with write_atomically(path) as stream:
                _receive(url, file, stream, progress, timeout)
        except _MirrorFailedError as failure:
            failures.append(f"{url} {failure}")
            continue
        if not file.verified:
            warnings.warn(
                f"{file.path} is unverified: nobody has published a checksum of it.",
                stacklevel=2,
            )
        return path
    raise InputError(
        f"{file.path} could not be fetched: {'; '.join(failures)}. Check the network, "
        f"or fetch it by hand ({file}) and save it as {path}, or as {file.path} in a "
        "folder that you name in AIAYN_DATA."
    )


def _in_data_folder(file: RemoteFile) -> Path | None:
    chosen = os.environ.get("AIAYN_DATA")
    if not chosen:
        return None
    folder = _expanded(chosen)
    if not os.path.isdir(folder):
        raise InputError(
            f"AIAYN_DATA names {folder}, which is no folder; set it to a folder that "
            f"holds {file.path}, or unset it."
        )
    path = folder / file.path
    if not path.is_file():
        return None
    if fault := file.fault(path):
        raise InputError(
            f"{path} (from AIAYN_DATA) is not the expected file: {fault}. Replace it, "
            "remove it, or unset AIAYN_DATA."
        )
    return path


def _receive(
    url: str, file: RemoteFile, stream: BinaryIO, progress: bool, timeout: float
) -> None:
    """Write what url sends to stream; fail unless it is the expected file."""
    kind, expected = file.checksum or ("sha256", None)
    digest, received = hashlib.new(kind), 0
    most = file.size or LARGEST
    deadline = time.monotonic() + timeout + most / SLOWEST_BYTES_PER_SECOND
    with tqdm(
        total=file.size, unit="B", unit_scale=True, desc=file.path, disable=not progress
    ) as bar:
        for chunk in _chunks(url, timeout):
            received += len(chunk)
            if received > most:
                raise _MirrorFailedError(f"sent more than {most:,} bytes")
            if time.monotonic() > deadline:
                raise _MirrorFailedError("was too slow")
            digest.update(chunk)
            stream.write(chunk)
            bar.update(len(chunk))
    if file.size is not None and received < file.size:
        raise _MirrorFailedError(f"broke off after {received:,} of {file.size:,} bytes")
    if expected is not None and digest.hexdigest() != expected:
        raise _MirrorFailedError(f"sent another file ({kind} {digest.hexdigest()})")


def _chunks(url: str, timeout: float) -> Iterator[bytes]:
    # Some hosts turn away the name by which urllib introduces itself.
    request = urllib.request.Request(url, headers={"User-Agent": "aiayn"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            # read1 returns what has come; read would wait for a mirror that drips.
            while chunk := response.read1(2**16):
                yield chunk
            if response.length:  # what was announced and has not come
                raise _MirrorFailedError(f"broke off {response.length:,} bytes early")
    except urllib.error.HTTPError as error:
        raise _MirrorFailedError(f"answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _MirrorFailedError(f"did not answer ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _MirrorFailedError(f"failed ({error or type(error).__name__})") from error
