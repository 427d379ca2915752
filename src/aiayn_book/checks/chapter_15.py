"""Checks of chapter 15, regularisation (§5.4)."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _authors_loss(
    logits: Tensor, right: Tensor, smoothing: float, *, floor: bool = True
) -> Tensor:
    """Token by token, each against its own target."""
    vocab_size = logits.size(-1)
    total = torch.zeros(())
    for row, token in zip(logits, right, strict=True):
        log_p = row.log_softmax(dim=0)
        for other in range(vocab_size):
            wanted = smoothing / (vocab_size - 1)
            if other == token:
                wanted = 1 - smoothing
            total = total - wanted * log_p[other]
            if floor:
                total = total + wanted * math.log(wanted)
    return total / len(logits)


def _floor_of_pytorch(logits: Tensor, right: Tensor, smoothing: float) -> Tensor:
    share = smoothing / logits.size(-1)
    rest = 1 - smoothing + share
    entropy = -(logits.size(-1) - 1) * share * math.log(share) - rest * math.log(rest)
    return _authors_loss(logits, right, smoothing, floor=False) - entropy


def _loss_cases() -> list[tuple[Tensor, Tensor, float]]:
    generator = seeded(15)
    return [
        (
            torch.randn(tokens, vocab_size, generator=generator),
            torch.randint(vocab_size, (tokens,), generator=generator),
            smoothing,
        )
        for tokens, vocab_size, smoothing in [(3, 5, 0.1), (7, 4, 0.3), (2, 9, 0.05)]
    ]


authors_loss = FunctionCheck(
    exercise="15.1",
    reference=lambda logits, right, smoothing: _authors_loss(logits, right, smoothing),
    cases=_loss_cases,
    mistakes=(
        Mistake(
            lambda logits, right, smoothing: _authors_loss(
                logits, right, smoothing, floor=False
            ),
            "this is the loss before the floor is subtracted. What is the entropy of "
            "the target?",
        ),
        Mistake(
            _floor_of_pytorch,
            "that floor belongs to PyTorch's target, where the right token gets a "
            "share of ε as well.",
        ),
        Mistake(
            lambda logits, right, smoothing: F.cross_entropy(
                logits, right, label_smoothing=smoothing
            ),
            "this is PyTorch's definition: the right token gets a share of ε as well.",
        ),
        Mistake(
            lambda logits, right, smoothing: F.cross_entropy(logits, right),
            "this is the plain loss: nothing is smoothed.",
        ),
        Mistake(
            lambda logits, right, smoothing: (
                len(logits) * _authors_loss(logits, right, smoothing)
            ),
            "this is the sum over the tokens. Their mean was asked for.",
        ),
    ),
)


def _row_sum_variance(weights: Tensor, p: float) -> Tensor:
    """Each weight's own variance, from its two outcomes, added up."""
    total = torch.zeros(())
    for weight in weights:
        kept = weight / (1 - p)
        total = total + p * weight**2 + (1 - p) * (kept - weight) ** 2
    return total


row_sum_variance = FunctionCheck(
    exercise="15.2",
    reference=_row_sum_variance,
    cases=lambda: [
        (torch.tensor([1.0, 0.0, 0.0]), 0.1),
        (torch.full((8,), 1 / 8), 0.1),
        (torch.tensor([0.5, 0.3, 0.1, 0.1]), 0.3),
    ],
    mistakes=(
        Mistake(
            lambda weights, p: torch.tensor(p / (1 - p)),
            "this is right for a row with all of its weight on one word. What do "
            "other rows have?",
        ),
        Mistake(
            lambda weights, p: p * (1 - p) * (weights**2).sum(),
            "the weights that stay are also divided by 1 - p.",
        ),
    ),
)

torchs_epsilon = ValueCheck(
    exercise="15.3",
    reference=lambda: 0.125,
    mistakes=(
        Mistake(0.1, "then each wrong class gets 0.1 / 5, but it should get 0.1 / 4."),
        Mistake(0.08, "that is the other way round: from PyTorch to tensor2tensor."),
    ),
)

stuck = ValueCheck(
    exercise="15.4",
    reference=lambda: "nearly perfect",
    mistakes=(
        Mistake("stuck", "compare the loss with the floor for V = 37,000."),
        Mistake(
            "overconfident",
            "the smoothed loss of an overconfident model would be higher: see Figure "
            "15.1.",
        ),
    ),
)

floor_of_ten = ValueCheck(
    exercise="15.5",
    reference=lambda: 0.18,
    mistakes=(
        Mistake(0.2, "nearly: there is a smaller ε at which it is already above 10."),
        Mistake(0.5, "the floor is far above 10 there. Move the slider to the left."),
    ),
)
