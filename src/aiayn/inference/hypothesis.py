"""§6.1: what greedy search and beam search share: hypotheses, scores, length limits.

The paper does not say what counts as a length. Here the length of an output includes
its end token, as in tensor2tensor, and so does the length of an input. Neither padding
nor the start token is ever written, because no training target contains them.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from aiayn.errors import InputError
from aiayn.inference.protocol import Model


@dataclass(frozen=True, slots=True)
class Hypothesis:
    r"""One output of a search.

    $$\mathrm{score}(Y) = \log p(Y \mid X) / lp(Y)$$

    Paper: §6.1.
    """

    tokens: list[int]
    """The pieces that were written, without start and end token."""
    log_probability: float
    """Natural logarithm of the model's probability, the end token's included."""
    score: float
    """What hypotheses are ranked by: log_probability over the length penalty."""


def gnmt_length_penalty(length: int | Tensor, alpha: float) -> Any:
    r"""The divisor of a log-probability, without which short outputs would win.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^α$$

    Args:
        length: |Y|, the tokens of an output, its end token included.
        alpha: 0: no penalty at all; 1: one that grows in proportion to 5 + |Y|.

    Paper: §6.1, α = 0.6; Wu et al. (2016), equation (14).
    """
    return ((5 + length) / 6) ** alpha


def output_limits(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    extra_length: int = 50,
    max_length: int | None = None,
) -> Int[Tensor, " sentences"]:
    """The most tokens that each sentence's output may have, its end token included.

    $$|Y| ≤ |X| + 50$$

    Args:
        model: Its table of learned positions, if it has one, is a limit as well.
        source: Padded token ids; padding does not count.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output.

    Raises:
        InputError: A limit makes no sense, or source has another shape.

    Paper: §6.1, 'maximum output length during inference to input length + 50'.
    """
    if not isinstance(source, Tensor) or source.dim() != 2:
        raise InputError("source must hold token ids of shape (sentences, length).")
    longest = 1 if max_length is None else max_length
    whole = isinstance(extra_length, Integral) and isinstance(longest, Integral)
    if not whole or extra_length < 0 or longest < 1:
        raise InputError(
            "extra_length must be a whole number of at least 0, and max_length None or "
            f"one of at least 1; they are {extra_length} and {max_length}."
        )
    limits = (source != model.config.pad_id).sum(dim=1) + extra_length
    if getattr(model.config, "positions", None) == "learned":
        limits = limits.clamp(max=model.config.max_length)
    return limits.clamp(min=1, max=max_length)


def prepare_search(
    model: Model, source: Tensor, bos_id: int, eos_id: int, **limits: Any
) -> tuple[Tensor, Tensor]:
    """Check what a search is given; return its source on the device, and the limits."""
    vocab_size, pad_id = model.config.vocab_size, model.config.pad_id
    known = 0 <= bos_id < vocab_size and 0 <= eos_id < vocab_size
    if not known or eos_id in (bos_id, pad_id):  # outputs would never end
        raise InputError(
            f"bos_id = {bos_id} and eos_id = {eos_id} must be two tokens from 0 to "
            f"{vocab_size - 1}, and eos_id must not be that of padding, {pad_id}."
        )
    if isinstance(source, Tensor):  # output_limits refuses anything else
        source = source.to(next(model.parameters(), source).device)
    return source, output_limits(model, source, **limits)


@contextmanager
def eval_mode(model: Model) -> Iterator[None]:
    """Switch dropout and gradients off inside the block, and restore the mode after it.

    Threads that share a model in training mode should call its ``eval()`` first: the
    thread that leaves its block first restores the training mode for all of them.

    Args:
        model: What is to be evaluated.

    Paper: §5.4, whose dropout is for training.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True


def log_softmax(logits: Float[Tensor, "... vocab"]) -> Float[Tensor, "... vocab"]:
    """Log-probabilities, in at least 32 bits: sums of them need more than 16."""
    return logits.log_softmax(-1, torch.promote_types(logits.dtype, torch.float32))


def next_log_probs(
    model: Model, tokens: Tensor, cache: Any, markers: tuple[int, int], at_limit: Any
) -> Float[Tensor, "rows vocab"]:
    """Log-probabilities of each hypothesis's next token, -inf for padding and BOS.

    The markers are bos_id and eos_id. A sentence for which at_limit is true can only
    end; None: this holds for no sentence.
    """
    bos_id, eos_id = markers
    log_probs = log_softmax(model.decode_step(tokens, cache))
    log_probs[:, model.config.pad_id] = -math.inf
    log_probs[:, bos_id] = -math.inf
    if at_limit is not None:
        rows = at_limit.repeat_interleave(len(tokens) // len(at_limit))
        end = log_probs[:, eos_id].clone()
        log_probs.masked_fill_(rows[:, None], -math.inf)
        log_probs[:, eos_id] = end
    return log_probs


def refuse_nan(scores: Float[Tensor, "..."]) -> None:
    """Refuse scores that are NaN, from which a search would return arbitrary tokens."""
    if scores.isnan().any():
        raise InputError(
            "The model's scores are NaN: its weights are damaged, or its training "
            "diverged. Use an earlier checkpoint."
        )
