"""Equation (1) on a GPU, by kernels of our own (`attention_kernels`) or by torch's.

With a mask of padding torch takes a kernel that was made for sequences of hundreds of
tokens. On an H200, ours need a quarter of its time (`benchmarks/records/gpu.json`). But
in a compiled graph Python asks for ours, a compiler's own code for torch's, and a step
with ours waits for Python. So a compiled graph has torch's kernel. Ours compute short
sentences in 16 bits where there is no compiler, above all in steps that are recorded
(`aiayn.training.recorded_step`), in which nobody has to ask.

Where there are no such kernels, the formulas below compute what they do.
"""

import math
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from aiayn.model.forms import first_order, is_compiled, is_plain

WIDTHS = (16, 32, 64, 128)
"""Of a head's queries, keys and values: what the kernels multiply at once."""
TRITON = find_spec("triton") is not None
# With more queries or keys torch's kernel pays.
SHORT = 32
# The bug clinic imports copies of this package: each has operations of its own.
_PACKAGE = __name__.partition(".")[0]


@torch.library.custom_op(f"{_PACKAGE}::attend", mutates_args=())
def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The context, and the logarithm of each softmax's denominator."""
    query, key, value = (_side_by_side(x) for x in (query, key, value))
    context, denominator = _nothing(query, key, value, mask)
    if _has_kernels(query.device):
        from aiayn.model.attention_kernels import attend

        with torch.cuda.device_of(query):  # Triton asks for no tensor's own
            attend(query, key, value, mask, context, denominator)
    else:
        logarithms = _scores(query, key, mask).logsumexp(-1)
        denominator.copy_(logarithms.masked_fill(logarithms == -math.inf, math.inf))
        context.copy_(_weights(query, key, mask, denominator).to(value) @ value)
    return context, denominator


@_attend.register_fake
def _nothing(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The same with memory that nobody has written to."""
    context = _empty(query, query.size(2), value.size(3))
    return context, query.new_empty(query.shape[:3], dtype=torch.float32)


@torch.library.custom_op(f"{_PACKAGE}::attend_backward", mutates_args=())
def _attend_backward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor, above: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of queries, keys and values, given the context's."""
    query, key, value = (_side_by_side(x) for x in (query, key, value))
    above = _side_by_side(above)
    gradients = _no_gradients(query, key, value, mask, context, denominator, above)
    if _has_kernels(query.device):
        from aiayn.model.attention_kernels import attend_backward

        given = query, key, value, mask, context, denominator, above, gradients
        with torch.cuda.device_of(query):
            attend_backward(*given)
    else:
        weights = _weights(query, key, mask, denominator)
        mean = (context.float() * above).sum(-1, keepdim=True)
        # dL/dscores = w (g - Σ w g), g being dL/dweights.
        below = weights * ((above @ value.mT).float() - mean) / math.sqrt(query.size(3))
        gradients[0].copy_(below.to(key) @ key)
        gradients[1].copy_(below.mT.to(query) @ query)
        gradients[2].copy_(weights.mT.to(above) @ above)
    return gradients


@_attend_backward.register_fake
def _no_gradients(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor, above: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The same with memory that nobody has written to."""
    return (
        _empty(query, query.size(2), query.size(3)),
        _empty(key, key.size(2), key.size(3)),
        _empty(value, value.size(2), value.size(3)),
    )


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    scores = query.float() @ key.float().mT / math.sqrt(query.size(3))
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, denominator: Tensor
) -> Tensor:
    return (_scores(query, key, mask) - denominator[..., None]).exp()


def _empty(like: Tensor, length: int, width: int) -> Tensor:
    """What heads write, in memory side by side: to concatenate them is no copy."""
    batch, heads = like.shape[:2]
    return like.new_empty(batch, length, heads, width).transpose(1, 2)


def _side_by_side(x: Tensor) -> Tensor:
    """The kernels take any strides but that of a head's own numbers."""
    return x if x.stride(3) == 1 else x.contiguous()


@cache
def _has_kernels(device: torch.device) -> bool:
    """Whether it multiplies pairs of 16-bit numbers, and Triton is installed."""
    return (
        device.type == "cuda"
        and TRITON
        and torch.cuda.get_device_capability(device) >= (8, 0)
    )


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


@first_order
def _gradients(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
    return *_attend_backward(*ctx.saved_tensors, grad_outputs[0]), None


_attend.register_autograd(_gradients, setup_context=_keep)


def gpu_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
) -> Float[Tensor, "batch heads queries d_v"]:
    """The context of `scaled_dot_product_attention`, without its weights.

    Args:
        query: What each position looks for; outside of a compiled graph in 16 bits, and
            its width, and that of values, is one of `WIDTHS`.
        key: What each position answers to.
        value: What each position has to give.
        mask: True where a query may attend to a key; None: everywhere.

    Paper: §3.2.1, equation (1).
    """
    if is_compiled():
        added = None if mask is None else _by_eights(mask, query.dtype)
        return F.scaled_dot_product_attention(query, key, value, added)
    return _attend(query, key, value, mask)[0]


def _by_eights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask as what is added to scores, in rows that begin at every eighth place.

    Torch's kernel copies any other, after asking whether the number of keys divides by
    8: a compiler then makes one graph where it does, and one where it does not. Rows
    are never packed, for it would ask whether they are.
    """
    keys = mask.size(-1)
    places = torch.arange(keys - keys % 8 + 8, device=mask.device)
    hidden = ~mask.index_select(-1, places.clamp(max=keys - 1))
    added = torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, -math.inf)
    return added[..., :keys]


def goes_to_kernels(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `gpu_attention` is the fastest form for these, and the plain one unasked.

    In a compiled graph it always is: a compiler makes less of the formula.
    """
    if is_compiled():
        return query.is_cuda
    return not is_plain() and fit(query, key, value) and _is_short_and_fast(query, key)


def fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether our kernels take these at all."""
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.dtype == key.dtype == value.dtype
        and query.size(-1) in WIDTHS
        and value.size(-1) in WIDTHS
        and query.shape[:2] == key.shape[:2]
        and key.shape[:3] == value.shape[:3]
    )


def _is_short_and_fast(query: Tensor, key: Tensor) -> bool:
    return max(query.size(2), key.size(2)) <= SHORT and _has_kernels(query.device)
