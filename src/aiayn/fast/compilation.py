"""One compiled graph for batches of every shape.

Even if a compiler is told that sizes vary, it takes two sizes that are equal in the
first batch for one. If its sources are as long as its targets, that graph serves such
batches only, and the next batch is compiled again. It also takes a number of the
model's, such as a dropout rate, for a size that varies, finds out later that it must
not, and starts again. Two settings of torch's prevent both; they are changed while the
compiled module runs, and restored after each call.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import nn

from aiayn.fast.gpu_attention import disable_cudnn_sdpa, register_operations


def compile_dynamic(module: nn.Module, **options: Any) -> Callable[..., Any]:
    """A function that runs a module compiled, by one graph for batches of all sizes.

    Args:
        module: Compiled at the function's first call.
        options: Further ones of `torch.compile`.
    """
    device = next((w.device for w in module.parameters()), torch.device("cpu"))
    if device.type == "cuda":
        register_operations()
    compiled: Callable[..., Any] = torch.compile(module, dynamic=True, **options)

    def run(*inputs: Any) -> Any:
        with distinct_sizes(), disable_cudnn_sdpa(device):
            return compiled(*inputs)

    return run


@contextmanager
def distinct_sizes() -> Iterator[None]:
    """Have torch's compiler take no two sizes for one, and no number for a size."""
    with ExitStack() as settings:
        with suppress(ImportError, AttributeError):  # private: a torch may lack it
            from torch.fx.experimental import _config

            sizes: Any = _config
            settings.enter_context(sizes.patch(use_duck_shape=False))
        with suppress(ImportError, AttributeError):
            from torch._dynamo import config as numbers

            settings.enter_context(numbers.patch(specialize_float=True))
        yield


def gpu_options(sums_over_keys: bool) -> dict[str, bool]:
    """What a GPU's compiler is told to do differently.

    Args:
        sums_over_keys: Whether the graph sums over the positions of a row: attention's
            formula does, and so do the masks of packed rows.

    Returns:
        Those options for `torch.compile` that this torch knows.
    """
    wanted = {
        # One kernel for the gradients of a LayerNorm and of its weights, which are sums
        # in different directions, was slower than two on an H200.
        "triton.mix_order_reduction": False,
        # It computes two exponentials of each logit in one pass, instead of one in each
        # of two passes. The second finds 37,000 logits in a cache.
        "online_softmax": False,
        # The compiler knows no bound for the number of keys but the size of the table
        # of positions. It would hold dozens of such rows at once, for which the
        # assembler takes many minutes.
        "triton.persistent_reductions": not sums_over_keys,
    }
    try:
        from torch._inductor import list_options

        known = set(list_options())
    except (ImportError, AttributeError, TypeError):  # private: a torch may lack it
        return {}
    return {name: value for name, value in wanted.items() if name in known}
