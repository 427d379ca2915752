"""Checks of chapter 7, feed-forward, residuals, normalisation (§3.1, §3.3)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _add_and_norm(
    x: Tensor, update: Tensor, gain: Tensor, bias: Tensor, eps: float
) -> Tensor:
    """Word by word, and number by number."""
    words, d_model = x.shape
    output = torch.zeros(words, d_model)
    for word in range(words):
        total = [float(x[word, i] + update[word, i]) for i in range(d_model)]
        mean = sum(total) / d_model
        variance = sum((number - mean) ** 2 for number in total) / d_model
        for i, number in enumerate(total):
            scaled = (number - mean) / math.sqrt(variance + eps)
            output[word, i] = gain[i] * scaled + bias[i]
    return output


def _add_and_norm_cases() -> list[tuple]:
    generator = seeded(7)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    # Small numbers as well: only there does ε count.
    sizes = [  # words, d_model, scale, ε
        (3, 4, 1.0, 1e-3),
        (5, 8, 0.01, 2e-4),
        (2, 6, 100.0, 1e-3),
    ]
    return [
        (scale * random(words, d), scale * random(words, d), random(d), random(d), eps)
        for words, d, scale, eps in sizes
    ]


def _without_residual(x, update, gain, bias, eps):
    return torch.nn.functional.layer_norm(update, gain.shape, gain, bias, eps)


def _norm_of_the_update(x, update, gain, bias, eps):
    return x + _without_residual(x, update, gain, bias, eps)


def _centred(x: Tensor, update: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    total = x + update
    centred = total - total.mean(dim=dim, keepdim=True)
    return centred, centred.square().mean(dim=dim, keepdim=True)


def _over_the_words(x, update, gain, bias, eps):
    centred, variance = _centred(x, update, dim=0)
    return gain * centred / torch.sqrt(variance + eps) + bias


def _unbiased(x, update, gain, bias, eps):
    centred, variance = _centred(x, update, dim=-1)
    d_model = x.size(-1)
    variance = variance * d_model / (d_model - 1)
    return gain * centred / torch.sqrt(variance + eps) + bias


def _eps_outside(x, update, gain, bias, eps):
    centred, variance = _centred(x, update, dim=-1)
    return gain * centred / (torch.sqrt(variance) + eps) + bias


def _without_root(x, update, gain, bias, eps):
    centred, variance = _centred(x, update, dim=-1)
    return gain * centred / (variance + eps) + bias


def _without_gain_and_bias(x, update, gain, bias, eps):
    centred, variance = _centred(x, update, dim=-1)
    return centred / torch.sqrt(variance + eps)


add_and_norm = FunctionCheck(
    exercise="7.1",
    reference=_add_and_norm,
    cases=_add_and_norm_cases,
    mistakes=(
        Mistake(
            _without_residual,
            "the update is normalised, but x is gone. What is added to what?",
        ),
        Mistake(
            _norm_of_the_update,
            "the update is normalised before it is added. In the paper the norm comes "
            "after the sum.",
        ),
        Mistake(
            _over_the_words,
            "mean and variance go over the words. Each word is normalised on its own, "
            "along the last axis.",
        ),
        Mistake(
            _unbiased,
            "the variance is divided by d − 1. Layer normalisation divides by d.",
        ),
        Mistake(
            _eps_outside,
            "ε is added to the standard deviation. It belongs under the root, to the "
            "variance.",
        ),
        Mistake(
            lambda x, update, gain, bias, eps: _add_and_norm(
                x, update, gain, bias, 1e-5
            ),
            "ε is an argument; torch's own is not always the one that is asked for.",
        ),
        Mistake(
            _without_root,
            "that divides by the variance. Which power of it has the unit of x?",
        ),
        Mistake(
            _without_gain_and_bias,
            "the normalised numbers are right. Now gain and bias.",
        ),
    ),
)

tie = ValueCheck(
    exercise="7.2",
    reference=lambda: 1024,
    mistakes=(
        Mistake(2048, "that is the paper's width. Count both sides again."),
        Mistake(512, "a feed-forward layer has two matrices, an attention four."),
        Mistake(256, "the other way round: two matrices must make up for four."),
        Mistake(
            768, "W_O counts as well: an attention has four matrices, and not three."
        ),
    ),
)

outputs = ValueCheck(
    exercise="7.3",
    reference=lambda: 2,
    mistakes=(
        Mistake(1, "which of the two numbers is larger can still be seen."),
        Mistake(4, "can both be +1? What is their mean?"),
        Mistake(
            math.inf,
            "subtract the mean from two numbers: how are the two results related? "
            "Then divide.",
        ),
    ),
)

millionth = ValueCheck(
    exercise="7.4",
    reference=lambda: 24,
    mistakes=(
        Mistake(6, "at 6 layers about a hundredth is left."),
        Mistake(12, "that is a few ten-thousandths. Look at the scale's exponents."),
        Mistake(48, "there it is far less than a millionth. Is it so any earlier?"),
    ),
)
