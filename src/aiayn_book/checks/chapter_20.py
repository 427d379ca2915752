"""Checks of chapter 20, looking inside (the appendix, Figures 3–5)."""

from collections.abc import Sequence

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck

Gold = Sequence[Sequence[tuple[int, int]]]


def _offset_hits(gold: Gold, offset: int) -> float:
    """Pair by pair."""
    right = total = 0
    for sentence in gold:
        for query, key in sentence:
            total += 1
            if key == query + offset:
                right += 1
    return right / total


def _backwards(gold: Gold, offset: int) -> float:
    return _offset_hits([[(k, q) for q, k in pairs] for pairs in gold], offset)


def _by_sentence(gold: Gold, offset: int) -> float:
    shares = [_offset_hits([pairs], offset) for pairs in gold if pairs]
    return sum(shares) / len(shares)


offset_hits = FunctionCheck(
    exercise="20.1",
    reference=_offset_hits,
    cases=lambda: [
        ([[(2, 0)], [(1, 0), (3, 2), (6, 5)]], -1),
        ([[(2, 3), (4, 3)], [], [(1, 2)]], 1),
        ([[(2, 0), (5, 5)], [(7, 5)]], -2),
    ],
    mistakes=(
        Mistake(
            _backwards,
            "you count from the key to the query: the offset is where the key stands, "
            "seen from the query",
        ),
        Mistake(
            _by_sentence,
            "that is the mean over sentences of each one's share: count every query "
            "alike, wherever it stands",
        ),
        Mistake(
            lambda gold, offset: float(
                sum(key - query == offset for pairs in gold for query, key in pairs)
            ),
            "that is how many are right: divide by the number of queries",
        ),
    ),
)

_ONE_HEAD = 0.1**3
chance = ValueCheck(
    exercise="20.3",
    reference=lambda: (1 - (1 - _ONE_HEAD) ** 48, 1 - (1 - _ONE_HEAD) ** (48 * 30)),
    mistakes=(
        Mistake(
            (48 * _ONE_HEAD, 48 * 30 * _ONE_HEAD),
            "those are the numbers of heads to expect, and the second is above one: "
            "one minus the probability that none of them does",
        ),
        Mistake(
            (1 - 0.9**48, 1 - 0.9 ** (48 * 30)),
            "that is for one word: the head shall hit three of three",
        ),
    ),
)
