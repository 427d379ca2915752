"""The kinds of sentences, and how often each is drawn."""

from collections.abc import Callable, Sequence

from aiayn.data.grammar.anaphora import anaphora
from aiayn.data.grammar.clauses import Clause, SubordinateClause
from aiayn.data.grammar.copulas import (
    DESCRIBED,
    comparison,
    copula,
    copula_clause,
    definite,
)
from aiayn.data.grammar.draw import PLAIN_TENSES, STATES, TENSES, Draw
from aiayn.data.grammar.english_order import english_clause
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.nouns import nouns_of
from aiayn.data.grammar.phrases import THE, NounPhrase, word
from aiayn.data.grammar.questions import question, wh_question
from aiayn.data.grammar.verbs import MAIN_VERBS, SHORT_VERBS, verbs_of
from aiayn.data.grammar.whole import Pair, finished, statement, with_subordinate
from aiayn.data.grammar.words import ADJECTIVES

ACTIONS = tuple(v for v in SHORT_VERBS if v.name not in STATES)
EMBEDDING_VERBS = (*verbs_of("that"), *verbs_of("whether"))
CONJUNCTIONS = {
    "present": (
        ("because", "weil"),
        ("when", "wenn"),
        ("if", "wenn"),
        ("although", "obwohl"),
        ("while", "während"),
        ("before", "bevor"),
    ),
    "past": (
        ("because", "weil"),
        ("when", "als"),
        ("although", "obwohl"),
        ("while", "während"),
        ("before", "bevor"),
    ),
}


def simple(draw: Draw) -> Pair:
    """*Today the dog does not eat the bread.*"""
    clause = draw.clause(draw.pick(MAIN_VERBS))
    front = [name for name in ("point", "place") if getattr(clause, name) is not None]
    if front and draw.chance(0.4):
        clause.front = draw.pick(front)
        if clause.front == "place" and clause.verb and clause.verb.frame == "where":
            clause.front = ""
        elif clause.front:
            draw.tags.add("fronted")
    return statement(draw, clause)


def relative_subject(draw: Draw) -> Pair:
    """*The key that the children found is old.* The verb agrees across the clause."""
    noun = draw.noun(nouns_of(_RELATED))
    subject = draw.noun_phrase(noun, plural=0.35, adjective=0.0, determiner=THE)
    _relative(draw, subject)
    verbs = [v for v in ACTIONS if noun in nouns_of(v.subjects) and draw.is_new(v)]
    if verbs and draw.chance(0.5):
        return statement(draw, draw.clause(draw.pick(verbs), subject, adjuncts=0.1))
    return statement(draw, copula_clause(draw, subject))


_RELATED = "person animal food thing vehicle furniture town home tale"


def _relative(draw: Draw, phrase: NounPhrase) -> None:
    """Adds a relative clause of some kind, if there is one for this noun."""
    choices = [draw.object_relative, draw.subject_relative, draw.place_relative]
    first = int(draw.random() * 2)
    if draw.chance(0.3):
        first = 2
    for index in range(6):
        if choices[(first + index) % 3](phrase):
            draw.tags |= {"relative", "distance"}
            return


def relative_object(draw: Draw) -> Pair:
    """*The man reads the book that the woman wrote.*"""
    verb = draw.pick(_RELATIVE_MAIN)
    clause = draw.clause(verb, adjuncts=0.0)
    phrase = clause.accusative or clause.dative
    if isinstance(phrase, NounPhrase) and phrase.modifier is None:
        phrase.determiner = THE
        _relative(draw, phrase)
    return statement(draw, clause)


_RELATIVE_MAIN = tuple(
    v for v in MAIN_VERBS if v.frame in ("acc", "dat") and v.base != "play"
)


