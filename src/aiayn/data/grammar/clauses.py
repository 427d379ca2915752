"""Clauses: one specification, written with English and with German word order.

English keeps subject, verb, object. German puts the finite verb second in a main clause,
first in a question and last in a subordinate clause; everything else of the verb
(infinitive, participle, separable prefix) stands at the end. Between them stands the
middle field, in this order: pronouns, dative object, point in time, definite accusative
object, frequency, *nicht*, manner, place, indefinite accusative object, prepositional
object, goal, predicate. A relative clause of an object follows the whole clause.

Trees stay projective: German finite verb, subject and fronted constituent are children of
S, as in the TIGER treebank, and a VP holds a non-finite verb with the middle field.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiayn.data.grammar import english, german
from aiayn.data.grammar.phrases import (
    AdjectivePhrase,
    AdverbPhrase,
    Draft,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Word,
    word,
)
from aiayn.data.grammar.verbs import Verb

# Tense or modal: English auxiliary, German auxiliary, whether the auxiliary is past.
MODALS = {
    "future": ("will", "werden", False),
    "can": ("can", "können", False),
    "must": ("must", "müssen", False),
    "should": ("should", "sollen", False),
    "could": ("could", "können", True),
    "want": ("want", "wollen", False),
    "wanted": ("wanted", "wollen", True),
}
PAST_TENSES = frozenset({"past", "could", "wanted"})
SOFT_COMMA = "soft ,"
"""Closes a German clause; it is dropped before another punctuation mark."""


@dataclass(slots=True)
class Clause:
    """What is said, by role. `verb` is None for *be*, with a predicate.

    Links: `link` the verb (with *do* and particles), `link + 1` the auxiliary or modal,
    `link + 2` *not*.
    """

    subject: NounPhrase | Pronoun | Any
    verb: Verb | None
    tense: str
    link: int
    negated: bool = False
    dative: NounPhrase | Pronoun | None = None
    accusative: NounPhrase | Pronoun | None = None
    prepositional: PrepositionalPhrase | None = None
    goal: PrepositionalPhrase | None = None
    predicate: AdjectivePhrase | None = None
    manner: AdverbPhrase | None = None
    place: PrepositionalPhrase | None = None
    point: AdverbPhrase | None = None
    often: AdverbPhrase | None = None
    front: str = ""
    gap: str = ""
    content: "SubordinateClause | None" = field(default=None)

    @property
    def past(self) -> bool:
        return self.tense in PAST_TENSES

    def role(self, name: str) -> Any:
        """The constituent of this role, unless it is fronted or relativised."""
        return None if name in (self.front, self.gap) else getattr(self, name)


@dataclass(slots=True)
class SubordinateClause:
    """A clause behind a conjunction: *because …*, *weil …*."""

    conjunctions: tuple[str, str]
    clause: Clause
    link: int

    def english(self) -> Draft:
        conjunction = word("IN", self.conjunctions[0], self.link)
        return ("SBAR", [conjunction, ("S", english_clause(self.clause))])

    def german(self) -> Draft:
        conjunction = word("KOUS", self.conjunctions[1], self.link)
        return ("SBAR", [conjunction, ("S", german_clause(self.clause, "last"))])


@dataclass(slots=True)
class RelativeClause:
    """A clause with a gap; the German pronoun has the noun's gender, the gap's case."""

    noun_phrase: NounPhrase
    clause: Clause
    link: int

    def english(self) -> Draft:
        gap, clause = self.clause.gap, self.clause
        if gap == "place":
            assert clause.place is not None
            which = ("WHNP", [word("WDT", "which", self.link)])
            preposition = word("IN", clause.place.english_words, clause.place.link)
            return ("SBAR", [("WHPP", [preposition, which]), _s(clause)])
        who = gap == "subject" and "person" in self.noun_phrase.noun.classes
        pronoun = word("WP" if who else "WDT", "who" if who else "that", self.link)
        return ("SBAR", [("WHNP", [pronoun]), _s(clause)])

    def german(self) -> Draft:
        gap, clause = self.clause.gap, self.clause
        case = {"subject": "nom", "accusative": "acc"}.get(gap, "dat")
        form = german.RELATIVE[case, self.noun_phrase.gender]
        front: Draft = ("NP", [word("PRELS", form, self.link)])
        if gap == "place":
            assert clause.place is not None
            preposition = word("APPR", clause.place.german_word, clause.place.link)
            front = ("PP", [preposition, front])
        return ("SBAR", [front, ("S", german_clause(clause, "last"))])


def _s(clause: Clause) -> Draft:
    return ("S", english_clause(clause))


def english_clause(clause: Clause) -> list[Draft]:
    """A declarative clause, main or subordinate: the children of its S."""
    parts = [] if clause.gap == "subject" else [_with_relative(clause.subject)]
    if clause.front:
        parts.insert(0, getattr(clause, clause.front).english())
    parts.append(_verb_phrase(clause, _verb_group(clause, inverted=False)))
    return parts


def english_question(clause: Clause) -> Draft:
    """A question: the auxiliary stands before the subject."""
    group = _verb_group(clause, inverted=True)
    if clause.verb is None and len(group) == 1:
        rest = _after_verb(clause)
        return ("SQ", [group[0], clause.subject.english(), *_often(clause), *rest])
    inner = _verb_phrase(clause, group[1:], inverted=True)
    return ("SQ", [group[0], clause.subject.english(), *_not(clause), inner])


def _with_relative(phrase: NounPhrase | Pronoun) -> Draft:
    draft = phrase.english()
    if phrase.relative is not None:
        return ("NP", [draft, phrase.relative.english()])
    return draft


def _verb_group(clause: Clause, inverted: bool) -> list[Word]:
    """Auxiliaries and full verb, in order; *not* and adverbs come in later."""
    subject, verb, link = clause.subject, clause.verb, clause.link
    agreement = (clause.past, subject.person, subject.plural)
    ending = _tag(*agreement)
    base = word("VB", verb.base if verb else "be", link)
    if clause.tense == "perfect":
        has = english.auxiliary_form(english.HAVE, *agreement)
        form = verb.participle if verb else "been"
        return [word(ending, has, link + 1), word("VBN", form, link)]
    supported = inverted or clause.negated
    if clause.tense in ("want", "wanted"):
        to = word("TO", "to", link + 1)
        if supported:
            do = english.auxiliary_form(english.DO, *agreement)
            return [word(ending, do, link + 1), word("VB", "want", link + 1), to, base]
        form = "wanted" if clause.past else "want" + "s" * (ending == "VBZ")
        return [word(ending, form, link + 1), to, base]
    if clause.tense in MODALS:
        return [word("MD", MODALS[clause.tense][0], link + 1), base]
    if verb is None:
        return [word(ending, english.auxiliary_form(english.BE, *agreement), link)]
    if supported:
        return [word(ending, english.auxiliary_form(english.DO, *agreement), link), base]
    return [word(ending, english.finite_form(verb, *agreement), link)]


def _tag(past: bool, person: int, plural: bool) -> str:
    if past:
        return "VBD"
    return "VBZ" if person == 3 and not plural else "VBP"


def _not(clause: Clause) -> list[Word]:
    return [word("RB", "not", clause.link + 2)] if clause.negated else []


def _often(clause: Clause) -> list[Draft]:
    return [clause.often.english()] if clause.often else []


def _verb_phrase(clause: Clause, group: Sequence[Word], inverted: bool = False) -> Draft:
    """Nested verb phrases; *not* and the adverb of frequency follow the first auxiliary."""
    rest = _after_verb(clause)
    middle = [*([] if inverted else _not(clause)), *_often(clause)]
    if len(group) == 1:
        if clause.verb is None and not inverted:
            return ("VP", [group[0], *middle, *rest])
        return ("VP", [*middle, group[0], *rest])
    phrase: Draft = ("VP", [group[-1], *rest])
    for position in range(len(group) - 2, -1, -1):
        between = middle if position == 0 and not inverted else []
        phrase = ("VP", [group[position], *between, phrase])
        if group[position][0] == "TO":
            phrase = ("S", [phrase])
    if inverted and middle:
        phrase = ("VP", [*middle, *phrase[1]])
    return phrase


def _after_verb(clause: Clause) -> list[Draft]:
    verb, parts = clause.verb, []
    objects = [
        _object(clause.role(name)) for name in ("dative", "accusative") if clause.role(name)
    ]
    if verb and verb.particle in ("at", "for", "to"):
        parts.append(("PP", [word("IN", verb.particle, clause.link), *objects]))
    else:
        if verb and verb.particle:
            tag, label = ("JJ", "ADJP") if verb.particle == "asleep" else ("RP", "PRT")
            parts.append((label, [word(tag, verb.particle, clause.link)]))
        parts.extend(objects)
    for name in ("prepositional", "goal", "predicate", "manner", "place", "point", "content"):
        constituent = clause.role(name)
        if constituent is not None:
            parts.append(constituent.english())
    return parts


def _object(phrase: NounPhrase | Pronoun) -> Draft:
    draft = phrase.english(subject=False)
    if phrase.relative is not None:
        return ("NP", [draft, phrase.relative.english()])
    return draft


def german_clause(clause: Clause, order: str, front: Draft | None = None) -> list:
    """A clause whose finite verb is "second", "first" or "last": the children of its S.

    Args:
        clause: What is said.
        order: Where the finite verb stands.
        front: What stands before a second verb, if not the clause's own front or subject.
    """
    finite, infinite, prefix = _german_verb(clause)
    tail = _extraposed(clause)
    subject = [] if clause.gap == "subject" else _german_subject(clause)
    middle = _middle_field(clause)
    if clause.front:
        front = getattr(clause, clause.front).german()
    if infinite:
        middle = [("VP", [*middle, *infinite])]
    if order == "last":
        if prefix:
            finite[1] = prefix[1] + finite[1]
        return [*subject, *middle, finite, *tail]
    end = [prefix] if prefix else []
    if order == "first":
        return [finite, *subject, *middle, *end, *tail]
    if front is None:
        return [*subject, finite, *middle, *end, *tail]
    return [front, finite, *subject, *middle, *end, *tail]


def _german_subject(clause: Clause) -> list:
    draft = clause.subject.german("nom")
    if clause.subject.relative is None:
        return [draft]
    return [("NP", [draft, *enclosed(clause.subject.relative.german())])]


def enclosed(draft: Draft) -> list:
    """A German subordinate clause between its commas."""
    return [word("$,", ","), draft, word("$,", SOFT_COMMA)]


def _german_verb(clause: Clause) -> tuple[Word, list[Word], Word | None]:
    """The finite verb, what is not finite, and a separable prefix that stands alone."""
    verb, link, tense = clause.verb, clause.link, clause.tense
    person, plural = clause.subject.person, clause.subject.plural
    if tense == "perfect":
        name = "sein" if verb is None or verb.takes_sein else "haben"
        form = german.auxiliary_form(name, False, person, plural)
        participle = verb.german_participle if verb else "gewesen"
        tag = "VVPP" if verb else "VAPP"
        return word("VAFIN", form, link + 1), [word(tag, participle, link)], None
    if tense in MODALS:
        _, name, past = MODALS[tense]
        form = german.auxiliary_form(name, past, person, plural)
        infinitive = verb.prefix + verb.infinitive if verb else "sein"
        tag = "VAFIN" if tense == "future" else "VMFIN"
        inner = "VVINF" if verb else "VAINF"
        return word(tag, form, link + 1), [word(inner, infinitive, link)], None
    if verb is None:
        form = german.auxiliary_form("sein", clause.past, person, plural)
        return word("VAFIN", form, link), [], None
    form = german.finite_form(verb, clause.past, person, plural)
    prefix = word("PTKVZ", verb.prefix, link) if verb.prefix else None
    return word("VVFIN", form, link), [], prefix


def _extraposed(clause: Clause) -> list:
    """What follows the German verb's end: an object's relative clause, a dass-clause."""
    for phrase in (clause.role("accusative"), clause.role("dative")):
        if phrase is not None and phrase.relative is not None:
            return enclosed(phrase.relative.german())
    return enclosed(clause.content.german()) if clause.content else []


def _middle_field(clause: Clause) -> list:
    accusative, dative = clause.role("accusative"), clause.role("dative")
    negation = [word("PTKNEG", "nicht", clause.link + 2)] if clause.negated else []
    # "not … a" is "kein": the negation goes into the last object, if that is indefinite.
    last = accusative or dative
    if negation and last is not None and not last.definite:
        last.negation = clause.link + 2
        negation = []
    pronouns = [
        phrase.german(case)
        for phrase, case in ((accusative, "acc"), (dative, "dat"))
        if phrase is not None and phrase.is_pronoun
    ]
    objects = [
        [phrase.german(case)] if phrase is not None and not phrase.is_pronoun else []
        for phrase, case in ((dative, "dat"), (accusative, "acc"))
    ]
    early = accusative is not None and accusative.definite
    return [
        *pronouns,
        *objects[0],
        *_written(clause, "point"),
        *(objects[1] if early else []),
        *_written(clause, "often"),
        *negation,
        *_written(clause, "manner"),
        *_written(clause, "place"),
        *([] if early else objects[1]),
        *_written(clause, "prepositional"),
        *_written(clause, "goal"),
        *_written(clause, "predicate"),
    ]


def _written(clause: Clause, name: str) -> list[Draft]:
    constituent = clause.role(name)
    return [constituent.german()] if constituent is not None else []
