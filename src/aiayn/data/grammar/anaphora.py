"""Sentences whose pronouns have to be understood, as in the paper's figure 5."""

from collections.abc import Sequence

from aiayn.data.grammar import english, german
from aiayn.data.grammar.clauses import Clause, SubordinateClause
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.nouns import BY_NAME, Noun, nouns_of
from aiayn.data.grammar.phrases import THE, Determiner, NounPhrase, Pronoun
from aiayn.data.grammar.splits import split_adjectives, split_objects
from aiayn.data.grammar.verbs import VERBS, Verb, verbs_of
from aiayn.data.grammar.whole import Pair, statement, with_subordinate
from aiayn.data.grammar.words import ADJECTIVES, Adjective

FEELINGS = tuple(a for a in ADJECTIVES if a.english in ("tired", "sick"))
FAULTS = ("sour", "cold", "hot", "hard")
"""Why food is not eaten; none of them can be said of an eater."""
REASONS = (
    ("buy", False, "cheap beautiful modern"),
    ("buy", True, "expensive ugly dirty broken heavy"),
    ("sell", False, "ugly old heavy"),
    ("sell", True, "beautiful new"),
    ("throw away", False, "broken dirty old ugly"),
    ("throw away", True, "new beautiful"),
    ("wash", False, "dirty"),
    ("wash", True, "clean new"),
)
"""Verb, whether it is negated, and the adjectives that give a reason."""


def anaphora(draw: Draw) -> Pair:
    """*The cat does not eat the bread because it is tired (sour).*

    What *it* stands for follows from what is said of it; German needs its gender.
    """
    draw.tags.add("anaphora")
    shape = draw.random()
    if shape < 0.35:
        return _eat_because(draw)
    if shape < 0.5:
        return _need_it(draw)
    if shape < 0.7:
        return _buy_because(draw)
    if shape < 0.85:
        return _own(draw)
    return _because_of_self(draw)


def _pronoun_for(draw: Draw, phrase: NounPhrase) -> Pronoun:
    return draw.pronoun(phrase.gender, phrase.antecedent)


def _be_because(
    draw: Draw, main: Clause, phrase: NounPhrase, adjectives: Sequence[Adjective]
) -> Pair:
    inner = Clause(_pronoun_for(draw, phrase), None, main.tense, draw.links(3))
    inner.predicate = draw.predicate(phrase.noun, draw.pick(adjectives))
    clause = SubordinateClause(("because", "weil"), inner, draw.links(1))
    return with_subordinate(draw, main, clause, False)


def _said_of(noun: Noun, names: Sequence[str]) -> list[Adjective]:
    """Those of the adjectives that any sentence may say of the noun."""
    return [a for a in split_adjectives(noun)[0] if a.english in names]


_EATEN = tuple(noun for noun in nouns_of("food") if _said_of(noun, FAULTS))
_EAT: dict[str, Verb] = {verb.subjects: verb for verb in VERBS if verb.base == "eat"}


def _eat_because(draw: Draw) -> Pair:
    """An animal or child, and food: *it* may be either."""
    tense = draw.pick(("present", "past"))
    animal = draw.chance(0.7)
    eater = draw.noun(nouns_of("animal")) if animal else BY_NAME["child"]
    verb = _EAT["animal" if animal else "person"]
    eaten = _EATEN
    if animal:
        eaten = tuple(noun for noun in eaten if "feed" in noun.classes)
    noun = draw.pick(eaten)
    while not draw.allows(verb, noun):
        noun = draw.pick(eaten)
    draw.note(verb, noun)
    subject = draw.noun_phrase(eater, plural=0.1, adjective=0.0, determiner=THE)
    food = draw.noun_phrase(noun, plural=0.1, adjective=0.0, determiner=THE)
    clause = Clause(subject, verb, tense, draw.links(3), accusative=food, negated=True)
    if draw.chance(0.5):
        feelings = [a for a in FEELINGS if draw.allows(a, eater)]
        return _be_because(draw, clause, subject, feelings)
    return _be_because(draw, clause, food, _said_of(noun, FAULTS))


