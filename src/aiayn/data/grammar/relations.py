"""Who belongs to whom: relations between the words of a sample, from its gold trees.

Figures 3 to 5 of the paper show heads that follow such relations. Here they are known:
the English ones from the tree, the German ones from the tree and the alignment. A
relation is a list of pairs (from, to) of word indices, one list for each name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from aiayn.data.grammar.anaphora import FEELINGS
from aiayn.data.grammar.sample import GrammarSample
from aiayn.data.trees import Tree

Relations = dict[str, list[tuple[int, int]]]

_FINITE = ("VBZ", "VBP", "VBD", "MD")
_NOUNS = ("NN", "NNS", "PRP")
_DETERMINERS = ("DT", "PRP$", "CD")
_OWN = ("his", "her", "its", "their")
_FEELINGS = tuple(adjective.english for adjective in FEELINGS)


@dataclass(frozen=True)
class _Node:
    """A constituent that knows where it stands; a word has a tag and no children."""

    label: str
    start: int
    children: tuple["_Node", ...] = ()

    def find(self, *labels: str) -> "_Node | None":
        """The first child with one of these labels."""
        return next((c for c in self.children if c.label in labels), None)

    def walk(self) -> "Iterator[_Node]":
        yield self
        for child in self.children:
            yield from child.walk()


def english_relations(sample: GrammarSample) -> Relations:
    """The relations of the English side.

    - *subject of the verb*: from a finite verb to the head of its subject; in a
      relative clause without a subject of its own, to the noun that it belongs to.
    - *verb of the subject*: the same backwards.
    - *noun of the determiner*: from article, numeral or possessive to the noun.
    - *subject of the adjective*: from a predicate to what it is said of.
    - *antecedent of the pronoun*: in samples of the kind "anaphora".

    >>> from aiayn.data.grammar import generate
    >>> sample = generate(1, seed=1, kinds=["copula"])[0]
    >>> sample.source, english_relations(sample)["subject of the verb"]
    ('This church was new.', [(2, 1)])
    """
    root, _ = _place(sample.source_tree, 0)
    verbs = list(_subjects(root, None))
    found: Relations = {
        "subject of the verb": [(verb.start, noun.start) for verb, noun, _ in verbs],
        "verb of the subject": [(noun.start, verb.start) for verb, noun, _ in verbs],
        "noun of the determiner": list(_determiners(root)),
        "subject of the adjective": [],
    }
    for _, noun, phrase in verbs:
        adjective = _predicate(phrase)
        if adjective is not None:
            found["subject of the adjective"].append((adjective.start, noun.start))
    antecedents = _antecedents(sample, root) if sample.kind == "anaphora" else []
    return found | {"antecedent of the pronoun": antecedents}


def german_relations(sample: GrammarSample) -> Relations:
    """The relations of the German side.

    - *subject of the verb*: from a finite verb to the head of its subject.
    - *first half of the verb*: from a participle or a separated prefix, which stand at
      the end of the clause, to the finite verb.
    """
    root, _ = _place(sample.target_tree, 0)
    tags = {node.start: node.label for node in root.walk() if not node.children}
    partners: dict[int, list[int]] = {}
    for source, target in sorted(sample.alignment):
        partners.setdefault(source, []).append(target)
    found: Relations = {"subject of the verb": [], "first half of the verb": []}
    for verb, noun in english_relations(sample)["subject of the verb"]:
        words = partners.get(verb, [])
        finite = [w for w in words if tags[w].endswith("FIN")]
        heads = [
            w for w in partners.get(noun, []) if tags[w] in ("NN", "PPER", "PRELS")
        ]
        if len(finite) != 1:
            continue
        if len(heads) == 1:
            found["subject of the verb"].append((finite[0], heads[0]))
        rest = [w for w in words if tags[w] in ("VVPP", "PTKVZ")]
        found["first half of the verb"] += [
            (word, finite[0]) for word in rest if word > finite[0]
        ]
    return found


def candidates(sample: GrammarSample) -> tuple[int, int] | None:
    """Subject and object of *… does not eat … because it is …*, as word indices.

    None if the sample is another one, or if *it* cannot stand for both of them.
    """
    root, _ = _place(sample.source_tree, 0)
    subject, thing = _main_nouns(root)
    words = sample.source_tokens
    if sample.kind != "anaphora" or subject is None or thing is None:
        return None
    eating = any(word in words for word in ("eat", "eats", "ate"))
    if not eating or "it" not in words or not subject.label == thing.label == "NN":
        return None
    return subject.start, thing.start


def _place(tree: Tree, start: int) -> tuple[_Node, int]:
    """The tree with places, and the place after its last word."""
    if tree.is_preterminal:
        return _Node(tree.label, start), start + 1
    children, place = [], start
    for child in tree.children:
        assert isinstance(child, Tree)
        node, place = _place(child, place)
        children.append(node)
    return _Node(tree.label, start, tuple(children)), place


def _head(phrase: _Node) -> _Node | None:
    """The noun or pronoun of a noun phrase."""
    nouns = [child for child in phrase.children if child.label in _NOUNS]
    if nouns:
        return nouns[-1]
    inner = phrase.find("NP")
    return _head(inner) if inner else None


def _subjects(node: _Node, owner: _Node | None) -> Iterator[tuple[_Node, _Node, _Node]]:
    """(finite verb, head of its subject, verb phrase) of every clause below.

    Args:
        node: Where to look.
        owner: The noun that a relative clause belongs to, inside one.
    """
    if node.label in ("S", "SQ"):
        phrase = node.find("VP")
        before = [c for c in node.children if c.label == "NP"]
        subject = _head(before[-1]) if before else owner
        carrier = node if node.label == "SQ" and node.find(*_FINITE) else phrase
        verb = carrier.find(*_FINITE) if carrier else None
        if verb is not None and subject is not None:
            yield verb, subject, phrase or node
    inner = node.find("NP")
    for child in node.children:
        relative = node.label == "NP" and child.label == "SBAR" and inner is not None
        clause_of = _head(inner) if relative and inner else None
        passed_on = owner if node.label == "SBAR" and child.label == "S" else clause_of
        yield from _subjects(child, passed_on)


def _determiners(root: _Node) -> Iterator[tuple[int, int]]:
    for phrase in root.walk():
        noun = phrase.find("NN", "NNS") if phrase.label == "NP" else None
        determiner = phrase.find(*_DETERMINERS)
        if noun is not None and determiner is not None:
            yield determiner.start, noun.start


def _predicate(phrase: _Node) -> _Node | None:
    """The adjective of *is very old*, in a verb phrase or one inside it."""
    adjectives = phrase.find("ADJP")
    if adjectives is not None:
        words = [c for c in adjectives.children if c.label in ("JJ", "JJR")]
        return words[-1] if words else None
    inner = phrase.find("VP", "S")
    return _predicate(inner) if inner else None


def _main_nouns(root: _Node) -> tuple[_Node | None, _Node | None]:
    """Heads of the main clause's subject and object."""
    before = [c for c in root.children if c.label == "NP"]
    phrase = root.find("VP")
    while phrase is not None and phrase.find("VP"):
        phrase = phrase.find("VP")
    thing = phrase.find("NP") if phrase else None
    return (_head(before[-1]) if before else None), (_head(thing) if thing else None)


def _antecedents(sample: GrammarSample, root: _Node) -> list[tuple[int, int]]:
    """What each pronoun stands for: see the functions of `anaphora`."""
    words = sample.source_tokens
    subject, thing = _main_nouns(root)
    clause = next((n.find("S") for n in root.walk() if n.label == "SBAR"), None)
    if clause is None:  # The woman reads her book.
        own = [i for i, word in enumerate(words) if word in _OWN]
        return [(i, subject.start) for i in own if subject is not None]
    pronoun, phrase = clause.find("NP"), clause.find("VP")
    assert pronoun is not None
    assert phrase is not None
    adjective = _predicate(phrase)
    felt = adjective is not None and words[adjective.start] in _FEELINGS
    meant = subject if adjective is None or felt else thing
    found = [] if meant is None else [(pronoun.start, meant.start)]
    needed = phrase.find("NP")
    if needed is not None and adjective is None and thing is not None:
        found.append((needed.start, thing.start))
    return found
