"""Checks of chapter 5, multi-head attention (§3.2.2)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _self_attention(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, num_heads: int
) -> Tensor:
    """Head by head, and query by query."""
    words, d_model = x.shape
    width = d_model // num_heads
    output = torch.zeros(words, d_model)
    for head in range(num_heads):
        part = slice(head * width, (head + 1) * width)
        query, key, value = x @ W_Q[:, part], x @ W_K[:, part], x @ W_V[:, part]
        for i in range(words):
            scores = [query[i] @ key[j] / math.sqrt(width) for j in range(words)]
            weights = torch.stack(scores).softmax(0)
            parts = [weights[j] * value[j] for j in range(words)]
            context = torch.stack(parts).sum(dim=0)
            output[i] += context @ W_O[part]
    return output


def _self_attention_cases() -> list[tuple]:
    generator = seeded(5)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    sizes = [(3, 8, 2), (6, 12, 3), (4, 16, 4)]  # words, d_model, heads
    return [
        (random(words, d), *(random(d, d) / d**0.5 for _ in range(4)), heads)
        for words, d, heads in sizes
    ]


def _split(projected: Tensor, num_heads: int) -> Tensor:
    """(n, d_model) -> (heads, n, d_k)."""
    return projected.unflatten(-1, (num_heads, -1)).transpose(0, 1)


def _merge(context: Tensor) -> Tensor:
    """(heads, n, d_v) -> (n, d_model)."""
    return context.transpose(0, 1).flatten(1)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, *, divisor: float = 0.0
) -> Tensor:
    scores = query @ key.mT / (divisor or math.sqrt(query.size(-1)))
    return scores.softmax(-1) @ value


def _one_wide_head(x, W_Q, W_K, W_V, W_O, num_heads):
    return _attend(x @ W_Q, x @ W_K, x @ W_V) @ W_O


def _without_output_projection(x, W_Q, W_K, W_V, W_O, num_heads):
    return _merge(_attend(*(_split(x @ W, num_heads) for W in (W_Q, W_K, W_V))))


def _divided_by_the_wrong_root(x, W_Q, W_K, W_V, W_O, num_heads):
    parts = (_split(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    return _merge(_attend(*parts, divisor=math.sqrt(x.size(-1)))) @ W_O


def _not_divided(x, W_Q, W_K, W_V, W_O, num_heads):
    parts = (_split(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    return _merge(_attend(*parts, divisor=1.0)) @ W_O


def _reshaped_in_place_of_split(x, W_Q, W_K, W_V, W_O, num_heads):
    parts = ((x @ W).reshape(num_heads, len(x), -1) for W in (W_Q, W_K, W_V))
    return _merge(_attend(*parts)) @ W_O


def _heads_not_moved_back(x, W_Q, W_K, W_V, W_O, num_heads):
    parts = (_split(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    return _attend(*parts).reshape(len(x), -1) @ W_O


self_attention = FunctionCheck(
    exercise="5.1",
    reference=_self_attention,
    cases=_self_attention_cases,
    mistakes=(
        Mistake(
            _one_wide_head,
            "that is one head of full width. Where do you cut queries, keys and values "
            "into heads?",
        ),
        Mistake(
            _without_output_projection,
            "the heads are concatenated, but not projected. What is W_O for?",
        ),
        Mistake(
            _divided_by_the_wrong_root,
            "the scores are divided by √d_model. How many terms does the dot product "
            "of one head have?",
        ),
        Mistake(
            _not_divided,
            "the scores are not divided by anything. Which root belongs there?",
        ),
        Mistake(
            _reshaped_in_place_of_split,
            "a head holds parts of different words. Split the last axis into (heads, "
            "dₖ) first, and then move the heads to the front.",
        ),
        Mistake(
            _heads_not_moved_back,
            "a word's output is made of other words. Move the heads back behind the "
            "words before you flatten.",
        ),
    ),
)

full_scores = ValueCheck(
    exercise="5.2",
    reference=lambda: 4,
    mistakes=(
        Mistake(
            8, "two factors of a head become one matrix. Did you count both factors?"
        ),
        Mistake(
            64,
            "that is dₖ. Count the weights of one head's two factors, and those of "
            "their product.",
        ),
        Mistake(1 / 4, "that is the inverse: the products take more room, not less."),
        Mistake(
            1,
            "the factors have d_model · dₖ weights each, their product d_model².",
        ),
    ),
)

cheat = ValueCheck(
    exercise="5.3",
    reference=lambda: 0,
    mistakes=(
        Mistake(
            1,
            "then the head looks at that drawer alone, and nothing is known of the "
            "other one.",
        ),
        Mistake(
            0.5,
            "then both letters weigh the same, and their order is lost. What could "
            "make this drawer different from all the others?",
        ),
        Mistake(
            1 / 3,
            "then that letter may be neither the heaviest nor the lightest, and a "
            "linear reading cannot single it out.",
        ),
        Mistake(
            1 / 8,
            "that is about what a drawer gets that nobody asked for. This one must "
            "differ from those.",
        ),
    ),
)

seven_keys = ValueCheck(
    exercise="5.4",
    reference=lambda: 7,
    mistakes=(
        Mistake(6, "that is the number for six keys. How does it grow?"),
        Mistake(21, "that is all pairs. In the plane most of them are diagonals."),
        Mistake(
            14,
            "each key takes part in two pairs, but then you count each pair twice.",
        ),
        Mistake(15, "that is how many a solid in space can have: three dimensions."),
    ),
)

writers = ValueCheck(
    exercise="5.5",
    reference=lambda: (8, 1),
    mistakes=(
        Mistake((1, 8), "the other way round: W_O is what mixes the heads."),
        Mistake(
            (8, 8),
            "without W_O the heads stand side by side. Whose is the first number?",
        ),
        Mistake(
            (1, 1),
            "W_O has 512 rows and 512 columns. Which rows feed its first column?",
        ),
        Mistake(
            (8, 0),
            "without W_O the numbers are still there: the heads', side by side.",
        ),
    ),
)
