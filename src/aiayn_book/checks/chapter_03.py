"""Checks of chapter 3, attention (§3.2)."""

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _soft_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One query, word by word."""
    root = math.sqrt(len(query))
    exponentials = [torch.exp((query * key).sum() / root) for key in keys]
    context = torch.zeros(values.shape[1])  # (d_v,)
    for exponential, value in zip(exponentials, values, strict=True):
        context = context + exponential / sum(exponentials) * value
    return context


def _lookup_cases() -> list[tuple[Tensor, Tensor, Tensor]]:
    generator = seeded(3)
    sizes = [(1, 2, 2), (3, 4, 2), (5, 2, 5), (4, 4, 4)]  # keys, d_k, d_v
    return [
        (
            torch.randn(d_k, generator=generator),
            torch.randn(keys, d_k, generator=generator),
            torch.randn(keys, d_v, generator=generator),
        )
        for keys, d_k, d_v in sizes
    ]


_RAW_SCORES = (
    "the values are added up with the raw scores. What turns scores into weights that "
    "are positive and sum to one?"
)

soft_lookup = FunctionCheck(
    exercise="3.1",
    reference=_soft_lookup,
    cases=_lookup_cases,
    mistakes=(
        Mistake(lambda q, keys, values: (keys @ q) @ values, _RAW_SCORES),
        Mistake(
            lambda q, keys, values: (keys @ q / math.sqrt(len(q))) @ values,
            _RAW_SCORES,
        ),
        Mistake(
            lambda q, keys, values: (keys @ q).softmax(dim=0) @ values,
            "the weights are a softmax of the bare dot products. What are these "
            "divided by in equation (1)?",
        ),
        Mistake(
            lambda q, keys, values: (
                (keys @ q / math.sqrt(len(keys))).softmax(dim=0) @ values
            ),
            "the scores are divided by the root of the number of keys. dₖ is how many "
            "numbers a key has, not how many keys there are.",
        ),
        Mistake(
            lambda q, keys, values: values[(keys @ q).argmax()],
            "only the best match is looked up. A soft look-up lets every value take "
            "part, each by its weight.",
        ),
        Mistake(
            lambda q, keys, values: values.mean(dim=0),
            "all values count alike. Do your weights depend on the query?",
        ),
    ),
)


def _next_word(length: int) -> Tensor:
    """W_Q that turns 'I stand at position i' into 'I look for position i + 1'."""
    projection = torch.zeros(length, length)
    for i in range(length - 1):
        projection[i, i + 1] = 1.0
    return projection


next_word = FunctionCheck(
    exercise="3.2",
    reference=_next_word,
    cases=lambda: [(2,), (3,), (6,)],
    mistakes=(
        Mistake(
            lambda length: torch.ones(length - 1).diag(-1),
            "with this matrix each word attends to the one before it. Row i of W_Q is "
            "the query of the word at position i: where must its 1 stand?",
        ),
        Mistake(
            lambda length: torch.eye(length).roll(1, dims=1),
            "nearly: but your last word attends to the first one. It has no next "
            "word, so what should its row hold?",
        ),
        Mistake(
            torch.eye,
            "with this matrix each word attends to itself. Shift the ones.",
        ),
    ),
)

_OUTCOMES = ("same", "moves by c", "changes")
_SHIFTED = {"queries": "changes", "keys": "same", "values": "moves by c"}
_SHIFT_HINTS = {
    "queries": "look at the queries again: each score of a row gets c·kⱼ added. Is "
    "that the same number for all keys?",
    "keys": "look at the keys again: each score of a row gets q·c added, which is the "
    "same for all keys. What does a softmax make of that?",
    "values": "look at the values again: write out the sum of pⱼ(vⱼ + c), and use what "
    "you know of the weights.",
}


def _shift_mistakes() -> Iterator[Mistake]:
    """All wrong answers, each with a hint on the first part that is wrong."""
    for answer in product(_OUTCOMES, repeat=len(_SHIFTED)):
        for given, (part, right) in zip(answer, _SHIFTED.items(), strict=True):
            if given != right:
                yield Mistake(answer, _SHIFT_HINTS[part])
                break


shift = ValueCheck(
    exercise="3.3",
    reference=lambda: tuple(_SHIFTED.values()),
    mistakes=tuple(_shift_mistakes()),
)

three_cats = ValueCheck(
    exercise="3.4",
    reference=lambda: 4.0,
    mistakes=(
        Mistake(
            12.0,
            "that is the sum of the three. The weights sum to one: how much weight "
            "does each of three equal keys get?",
        ),
        Mistake(
            4 / 3,
            "that is what one of the three contributes. Add up all three.",
        ),
    ),
)

tie = ValueCheck(
    exercise="3.5",
    reference=lambda: 75,
    mistakes=(
        Mistake(
            255,
            "there they weigh the same as well, but both little. The other direction "
            "is meant, where they weigh more than drinks.",
        ),
        Mistake(
            150,
            "that is the sum of the two directions. Which direction is as far from "
            "one key as from the other?",
        ),
        Mistake(
            60,
            "that is where the slider stands at first, and there cat weighs more.",
        ),
    ),
)
