"""From drafts to samples: strings, tokens, the gold alignment and both trees."""

from dataclasses import dataclass
from functools import cache

from aiayn.data.grammar.german_order import SOFT_COMMA
from aiayn.data.grammar.phrases import Draft, Word
from aiayn.data.trees import Tree

_ATTACHED = frozenset({".", ",", "?", "'s"})


@dataclass(frozen=True, slots=True)
class GrammarSample:
    """One English–German sentence pair with everything that is known about it.

    Attributes:
        source: The English sentence as one would write it.
        target: Its German translation.
        source_tokens: Words and punctuation marks; *'s* is a token of its own.
        target_tokens: Likewise.
        alignment: Pairs (index into source_tokens, index into target_tokens) of tokens
            that translate each other. All words of one unit align with all words of its
            counterpart: *does … call* with *ruft … an*, *not a* with *keinen*, *in the*
            with *im*. Without counterpart, hence without a pair, are the commas that
            only German writes, and the article of *plays the piano*.
        source_tree: Constituents with the Penn Treebank's labels and tags.
        target_tree: The same labels over STTS tags; see `clauses` on German order.
        kind: The construction that it was drawn as, a key of `sentences.KINDS`.
        tags: Phenomena that it shows: negation, separable, relative, anaphora, ….
        split: The split that the sentence belongs to, whoever draws it.
    """

    source: str
    target: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    alignment: frozenset[tuple[int, int]]
    source_tree: Tree
    target_tree: Tree
    kind: str
    tags: frozenset[str]
    split: str


def words_of(draft: Draft) -> list[Word]:
    """The words from left to right; soft commas are settled, the first capitalised."""
    words: list[Word] = []
    _collect(draft, words)
    kept = []
    for word, following in zip(words, [*words[1:], words[-1]], strict=True):
        if word[1] == SOFT_COMMA:
            word[1] = "" if following[1] in (",", ".", "?", SOFT_COMMA) else ","
        if word[1]:
            kept.append(word)
    first = kept[0]
    first[1] = first[1][0].upper() + first[1][1:]
    return kept


def _collect(draft: Draft, words: list[Word]) -> None:
    for child in draft[1]:
        if type(child) is tuple:
            _collect(child, words)
        else:
            words.append(child)


def detokenise(tokens: tuple[str, ...]) -> str:
    """Joins words with spaces and attaches punctuation and *'s* to the word before.

    Args:
        tokens: Words and punctuation marks.

    >>> detokenise(("The", "woman", "'s", "dog", "sleeps", "."))
    "The woman's dog sleeps."
    """
    return "".join(
        token if not index or token in _ATTACHED else f" {token}"
        for index, token in enumerate(tokens)
    )


def align(source: list[Word], target: list[Word]) -> frozenset[tuple[int, int]]:
    """All pairs of tokens that share a link."""
    places: dict[int, list[int]] = {}
    for index, (_, _, links) in enumerate(source):
        for link in links:
            places.setdefault(link, []).append(index)
    return frozenset(
        (i, j)
        for j, (_, _, links) in enumerate(target)
        for link in links
        for i in places.get(link, ())
    )


def grow(draft: Draft) -> Tree:
    """The tree of a draft whose words are settled."""
    children = [
        grow(child) if type(child) is tuple else _preterminal(child[0], child[1])
        for child in draft[1]
        if child[1]
    ]
    return Tree(draft[0], tuple(children))


@cache
def _preterminal(tag: str, text: str) -> Tree:
    """One tree for every use of a tagged word: there are some thousands of them."""
    return Tree(tag, (text,))
