"""Checks of chapter 17b, BLEU and Table 2 (§6.1)."""

import math
from collections.abc import Sequence

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
    exercise="17b.1",
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

half = ValueCheck(
    exercise="17b.2",
    reference=lambda: 100 / math.e,
    mistakes=(
        Mistake(50.0, "the precisions are all 1: what does brevity do for r/c = 2?"),
        Mistake(1 / math.e, "BLEU goes from 0 to 100."),
        Mistake(100.0, "the precisions are 1, but the translation is too short."),
        Mistake(100 * math.exp(-0.5), "it is r/c in the exponent, not c/r."),
    ),
)
