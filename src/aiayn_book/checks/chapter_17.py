"""Checks of chapter 17, search and BLEU (§6.1)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _clipped(hypothesis: list[str], reference: list[str], n: int) -> int:
    """Each n-gram of the reference is used up once."""
    left = _grams(reference, n)
    found = 0
    for gram in _grams(hypothesis, n):
        if gram in left:
            left.remove(gram)
            found += 1
    return found


def _unclipped(hypothesis: list[str], reference: list[str], n: int) -> int:
    return sum(gram in _grams(reference, n) for gram in _grams(hypothesis, n))


def _kinds(hypothesis: list[str], reference: list[str], n: int) -> int:
    return len(set(_grams(hypothesis, n)) & set(_grams(reference, n)))


clipped = FunctionCheck(
    exercise="17.1",
    reference=_clipped,
    cases=lambda: [
        (list("xab"), list("ab"), 2),  # the last pair is all there is to find
        (list("aaacbb"), list("aaccccd"), 1),  # each mistake gives another number
        (list("ababab"), list("abxab"), 2),
        (list("ab"), list("abc"), 3),
    ],
    mistakes=(
        Mistake(
            lambda hypothesis, reference, n: _clipped(hypothesis[:-1], reference, n),
            "the last n-gram is left out: where does the last one begin?",
        ),
        Mistake(
            _unclipped,
            "not clipped: an n-gram that the reference has once counts once, however "
            "often it is written.",
        ),
        Mistake(
            _kinds,
            "each kind of n-gram is counted once. One that both have twice counts "
            "twice.",
        ),
        Mistake(
            lambda hypothesis, reference, n: _unclipped(reference, hypothesis, n),
            "the wrong way round: count n-grams of the translation that the reference "
            "has.",
        ),
    ),
)


def _winner(log_probabilities: Tensor, lengths: Tensor, alpha: float) -> int:
    """One hypothesis after the other."""
    scores = [
        log_p / ((5 + length) / 6) ** alpha
        for log_p, length in zip(
            log_probabilities.tolist(), lengths.tolist(), strict=True
        )
    ]
    return scores.index(max(scores))


def _ranked() -> list[tuple[Tensor, Tensor, float]]:
    """In the first case, each mistake has another winner."""
    cases = [
        (torch.tensor([-4.9, -7.0, -4.5, -6.2]), torch.tensor([21, 31, 6, 2]), 1.0)
    ]
    scores = torch.tensor([-2.4, -1.9, -3.6, -6.0])
    lengths = torch.tensor([7, 3, 14, 60])
    return cases + [(scores, lengths, alpha) for alpha in (0.0, 0.6, 0.8, 2.0)]


winner = FunctionCheck(
    exercise="17.2",
    reference=_winner,
    cases=_ranked,
    mistakes=(
        Mistake(
            lambda log_p, lengths, alpha: int(log_p.argmax()),
            "that is the most probable one: divide by the penalty first.",
        ),
        Mistake(
            lambda log_p, lengths, alpha: int((log_p / lengths**alpha).argmax()),
            "the penalty is ((5 + length) / 6) to the power α, not the length itself.",
        ),
        Mistake(
            lambda log_p, lengths, alpha: int(
                (log_p * ((5 + lengths) / 6) ** alpha).argmax()
            ),
            "the log-probability is divided by the penalty, not multiplied.",
        ),
    ),
)

half = ValueCheck(
    exercise="17.3",
    reference=lambda: 100 / math.e,
    mistakes=(
        Mistake(50.0, "the precisions are all 1: what does brevity do for r/c = 2?"),
        Mistake(1 / math.e, "BLEU goes from 0 to 100."),
        Mistake(100.0, "the precisions are 1, but the translation is too short."),
        Mistake(100 * math.exp(-0.5), "it is r/c in the exponent, not c/r."),
    ),
)

turning_point = ValueCheck(
    exercise="17.4",
    reference=lambda: math.log(2.4 / 1.9) / math.log(12 / 8),
    mistakes=(
        Mistake(
            math.log(2.4 / 1.9) / math.log(7 / 3),
            "the penalty is (5 + length) / 6: the ratio of the two is 12/8, not 7/3.",
        ),
        Mistake(0.58, "nearly. Solve 1.9 / 2.4 = (8/12)^α and give the fraction."),
        Mistake(0.6, "nearly. Solve 1.9 / 2.4 = (8/12)^α and give the fraction."),
    ),
)
