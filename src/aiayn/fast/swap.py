"""The one door for speed: plain modules get fast classes, and plain ones again.

A swap changes the class of a module to a subclass that adds no state. So parameters,
hooks, names in state dictionaries, copies, optimizers and DistributedDataParallel are
not affected. Only exact types are swapped: a subclass of the user's stays as it is.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from torch import nn

from aiayn.fast.attention import FastMultiHeadAttention, FastRotaryAttention
from aiayn.fast.autocast import FastResidualNorm, FastTransformer
from aiayn.fast.dropout import FastDropout
from aiayn.fast.linear import FastLinear, FastTokenEmbedding
from aiayn.model.attention import MultiHeadAttention
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.layers import ResidualNorm
from aiayn.model.rotary import RotaryAttention
from aiayn.model.transformer import Transformer


@cache
def fast_classes() -> dict[type, type]:
    """The fast class for each plain one."""
    from aiayn.fast.loss import FastCriterion  # training imports this module
    from aiayn.training.loss import Criterion

    return {
        nn.Linear: FastLinear,
        nn.Dropout: FastDropout,
        MultiHeadAttention: FastMultiHeadAttention,
        RotaryAttention: FastRotaryAttention,
        ResidualNorm: FastResidualNorm,
        TokenEmbedding: FastTokenEmbedding,
        Transformer: FastTransformer,
        Criterion: FastCriterion,
    }


Module = TypeVar("Module", bound=nn.Module)

_open_blocks: dict[nn.Module, int] = {}
_counting = threading.Lock()


def accelerate(module: Module) -> Module:
    """Give a module and all of its parts their fast classes, in place.

    The results stay the same but for rounding, and but for the random numbers that
    dropout draws on a CPU. What is lost is said by `disabled`.

    Args:
        module: A model, a criterion, or any module with linear layers or dropout.

    Returns:
        The module itself.

    Not in the paper.

    >>> from aiayn import fast
    >>> layer = fast.accelerate(torch.nn.Linear(2, 3))
    >>> type(layer).__name__, isinstance(layer, torch.nn.Linear)
    ('FastLinear', True)
    """
    fast = fast_classes()
    for part in module.modules():
        part.__class__ = fast.get(type(part), type(part))
    return module


@contextmanager
def disabled(module: nn.Module) -> Iterator[None]:
    """Use the plain classes inside a with block.

    This is for what the fast classes cannot do: second derivatives, and many gradients
    at once (``is_grads_batched``). (Under torch.compile, torch.func and
    `FlopCounterMode` they compute as the plain ones by themselves.)

    Other threads that use the module meanwhile compute with the plain classes too. The
    fast ones return when the last of all blocks around the module ends.

    Args:
        module: What `accelerate` was given, or any other module.

    Not in the paper.

    >>> from aiayn import fast
    >>> layer = fast.accelerate(torch.nn.Linear(2, 3))
    >>> with fast.disabled(layer):
    ...     type(layer).__name__
    'Linear'
    """
    fast = fast_classes()
    plain = {swapped: original for original, swapped in fast.items()}
    with _counting:
        parts = [x for x in module.modules() if type(x) in plain or x in _open_blocks]
        for part in parts:
            _open_blocks[part] = _open_blocks.get(part, 0) + 1
            part.__class__ = plain.get(type(part), type(part))
    try:
        yield
    finally:
        with _counting:
            for part in parts:
                _open_blocks[part] -= 1
                if not _open_blocks[part]:
                    del _open_blocks[part]
                    part.__class__ = fast.get(type(part), type(part))
