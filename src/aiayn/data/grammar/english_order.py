"""English word order: subject, verb, objects, then manner, place and time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiayn.data.grammar import english
from aiayn.data.grammar.phrases import Draft, NounPhrase, Pronoun, Word, word
from aiayn.data.grammar.tenses import MODALS

if TYPE_CHECKING:
    from aiayn.data.grammar.clauses import Clause


def english_clause(clause: "Clause") -> list[Draft]:
    """A declarative clause, main or subordinate: the children of its S."""
    parts = [] if clause.gap == "subject" else [_with_relative(clause.subject)]
    if clause.front:
        parts.insert(0, getattr(clause, clause.front).english())
    parts.append(_verb_phrase(clause, _verb_group(clause, inverted=False)))
    return parts


def english_question(clause: "Clause") -> Draft:
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


def _verb_group(clause: "Clause", inverted: bool) -> list[Word]:
    """Auxiliaries and full verb, in order; *not* and adverbs come in later."""
    subject, verb, link = clause.subject, clause.verb, clause.link
    agreement = (clause.past, subject.plural)
    ending = _tag(*agreement)
    base = word("VB", verb.base if verb else "be", link)
    supported = inverted or clause.negated
    if clause.tense == "want":
        to = word("TO", "to", link + 1)
        if supported:
            do = english.auxiliary_form(english.DO, *agreement)
            return [word(ending, do, link + 1), word("VB", "want", link + 1), to, base]
        form = "want" + "s" * (ending == "VBZ")
        return [word(ending, form, link + 1), to, base]
    if clause.tense in MODALS:
        modal = MODALS[clause.tense][0]
        if modal == "can" and clause.negated and not inverted:
            return [word("MD", "cannot", link + 1, link + 2), base]
        return [word("MD", modal, link + 1), base]
    if verb is None:
        return [word(ending, english.auxiliary_form(english.BE, *agreement), link)]
    if supported:
        return [
            word(ending, english.auxiliary_form(english.DO, *agreement), link),
            base,
        ]
    return [word(ending, english.finite_form(verb, *agreement), link)]


def _tag(past: bool, plural: bool) -> str:
    if past:
        return "VBD"
    return "VBP" if plural else "VBZ"


def _not(clause: "Clause") -> list[Word]:
    within = clause.tense == "can"  # cannot
    return [word("RB", "not", clause.link + 2)] if clause.negated and not within else []


def _often(clause: "Clause") -> list[Draft]:
    return [clause.often.english()] if clause.often else []


def _verb_phrase(
    clause: "Clause", group: Sequence[Word], inverted: bool = False
) -> Draft:
    """Nested verb phrases; *not* and *often* follow the first auxiliary."""
    rest = _after_verb(clause)
    middle = [*([] if inverted else _not(clause)), *_often(clause)]
    wants = (
        len(group) == 3 and group[1][0] == "TO"
    )  # often wants to, not: wants often to
    if len(group) == 1:
        if clause.verb is None and not inverted:
            return ("VP", [group[0], *middle, *rest])
        return ("VP", [*middle, group[0], *rest])
    phrase: Draft = ("VP", [group[-1], *rest])
    for position in range(len(group) - 2, -1, -1):
        between = middle if position == 0 and not inverted else []
        before, after = (between, []) if wants else ([], between)
        phrase = ("VP", [*before, group[position], *after, phrase])
        if group[position][0] == "TO":
            phrase = ("S", [phrase])
    if inverted and middle:
        phrase = ("VP", [*middle, *phrase[1]])
    return phrase


def _after_verb(clause: "Clause") -> list[Draft]:
    verb, parts = clause.verb, []
    objects = [
        _object(clause.role(name))
        for name in ("dative", "accusative")
        if clause.role(name)
    ]
    if verb and verb.particle in ("at", "for", "to"):
        parts.append(("PP", [word("IN", verb.particle, clause.link), *objects]))
    else:
        parts.extend(objects)
        if verb and verb.particle:
            tag, label = ("JJ", "ADJP") if verb.particle == "asleep" else ("RP", "PRT")
            place = len(parts) if _is_pronoun(clause.role("accusative")) else 0
            parts.insert(place, (label, [word(tag, verb.particle, clause.link)]))
    for name in (
        "prepositional",
        "goal",
        "predicate",
        "manner",
        "place",
        "point",
        "content",
    ):
        constituent = clause.role(name)
        if constituent is not None:
            parts.append(constituent.english())
    return parts


def _is_pronoun(phrase: NounPhrase | Pronoun | None) -> bool:
    """Pronouns stand before a particle: picks up the girl, but picks her up."""
    return phrase is not None and phrase.is_pronoun


def _object(phrase: NounPhrase | Pronoun) -> Draft:
    draft = phrase.english(subject=False)
    if phrase.relative is not None:
        return ("NP", [draft, phrase.relative.english()])
    return draft
