"""Constituency trees for §6.3: bracketed text, and trees as strings.

The paper parses English with the model that translates: the target sequence is the
tree written as a string, as Vinyals et al. (2015, "Grammar as a Foreign Language") do
it. An opening symbol carries its label, and so does a closing one:
`(S (NP XX XX )NP )S`. Words are left out, and part-of-speech tags are all written `XX`.
`load_corpus("grammar", target="trees")` gives such strings; `aiayn.parsing` reads and
scores what a model writes.

Everything that walks a tree does so without recursion; `parse_tree` and `delinearise`
refuse trees deeper than `MAX_DEPTH`, because comparing trees with `==` does recurse.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aiayn.data.parallel import ParallelText
from aiayn.errors import InputError

TREES = "trees"
"""What `load_corpus` calls the target language of a parser. Not in the paper."""

MAX_DEPTH = 200
"""Deepest tree that is read. The deepest in a news treebank has some 40 levels."""

ANY_TAG = "XX"
"""What a linearised tree holds in the place of every part-of-speech tag."""

_TOKEN = re.compile(r"[()]|[^\s()]+")


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

    @property
    def leaves(self) -> tuple[str, ...]:
        """The words, from left to right."""
        return tuple(part for part in _walk(self) if isinstance(part, str))

    @property
    def tags(self) -> tuple[str, ...]:
        """The part-of-speech tags: the label above each word."""
        above, found = list[str](), list[str]()
        for part in _walk(self):
            if isinstance(part, Tree):
                above.append(part.label)
            elif part is None:
                above.pop()
            else:
                found.append(above[-1])
        return tuple(found)

    @property
    def depth(self) -> int:
        """Labels on the longest path from the root to a word."""
        depth = deepest = 0
        for part in _walk(self):
            if isinstance(part, Tree):
                depth += 1
                deepest = max(deepest, depth)
            elif part is None:
                depth -= 1
        return deepest

    def spans(self) -> "list[Span]":
        """Every constituent that is no preterminal, in the order of opening brackets.

        >>> parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))").spans()
        [Span(label='S', start=0, end=2), Span(label='NP', start=0, end=1), \
Span(label='VP', start=1, end=2)]
        """
        found: list[Span | None] = []
        unfinished: list[int] = []
        position = 0
        for part in _walk(self):
            if isinstance(part, Tree):
                unfinished.append(len(found))
                found.append(
                    None if part.is_preterminal else Span(part.label, position, 0)
                )
            elif part is None:
                index = unfinished.pop()
                opened = found[index]
                if opened is not None:
                    found[index] = opened._replace(end=position)
            else:
                position += 1
        return [span for span in found if span is not None]

    def __str__(self) -> str:
        pieces: list[str] = []
        for part in _walk(self):
            if part is None:
                pieces.append(")")
            else:
                pieces.append(
                    f" ({part.label}" if isinstance(part, Tree) else f" {part}"
                )
        return "".join(pieces).lstrip()


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


def _walk(tree: Tree) -> "Iterator[Tree | str | None]":
    """Yields each subtree as it opens, each word, and None as a subtree closes."""
    waiting: list[Tree | str | None] = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Tree):
            waiting.append(None)
            waiting.extend(reversed(part.children))


class _Builder:
    """Grows one tree from opening brackets, words and closing brackets."""

    def __init__(self) -> None:
        self.open: list[tuple[str, list[Tree | str]]] = []
        self.root: Tree | None = None

    def enter(self, label: str, where: str) -> None:
        if self.root is not None:
            raise InputError(f"{where} comes after the end of the tree; give one tree.")
        if len(self.open) == MAX_DEPTH:
            raise InputError(
                f"The tree is more than {MAX_DEPTH} levels deep at {where}; "
                "this is no constituency tree of a sentence."
            )
        self.open.append((label, []))

    def add(self, child: "Tree | str", where: str) -> None:
        if self.open:
            self.open[-1][1].append(child)
        elif isinstance(child, Tree) and self.root is None:
            self.root = child
        else:
            raise InputError(f"{where} stands outside of every bracket of the tree.")

    def leave(self, where: str) -> None:
        if not self.open:
            raise InputError(f"{where} closes a bracket that was never opened.")
        label, children = self.open.pop()
        if not children:
            raise InputError(f"The constituent '{label}' that {where} closes is empty.")
        self.add(Tree(label, tuple(children)), where)

    def finish(self) -> Tree:
        if self.open:
            raise InputError(
                f"The tree ends while {len(self.open)} bracket(s) are still open, the "
                f"last one labelled '{self.open[-1][0]}'; close them."
            )
        if self.root is None:
            raise InputError(
                "Expected a bracketed tree such as (S (NN Tea)), got none."
            )
        return self.root


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
    builder = _Builder()
    tokens = list(_TOKEN.finditer(text))
    index = 0
    while index < len(tokens):
        token = tokens[index].group()
        where = f"'{token}' at character {tokens[index].start() + 1}"
        if token == "(":
            label = tokens[index + 1].group() if index + 1 < len(tokens) else "("
            has_label = label not in "()"
            builder.enter(label if has_label else "", where)
            index += has_label
        elif token == ")":
            builder.leave(where)
        else:
            builder.add(token, where)
        index += 1
    return builder.finish()


def linearise(tree: Tree, *, keep_tags: bool = False) -> tuple[str, ...]:
    """Writes a tree as the sequence of symbols that a model is to emit.

    Args:
        tree: Every word must stand under its own part-of-speech tag.
        keep_tags: Write the tags themselves and not `XX`.

    Paper: §6.3; Vinyals et al. (2015).

    >>> " ".join(linearise(parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))")))
    '(S (NP XX )NP (VP XX )VP )S'
    """
    symbols: list[str] = []
    closing: list[str | None] = []
    for part in _walk(tree):
        if isinstance(part, Tree):
            if part.is_preterminal:
                symbols.append(part.label if keep_tags else ANY_TAG)
                closing.append(None)
                continue
            symbols.append(f"({part.label}")
            closing.append(f"){part.label}")
            bare = [child for child in part.children if isinstance(child, str)]
            if bare:
                raise InputError(
                    f"The word '{bare[0]}' stands directly under '{part.label}'; to "
                    "linearise a tree, put each word under a part-of-speech tag."
                )
        elif part is None:
            symbol = closing.pop()
            if symbol is not None:
                symbols.append(symbol)
    return tuple(symbols)


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
    builder = _Builder()
    used = 0
    for number, symbol in enumerate(symbols, start=1):
        where = f"Symbol {number}, '{symbol}',"
        if symbol.startswith("("):
            builder.enter(symbol[1:], where)
        elif symbol.startswith(")"):
            if builder.open and builder.open[-1][0] != symbol[1:]:
                raise InputError(f"{where} closes a '({builder.open[-1][0]}'.")
            builder.leave(where)
        else:
            word = words[used] if used < len(words) else ""
            used += 1
            builder.enter(symbol, where)
            builder.add(word, where)
            builder.leave(where)
    if used != len(words):
        raise InputError(f"The tree has {used} tags for {len(words)} words.")
    return builder.finish()


def cut_function_tags(tree: Tree) -> Tree:
    """The tree with `NP` for `NP-SBJ` or `NP=2`, as parsers are trained and scored.

    Args:
        tree: Every word must stand under its own part-of-speech tag.

    Paper: §6.3.

    >>> print(cut_function_tags(parse_tree("(S (NP-SBJ (-LRB- -LRB-) (NN tea)))")))
    (S (NP (-LRB- -LRB-) (NN tea)))
    """
    symbols = [
        symbol[0] + without_function(symbol[1:])
        if symbol.startswith(("(", ")"))
        else symbol
        for symbol in linearise(tree, keep_tags=True)
    ]
    return delinearise(symbols, tree.leaves)


def without_function(label: str) -> str:
    """The label without its function: NP for NP-SBJ."""
    return re.split(r"(?<=.)[-=]", label)[0]


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
        tuple(" ".join(linearise(cut_function_tags(tree))) for tree in trees),
    )
