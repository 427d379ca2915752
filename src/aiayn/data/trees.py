"""Constituency trees for §6.3: bracketed text, and trees as strings.

The paper parses English with the model that translates: the target sequence is the
tree written as a string, as Vinyals et al. (2015, "Grammar as a Foreign Language") do
it. An opening symbol carries its label, and so does a closing one:
`(S (NP XX XX )NP )S`. Words are left out, and part-of-speech tags are all written `XX`.
`load_corpus("grammar", target="trees")` gives such strings; `aiayn.parsing` reads and
scores what a model writes.

Trees are walked by recursion, so `parse_tree` and `delinearise` refuse trees that are
deeper than `MAX_DEPTH`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiayn.data.parallel import ParallelText
from aiayn.errors import InputError

TREES = "trees"
"""What `load_corpus` calls the target language of a parser. Not in the paper."""

MAX_DEPTH = 200
"""Deepest tree that is read. The deepest in a news treebank has some 40 levels."""

ANY_TAG = "XX"
"""What a linearised tree holds in the place of every part-of-speech tag."""

_TOKEN = re.compile(r"\(\s*[^\s()]*|\)|[^\s()]+")


@dataclass(frozen=True, slots=True)
class Tree:
    """One constituent: a label over children, each a `Tree` or a word.

    Paper: §6.3.

    >>> tree = parse_tree("(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))")
    >>> tree.leaves
    ('The', 'dog', 'sleeps', '.')
    """

    label: str
    """Such as NP, or a part-of-speech tag."""
    children: "tuple[Tree | str, ...]"
    """From left to right."""

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a part-of-speech tag over one word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def tagged_words(self) -> "Iterator[tuple[str, str]]":
        """Each word after its part-of-speech tag, the label above it."""
        for child in self.children:
            if isinstance(child, str):
                yield self.label, child
            else:
                yield from child.tagged_words()

    @property
    def leaves(self) -> tuple[str, ...]:
        """The words, from left to right."""
        return tuple(word for _, word in self.tagged_words())

    @property
    def tags(self) -> tuple[str, ...]:
        """The part-of-speech tags: the label above each word."""
        return tuple(tag for tag, _ in self.tagged_words())

    def spans(self, start: int = 0) -> "list[Span]":
        """Every constituent that is no preterminal, in the order of opening brackets.

        Args:
            start: The number of the first word.

        >>> parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))").spans()
        [Span(label='S', start=0, end=2), Span(label='NP', start=0, end=1), \
Span(label='VP', start=1, end=2)]
        """
        if self.is_preterminal:
            return []
        found = [Span(self.label, start, start + len(self.leaves))]
        for child in self.children:
            if isinstance(child, Tree):
                found += child.spans(start)
            start += len(child.leaves) if isinstance(child, Tree) else 1
        return found

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(str, self.children))})"


class Span(NamedTuple):
    """A labelled constituent over the words start, …, end - 1.

    Paper: §6.3.
    """

    label: str
    """Such as NP."""
    start: int
    """Number of its first word, counted from 0."""
    end: int
    """Number of the first word after it."""


def _build(symbols: Iterable[str], words: Iterator[str] | None = None) -> Tree:
    """The one tree that these brackets and leaves describe.

    If words are given, leaves are their tags, and closing brackets have labels.
    """
    deepest = MAX_DEPTH if words is None else MAX_DEPTH - 1  # a tag is a level too
    # The constituents that are open, below a root that holds the tree.
    stack: list[tuple[str, list[Any]]] = [("", [])]
    for number, symbol in enumerate(symbols, start=1):
        where = f"Symbol {number}, '{symbol}',"
        label, children = stack[-1]
        opens = symbol.startswith("(")
        if len(stack) == 1 and (children or (words is None and not opens)):
            raise InputError(f"{where} stands outside of the tree's brackets.")
        if opens:
            if len(stack) > deepest:
                raise InputError(f"{where} is more than {MAX_DEPTH} levels deep.")
            stack.append((symbol[1:].lstrip(), []))
        elif symbol.startswith(")"):
            if words is not None and symbol[1:] != label:
                raise InputError(f"{where} closes a '({label}'.")
            if not children:
                raise InputError(f"{where} closes an empty constituent '{label}'.")
            stack.pop()
            stack[-1][1].append(Tree(label, tuple(children)))
        else:
            leaf = symbol if words is None else Tree(symbol, (next(words),))
            children.append(leaf)
    if len(stack) > 1 or not stack[0][1]:
        raise InputError(
            f"Expected a tree such as (S (NN Tea)), got one with {len(stack) - 1} open "
            "brackets at its end."
        )
    return stack[0][1][0]


def parse_tree(text: str) -> Tree:
    """Reads one tree in Penn style brackets, as `str(tree)` writes it.

    Args:
        text: `(LABEL child child …)`, where a child is such a tree or a word. The label
            may be missing, as at the root of the Penn Treebank's trees: it is then "".

    Raises:
        InputError: The text is empty, a bracket does not match, a constituent is empty,
            something follows the tree, or the tree is deeper than `MAX_DEPTH`.

    Paper: §6.3.
    """
    return _build(_TOKEN.findall(text))


def linearise(tree: Tree) -> tuple[str, ...]:
    """Writes a tree as the sequence of symbols that a model is to emit.

    Args:
        tree: Every word must stand under its own part-of-speech tag.

    Paper: §6.3; Vinyals et al. (2015).

    >>> " ".join(linearise(parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))")))
    '(S (NP XX )NP (VP XX )VP )S'
    """
    if tree.is_preterminal:
        return (ANY_TAG,)
    symbols = [f"({tree.label}"]
    for child in tree.children:
        if isinstance(child, str):
            raise InputError(
                f"The word '{child}' stands directly under '{tree.label}', not a tag."
            )
        symbols += linearise(child)
    return (*symbols, f"){tree.label}")


def delinearise(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """The inverse of `linearise`: puts the words back in the place of the tags.

    Args:
        symbols: What `linearise` wrote, or a model.
        words: The sentence's.

    Raises:
        InputError: The symbols are no well-formed tree (a model may well emit such), or
            the number of tags is not the number of words.

    Paper: §6.3.
    """
    tags = sum(not symbol.startswith(("(", ")")) for symbol in symbols)
    if tags != len(words):
        raise InputError(f"The tree has {tags} tags for {len(words)} words.")
    return _build(symbols, iter(words))


def with_tags(tree: Tree, tags: Sequence[str]) -> Tree:
    """The same constituents over the same words, with other part-of-speech tags.

    Brackets are compared without punctuation, and a parser that writes `XX` does not
    say which words are punctuation. So the gold tags are put in before scoring.

    Args:
        tree: What `aiayn.parsing.parse` gave.
        tags: One a word.

    Raises:
        InputError: There are not as many tags as words.

    Paper: §6.3, Table 4.
    """
    words, remaining = tree.leaves, iter(tags)
    if len(tags) != len(words):
        raise InputError(f"There are {len(tags)} tags for {len(words)} words.")
    tagged = (next(remaining) if s == ANY_TAG else s for s in linearise(tree))
    return delinearise(tuple(tagged), words)


def without_function(symbol: str) -> str:
    """A label or a symbol of a tree without its function: NP for NP-SBJ or NP=2."""
    return re.split(r"(?<=[^()])[-=]", symbol)[0]


def tree_pairs(trees: Iterable[Tree]) -> ParallelText:
    """Sentences and their linearised trees, without function tags.

    Args:
        trees: Trees of sentences.

    Paper: §6.3; Vinyals et al. (2015).

    >>> list(tree_pairs([parse_tree("(S (NP-SBJ (NN Tea)) (VP (VBZ helps)))")]))
    [('Tea helps', '(S (NP XX )NP (VP XX )VP )S')]
    """
    trees = tuple(trees)
    return ParallelText(
        tuple(" ".join(tree.leaves) for tree in trees),
        tuple(" ".join(map(without_function, linearise(tree))) for tree in trees),
    )
