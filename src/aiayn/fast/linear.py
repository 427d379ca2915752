"""x Wᵀ + b by oneDNN, on processors where torch's usual library is slow.

Most of a training step is spent in this product. Torch computes 32-bit products with
MKL, which uses at most 256 bits of a vector on AMD's processors. oneDNN, which torch
contains too and uses for 16-bit products, uses 512: on one EPYC (Zen 5) a training step
in fp32 took two thirds of the time; on an older one (Zen 4) it gains little. Where a
vector has 256 bits (Zen 3), oneDNN gains nothing, and takes longer for a product of two
transposed factors, as the gradient of a weight is. There a training stays with MKL. The
results differ in the order of summation only.

oneDNN copies a matrix of weights into blocks first, at every call. While a search
writes, the weights stay as they are, so there it is done once, `packed`, on all of
these processors.
"""

import re
import threading
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.device import describe_machine
from aiayn.fast.conditions import first_order, is_transformed
from aiayn.model.embeddings import TokenEmbedding

MIN_SIZE, MIN_PACKED = 2**22, 2**20
"""Multiplications below which a call costs more than it saves: about 0.02 ms. A call
with packed weights costs less."""

packed = threading.local()
"""While this thread searches, its ``weights`` maps each parameter to its blocks."""


class FastLinear(nn.Linear):
    """`torch.nn.Linear`, computed by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """x Wᵀ + b."""
        return linear(input, self.weight, self.bias)


class FastTokenEmbedding(TokenEmbedding):
    """`TokenEmbedding`, whose output layer is computed by `linear`."""

    def logits(self, x: Tensor) -> Tensor:
        """A score for each token of the vocabulary."""
        return linear(x, self.weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`, with its gradient, by the faster library."""
    if is_transformed() or not _goes_to_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return product(x, weight, bias)
    return _Linear.apply(x, weight, bias)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` by the faster library, without a gradient.

    Args:
        x: (…, inputs).
        weight: (outputs, inputs), of any strides: a transposed view costs nothing.
        bias: (outputs); None: no bias.
    """
    if _goes_to_onednn(x, weight):
        bias = None if bias is None else bias.contiguous()  # oneDNN ignores strides
        blocks = getattr(packed, "weights", None)
        if blocks is not None and isinstance(weight, nn.Parameter):
            if weight not in blocks:
                blocks[weight] = _in_blocks(weight.detach())
            weight = blocks[weight]
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return F.linear(x, weight, bias)


def weight_gradient(grad_output: Tensor, x: Tensor) -> Tensor:
    """The gradient of W in x Wᵀ: one more product, grad_outputᵀ x.

    Both factors are transposed, and oneDNN copies its first factor if that is
    transposed. So the narrower one comes first: with 8,000 outputs and 256 inputs the
    product takes little more than half of the time.

    Args:
        grad_output: The gradient of x Wᵀ: (rows, outputs).
        x: What was multiplied: (rows, inputs).
    """
    if grad_output.size(1) > x.size(1) and _goes_to_onednn(x.T, grad_output.T):
        return product(x.T, grad_output.T).T
    return product(grad_output.T, x.T)


def add_weight_gradient(total: Tensor, grad_output: Tensor, x: Tensor) -> None:
    """Add `weight_gradient` to a sum, while it is multiplied where the library can.

    Otherwise the product is written to memory of its own, and read again to be added;
    that of a large matrix fits into no cache.
    """
    if total.dtype != x.dtype or _goes_to_onednn(x.T, grad_output.T):
        total += weight_gradient(grad_output, x)
    else:
        total.addmm_(grad_output.T, x)


class _Linear(torch.autograd.Function):
    """`product`, whose gradients are two more products."""

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
        grad_output, needed = grad_outputs[0], ctx.needs_input_grad
        rows = grad_output.flatten(0, -2)  # (rows, outputs)
        return (
            product(grad_output, weight.T) if needed[0] else None,
            weight_gradient(rows, x.flatten(0, -2)) if needed[1] else None,
            rows.sum(0) if needed[2] else None,
        )


def _goes_to_onednn(x: Tensor, weight: Tensor) -> bool:
    searching = getattr(packed, "weights", None) is not None
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() > 1
        and x.numel() * weight.size(0) >= (MIN_PACKED if searching else MIN_SIZE)
        and _mkl_is_slow(searching)
        and not torch.is_autocast_enabled("cpu")
    )


@cache
def _mkl_is_slow(searching: bool) -> bool:
    """Whether torch would use MKL where oneDNN is faster: see the module's text."""
    return bool(
        torch.backends.mkl.is_available()
        and _onednn_multiplies()
        and (searching or torch.backends.cpu.get_cpu_capability() == "AVX512")
        and re.match("AMD |.*AuthenticAMD", str(describe_machine()["processor"]))
    )


def _onednn_multiplies() -> bool:
    """Whether this torch has the private operations, with the signature that we use."""
    try:
        one = torch.ones(1, 1, dtype=torch.float32, device="cpu")
        given = _in_blocks(one), None, "none", [], ""
        return bool(torch.ops.mkldnn._linear_pointwise(one, *given) == 1)
    except (AttributeError, RuntimeError, TypeError):
        return False


def _in_blocks(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight)
