"""What is kept of operations whose shapes have gone by: their code, nothing else.

oneDNN writes machine code for each shape of product that it meets and keeps the last
1,024; torch keeps as many descriptions that the code was written from. A description
takes a quarter of a megabyte wherever it lies, and no time that could be measured to
make again: torch is told to keep one. The code takes a third of a millisecond, and
next to no memory. In 16 bits all products of a step have theirs, and an epoch of a
hundred shapes of batches some 3,000, which come by again in the next. Of those the last
1,024 are never the ones that are needed: writing the others again took a seventh of a
step. In 32 bits only large products have code, a dozen a step, and 128 are enough.
"""

import os

import torch

_CODE, _DESCRIPTIONS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"


def size_kernel_caches(dtype: torch.dtype) -> None:
    """Tell torch and oneDNN how much to keep, unless the user has told them.

    They ask once, at their first product: afterwards this changes nothing.

    Args:
        dtype: What products are computed in.
    """
    os.environ.setdefault(_DESCRIPTIONS, "1")
    os.environ.setdefault(_CODE, "128" if dtype == torch.float32 else "4096")
