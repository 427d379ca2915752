"""Sentences with *to be*: what something is like, and what is more so than what."""

from aiayn.data.grammar.clauses import Clause
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.nouns import Noun, nouns_of
from aiayn.data.grammar.phrases import THE, AdjectivePhrase, NounPhrase
from aiayn.data.grammar.whole import Pair, statement
from aiayn.data.grammar.words import COMPARABLE, Adjective, adjectives_of


def copula(draw: Draw) -> Pair:
    """*The old house is very beautiful.*"""
    noun = draw.noun(nouns_of(DESCRIBED))
    subject = definite(draw.noun_phrase(noun, plural=0.3, adjective=0.0))
    if subject.modifier is None and draw.chance(0.2):
        draw.modify(subject)
    return statement(draw, copula_clause(draw, subject))


DESCRIBED = (
    "person animal food thing vehicle furniture built room area tale plant drink part"
)


def copula_clause(
    draw: Draw, subject: NounPhrase, tenses=("present", "present", "past")
) -> Clause:
    clause = Clause(subject, None, draw.pick(tenses), draw.links(3))
    clause.predicate = draw.predicate(subject.noun)
    clause.negated = draw.chance(0.15)
    if clause.negated:
        draw.tags.add("negation")
        clause.predicate.degree = None
    return clause


def comparison(draw: Draw) -> Pair:
    """*The dog is bigger than the cat.*"""
    noun = draw.noun(nouns_of(" ".join(_COMPARED)))
    subject = definite(draw.noun_phrase(noun, adjective=0.0))
    adjectives = [
        a for a in adjectives_of(noun) if _compares(a, noun) and draw.allows(a, noun)
    ]
    adjective = draw.pick(adjectives)
    draw.note(adjective, noun)
    kind = next(kind for kind in _COMPARED if kind in noun.classes)
    others = [other for other in nouns_of(kind) if adjective.fits(other)]
    standard = definite(draw.noun_phrase(draw.noun(others), adjective=0.0))
    clause = Clause(subject, None, draw.pick(("present", "past")), draw.links(3))
    clause.predicate = AdjectivePhrase(adjective, None, standard, draw.links(2))
    return statement(draw, clause)


_COMPARED = (
    "person",
    "animal",
    "clothes",
    "vessel",
    "device",
    "vehicle",
    "furniture",
    "built",
)


def _compares(adjective: Adjective, noun: Noun) -> bool:
    sized = bool(noun.classes & {"animal", "vehicle", "vessel", "device"})
    if sized and adjective.english in ("big", "small"):  # no mouse outgrows a goat
        return False
    return adjective.english in COMPARABLE


def definite(phrase: NounPhrase) -> NounPhrase:
    """Makes *a* and its like *the*: who describes a thing has it in mind."""
    if not phrase.definite:
        phrase.determiner = THE
    return phrase
