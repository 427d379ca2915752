"""Memory that is freed is kept for the next tensor, and comes in large pages.

A training step on a CPU makes and frees the same large tensors over and over. glibc
asks the system for each above 128 kB (32 MB at most, as it learns) and returns it at
once; fetching the pages anew costs more than the arithmetic on them. What is kept grows
to gigabytes as batches of all shapes come by: half a million pages of 4 kB for the
processor to find its way in, or a thousand of 2 MB. Nothing but time changes.
"""

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_HUGE = 2**31 - 1  # the most that mallopt takes
_ADVISE_LARGE_PAGES = 14  # MADV_HUGEPAGE of Linux's mman.h
_ROOM = _HUGE - 2**22  # bytes; below the threshold from which glibc asks the system
_PAGE = 4096


@cache  # once is enough for a process
def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory, and Linux to use large pages for it.

    Elsewhere do nothing.

    Returns:
        Whether the C library understood.
    """
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    kept = library.mallopt(_MMAP_THRESHOLD, _HUGE)
    kept = kept and library.mallopt(_TRIM_THRESHOLD, _HUGE)
    if kept:
        _ask_for_large_pages(library)
    return bool(kept)


def _ask_for_large_pages(library: ctypes.CDLL) -> None:
    """Make room for tensors to come, say that its pages be large, and free it.

    The room is addresses, not memory: a page is there when something is written to it.
    A system without large pages, or without room, says no, and all stays as it was.
    """
    address, size = ctypes.c_void_p, ctypes.c_size_t
    library.malloc.argtypes, library.malloc.restype = [size], address
    library.madvise.argtypes = [address, size, ctypes.c_int]
    library.free.argtypes = [address]
    room = library.malloc(_ROOM)
    if room is None:
        return
    begin = -(-room // _PAGE) * _PAGE
    end = (room + _ROOM) // _PAGE * _PAGE
    library.madvise(begin, end - begin, _ADVISE_LARGE_PAGES)
    library.free(room)
