"""x Wᵀ + b, the product that most of a step goes into, where a CPU does it fastest.

Torch gives 32-bit products to MKL, which on some processors that are not Intel's leaves
half of the arithmetic unused. oneDNN, which torch carries as well and uses for 16-bit
products, does not: on one AMD EPYC a training step in fp32 took two thirds of the time;
on an older one (Zen 4), where MKL wastes a fifth, it gains little. The sum is the same
but for the order in which it is added up. `FlopCounterMode` does not know it: count
inside `plain_form`.
"""

import platform
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.forms import first_order, is_plain

# Multiplications from which on the call's own cost, two hundredths of a millisecond,
# does not count.
WORTH = 2**22


def product(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*rows outputs"]:
    """`torch.nn.functional.linear` by whichever library is faster, without a gradient.

    Args:
        x: Any number of rows.
        weight: Any strides: a transposed view costs nothing.
        bias: None: no bias.
    """
    if _goes_to_onednn(x, weight):
        bias = None if bias is None else bias.contiguous()  # it asks for no stride
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return F.linear(x, weight, bias)


def weight_gradient(
    above: Float[Tensor, "rows outputs"], x: Float[Tensor, "rows inputs"]
) -> Float[Tensor, "outputs inputs"]:
    """The gradient of W in x Wᵀ, one more product: aboveᵀ x.

    The sum is over rows, so both factors are transposed, and oneDNN copies the first of
    its factors if that is transposed. Here the narrower one comes first: with 8,000
    outputs and 256 inputs the product takes little more than half of the time.

    Args:
        above: The gradient of x Wᵀ.
        x: What was multiplied.
    """
    if above.size(1) > x.size(1) and _goes_to_onednn(x.T, above.T):
        return product(x.T, above.T).T
    return product(above.T, x.T)


class _Product(torch.autograd.Function):
    """`product`, whose gradients are two more of its kind."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @first_order
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        above, needed = grad_outputs[0], ctx.needs_input_grad
        rows = above.flatten(0, -2)  # (rows, outputs)
        return (
            product(above, weight.T) if needed[0] else None,
            weight_gradient(rows, x.flatten(0, -2)) if needed[1] else None,
            rows.sum(0) if needed[2] else None,
        )


def linear(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*rows outputs"]:
    """`torch.nn.functional.linear`, with its gradient, by the faster library."""
    if is_plain() or not _goes_to_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():  # what autograd would note down is not needed
        return product(x, weight, bias)
    return _Product.apply(x, weight, bias)


class Linear(nn.Linear):
    """`torch.nn.Linear`, computed by `linear`."""

    def forward(
        self, input: Float[Tensor, "*rows inputs"]
    ) -> Float[Tensor, "*rows outputs"]:
        """x Wᵀ + b."""
        return linear(input, self.weight, self.bias)


def _goes_to_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() > 1
        and x.numel() * weight.size(0) >= WORTH
        and _mkl_is_slow()
        and not torch.is_autocast_enabled("cpu")
    )


@cache
def _mkl_is_slow() -> bool:
    """Whether torch would ask MKL on a processor that MKL was not made for."""
    return (
        torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and "AuthenticAMD" in _vendor()
    )


def _vendor() -> str:
    """Who made the processor, among other words."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        return cpuinfo.read_text(errors="replace")
    return platform.processor()
