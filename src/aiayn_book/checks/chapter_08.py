"""The checks of chapter 8, embeddings (§3.4)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake


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
