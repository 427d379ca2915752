"""§6.3: from a parser's output to a tree that can be scored.

A model may write anything, and the paper does not say what it did with output that is
no tree. Here `repair` makes a tree of it, by rules that leave well-formed output as it
is.
"""

from collections.abc import Sequence
from contextlib import suppress

from aiayn.data.trees import ANY_TAG, MAX_DEPTH, Tree, delinearise, linearise
from aiayn.errors import InputError


def repair(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """A tree over exactly these words, as near to the symbols as they allow.

    Where `delinearise` gives a tree, this is it. Else:

    - The first constituent that is opened is the root. It holds everything and is
      closed last.
    - A closing symbol closes the innermost constituent of its label and all that are
      open inside it; the root stays open. Without such a constituent it is ignored.
    - Tags take the words in turn. Surplus tags are ignored; words without a tag go to
      the end of the root.
    - A constituent without words is left out, and so is one that is nested too deep.

    Args:
        symbols: What a model wrote.
        words: The sentence's.

    Raises:
        InputError: There are no words.

    >>> print(repair(["(S", "(NP", "XX", "(VP", "XX", ")S"], ["Tea", "helps", "."]))
    (S (NP (XX Tea) (VP (XX helps))) (XX .))
    """
    if not words:
        raise InputError("A tree needs words, and there are none.")
    with suppress(InputError):
        return delinearise(symbols, words)
    labels = [symbol[1:] for symbol in symbols if symbol.startswith("(")]
    open_: list[tuple[str, list[Tree | str]]] = [(labels[0] if labels else "", [])]
    root_is_next, used = True, 0
    for symbol in symbols:
        if symbol.startswith("("):
            if not root_is_next and len(open_) < MAX_DEPTH - 1:
                open_.append((symbol[1:], []))
            root_is_next = False
        elif symbol.startswith(")"):
            wanted = [label for label, _ in open_]
            if symbol[1:] in wanted:
                depth = len(wanted) - wanted[::-1].index(symbol[1:])
                while len(open_) > max(1, depth - 1):
                    _close(open_)
        elif used < len(words):
            open_[-1][1].append(Tree(symbol, (words[used],)))
            used += 1
    while len(open_) > 1:
        _close(open_)
    label, children = open_[0]
    return Tree(label, (*children, *(Tree(ANY_TAG, (word,)) for word in words[used:])))


def _close(open_: list[tuple[str, list[Tree | str]]]) -> None:
    """Close the innermost constituent."""
    label, children = open_.pop()
    if children:
        open_[-1][1].append(Tree(label, tuple(children)))


def with_tags(tree: Tree, tags: Sequence[str]) -> Tree:
    """The same constituents over the same words, with other part-of-speech tags.

    Brackets are compared without punctuation, and a parser that writes `XX` does not
    say which words are punctuation. So the gold tags are put in before scoring.

    Args:
        tree: What `parse` gave.
        tags: One a word.

    Raises:
        InputError: There are not as many tags as words.
    """
    words = tree.leaves
    if len(tags) != len(words):
        raise InputError(f"There are {len(tags)} tags for {len(words)} words.")
    remaining = iter(tags)
    symbols = [
        symbol if symbol.startswith(("(", ")")) else next(remaining)
        for symbol in linearise(tree)
    ]
    return delinearise(symbols, words)
