"""Checks of chapter 4, scaling (§3.2.1, footnote 4)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _head_weights(query: Tensor, key: Tensor, num_heads: int) -> Tensor:
    """Head by head and pair by pair."""
    words, d_model = query.shape
    d_k = d_model // num_heads
    weights = torch.zeros(num_heads, words, words)
    for head in range(num_heads):
        part = slice(head * d_k, (head + 1) * d_k)
        for i in range(words):
            scores = [
                (query[i, part] * key[j, part]).sum() / math.sqrt(d_k)
                for j in range(words)
            ]
            weights[head, i] = torch.stack(scores).softmax(0)
    return weights


def _head_weight_cases() -> list[tuple[Tensor, Tensor, int]]:
    generator = seeded(4)
    sizes = [(3, 8, 2), (5, 32, 4), (4, 18, 2)]  # words, d_model, heads
    return [
        (
            torch.randn(words, d_model, generator=generator),
            torch.randn(words, d_model, generator=generator),
            heads,
        )
        for words, d_model, heads in sizes
    ]


def _scores(query: Tensor, key: Tensor, num_heads: int) -> Tensor:
    """(heads, n, n), not divided by anything: what the mistakes start from."""
    q = query.unflatten(-1, (num_heads, -1)).transpose(0, 1)
    k = key.unflatten(-1, (num_heads, -1)).transpose(0, 1)
    return q @ k.mT


def _split_in_the_wrong_order(query: Tensor, key: Tensor, num_heads: int) -> Tensor:
    d_k = query.size(-1) // num_heads
    q, k = (x.reshape(num_heads, -1, d_k) for x in (query, key))
    return (q @ k.mT / math.sqrt(d_k)).softmax(-1)


head_weights = FunctionCheck(
    exercise="4.1",
    reference=_head_weights,
    cases=_head_weight_cases,
    mistakes=(
        Mistake(
            lambda q, k, h: (_scores(q, k, h) / math.sqrt(q.size(-1))).softmax(-1),
            "the scores are divided by √d_model. How many terms does the dot product "
            "of one head have?",
        ),
        Mistake(
            lambda q, k, h: _scores(q, k, h).softmax(-1),
            "the scores are not divided by anything. What is their variance?",
        ),
        Mistake(
            lambda q, k, h: (_scores(q, k, h) * h / q.size(-1)).softmax(-1),
            "the scores are divided by dₖ itself. Their variance is dₖ: what is "
            "their standard deviation?",
        ),
        Mistake(
            lambda q, k, h: (_scores(q, k, h) / math.sqrt(q.size(0))).softmax(-1),
            "the scores are divided by the root of the number of words. Which axis "
            "does the dot product sum over?",
        ),
        Mistake(
            lambda q, k, h: (
                _scores(q, k, h).softmax(-1) * math.sqrt(h) / math.sqrt(q.size(-1))
            ),
            "the weights are divided, and no longer sum to one. Divide the scores, "
            "before the softmax.",
        ),
        Mistake(
            lambda q, k, h: (
                _scores(q, k, h) * math.sqrt(h) / math.sqrt(q.size(-1))
            ).softmax(-2),
            "the columns sum to one, and the rows should: each query shares its "
            "weight among the keys. Which axis holds the keys?",
        ),
        Mistake(
            _split_in_the_wrong_order,
            "a head holds parts of different words. Split the last axis into (heads, "
            "dₖ) first, and then move the heads to the front.",
        ),
    ),
)

divisor = ValueCheck(
    exercise="4.2",
    reference=lambda: math.sqrt(16 * 4 * 9),
    mistakes=(
        Mistake(4, "that is √dₖ, which is right for variances of 1. Redo line 2."),
        Mistake(576, "that is the variance of the score. By what do you divide?"),
        Mistake(
            96,
            "that is dₖ · √(4 · 9). The number of terms stands under the root as well.",
        ),
        Mistake(
            144,
            "that is √dₖ · 4 · 9. The variances stand under the root as well.",
        ),
        Mistake(
            math.sqrt(16 * (4 + 9)),
            "the two variances are added. They belong to factors of a product: see "
            "line 2.",
        ),
    ),
)

two_keys = ValueCheck(
    exercise="4.3",
    reference=lambda: 2 * 0.9 * 0.1,
    mistakes=(
        Mistake(
            0.09, "that is one entry of J. There are four, and the norm takes all in."
        ),
        Mistake(
            0.36,
            "that is the sum of the entries' sizes. The Frobenius norm is the root of "
            "the sum of their squares.",
        ),
        Mistake(
            0.0324, "that is the sum of the squares. The norm is the root of that."
        ),
        Mistake(
            math.sqrt(0.82),
            "that is the length of p. Write J = diag(p) − p pᵀ down, entry by entry.",
        ),
    ),
)

wrong_root = ValueCheck(
    exercise="4.4",
    reference=lambda: 8 / 32,
    mistakes=(
        Mistake(1, "that would be so if the divisor were √dₖ. What is dₖ here?"),
        Mistake(
            1 / 16, "that is the variance, or 2 / 32. The standard deviation is asked."
        ),
        Mistake(
            4,
            "you divided the wrong way round: the scores have √dₖ, the divisor is "
            "√d_model.",
        ),
        Mistake(
            1 / 4 * 8,
            "that is dₖ / √d_model. The scores have a standard deviation of √dₖ.",
        ),
    ),
)

same_bars = ValueCheck(
    exercise="4.5",
    reference=lambda: 0.4,
    mistakes=(
        Mistake(
            0.5,
            "that gives scores of variance 1. But at dₖ = 4, undivided, they have "
            "variance 4.",
        ),
        Mistake(0, "undivided, the scores at dₖ = 1024 are 16 times as large."),
        Mistake(
            0.8,
            "that would be right if scores grew like dₖ. They grow like its root.",
        ),
    ),
)
