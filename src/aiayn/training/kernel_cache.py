"""The code of products whose shapes have gone by is forgotten.

oneDNN writes machine code for each shape of product that it meets, and keeps the last
1,024. A training step needs some thirty shapes, and the next batch has others: after a
few dozen steps a hundred megabytes hold code that hardly ever runs again. With room for
two steps' shapes nothing but memory changes.
"""

import os

_CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def limit_kernel_cache(products: int = 64) -> None:
    """Tell oneDNN how many products' code to keep, unless the user has told it.

    It asks once, at its first product: afterwards this changes nothing.

    Args:
        products: How many.
    """
    os.environ.setdefault(_CAPACITY, str(products))
