"""Checks of chapter 24, a model you already use (§7)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _mean_pool(states: Tensor, real: Tensor) -> Tensor:
    """Text by text, token by token."""
    means = []
    for text, marks in zip(states, real.tolist(), strict=True):
        kept = [vector for vector, mark in zip(text, marks, strict=True) if mark]
        means.append(sum(kept) / len(kept))
    return torch.stack(means)


def _texts() -> list[tuple[Tensor, Tensor]]:
    """One text without padding, and batches with."""
    generator = seeded(24)
    found = []
    for lengths in ([3], [2, 5, 1], [4, 4]):
        states = torch.randn(len(lengths), max(lengths) + 1, 6, generator=generator)
        real = torch.arange(max(lengths) + 1) < torch.tensor(lengths)[:, None]
        found.append((states, real))
    return found


def _padding_too(states: Tensor, real: Tensor) -> Tensor:
    return states.mean(dim=1)


def _whole_length(states: Tensor, real: Tensor) -> Tensor:
    return (states * real[..., None]).mean(dim=1)


def _sum(states: Tensor, real: Tensor) -> Tensor:
    return (states * real[..., None]).sum(dim=1)


def _first(states: Tensor, real: Tensor) -> Tensor:
    return states[:, 0]


mean_pool = FunctionCheck(
    exercise="24.1",
    reference=_mean_pool,
    cases=_texts,
    mistakes=(
        Mistake(_padding_too, "the padding is in your mean: its vectors are not zero."),
        Mistake(
            _whole_length,
            "the padding is zero in your sum, but it is still counted: divide by the "
            "number of real tokens.",
        ),
        Mistake(_sum, "that is the sum; divide by the number of real tokens."),
        Mistake(_first, "that is the vector of [CLS]; this model takes the mean."),
    ),
)


def _recall(scores: Tensor, of_passage: Tensor, right: Tensor, best: int) -> Tensor:
    """Question by question."""
    hits = 0
    for row, chapter in zip(scores, right.tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda place: -row[place].item())
        hits += chapter in [int(of_passage[place]) for place in order[:best]]
    return torch.tensor(hits / len(scores))


def _searches() -> list[tuple[Tensor, Tensor, Tensor, int]]:
    """Chapters have several passages, and some questions miss."""
    generator = seeded(244)
    found = []
    for questions, passages, chapters, best in (
        (6, 9, 3, 1),
        (8, 12, 4, 3),
        (5, 7, 5, 2),
    ):
        scores = torch.randn(questions, passages, generator=generator)
        of_passage = torch.randint(chapters, (passages,), generator=generator)
        right = torch.randint(chapters, (questions,), generator=generator)
        found.append((scores, of_passage, right, best))
    return found


def _first_only(scores: Tensor, of_passage: Tensor, right: Tensor, best: int) -> Tensor:
    return _recall(scores, of_passage, right, 1)


def _worst(scores: Tensor, of_passage: Tensor, right: Tensor, best: int) -> Tensor:
    return _recall(-scores, of_passage, right, best)


def _every_hit(scores: Tensor, of_passage: Tensor, right: Tensor, best: int) -> Tensor:
    top = scores.topk(best).indices
    return (of_passage[top] == right[:, None]).float().mean()


def _all_hits(scores: Tensor, of_passage: Tensor, right: Tensor, best: int) -> Tensor:
    top = scores.topk(best).indices
    return (of_passage[top] == right[:, None]).sum() / len(scores)


recall = FunctionCheck(
    exercise="24.2",
    reference=_recall,
    cases=_searches,
    mistakes=(
        Mistake(
            _first_only, "you look at the first passage only, not at the best ones."
        ),
        Mistake(
            _every_hit,
            "that is the share of passages: a question counts once, if any fits.",
        ),
        Mistake(
            _all_hits, "two passages of the right chapter count twice: ask if any fits."
        ),
        Mistake(_worst, "your list begins with the lowest score."),
    ),
)


def _bert_large() -> int:
    d, layers = 1024, 24
    layer = 12 * d**2 + 13 * d
    around = (30_522 + 512 + 2) * d + 2 * d + d**2 + d
    return layers * layer + around


bert_large = ValueCheck(
    exercise="24.3",
    reference=_bert_large,
    mistakes=(
        Mistake(
            24 * 12 * 1024**2 + (30_522 + 514) * 1024,
            "the biases and norms of the layers are missing, and what stands around.",
        ),
        Mistake(
            24 * (12 * 1024**2 + 13 * 1024) + (30_522 + 514) * 1024 + 2 * 1024,
            "the pooler is missing: a d × d matrix and its bias.",
        ),
        Mistake(
            24 * (12 * 1024**2 + 9 * 1024) + 31_036 * 1024 + 2 * 1024 + 1024**2 + 1024,
            "each layer has two norms of 2d numbers: 13 d in all, not 9 d.",
        ),
    ),
)

sink = ValueCheck(
    exercise="24.4",
    reference=lambda: math.log(80),
    mistakes=(
        Mistake(math.log(81), "the sink is itself one of the 81 tokens."),
        Mistake(80, "the exponential of the score must be 80, not the score."),
        Mistake(0.5, "that is the weight; asked is the score."),
    ),
)
