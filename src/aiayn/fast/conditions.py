"""When the fast classes compute as the plain ones do.

`torch.compile` makes kernels of its own from the formulas, and `FlopCounterMode` counts
the operations of the plain classes. `torch.func` and forward mode cannot look into a
gradient that was written by hand. Under each of them the fast classes step aside; on a
GPU, some of them help a compiler (`attention`, `autocast`).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from aiayn.errors import InputError


def is_transformed() -> bool:
    """Whether torch.compile, torch.func, forward mode or a counter is at work."""
    if torch.compiler.is_compiling():  # a compiler cannot trace the lines below
        return True
    modes = getattr(torch._C, "_len_torch_dispatch_stack", int)  # FlopCounterMode, …
    functorch = getattr(torch._C, "_are_functorch_transforms_active", bool)
    return getattr(forward_ad, "_current_level", -1) >= 0 or modes() > 0 or functorch()


def first_order(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward pass that must not be differentiated again.

    Torch's `once_differentiable` complains later, and not at all where the incoming
    gradient is a constant: second derivatives would then be wrong without a word.
    """

    @wraps(backward)
    def refusing(ctx: Any, *grad_outputs: Tensor) -> Any:
        if torch.is_grad_enabled():  # autograd's sign of create_graph=True
            raise InputError(
                "An accelerated model has first derivatives only, and this gradient "
                "is to be differentiated again: compute it inside 'with "
                "aiayn.fast.disabled(model):'."
            )
        return backward(ctx, *grad_outputs)

    return refusing
