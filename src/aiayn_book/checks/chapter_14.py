"""Checks of chapter 14, the optimizer (§5.3)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _adam_steps(
    gradients: Tensor, beta1: float, beta2: float, epsilon: float
) -> Tensor:
    """Each mean summed again from all gradients so far."""
    steps = torch.zeros_like(gradients)
    for t in range(1, len(gradients) + 1):
        m = v = weight_1 = weight_2 = 0.0
        for age in range(t):  # 0: the newest
            g = float(gradients[t - 1 - age])
            m += beta1**age * g
            v += beta2**age * g * g
            weight_1 += beta1**age
            weight_2 += beta2**age
        steps[t - 1] = (m / weight_1) / (math.sqrt(v / weight_2) + epsilon)
    return steps


def _adam_cases() -> list[tuple]:
    generator = seeded(14)

    def random(steps: int, scale: float) -> Tensor:
        return scale * torch.randn(steps, generator=generator, dtype=torch.float64)

    # Small gradients as well: only there does ε count.
    return [
        (random(5, 1.0), 0.9, 0.98, 1e-9),
        (random(30, 100.0), 0.5, 0.9, 1e-3),
        (random(12, 0.01), 0.9, 0.999, 1e-2),
    ]


def _variant(
    gradients: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    corrected: bool = True,
    root: bool = True,
    inside: bool = False,
    squares: bool = True,
) -> Tensor:
    m = v = torch.zeros((), dtype=gradients.dtype)
    steps = []
    for t, g in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * (g**2 if squares else m**2)
        m_hat = m / (1 - beta1**t) if corrected else m
        v_hat = v / (1 - beta2**t) if corrected else v
        if inside:
            size = (v_hat + epsilon).sqrt()
        else:
            size = (v_hat.sqrt() if root else v_hat) + epsilon
        steps.append(m_hat / size)
    return torch.stack(steps)


def _uncorrected(*arguments):
    return _variant(*arguments, corrected=False)


def _without_root(*arguments):
    return _variant(*arguments, root=False)


def _epsilon_inside(*arguments):
    return _variant(*arguments, inside=True)


def _squared_mean(*arguments):
    return _variant(*arguments, squares=False)


def _exchanged(gradients, beta1, beta2, epsilon):
    return _variant(gradients, beta2, beta1, epsilon)


adam_steps = FunctionCheck(
    exercise="14.1",
    reference=_adam_steps,
    cases=_adam_cases,
    mistakes=(
        Mistake(
            _uncorrected,
            "both means begin at 0 and are too small at first. Where is the bias "
            "correction?",
        ),
        Mistake(
            _without_root,
            "that divides by v itself. Which power of it has the unit of a gradient?",
        ),
        Mistake(_epsilon_inside, "ε is under the root. Adam adds it after the root."),
        Mistake(
            _squared_mean,
            "v is the mean of the squared gradients, not of the squared mean.",
        ),
        Mistake(_exchanged, "which of the two means has the longer memory?"),
    ),
)

ahead = ValueCheck(
    exercise="14.2",
    reference=lambda: (0.5, 1000),
    mistakes=(
        Mistake((1, 1000), "the warm-up is right. But is the peak as before?"),
        Mistake((2, 1000), "with that factor the rates would be higher. Are they?"),
        Mistake((0.25, 1000), "which power of 4 can be taken out of both branches?"),
        Mistake((0.5, 16_000), "the scheduler runs ahead: is its warm-up over later?"),
    ),
)

summed = ValueCheck(
    exercise="14.3",
    reference=lambda: (1000, 1),
    mistakes=(
        Mistake((1000, 1000), "in Adam, what happens to m, and what to √v?"),
        Mistake((1, 1), "plain gradient descent does not divide by anything."),
        Mistake((1, 1000), "the other way round."),
        Mistake((1000, 1e-3), "v grows by the square, but its root is taken."),
    ),
)

warmup = ValueCheck(
    exercise="14.4",
    reference=lambda: 2000,
    mistakes=(
        Mistake(4000, "at the same warm-up the wider model has a lower peak."),
        Mistake(8000, "a longer warm-up lowers the peak still further."),
        Mistake(1000, "that is too high: the peak goes with the root of d · w."),
    ),
)
