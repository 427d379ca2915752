"""§5.4's loss again, without ever holding all logits: the fast form.

Logits are the largest tensor of a small model: 2,048 positions times 8,000 tokens are
64 MB, written and read again by each of half a dozen operations. Here a chunk of
positions goes from states to loss *and gradient* in memory that is written over: first
it holds the logits, then the probabilities, then the errors, and only the sums stay.
The result is that of `label_smoothed_cross_entropy`, and tests hold the two equal.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from aiayn.model.products import product

# Positions at a time: 256 rows of 8,000 logits fit into a processor's last cache. A GPU
# wants large products, and has the memory: here 0.8 GB for the logits of a chunk.
CHUNK, LOGITS_ON_A_GPU = 256, 2**27


class _ChunkedLoss(torch.autograd.Function):
    """Forward computes the gradient too; backward only scales it."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        kind = states.device.type
        cast = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if cast else weight.dtype
        narrow_weight = weight.to(dtype)
        with torch.autocast(kind, enabled=False):
            state_gradient = torch.empty_like(states)
            weight_gradient = torch.zeros_like(weight)
            smoothed, plain = weight.new_zeros(()), weight.new_zeros(())
            chunk = _positions_at_a_time(weight)
            for rows, right, gradient in zip(
                states.split(chunk),
                labels.split(chunk),
                state_gradient.split(chunk),
                strict=True,
            ):
                rows = rows.to(dtype)
                narrow = product(rows, narrow_weight)  # (chunk, vocab)
                logits = narrow.to(weight.dtype)
                largest = logits.amax(-1)
                right_total = logits.gather(1, right[:, None]).sum()
                mean_total = logits.sum() / weight.size(0)
                probs = torch.softmax(logits, -1, out=logits)
                # log Σ exp(logits), by the largest entry: its p cannot underflow.
                total = (largest - probs.amax(-1).log()).sum()
                plain += total - right_total
                smoothed += (
                    total - (1 - smoothing) * right_total - smoothing * mean_total
                )
                # dL/dlogits = p - q, q being the smoothed target.
                error = probs.sub_(smoothing / weight.size(0))
                error.scatter_add_(
                    1, right[:, None], error.new_full((len(right), 1), smoothing - 1)
                )
                error = narrow.copy_(error)
                gradient.copy_(product(error, narrow_weight.T))
                weight_gradient += product(error.T, rows.T)
        ctx.save_for_backward(state_gradient, weight_gradient)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        smoothed_gradient, _ = grad_outputs
        state_gradient, weight_gradient = ctx.saved_tensors
        return (
            state_gradient * smoothed_gradient,
            weight_gradient * smoothed_gradient,
            None,
            None,
        )


def _positions_at_a_time(weight: Tensor) -> int:
    if weight.is_cpu:
        return CHUNK
    return max(CHUNK, LOGITS_ON_A_GPU // weight.size(0))


def chunked_cross_entropy(
    states: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    labels: Int[Tensor, " tokens"],
    smoothing: float = 0.1,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Project states onto the vocabulary and score them, a chunk at a time.

    Args:
        states: The decoder's states at positions that count.
        weight: The output matrix.
        labels: The right tokens.
        smoothing: The paper's ε.

    Returns:
        Sums over the positions, in nats: the smoothed loss, which has a gradient, and
        the plain one, which has none.
    """
    return _ChunkedLoss.apply(states, weight, labels.long(), smoothing)
