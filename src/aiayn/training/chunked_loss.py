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
from aiayn.model.products import product, weight_gradient

# Positions at a time, at least, and bytes of logits. What a CPU writes over should stay
# in its caches. A GPU wants large products, and has the memory.
CHUNK, BYTES_ON_A_CPU, BYTES_ON_A_GPU = 256, 2**24, 2**28
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
            weight_sum = uniform.repeat(weight.size(0), 1)
            plain, right_total = weight.new_zeros(()), weight.new_zeros(())
            chunk = _positions_at_a_time(narrow_weight)
            for rows, right, gradient in zip(
                states.split(chunk),
                labels.split(chunk),
                state_gradient.split(chunk),
                strict=True,
            ):
                rows = rows.to(dtype)
                errors, right_logits, right_log_probs = _errors(
                    rows, narrow_weight, right[:, None], smoothing
                )
                right_total += right_logits.sum(dtype=weight.dtype)
                plain -= right_log_probs.sum()
                gradient.copy_(product(errors, narrow_weight.T))
                weight_sum += weight_gradient(errors, rows)
                del errors  # the next chunk's logits take their place
            state_gradient -= smoothing * mean_row
            smoothed = plain + smoothing * (right_total - state_total @ mean_row)
        ctx.save_for_backward(state_gradient, weight_sum)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @first_order
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        smoothed_gradient, _ = grad_outputs
        state_gradient, weight_sum = ctx.saved_tensors
        return (
            state_gradient * smoothed_gradient,
            weight_sum * smoothed_gradient,
            None,
            None,
        )


def _errors(
    rows: Tensor, weight: Tensor, right: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """One chunk: dL/dlogits but for the uniform part; right logits, log-probabilities.

    In bfloat16 the softmax stays in 16 bits, one pass instead of four.
    """
    logits = product(rows, weight)  # (chunk, vocab)
    right_logits = logits.gather(1, right)
    if logits.dtype == torch.bfloat16:
        # It reaches as far down as 32 bits do, and a processor's own products of it
        # take a denormal number for zero. A loss ends at 87.
        errors = torch.softmax(logits, -1, out=logits)
        right_probs = _right_probabilities(errors, right)
        log_probs = right_probs.clamp(torch.finfo(errors.dtype).tiny).log_()
    else:
        wide = logits.float() if logits.dtype == torch.float16 else logits
        all_log_probs = torch.log_softmax(wide, -1, out=wide)
        log_probs = all_log_probs.gather(1, right)
        probs = all_log_probs.clamp_(LEAST_LOG_PROB).exp_()
        right_probs, errors = probs.gather(1, right), probs.to(logits.dtype)
    _put(errors, right, right_probs - (1 - smoothing))
    return errors, right_logits, log_probs


def _right_probabilities(probs: Tensor, right: Tensor) -> Tensor:
    """In 32 bits, of bfloat16's probabilities, which hold 0 in their place afterwards.

    The error of a model that is sure is a small difference, 0.9 from a probability near
    1, of which 8 bits say little. They say more of what the other tokens have left.
    """
    rounded = probs.gather(1, right).float()
    _put(probs, right, torch.zeros_like(rounded))
    others = probs.sum(-1, keepdim=True).float()  # torch adds up in 32 bits
    return torch.where(rounded > 0.5, 1 - others, rounded)


def _put(into: Tensor, columns: Tensor, values: Tensor) -> None:
    """Write one value a row. As integers: torch copies all of a 16-bit tensor first."""
    values = values.to(into.dtype)
    if into.element_size() == 2:
        into, values = into.view(torch.int16), values.view(torch.int16)
    into.scatter_(1, columns, values)


def _positions_at_a_time(weight: Tensor) -> int:
    room = BYTES_ON_A_CPU if weight.is_cpu else BYTES_ON_A_GPU
    return max(CHUNK, room // (weight.size(0) * weight.element_size()))


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
