"""Checks of chapter 3, attention (§3.2)."""

import torch
from torch import Tensor

from aiayn.book.checks.framework import FunctionCheck, Mistake


def _soft_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One query, word by word; no scale yet: that is chapter 4."""
    exponentials = [torch.exp((query * key).sum()) for key in keys]
    context = torch.zeros(values.shape[1])  # (d_v,)
    for exponential, value in zip(exponentials, values, strict=True):
        context = context + exponential / sum(exponentials) * value
    return context


def _lookup_cases() -> list[tuple[Tensor, Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    sizes = [(1, 2, 2), (3, 4, 2), (5, 2, 5), (4, 4, 4)]  # keys, d_k, d_v
    return [
        (
            torch.randn(d_k, generator=generator),
            torch.randn(keys, d_k, generator=generator),
            torch.randn(keys, d_v, generator=generator),
        )
        for keys, d_k, d_v in sizes
    ]


soft_lookup = FunctionCheck(
    exercise="3.1",
    reference=_soft_lookup,
    cases=_lookup_cases,
    mistakes=(
        Mistake(
            lambda query, keys, values: (keys @ query) @ values,
            "the values are added up with the raw scores. What turns scores into "
            "weights that are positive and sum to one?",
        ),
        Mistake(
            lambda query, keys, values: values[(keys @ query).argmax()],
            "only the best match is looked up. A soft look-up lets every value take "
            "part, each by its weight.",
        ),
        Mistake(
            lambda query, keys, values: values.mean(dim=0),
            "all values count alike. Do your weights depend on the query?",
        ),
    ),
)
