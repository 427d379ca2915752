"""§5.1: a corpus file on this machine, downloaded once and checked by its hash.

A file is looked for in the folder that the environment variable AIAYN_DATA names,
then in the cache (AIAYN_CACHE, or the user's cache folder). If it is in neither, it is
downloaded from the first of several mirrors that sends the expected bytes. An
incomplete or wrong file never appears in the cache. Nobody has published a checksum for
a few large files; a warning says so.
"""

import hashlib
import os
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from aiayn.errors import InputError
from aiayn.storage import expand, remove_parts, write_atomically


@dataclass(frozen=True)
class RemoteFile:
    """A file of a corpus, and where to get it."""

    path: str  # below AIAYN_DATA and below the cache: "multi30k/train.en.gz"
    digest: str | None  # sha256 or md5, hexadecimal; None: not published
    mirrors: tuple[str, ...]  # addresses, in the order in which they are tried

    def fault(self, path: Path) -> str | None:
        """What is wrong with the copy at path; None if it is the expected file."""
        if self.digest is None:
            return None
        kind = "sha256" if len(self.digest) == 64 else "md5"
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, kind).hexdigest()
        return None if found == self.digest else f"its {kind} is {found}"


def mirrors_of(repository: str, commit: str, path: str, sha256: str) -> tuple[str, ...]:
    """Addresses of one file of a public git repository on three independent hosts.

    Args:
        repository: Owner and name on GitHub.
        commit: The commit that contains the file.
        path: The file in the repository.
        sha256: Its hash, by which the third host, an archive of source code, finds it.

    Returns:
        The addresses, the fastest host first.
    """
    return (
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
        f"https://archive.softwareheritage.org/api/1/content/sha256:{sha256}/raw/",
    )


def cache_folder() -> Path:
    """Where downloads are kept: AIAYN_CACHE, or aiayn in the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expand(os.environ.get("AIAYN_CACHE") or f"{folder}/aiayn")


def fetch(file: RemoteFile, *, timeout: float = 20.0) -> Path:
    """The path of a file with the expected bytes, downloaded if necessary.

    Args:
        file: What to get.
        timeout: Seconds after which a silent mirror is given up.

    Returns:
        The file in AIAYN_DATA or in the cache.

    Raises:
        InputError: No mirror sent the file, or the cache cannot be written.
    """
    own = os.environ.get("AIAYN_DATA")
    path = cache_folder() / file.path
    for place in [expand(own) / file.path, path] if own else [path]:
        if os.path.isfile(place) and file.fault(place) is None:
            return place
    remove_parts(path.parent, path.name, idle=3600)  # what a killed process has left
    failures = []
    for url in file.mirrors:
        try:
            _download(url, file, path, timeout)
            return path
        except HTTPException as failure:
            failures.append(f"{url} failed ({failure})")
    raise InputError(
        f"{file.path} could not be downloaded: {'; '.join(failures)}. Check the "
        f"network, or download it by hand and save it as {path}, or as {file.path} in "
        f"the folder that AIAYN_DATA names (now: {own or 'none'})."
    )


def _download(url: str, file: RemoteFile, path: Path, timeout: float) -> None:
    """Save what url sends at path; fail unless it is the expected file."""
    with write_atomically(path) as stream:
        stream.writelines(_chunks(url, file.path, timeout))
        stream.flush()
        if fault := file.fault(Path(stream.name)):
            raise HTTPException(f"it sent another file: {fault}")
    if file.digest is None:
        message = f"{file.path} is unverified: no checksum of it is published."
        warnings.warn(message, stacklevel=3)


def _chunks(url: str, name: str, timeout: float) -> Iterator[bytes]:
    # Some hosts refuse the name by which urllib introduces itself.
    request = urllib.request.Request(url, headers={"User-Agent": "aiayn"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            with tqdm.wrapattr(reply, "read", total=reply.length, desc=name) as body:
                yield from iter(lambda: body.read(2**16), b"")
            if reply.length:
                raise HTTPException(f"{reply.length:,} bytes are missing")
    except OSError as error:  # as one that writing to the disk does not raise
        raise HTTPException(str(error) or type(error).__name__) from error
