"""§5.4's loss again, without ever holding all logits: the fast form.

Logits are the largest tensor of a small model: 2,048 positions times 8,000 tokens are
64 MB, written and read again by each of half a dozen operations. Here a chunk of
positions goes from states to loss *and gradient* in memory that is written over: first
it holds the logits, then the probabilities, then the errors, and only the sums stay.

The part ε of the target that is spread over all tokens needs no pass over them. The
loss meets it only in the mean logit,

    L = log Σ exp(z) - (1 - ε) z_right - ε mean(z),    mean(z) = x · mean(W),

and so do the gradients, at the cost of one row. The result is that of
`label_smoothed_cross_entropy`, and tests hold the two equal.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from aiayn.model.forms import first_order
from aiayn.model.products import product

# Positions at a time, at least, and logits. What a CPU writes over should stay in its
# caches. A GPU wants large products, and has the memory: 0.8 GB for these.
CHUNK, LOGITS_ON_A_CPU, LOGITS_ON_A_GPU = 256, 2**21, 2**27
# A probability of exp(-87) or less is denormal, and takes a processor a hundred times
# as long to compute with. No gradient misses what this leaves out.
LEAST_LOG_PROB = -60.0


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
        mean_row, state_total = weight.mean(0), states.sum(0, dtype=weight.dtype)
        with torch.autocast(kind, enabled=False):
            state_gradient = torch.empty_like(states)
            uniform = -smoothing / weight.size(0) * state_total
            weight_gradient = uniform.repeat(weight.size(0), 1)
            plain, right_total = weight.new_zeros(()), weight.new_zeros(())
            chunk = _positions_at_a_time(weight)
            for rows, right, gradient in zip(
                states.split(chunk),
                labels.split(chunk),
                state_gradient.split(chunk),
                strict=True,
            ):
                rows = rows.to(dtype)
                error, right_logits, losses = _errors(
                    rows, narrow_weight, right[:, None], smoothing, weight.dtype
                )
                right_total += right_logits.sum()
                plain += losses.sum()
                gradient.copy_(product(error, narrow_weight.T))
                weight_gradient += product(error.T, rows.T)
                del error  # the next chunk's logits take its place
            state_gradient -= smoothing * mean_row
            smoothed = plain + smoothing * (right_total - state_total @ mean_row)
        ctx.save_for_backward(state_gradient, weight_gradient)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @first_order
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


def _errors(
    rows: Tensor, weight: Tensor, right: Tensor, smoothing: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """One chunk: dL/dlogits but for the uniform part, right logits, plain losses."""
    narrow = product(rows, weight)  # (chunk, vocab)
    logits = narrow.to(dtype)
    right_logits = logits.gather(1, right)
    log_probs = torch.log_softmax(logits, -1, out=logits)
    losses = -log_probs.gather(1, right)
    error = log_probs.clamp_(LEAST_LOG_PROB).exp_()
    error.scatter_add_(1, right, (smoothing - 1) * torch.ones_like(losses))
    return narrow.copy_(error), right_logits, losses


def _positions_at_a_time(weight: Tensor) -> int:
    logits = LOGITS_ON_A_CPU if weight.is_cpu else LOGITS_ON_A_GPU
    return max(CHUNK, logits // weight.size(0))


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
