"""The random inputs of the checks: those that a reader sees, and others for a course.

A check's inputs are seeded, so that each reader meets the same ones and a message can
be repeated. Who grades wants more: an answer that knows the inputs by heart is right on
those alone. Within `other_inputs` the same cases are drawn with other seeds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_SHIFT: ContextVar[int] = ContextVar("shift", default=0)


def seeded(seed: int) -> torch.Generator:
    """The source of a check's random inputs: the same each time it is asked."""
    return torch.Generator().manual_seed(seed + _SHIFT.get())


@contextmanager
def other_inputs(shift: int) -> Iterator[None]:
    """Let `seeded` draw other numbers for as long as the block runs.

    Args:
        shift: added to every seed; 0 leaves them as they are.
    """
    token = _SHIFT.set(shift)
    try:
        yield
    finally:
        _SHIFT.reset(token)