_OWNERS = tuple(noun for noun in nouns_of("person") if noun.singular != "girl")
"""Persons that a pronoun stands for: German leaves *es* or *sie* for a girl open."""
_GET = tuple(v for v in VERBS if v.name in ("buy", "look for", "take along"))
_REASONS = tuple(
    (verb, negated, noun, tuple(reasons))
    for name, negated, adjectives in REASONS
    for verb in VERBS
    if verb.name == name
    for noun in split_objects(verb)[0]
    if noun in nouns_of("clothes vessel furniture")
    if (reasons := _said_of(noun, adjectives.split()))
)
_NEED = next(v for v in VERBS if v.name == "need")


def _need_it(draw: Draw) -> Pair:
    """*The woman buys the coat because she needs it.*"""
    tense = draw.pick(("present", "past"))
    verb = draw.pick(_GET)
    useful = nouns_of("thing furniture")
    noun = draw.noun([noun for noun in split_objects(verb)[0] if noun in useful])
    subject, thing = _owner(draw), _thing(draw, noun)
    clause = Clause(subject, verb, tense, draw.links(3), accusative=thing)
    inner = Clause(_pronoun_for(draw, subject), _NEED, tense, draw.links(3))
    inner.accusative = _pronoun_for(draw, thing)
    reason = SubordinateClause(("because", "weil"), inner, draw.links(1))
    return with_subordinate(draw, clause, reason, False)


def _buy_because(draw: Draw) -> Pair:
    """*The woman does not buy the coat because it is expensive.*"""
    tense = draw.pick(("present", "past"))
    verb, negated, noun, reasons = draw.pick(_REASONS)
    thing = _thing(draw, noun)
    clause = Clause(_owner(draw), verb, tense, draw.links(3), accusative=thing)
    clause.negated = negated
    return _be_because(draw, clause, thing, reasons)


def _owner(draw: Draw) -> NounPhrase:
    noun = draw.noun(_OWNERS)
    return draw.noun_phrase(noun, plural=0.15, adjective=0.1, determiner=THE)


def _thing(draw: Draw, noun: Noun) -> NounPhrase:
    return draw.noun_phrase(noun, plural=0.15, adjective=0.0, determiner=THE)


def _own(draw: Draw) -> Pair:
    """*The woman reads her book*: the possessive agrees with owner and owned."""
    subject = draw.noun_phrase(
        draw.pick(_OWNERS), plural=0.15, adjective=0.1, subject=True
    )
    subject.determiner = THE
    verb = draw.pick(_OWNING)
    clause = draw.clause(verb, subject, negated=0.05)
    thing = clause.accusative
    if isinstance(thing, NounPhrase) and thing.modifier is None:
        thing.determiner = Determiner(
            english.POSSESSIVES[subject.antecedent],
            german.POSSESSIVE[subject.gender],
            "PRP$",
            "PPOSAT",
        )
    return statement(draw, clause)


_OWNING = tuple(
    v
    for v in VERBS
    if v.name
    in (
        "sell",
        "wash",
        "look for",
        "lose",
        "forget",
        "take off",
        "put on",
        "repair",
        "close",
    )
)


def _because_of_self(draw: Draw) -> Pair:
    """*The cat sleeps because it is tired.*"""
    noun = draw.pick((*_OWNERS, *nouns_of("animal")))
    subject = draw.noun_phrase(noun, plural=0.2, adjective=0.1, determiner=THE)
    verbs = [v for v in _CALM if noun in nouns_of(v.subjects)]
    clause = draw.clause(
        draw.pick(verbs), subject, tenses=("present", "past"), adjuncts=0.1
    )
    feelings = [a for a in FEELINGS if draw.allows(a, noun)]
    return _be_because(draw, clause, subject, feelings)


_CALM = tuple(v for v in verbs_of("itr") if v.base in ("sleep", "cry", "fall"))
