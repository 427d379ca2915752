"""§5.4's loss, computed without ever holding all logits.

Logits are the largest tensor of a small model: 2,048 positions times 8,000 tokens are
64 MB, written and read by each of half a dozen operations. Here a chunk of positions
goes from hidden states to loss *and gradient* in memory that is reused: it holds the
logits first, then the probabilities, then the errors, and only the sums remain.

The part ε of the target that is spread over all tokens needs no pass over them. It
enters the loss through the mean logit only,

    L = log Σ exp(z) - (1 - ε) z_right - ε mean(z),    mean(z) = x · mean(W),

and likewise the gradients, at the cost of one row. The result is that of
`label_smoothed_cross_entropy`, and tests hold the two equal.
"""

from typing import Any

import torch
from torch import Tensor

from aiayn.fast.conditions import first_order, is_transformed
from aiayn.fast.linear import add_weight_gradient, product
from aiayn.training.loss import Criterion, non_pad_indices

# A chunk has at least so many positions, and about so many bytes of logits. On a CPU
# they should stay in its caches. A GPU prefers large products, and has the memory.
CHUNK, BYTES_ON_A_CPU, BYTES_ON_A_GPU = 256, 2**24, 2**28
# exp(-87) and less is denormal, with which a processor computes a hundred times as
# slowly. No gradient changes noticeably if the probability is larger by exp(-60).
MIN_LOG_PROB = -60.0


class FastCriterion(Criterion):
    """`Criterion`, with the loss in chunks, at the positions that are not padding."""

    def loss(self, hidden_states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The sums of the smoothed and of the plain loss over all target tokens."""
        if is_transformed():
            return super().loss(hidden_states, labels)
        if labels.dim() == 2:  # nobody has selected the positions
            if not labels.is_cpu:  # a GPU would have to wait for their number
                return super().loss(hidden_states, labels)
            indices = non_pad_indices(labels, self.pad_id)
            hidden_states, labels = self.select(hidden_states, labels, indices)
        weight = self.model.output_weight
        return chunked_cross_entropy(hidden_states, weight, labels, self.smoothing)


def chunked_cross_entropy(
    hidden_states: Tensor, weight: Tensor, labels: Tensor, smoothing: float = 0.1
) -> tuple[Tensor, Tensor]:
    """Project hidden states onto the vocabulary and score them, a chunk at a time.

    Args:
        hidden_states: The decoder's, at the positions that count: (tokens, d_model).
        weight: The output matrix: (vocab, d_model).
        labels: The right tokens: (tokens).
        smoothing: The paper's ε.

    Returns:
        Sums over the positions, in nats: the smoothed loss, which has a gradient, and
        the plain one, which has none.
    """
    return _ChunkedLoss.apply(hidden_states, weight, labels.long(), smoothing)


class _ChunkedLoss(torch.autograd.Function):
    """The forward pass computes the gradients too; the backward pass scales them."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        of_states, of_weight, *_ = ctx.needs_input_grad
        kind = states.device.type
        cast = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if cast else weight.dtype
        narrow_weight = weight.to(dtype)
        mean_row, state_total = weight.mean(0), states.sum(0, dtype=weight.dtype)
        with torch.autocast(kind, enabled=False):
            grad_states = torch.empty_like(states) if of_states else None
            uniform = -smoothing / weight.size(0) * state_total
            grad_weight = uniform.repeat(weight.size(0), 1) if of_weight else None
            plain, right_total = weight.new_zeros(()), weight.new_zeros(())
            chunk = _positions_at_a_time(narrow_weight)
            for start in range(0, len(labels), chunk):
                rows = states[start : start + chunk].to(dtype)
                right = labels[start : start + chunk, None]
                logits = product(rows, narrow_weight)  # (chunk, vocab)
                right_total += logits.gather(1, right).sum(dtype=weight.dtype)
                errors, right_log_probs = _errors(logits, right, smoothing)
                plain -= right_log_probs.sum()
                if grad_states is not None:
                    part = grad_states[start : start + chunk]
                    part.copy_(product(errors, narrow_weight.T))
                if grad_weight is not None:
                    add_weight_gradient(grad_weight, errors, rows)
                del logits, errors  # the next chunk's logits reuse their memory
            if grad_states is not None:
                grad_states -= smoothing * mean_row
            smoothed = plain + smoothing * (right_total - state_total @ mean_row)
        ctx.save_for_backward(grad_states, grad_weight)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @first_order
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        grads = (g if g is None else g * grad_outputs[0] for g in ctx.saved_tensors)
        return (*grads, None, None)


def _errors(logits: Tensor, right: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """One chunk: dL/dlogits without its uniform part, and log p of the right tokens.

    In bfloat16 the softmax stays in 16 bits, one pass instead of four.
    """
    if logits.dtype == torch.bfloat16:
        # Its smallest number is that of 32 bits, and a processor's products of it take
        # a denormal number for zero. So a loss is at most 87.
        errors = torch.softmax(logits, -1, out=logits)
        right_probs = _right_probabilities(errors, right)
        log_probs = right_probs.clamp(torch.finfo(errors.dtype).tiny).log_()
    else:
        wide = logits.float() if logits.dtype == torch.float16 else logits
        all_log_probs = torch.log_softmax(wide, -1, out=wide)
        log_probs = all_log_probs.gather(1, right)
        probs = all_log_probs.clamp_(MIN_LOG_PROB).exp_()
        right_probs, errors = probs.gather(1, right), probs.to(logits.dtype)
    _put(errors, right, right_probs - (1 - smoothing))
    return errors, log_probs


def _right_probabilities(probs: Tensor, right: Tensor) -> Tensor:
    """The right tokens' probabilities in 32 bits; in probs they become 0.

    If a model is confident, the error is a small difference between two numbers near 1,
    of which 8 bits say little. They say more about the sum of the other probabilities.
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
