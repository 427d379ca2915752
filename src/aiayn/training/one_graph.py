"""One graph for batches of every shape, compiled once.

A compiler that is told that sizes vary still takes two that are equal in the first
batch for one size. Where its sources are as long as its targets, that graph serves such
batches only, and the next batch has everything compiled again. And it takes a number of
the model's, a rate of dropout, say, for one that will vary too, finds out at the end
that it must not, and begins anew.

For a GPU its attention is kernels of ours, where they fit, or torch's fused one
(`aiayn.model.gpu_attention`), and all else the plain form (`aiayn.model.forms`).
"""

from contextlib import suppress
from typing import Any

import torch
from torch import nn

from aiayn.model.gpu_attention import register_operations


def compile_as_one(module: nn.Module, **options: Any) -> None:
    """Have a module compiled at its first call, for all later ones too.

    Args:
        module: What its calls will run compiled.
        options: Further ones of `torch.compile`.
    """
    tell_sizes_from_numbers()
    if torch.cuda.is_available():
        register_operations()
    module.compile(dynamic=True, **options)


def tell_sizes_from_numbers() -> None:
    """Have this process's compilers take no two sizes for one, no number for a size."""
    with suppress(ImportError, AttributeError):  # private: a torch may lack it
        from torch.fx.experimental import _config

        _config.use_duck_shape = False
    with suppress(ImportError, AttributeError):
        from torch._dynamo import config

        config.specialize_float = True


def gpu_options(sums_over_places: bool) -> dict[str, bool]:
    """What a GPU's compiler is told to do otherwise than it would.

    Args:
        sums_over_places: Whether the graph has sums over a sentence's or a row's places
            in it: attention's formula has, and who counts the sentences of a row.

    Returns:
        Those of its options that this torch knows, for `torch.compile`.
    """
    from torch._inductor import list_options

    wanted = {
        # One kernel for a LayerNorm's gradient and for those of its weights, which are
        # sums the other way, was slower than two on an H200.
        "triton.mix_order_reduction": False,
        # It takes two exponentials of each logit in one pass, instead of one in each
        # of two: 37,000 of them in a row, which the second pass finds in a cache.
        "online_softmax": False,
        # Of their number it knows only that the table of positions has more. It has
        # dozens of such rows held at once, and the assembler takes many minutes.
        "triton.persistent_reductions": not sums_over_places,
    }
    known = set(list_options())
    return {name: value for name, value in wanted.items() if name in known}
