"""One graph for batches of every shape, compiled once.

A compiler that is told that sizes vary still takes two that are equal in the first
batch for one size. Where its sources are as long as its targets, that graph serves such
batches only, and the next batch has everything compiled again.

It also asks, for a GPU, whether the strides of a fused attention's mask divide by 8,
and compiles once for lengths that do and once for those that do not. Our graph has none
of torch's fused attention: a compiler gets the plain form (`aiayn.model.forms`), or
kernels of our own, which ask nothing (`aiayn.model.gpu_attention`).
"""

from contextlib import suppress
from typing import Any

from torch import nn


def compile_as_one(module: nn.Module, **options: Any) -> None:
    """Have a module compiled at its first call, for all later ones too.

    Args:
        module: What its calls will run compiled.
        options: Further ones of `torch.compile`.
    """
    tell_equal_sizes_apart()
    module.compile(dynamic=True, **options)


def tell_equal_sizes_apart() -> None:
    """Have this process's compilers take no two sizes for one."""
    with suppress(ImportError, AttributeError):  # private: a torch may lack it
        from torch.fx.experimental import _config

        _config.use_duck_shape = False
