"""What is kept of products whose shapes have gone by: their code, not its description.

oneDNN writes machine code for each shape of product that it meets and keeps the last
1,024; torch keeps as many descriptions that the code was written from. A description
takes a quarter of a megabyte wherever it lies, and no time that could be measured to
make again: torch is told to keep one. The code takes a third of a millisecond. In 16
bits all products of a step have theirs, two dozen shapes that the next step may not
need and a later one will; a small model would spend a tenth of its time writing them
again. In 32 bits only large products do, a dozen a step, and 128 are enough.
"""

import os

import torch

_CODE, _DESCRIPTIONS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"


def limit_kernel_cache(dtype: torch.dtype) -> None:
    """Tell torch and oneDNN how much to keep, unless the user has told them.

    They ask once, at their first product: afterwards this changes nothing.

    Args:
        dtype: What products are computed in.
    """
    os.environ.setdefault(_DESCRIPTIONS, "1")
    if dtype == torch.float32:
        os.environ.setdefault(_CODE, "128")
