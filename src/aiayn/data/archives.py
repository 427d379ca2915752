"""§5.1: texts out of the large archives in which they are published.

Only members that are asked for by name are read, and each goes to a path of our own
choosing: no name or link inside an archive can lead anywhere.
"""

import lzma
import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from aiayn.data.text import MAX_RATIO
from aiayn.errors import InputError
from aiayn.files import write_atomically

# What the standard library raises on an archive that is damaged or made to harm.
_DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError)


# What a long name, or a header of further fields, may weigh inside an archive.
MAX_HEADER_BYTES = 2**20


class _Member(tarfile.TarInfo):
    """A member whose headers are bounded: tarfile reads each of them as a whole."""

    # The place that tarfile names for subclasses to look at a header.
    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if not self.isreg() and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # pyright: ignore


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Write some members of a tar archive, packed or not, to files, in one pass.

    Args:
        archive: The archive; ``.tgz``, ``.tar.gz`` or ``.tar``.
        members: The path to write to, for each member's name in the archive.

    Raises:
        InputError: The archive is damaged, lacks a member, or holds one that is far
            larger than a text in it can be; or a file cannot be written.
    """
    missing = dict(members)
    bound = MAX_RATIO * archive.stat().st_size
    try:
        with tarfile.open(archive, "r|*", tarinfo=_Member) as packed:
            for info in packed:
                name = info.name.removeprefix("./")
                if name not in missing or not info.isreg():
                    continue
                if info.size > bound:
                    raise InputError(
                        f"{name} in {archive} has {info.size:,} bytes, more than a "
                        "text in an archive of its size can; fetch the archive again."
                    )
                content = packed.extractfile(info)
                assert content is not None  # it is a regular file
                with write_atomically(missing.pop(name)) as stream:
                    shutil.copyfileobj(content, stream, 2**20)
                if not missing:
                    return
    except InputError:  # a ValueError too, but no damage
        raise
    except _DAMAGED as error:
        raise InputError(
            f"The archive {archive} is damaged ({error}); remove it, so that it is "
            "fetched again."
        ) from error
    raise InputError(f"The archive {archive} holds no file {', '.join(missing)}.")
