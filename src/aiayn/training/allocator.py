"""Memory that is freed is kept for the next tensor, instead of handed back.

A training step on a CPU makes and frees the same large tensors over and over. glibc
asks the system for each above 128 kB (32 MB at most, as it learns) and returns it at
once; fetching the pages anew costs more than the arithmetic on them. Nothing but time
changes.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_HUGE = 2**31 - 1  # the most that mallopt takes


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; elsewhere do nothing.

    Returns:
        Whether the C library understood.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _HUGE) and mallopt(_TRIM_THRESHOLD, _HUGE))
