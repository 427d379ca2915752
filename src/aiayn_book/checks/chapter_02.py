"""Checks of chapter 2, the first attention (§2)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _additive(query: Tensor, keys: Tensor, values: Tensor, v: Tensor) -> Tensor:
    """Number by number, with exponentials."""
    scores = [
        sum(
            float(v[unit]) * math.tanh(query[unit] + key[unit])
            for unit in range(len(query))
        )
        for key in keys
    ]
    total = sum(math.exp(score) for score in scores)
    context = torch.zeros(values.size(1))
    for score, value in zip(scores, values, strict=True):
        context += math.exp(score) / total * value
    return context


def _additive_cases() -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    generator = seeded(2)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    return [
        (random(d_k), random(n, d_k), random(n, d_v), 2 * random(d_k))
        for n, d_k, d_v in ((3, 4, 2), (5, 3, 3), (2, 6, 5))
    ]


def _scored(scores: Tensor, values: Tensor) -> Tensor:
    return scores.softmax(dim=-1) @ values


additive_context = FunctionCheck(
    exercise="2.1",
    reference=_additive,
    cases=_additive_cases,
    mistakes=(
        Mistake(
            lambda query, keys, values, v: _scored((query + keys) @ v, values),
            "the scores have no tanh. Then the query adds the same number to every "
            "score, and the softmax takes it out again.",
        ),
        Mistake(
            lambda query, keys, values, v: _scored(torch.tanh(keys) @ v, values),
            "the query is not used. It is added to each key, before the tanh.",
        ),
        Mistake(
            lambda query, keys, values, v: _scored(keys @ query, values),
            "that is a dot product. Additive attention adds query and key.",
        ),
        Mistake(
            lambda query, keys, values, v: torch.tanh(query + keys) @ v @ values,
            "the scores are not yet weights. What makes them positive and sum to one?",
        ),
        Mistake(
            lambda query, keys, values, v: values.mean(dim=0),
            "that is the plain mean of the values, as if all scores were equal.",
        ),
    ),
)


def _pool(h: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Question by question and word by word."""
    pooled = torch.zeros(second.size(0), h.size(1))
    for r in range(second.size(0)):
        scores = torch.stack([second[r] @ torch.tanh(first @ word) for word in h])
        for weight, word in zip(scores.softmax(dim=0), h, strict=True):
            pooled[r] += weight * word
    return pooled


def _pool_cases() -> list[tuple[Tensor, Tensor, Tensor]]:
    generator = seeded(22)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    sizes = [(5, 4, 3, 2), (7, 6, 5, 4), (2, 3, 4, 3)]  # words, d, d_a, rows
    return [(random(n, d), random(d_a, d), random(r, d_a)) for n, d, d_a, r in sizes]


def _rows_by_words(h: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return second @ torch.tanh(first @ h.mT)  # (rows, words)


pool = FunctionCheck(
    exercise="2.2",
    reference=_pool,
    cases=_pool_cases,
    mistakes=(
        Mistake(
            lambda h, first, second: (
                _rows_by_words(h, first, second).softmax(dim=0) @ h
            ),
            "the softmax runs over the rows of W₂. Each row shares its weight "
            "among the words.",
        ),
        Mistake(
            lambda h, first, second: (
                (second @ first @ h.mT).softmax(dim=-1) @ h  # no tanh
            ),
            "the tanh is missing between the two matrices.",
        ),
        Mistake(
            lambda h, first, second: (
                (_rows_by_words(h, first, second) / math.sqrt(second.size(1))).softmax(
                    dim=-1
                )
                @ h
            ),
            "the scores are divided by a root. Lin et al. do not do that.",
        ),
        Mistake(
            lambda h, first, second: (
                _rows_by_words(h, first, second).softmax(dim=-1) @ h
            ).mean(dim=0),
            "the rows are averaged. Each keeps a row of its own.",
        ),
    ),
)

ring = ValueCheck(
    exercise="2.3",
    reference=lambda: 4,
    mistakes=(
        Mistake(
            5,
            "add up the five scores of words with their successors, and the five of "
            "words with themselves. Which sum is larger?",
        ),
        Mistake(
            0,
            "two vectors can point the same way, one longer than the other. Which "
            "does the shorter one prefer?",
        ),
        Mistake(
            1, "let all vectors point the same way, each longer than the one before."
        ),
        Mistake(
            2, "no need to alternate: let each vector be longer than the one before."
        ),
        Mistake(
            3, "one more is possible: let each vector be longer than the one before."
        ),
    ),
)

pooled_shapes = ValueCheck(
    exercise="2.4",
    reference=lambda: (40, 40, 70, 7000),
    mistakes=(
        Mistake(
            (70, 7000, 70, 7000),
            "in Lin's pooling the words do not ask. Who does, and how many of them?",
        ),
        Mistake(
            (40, 40, 40, 40),
            "in self-attention each word asks. How many words are there?",
        ),
        Mistake((4, 4, 7, 700), "those are the rows. Each row has 10 numbers."),
        Mistake(
            (28, 2800, 49, 490000), "those are the weights. The outputs are asked for."
        ),
    ),
)

widest = ValueCheck(
    exercise="2.5",
    reference=lambda: 0,
    mistakes=(
        Mistake(
            6, "there every tanh is nearly 1, and the bars are nearly equal. Go back."
        ),
        Mistake(
            -6, "there every tanh is nearly −1, and the bars are nearly equal. Go back."
        ),
        Mistake(2, "there the first two keys are already hard to tell apart."),
        Mistake(-2, "there the last two keys are already hard to tell apart."),
        Mistake(
            -0.5,
            "there the difference of the two weights is largest. Divide one by "
            "the other.",
        ),
        Mistake(1, "a little too far: which query treats the outer keys alike?"),
        Mistake(-1, "a little too far: which query treats the outer keys alike?"),
    ),
)
