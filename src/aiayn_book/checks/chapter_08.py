"""Checks of chapter 8, embeddings (§3.4)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _slow(weight: Tensor, tokens: Tensor) -> Tensor:
    """Token by token, row by row."""
    d_model = weight.size(1)
    return torch.stack(
        [
            torch.stack([math.sqrt(d_model) * weight[token] @ row for row in weight])
            for token in tokens
        ]
    )


def _cases() -> list[tuple[Tensor, Tensor]]:
    generator = seeded(8)
    sizes = [(5, 3, 4), (9, 16, 2), (4, 7, 6)]  # vocabulary, d_model, tokens
    return [
        (
            torch.randn(vocabulary, d_model, generator=generator),
            torch.randint(vocabulary, (count,), generator=generator),
        )
        for vocabulary, d_model, count in sizes
    ]


embed_and_score = FunctionCheck(
    exercise="8.1",
    reference=_slow,
    cases=_cases,
    mistakes=(
        Mistake(
            lambda weight, tokens: weight[tokens] @ weight.T,
            "the factor √d_model is missing on the way in",
        ),
        Mistake(
            lambda weight, tokens: weight.size(1) * weight[tokens] @ weight.T,
            "the factor was applied twice, once in and once out: the paper has it "
            "only in the embedding layers",
        ),
        Mistake(
            lambda weight, tokens: weight[tokens] @ weight.T / math.sqrt(len(weight.T)),
            "that divides by √d_model: it multiplies on the way in",
        ),
    ),
)

rows_that_move = ValueCheck(
    exercise="8.2",
    reference=lambda: (30, 25, 1000),
    mistakes=(
        Mistake(
            (30, 25, 25),
            "the look-ups are right. For the output, the gradient of the logits is "
            "p - y: which of its entries are zero?",
        ),
        Mistake(
            (1000, 1000, 1000),
            "the output is right. But a look-up's gradient is a one-hot matrix times "
            "the gradients of the vectors: what is in the rows of tokens that do not "
            "occur?",
        ),
        Mistake(
            (30, 25, 55),
            "the look-ups are right. The output scores every token of the vocabulary, "
            "not only those that occur.",
        ),
    ),
)

row_share = ValueCheck(
    exercise="8.4",
    reference=lambda: (1 / 80, 2 / 15),
    mistakes=(
        Mistake(
            (1 / 64, 1 / 7),
            "that leaves out the position, which adds one half to the variance at the "
            "bottom of the stack.",
        ),
        Mistake(
            (1 / 10, 2 / 9),
            "those are the shares after one layer. Two layers have six sub-layers.",
        ),
        Mistake(
            (2 / 15, 1 / 80),
            "the other way round: which of the two divides at each sub-layer?",
        ),
        Mistake(
            (2 / 15, 2 / 15),
            "pre-norm is right. Post-norm divides the sum by its standard deviation "
            "after each sub-layer, so that the next update meets a variance of 1.",
        ),
    ),
)

first_loss = ValueCheck(
    exercise="8.5",
    reference=lambda: (2.0, 2.0),
    mistakes=(
        Mistake(
            (4.0, 2.0),
            "4 is the variance of a logit. Which part of it does the first loss lie "
            "above ln V?",
        ),
        Mistake(
            (2.0, 4.0),
            "the excess is right. Dividing by 4 would divide the variance by 16.",
        ),
        Mistake(
            (8.0, 4.0),
            "8 is half of 16: an entry's variance is 1/64, so a logit's is 256/64.",
        ),
    ),
)