def subordinate(draw: Draw) -> Pair:
    """*The dog sleeps because the cat is tired.*, or the other way round."""
    tense = draw.pick(("present", "past"))
    main = draw.clause(draw.pick(ACTIONS), tenses=(tense,), adjuncts=0.1)
    if draw.chance(0.2):
        noun = draw.noun(nouns_of("person animal"))
        subject = definite(draw.noun_phrase(noun, adjective=0.0))
        inner = Clause(subject, None, tense, draw.links(3))
        moods = [mood for mood in _MOODS if mood.fits(noun) and draw.allows(mood, noun)]
        inner.predicate = draw.predicate(noun, draw.pick(moods))
        pair = draw.pick([p for p in CONJUNCTIONS[tense] if p[0] not in _DURING])
    else:
        verb = draw.pick(ACTIONS)
        inner = draw.clause(verb, tenses=(tense,), adjuncts=0.1, negated=0.05)
        pair = draw.pick(CONJUNCTIONS[tense])
    clause = SubordinateClause(pair, inner, draw.links(1))
    return with_subordinate(draw, main, clause, draw.chance(0.4))


_MOODS = tuple(a for a in ADJECTIVES if a.english in ("tired", "sick", "hungry", "sad"))
_DURING = ("while", "before")


def complement(draw: Draw) -> Pair:
    """*The teacher thinks that the dog is asleep.*"""
    verb = draw.pick(EMBEDDING_VERBS)
    negated = 0.3 if verb.base == "know" else 0.0
    tense = "present" if verb.base == "know" else draw.pick(PLAIN_TENSES)
    main = draw.clause(verb, tenses=(tense,), adjuncts=0.0, negated=negated)
    tenses = TENSES if tense == "present" else ("past",)
    if verb.base == "hope" and tense == "present":
        tenses = ("present", "future", "can")
    if draw.chance(0.25):
        noun = draw.noun(nouns_of(DESCRIBED))
        kinds = (tense,)
        inner = copula_clause(
            draw, definite(draw.noun_phrase(noun, adjective=0.0)), kinds
        )
    else:
        inner = draw.clause(draw.pick(SHORT_VERBS), tenses=tenses, adjuncts=0.15)
    pair = ("that", "dass")
    if verb.frame == "whether" or (verb.base == "know" and main.negated):
        pair = ("whether", "ob")
    main.content = SubordinateClause(pair, inner, draw.links(1))
    draw.tags |= {"subordinate", "complement"}
    return statement(draw, main)


def coordination(draw: Draw) -> Pair:
    """*The dog and the cat sleep.*, or two clauses with *and* or *but*."""
    draw.tags.add("coordination")
    first = draw.clause(draw.pick(ACTIONS), tenses=PLAIN_TENSES, adjuncts=0.1)
    second = draw.clause(draw.pick(ACTIONS), tenses=(first.tense,), adjuncts=0.1)
    link, comma = draw.links(1), draw.links(1)
    words = draw.pick((("and", "und"), ("but", "aber")))
    pause = words[0] == "but"
    source = [
        ("S", english_clause(first)),
        *([word(",", ",", comma)] if pause else []),
        word("CC", words[0], link),
        ("S", english_clause(second)),
    ]

    def target() -> list:
        return [
            ("S", german_clause(first, "second")),
            *([word("$,", ",", comma)] if pause else []),
            word("KON", words[1], link),
            ("S", german_clause(second, "second")),
        ]

    return finished(source, target, ".", draw.links(1))


KINDS: dict[str, tuple[Callable[[Draw], Pair], int]] = {
    "simple": (simple, 46),
    "copula": (copula, 17),
    "comparison": (comparison, 6),
    "relative-subject": (relative_subject, 6),
    "relative-object": (relative_object, 3),
    "subordinate": (subordinate, 4),
    "complement": (complement, 3),
    "question": (question, 3),
    "wh-question": (wh_question, 6),
    "anaphora": (anaphora, 5),
    "coordination": (coordination, 1),
}
"""Each kind's function and its share in percent."""

_WHEEL = tuple(name for name, (_, share) in KINDS.items() for _ in range(share))


_TWO_CLAUSES = {
    "relative-subject",
    "relative-object",
    "subordinate",
    "complement",
    "coordination",
}


def derive(draw: Draw, kinds: Sequence[str] = ()) -> tuple[str, Pair]:
    """One sentence: its kind, its English draft, and what writes its German one.

    Args:
        draw: Where chance comes from.
        kinds: Keys of `KINDS` to choose from alike; none: all by their shares.
    """
    kind = draw.pick(kinds or _WHEEL)
    if kind in _TWO_CLAUSES:  # two clauses are long enough without adornment
        draw.richness = 0.3
    return kind, KINDS[kind][0](draw)
