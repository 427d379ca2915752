"""Equation (1) over short sentences on a CPU, its gradient written by hand.

With twenty tokens, a product of two matrices takes no longer than a pass over its
result, and autograd makes many passes: it stores the scores before and after the mask,
and it masks the gradient, which is zero there anyway. Torch's fused kernel works in
blocks made for long sequences, and its backward pass is slower still. Here each tensor
is written once. The softmax is taken in 32 bits, because torch's softmax over short
rows of 16-bit numbers takes three times as long. Over rows shorter than a vector
register it is computed in steps: torch computes those one number at a time, which takes
five times as long.
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from aiayn.fast.conditions import first_order

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
        grad_output = grad_outputs[0].flatten(0, 1)  # (batch·heads, queries, d_v)
        grad_weights = torch.bmm(grad_output, value.mT)  # dL/dweights
        wide = grad_weights.float() if grad_weights.dtype in _NARROW else grad_weights
        # dL/dscores = w (g - Σ w g), each row by itself: zero wherever w is.
        weighted = wide * weights
        mean = weighted.sum(-1, keepdim=True)
        grad_scores = weighted.addcmul(weights, mean, value=-1).to(weights.dtype)
        gradients = (
            _product(grad_scores, key, scale),
            _product(grad_scores.mT, query, scale),
            torch.bmm(weights.mT, grad_output),
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
    if scores.dtype == torch.float16:  # its largest number is 65,504; ∞ - ∞ is NaN
        largest = torch.finfo(torch.float16).max
        scores = scores.float().clamp_(-largest, largest)
    elif scores.dtype == torch.bfloat16:
        scores = scores.float()
    if mask is not None:
        hidden = torch.where(mask, 0.0, -math.inf).to(scores.dtype)
        scores.unflatten(0, lead).add_(hidden)
    weights = _softmax_in_place(scores)
    if mask is not None:
        blind = ~mask.any(-1, keepdim=True)  # these rows are NaN: they return zeros
        if blind.any():
            weights.unflatten(0, lead).masked_fill_(blind, 0.0)
    weights = weights.to(value.dtype)
    return torch.bmm(weights, value).unflatten(0, lead), query, key, value, weights


def _softmax_in_place(scores: Tensor) -> Tensor:
    """The softmax over the last dimension. It overwrites the scores."""
    if not 0 < scores.size(-1) < _simd_width():
        return scores.softmax(-1)
    exps = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return exps.div_(exps.sum(-1, keepdim=True))


@cache
def _simd_width() -> int:
    """How many 32-bit numbers torch's vector instructions process at once here."""
    widths = {"AVX512": 16, "AVX2": 8}
    return widths.get(torch.backends.cpu.get_cpu_capability(), 4)


def _product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """scale · left · right for each of a batch of matrices, in one pass."""
    return torch.baddbmm(left.new_zeros(()), left, right, beta=0, alpha=scale)


def short_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The context of `scaled_dot_product_attention`, without its weights.

    Args:
        query: (batch, heads, queries, d_k).
        key: (batch, heads, keys, d_k).
        value: (batch, heads, keys, d_v).
        mask: True where a query may attend to a key; None: everywhere.

    Paper: §3.2.1, equation (1).
    """
    if not torch.is_grad_enabled():
        return _attend(query, key, value, mask)[0]
    return _ShortAttention.apply(query, key, value, mask)
