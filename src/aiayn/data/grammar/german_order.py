"""German word order: where the verb stands, and the middle field.

The finite verb is second in a main clause, first in a question and last in a
subordinate clause; everything else of the verb (infinitive, participle, separable
prefix) stands at the end. Between them stands the middle field, in this order:
pronouns, point in time, dative object, definite accusative object, frequency, *nicht*,
manner, place, indefinite accusative object, prepositional object, goal, predicate. A
relative clause of an object follows the whole clause.

Trees stay projective: finite verb, subject and fronted constituent are children of S,
as in the TIGER treebank, and a VP holds a non-finite verb with the middle field.
"""

from typing import TYPE_CHECKING

from aiayn.data.grammar import german
from aiayn.data.grammar.phrases import Draft, Word, word
from aiayn.data.grammar.tenses import MODALS

if TYPE_CHECKING:
    from aiayn.data.grammar.clauses import Clause

SOFT_COMMA = "soft ,"
"""Closes a German clause; it is dropped before another punctuation mark."""


def german_clause(clause: "Clause", order: str, front: Draft | None = None) -> list:
    """A clause whose finite verb is "second", "first" or "last": the children of its S.

    Args:
        clause: What is said.
        order: Where the finite verb stands.
        front: What stands before a second verb, if not the clause's own front.
    """
    finite, infinite, prefix = _german_verb(clause)
    tail = _extraposed(clause)
    subject = [] if clause.gap == "subject" else _german_subject(clause)
    if clause.front:
        front = getattr(clause, clause.front).german()
    pronouns, middle = _pronouns(clause), _middle_field(clause)
    inverted = order == "first" or (order == "second" and front is not None)
    if inverted and not clause.subject.is_pronoun:
        subject = [*pronouns, *subject]  # Heute hilft uns der Arzt
    else:
        middle = [*pronouns, *middle]
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


def _german_subject(clause: "Clause") -> list:
    draft = clause.subject.german("nom")
    if clause.subject.relative is None:
        return [draft]
    return [("NP", [draft, *enclosed(clause.subject.relative.german())])]


def enclosed(draft: Draft) -> list:
    """A German subordinate clause between its commas."""
    return [word("$,", ","), draft, word("$,", SOFT_COMMA)]


def _german_verb(clause: "Clause") -> tuple[Word, list[Word], Word | None]:
    """The finite verb, what is not finite, and a separable prefix that stands alone."""
    verb, link, tense = clause.verb, clause.link, clause.tense
    plural = clause.subject.plural
    if tense in MODALS:
        form = german.auxiliary_form(MODALS[tense][1], plural)
        infinitive = verb.prefix + verb.infinitive if verb else "sein"
        tag = "VAFIN" if tense == "future" else "VMFIN"
        inner = "VVINF" if verb else "VAINF"
        return word(tag, form, link + 1), [word(inner, infinitive, link)], None
    if verb is None:
        form = german.auxiliary_form("war" if clause.past else "sein", plural)
        return word("VAFIN", form, link), [], None
    if clause.past:
        name = "sein" if verb.takes_sein else "haben"
        finite = word("VAFIN", german.auxiliary_form(name, plural), link)
        return finite, [word("VVPP", verb.participle, link)], None
    form = german.finite_form(verb, plural)
    prefix = word("PTKVZ", verb.prefix, link) if verb.prefix else None
    return word("VVFIN", form, link), [], prefix


def _extraposed(clause: "Clause") -> list:
    """What follows the German clause: an object's relative clause, a dass-clause."""
    for phrase in (clause.role("accusative"), clause.role("dative")):
        if phrase is not None and phrase.relative is not None:
            return enclosed(phrase.relative.german())
    return enclosed(clause.content.german()) if clause.content else []


def _pronouns(clause: "Clause") -> list[Draft]:
    return [
        phrase.german(case)
        for phrase, case in (
            (clause.role("accusative"), "acc"),
            (clause.role("dative"), "dat"),
        )
        if phrase is not None and phrase.is_pronoun
    ]


def _middle_field(clause: "Clause") -> list:
    accusative, dative = clause.role("accusative"), clause.role("dative")
    negation = [word("PTKNEG", "nicht", clause.link + 2)] if clause.negated else []
    # "not … a" is "kein": the negation goes into the last object, if indefinite.
    last = accusative or dative
    if negation and last is not None and not last.definite:
        last.negation = clause.link + 2
        negation = []
    objects = [
        [phrase.german(case)] if phrase is not None and not phrase.is_pronoun else []
        for phrase, case in ((dative, "dat"), (accusative, "acc"))
    ]
    early = accusative is not None and accusative.definite
    return [
        *_written(clause, "point"),
        *objects[0],
        *(objects[1] if early else []),
        *_written(clause, "often"),
        *negation,
        *_written(clause, "manner", "place"),
        *([] if early else objects[1]),
        *_written(clause, "prepositional", "goal", "predicate"),
    ]


def _written(clause: "Clause", *names: str) -> list[Draft]:
    """Those of the constituents that the clause has here."""
    return [c.german() for name in names if (c := clause.role(name)) is not None]
