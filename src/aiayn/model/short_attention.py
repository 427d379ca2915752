"""Equation (1) over short sentences on a CPU: forward and backward written out.

For twenty words a product of two matrices takes no longer than a pass over its result,
and autograd makes many passes: it keeps the scores before and after the mask, and
masks the gradient too, which is zero there already. Torch's fused kernel computes in
blocks made for long sequences, and its backward is slower still. Here each tensor is
written once. The softmax is taken in 32 bits, since torch's softmax over short rows of
16-bit numbers takes three times as long, and over rows that do not fill a vector
register step by step: torch's takes those one number at a time, five times as long.
"""

import math
from functools import cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from aiayn.model.forms import first_order

_NARROW = (torch.bfloat16, torch.float16)


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> Tensor:
        context, *used = _attend(query, key, value, mask)
        ctx.save_for_backward(*used)
        return context

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    @first_order
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        lead, scale = grad_outputs[0].shape[:2], 1 / math.sqrt(query.size(-1))
        above = grad_outputs[0].flatten(0, 1)  # (batch·heads, queries, d_v)
        slope = torch.bmm(above, value.mT)  # dL/dweights
        wide = slope.float() if slope.dtype in _NARROW else slope
        # dL/dscores = w (g - Σ w g), each row by itself: zero wherever w is.
        weighted = wide * weights
        below = weighted.addcmul(weights, weighted.sum(-1, keepdim=True), value=-1)
        below = below.to(weights.dtype)
        gradients = (
            _product(below, key, scale),
            _product(below.mT, query, scale),
            torch.bmm(weights.mT, above),
        )
        return *(gradient.unflatten(0, lead) for gradient in gradients), None


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The context, and what its gradient is made of: queries, keys, values, weights."""
    lead = query.shape[:2]
    query, key, value = (x.flatten(0, 1).contiguous() for x in (query, key, value))
    scale = 1 / math.sqrt(query.size(-1))
    scores = _product(query, key.mT, scale)  # (batch·heads, queries, keys)
    if scores.dtype == torch.float16:  # which ends at 65,504, and then is infinite
        largest = torch.finfo(torch.float16).max
        scores = scores.float().clamp_(-largest, largest)
    elif scores.dtype == torch.bfloat16:
        scores = scores.float()
    if mask is not None:
        hidden = torch.where(mask, 0.0, -math.inf).to(scores.dtype)
        scores.unflatten(0, lead).add_(hidden)
    weights = _softmax_in_place(scores)
    if mask is not None:
        blind = ~mask.any(-1, keepdim=True)  # who may see nothing gets nothing
        if blind.any():
            weights.unflatten(0, lead).masked_fill_(blind, 0.0)
    weights = weights.to(value.dtype)
    return torch.bmm(weights, value).unflatten(0, lead), query, key, value, weights


def _softmax_in_place(scores: Tensor) -> Tensor:
    """The softmax over the last dimension; what scores hold afterwards is undefined."""
    if not 0 < scores.size(-1) < _lanes():
        return scores.softmax(-1)
    exps = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return exps.div_(exps.sum(-1, keepdim=True))


@cache
def _lanes() -> int:
    """How many 32-bit numbers one of torch's vector instructions takes here."""
    capability = torch.backends.cpu.get_cpu_capability()
    return {"AVX512": 16, "AVX2": 8}.get(capability, 4)


def _product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """scale · left · right for each of a batch of matrices, in one pass."""
    nothing = left.new_zeros(()).expand(len(left), left.size(1), right.size(2))
    return torch.baddbmm(nothing, left, right, beta=0, alpha=scale)


def short_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
) -> Float[Tensor, "batch heads queries d_v"]:
    """The context of `scaled_dot_product_attention`, without its weights.

    Args:
        query: What each position looks for.
        key: What each position answers to.
        value: What each position has to give.
        mask: True where a query may attend to a key; None: everywhere.

    Paper: §3.2.1, equation (1).
    """
    if not torch.is_grad_enabled():
        return _attend(query, key, value, mask)[0]
    return _ShortAttention.apply(query, key, value, mask)
