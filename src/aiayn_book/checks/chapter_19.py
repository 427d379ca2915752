"""Checks of chapter 19, parsing (§6.3)."""

from collections.abc import Sequence
from functools import partial
from math import comb

from aiayn.errors import InputError
from aiayn.parsing import delinearise
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _is_tree(symbols: Sequence[str], words: int) -> bool:
    """The library's own reader accepts it, and its root is a constituent."""
    if not symbols or not symbols[0].startswith("("):
        return False
    try:
        delinearise(symbols, ["word"] * words)
    except InputError:
        return False
    return True


def _counts_only(symbols: Sequence[str], words: int) -> bool:
    opening = sum(symbol[0] == "(" for symbol in symbols)
    closing = sum(symbol[0] == ")" for symbol in symbols)
    return opening == closing > 0 and len(symbols) - 2 * opening == words


def _ignores_labels(symbols: Sequence[str], words: int) -> bool:
    kinds = [symbol[0] if symbol[0] in "()" else symbol for symbol in symbols]
    return _is_tree(kinds, words)


def _ignores_words(symbols: Sequence[str], words: int) -> bool:
    return _is_tree(symbols, sum(symbol[0] not in "()" for symbol in symbols))


def _loosely(
    symbols: Sequence[str], words: int, *, empty=False, roots=False, bare=False
) -> bool:
    """As the solution does it, with one rule forgotten."""
    stack: list[str] = []
    filled: list[bool] = []
    tags = trees = 0
    for symbol in symbols:
        trees += not stack
        if symbol.startswith("("):
            stack.append(symbol[1:])
            filled.append(False)
            continue
        if symbol.startswith(")"):
            if not stack or stack.pop() != symbol[1:] or not (filled.pop() or empty):
                return False
        elif stack or bare:
            tags += 1
        else:
            return False
        if filled:
            filled[-1] = True
    return not stack and tags == words and (trees == 1 or roots)


def _words_outside(symbols: Sequence[str], words: int) -> bool:
    """A tree, if the words before and after its brackets are left out."""
    depth, tree = 0, []
    for symbol in symbols:
        depth += symbol[0] == "("
        if depth or symbol[0] == ")":
            tree.append(symbol)
        depth -= symbol[0] == ")"
    outside = len(symbols) - len(tree)
    return _is_tree(tree, words - outside)


is_tree = FunctionCheck(
    exercise="19.1",
    reference=_is_tree,
    cases=lambda: [
        (text.split(), words)
        for text, words in (
            ("(S (NP XX )NP (VP XX )VP )S", 2),
            ("(S (NP XX )NP (SBAR (S XX )S )SBAR )S", 2),
            ("(NP (NP XX XX )NP XX )NP", 3),
            ("(S (NP XX )NP (VP XX )VP )S", 3),
            ("(S (NP XX )NP (VP XX )VP )S", 1),
            ("(S XX )S )S (S", 1),
            ("(S (NP XX )VP (VP XX )NP )S", 2),
            ("(S (NP XX (VP XX )NP )VP )S", 2),
            ("(S (NP XX )NP (VP XX )VP", 2),
            ("(S (NP )NP XX )S", 1),
            ("(S XX )S (S XX )S", 2),
            ("XX", 1),
            ("(S XX )S XX", 2),
            ("XX (S XX )S", 2),
        )
    ],
    mistakes=(
        Mistake(
            _words_outside,
            "a word stands outside the root: the root holds them all.",
        ),
        Mistake(
            partial(_loosely, empty=True),
            "a constituent that holds nothing is none: (NP )NP is no tree.",
        ),
        Mistake(
            partial(_loosely, roots=True),
            "something follows the root: a sentence has one tree.",
        ),
        Mistake(
            partial(_loosely, bare=True),
            "a word alone is no tree: the root is a constituent.",
        ),
        Mistake(
            _ignores_labels,
            "the brackets match, but (NP … )VP must not: compare the labels.",
        ),
        Mistake(
            _counts_only,
            "you count brackets, but their order matters too: )S (S is no tree.",
        ),
        Mistake(
            _ignores_words,
            "there must be exactly one XX for each word of the sentence.",
        ),
        Mistake(
            lambda symbols, words: not _is_tree(symbols, words),
            "true and false are exchanged, or nothing is a tree to you: is a label "
            "compared with its bracket?",
        ),
    ),
)

balanced_share = ValueCheck(
    exercise="19.2",
    reference=lambda: comb(16, 8) / 9 / 2**16,
    mistakes=(
        Mistake(
            comb(16, 8) / 2**16,
            "that counts every string with eight of each, such as )(. Some of them "
            "close what was not opened.",
        ),
        Mistake(0.022, "nearly: give the fraction."),
        Mistake(14 / 256, "that is the share for four pairs; eight are asked for."),
        Mistake(1430, "that is the number of balanced strings; divide by all of them."),
    ),
)

_RULES = ("brackets", "labels", "words", "meaning")

needs_learning = ValueCheck(
    exercise="19.3",
    reference=lambda: _RULES[3],
    mistakes=(
        Mistake("brackets", "a counter of what is open decides when )… is allowed."),
        Mistake("labels", "the label of what was opened last is known: allow only it."),
        Mistake("words", "count the XX so far, and forbid the end before the last."),
    ),
)

deepest = ValueCheck(
    exercise="19.4",
    reference=lambda: 5,
    mistakes=(
        Mistake(6, "a tag opens nothing: XX is no constituent of its own."),
        Mistake(1, "that is the root alone."),
    ),
)
