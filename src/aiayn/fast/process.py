"""Settings of the whole process that change nothing but the time of its work.

They cannot be undone, so that only the command line and benchmarks make them, at their
start. A library must not change the process of its caller.

**Memory.** A training step on a CPU allocates and frees the same large tensors again
and again. glibc asks the system for each one above 128 kB (32 MB at most, as it adapts)
and returns it at once, and fetching the pages again costs more than the arithmetic on
them. Here freed memory is kept, in large pages: a thousand of 2 MB instead of half a
million of 4 kB.

**Kernels.** oneDNN generates machine code for each shape of product that it meets, and
keeps the last 1,024. Torch keeps as many descriptions from which the code was
generated: a quarter of a megabyte each, and quickly made again, so that it is told to
keep one. The code takes a third of a millisecond to generate. In 16 bits
every product of a step has its own, and an epoch with a hundred shapes of batches some
3,000. If only 1,024 are kept, the next epoch never finds what it needs, which took a
seventh of a step. In 32 bits only large products have code, a dozen a step, and 128 are
enough. A search has other shapes at each step, since sentences end. With 128 instead of
1,024 a beam search over 10,000 sentences took 810 MB instead of 1,160, in about the
same time.
"""

import ctypes
import os
import sys
from functools import cache

import torch

_OPTIONS = (-3, -1)  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc.h
_HUGE = 2**31 - 1  # the most that mallopt takes
_ADVISE_LARGE_PAGES = 14  # MADV_HUGEPAGE of Linux's mman.h
_ROOM = _HUGE - 2**22  # bytes; below the threshold from which glibc asks the system
_PAGE = 4096


@cache  # once is enough for a process
def tune_malloc(large_pages: bool = True) -> bool:
    """Have glibc keep freed memory; elsewhere than on Linux do nothing.

    Args:
        large_pages: Ask the system for pages of 2 MB. Each is cleared as a whole when
            something is first written to it, which takes time in a short process.

    Returns:
        Whether the C library understood.
    """
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    mallopt = getattr(library, "mallopt", lambda *_: 0)
    if not all(mallopt(option, _HUGE) for option in _OPTIONS):
        return False
    if large_pages:
        _ask_for_large_pages(library)
    return True


def _ask_for_large_pages(library: ctypes.CDLL) -> None:
    """Allocate a large region, advise the system to give it large pages, and free it.

    This reserves addresses, not memory: a page exists when something is written to it.
    A system without large pages, or without room, refuses, and nothing changes.
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


_CODE, _DESCRIPTIONS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"


def size_kernel_caches(dtype: torch.dtype) -> None:
    """Tell torch and oneDNN how many kernels to keep, unless the user has done so.

    They read it at their first product; afterwards this has no effect.

    Args:
        dtype: What products are computed in.
    """
    os.environ.setdefault(_DESCRIPTIONS, "1")
    os.environ.setdefault(_CODE, "128" if dtype == torch.float32 else "4096")


def tune_process(
    device: torch.device, dtype: torch.dtype, large_pages: bool = True
) -> None:
    """Make all settings of this module.

    Args:
        device: Where it computes; on another device than a CPU nothing is set.
        dtype: What its products are computed in.
        large_pages: As of `tune_malloc`; for a training, not for a search.
    """
    if device.type == "cpu":
        tune_malloc(large_pages)
        size_kernel_caches(dtype)
