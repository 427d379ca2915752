"""The kinds of sentences, and how often each is drawn."""

from collections.abc import Callable

from aiayn.data.grammar import english, german
from aiayn.data.grammar.clauses import (
    Clause,
    SubordinateClause,
    english_clause,
    english_question,
    german_clause,
    enclosed,
)
from aiayn.data.grammar.draw import PLAIN_TENSES, TENSES, Draw
from aiayn.data.grammar.nouns import BY_NAME, Noun, nouns_of
from aiayn.data.grammar.phrases import (
    THE,
    AdjectivePhrase,
    Determiner,
    Draft,
    NounPhrase,
    Pronoun,
    word,
)
from aiayn.data.grammar.verbs import VERBS, Verb, verbs_of, verbs_with_object
from aiayn.data.grammar.words import ADJECTIVES, adjectives_of

Pair = tuple[Draft, Draft]

MAIN_VERBS = tuple(verb for verb in VERBS if verb.frame not in ("that", "whether"))
SHORT_VERBS = tuple(v for v in MAIN_VERBS if v.frame in ("itr", "acc", "dat", "to"))
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
FEELINGS = tuple(a for a in ADJECTIVES if a.english in ("tired", "sick"))
FAULTS = {
    "food": ("sour", "cold", "hot", "sweet", "expensive"),
    "thing": ("expensive", "broken", "dirty", "cheap", "heavy", "ugly"),
}


def _sentence(source: list, target: list, mark: str, link: int, label: str = "S") -> Pair:
    tag = "$."
    return (
        (label, [*source, word(".", mark, link)]),
        (label, [*target, word(tag, mark, link)]),
    )


def _statement(draw: Draw, clause: Clause) -> Pair:
    source, target = english_clause(clause), german_clause(clause, "second")
    return _sentence(source, target, ".", draw.links(1))


def simple(draw: Draw) -> Pair:
    """*Today the dog does not eat the bread.*"""
    clause = draw.clause(draw.pick(MAIN_VERBS))
    front = [name for name in ("point", "place") if getattr(clause, name) is not None]
    if front and draw.chance(0.4):
        clause.front = draw.pick(front)
        if clause.front == "place" and clause.verb and clause.verb.frame == "where":
            clause.front = ""
    return _statement(draw, clause)


def copula(draw: Draw) -> Pair:
    """*The old house is very beautiful.*"""
    noun = draw.pick([noun for noun in nouns_of(_DESCRIBED)])
    subject = draw.noun_phrase(noun, plural=0.3, adjective=0.1, subject=True)
    if subject.modifier is None and draw.chance(0.2):
        draw.modify(subject)
    return _statement(draw, _copula(draw, subject))


_DESCRIBED = "person animal food thing vehicle furniture built room area tale instrument"


def _copula(draw: Draw, subject: NounPhrase, tenses=("present", "present", "past")) -> Clause:
    clause = Clause(subject, None, draw.pick(tenses), draw.links(3))
    used = {adjective.english for adjective in subject.adjectives}
    for _ in range(20):
        clause.predicate = draw.predicate(subject.noun)
        if clause.predicate.adjective.english not in used:
            break
    clause.negated = draw.chance(0.15)
    if clause.negated:
        assert clause.predicate is not None
        clause.predicate.degree = None
    return clause


def comparison(draw: Draw) -> Pair:
    """*The dog is bigger than the cat.*"""
    noun = draw.pick(nouns_of("person animal thing vehicle built furniture"))
    subject = draw.noun_phrase(noun, adjective=0.05, determiner=THE)
    adjective = draw.adjective(noun)
    assert adjective is not None
    kinds = " ".join(noun.classes & {"person", "animal", "vehicle", "built", "furniture"})
    others = [
        other
        for other in nouns_of(kinds or "thing")
        if other is not noun and adjective.fits(other)
    ]
    others = others or [noun]
    standard = draw.noun_phrase(draw.pick(others), adjective=0.0)
    clause = Clause(subject, None, draw.pick(("present", "past")), draw.links(3))
    clause.predicate = AdjectivePhrase(adjective, None, standard, draw.links(2))
    return _statement(draw, clause)


def relative_subject(draw: Draw) -> Pair:
    """*The key that the children found is old.* The verb agrees across the clause."""
    noun = draw.pick(nouns_of(_DESCRIBED))
    subject = draw.noun_phrase(noun, plural=0.35, adjective=0.1, determiner=THE)
    _relative(draw, subject)
    verbs = [v for v in SHORT_VERBS if noun in nouns_of(v.subjects)]
    if verbs and draw.chance(0.5):
        return _statement(draw, draw.clause(draw.pick(verbs), subject, adjuncts=0.1))
    return _statement(draw, _copula(draw, subject))


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
    return _statement(draw, clause)


_RELATIVE_MAIN = tuple(
    v for v in MAIN_VERBS if v.frame in ("acc", "dat") and v.base != "play"
)


def subordinate(draw: Draw) -> Pair:
    """*The dog sleeps because the cat is tired.*, or the other way round."""
    tense = draw.pick(("present", "past"))
    main = draw.clause(draw.pick(SHORT_VERBS), tenses=(tense,), adjuncts=0.1)
    if draw.chance(0.2):
        noun = draw.pick(nouns_of("person animal"))
        inner = _copula(draw, draw.noun_phrase(noun, subject=True), (tense,))
    else:
        verb = draw.pick(SHORT_VERBS)
        inner = draw.clause(verb, tenses=(tense,), adjuncts=0.1, negated=0.05)
    pair = draw.pick(CONJUNCTIONS[tense])
    clause = SubordinateClause(pair, inner, draw.links(1))
    return _with_subordinate(draw, main, clause, draw.chance(0.4))


def _with_subordinate(
    draw: Draw, main: Clause, clause: SubordinateClause, first: bool
) -> Pair:
    draw.tags.add("subordinate")
    if first:
        comma = draw.links(1)
        source = [clause.english(), word(",", ",", comma), *english_clause(main)]
        front = clause.german()
        target = german_clause(main, "second", front=front)
        target.insert(1, word("$,", ",", comma))
        return _sentence(source, target, ".", draw.links(1))
    main.content = clause
    return _statement(draw, main)


def complement(draw: Draw) -> Pair:
    """*The teacher thinks that the dog is asleep.*"""
    verb = draw.pick(EMBEDDING_VERBS)
    negated = 0.3 if verb.base == "know" else 0.05
    tense = draw.pick(PLAIN_TENSES)
    main = draw.clause(verb, tenses=(tense,), adjuncts=0.0, negated=negated)
    tenses = TENSES if tense == "present" else ("past", "wanted", "could")
    if draw.chance(0.25):
        noun = draw.pick(nouns_of(_DESCRIBED))
        kinds = ("present", "past") if tense == "present" else ("past",)
        inner = _copula(draw, draw.noun_phrase(noun, subject=True), kinds)
    else:
        inner = draw.clause(draw.pick(SHORT_VERBS), tenses=tenses, adjuncts=0.15)
    pair = ("that", "dass")
    if verb.frame == "whether" or (verb.base == "know" and main.negated):
        pair = ("whether", "ob")
    main.content = SubordinateClause(pair, inner, draw.links(1))
    draw.tags |= {"subordinate", "complement"}
    return _statement(draw, main)


def question(draw: Draw) -> Pair:
    """*Does the dog sleep in the garden?*"""
    draw.tags.add("question")
    if draw.chance(0.25):
        noun = draw.pick(nouns_of(_DESCRIBED))
        clause = _copula(draw, draw.noun_phrase(noun), ("present", "past"))
        clause.negated = False
    else:
        clause = draw.clause(draw.pick(SHORT_VERBS), adjuncts=0.25, negated=0.0)
    source, target = english_question(clause), german_clause(clause, "first")
    return _sentence(source[1], target, "?", draw.links(1), "SQ")


def wh_question(draw: Draw) -> Pair:
    """*Where does the dog sleep? What does the boy eat? Why …?*"""
    draw.tags.add("question")
    kind = draw.pick(("where", "what", "why", "when"))
    tenses = ("present", "past", "perfect")
    if kind == "where":
        verb = draw.pick((*verbs_of("where"), *verbs_of("to")))
        words = ("Where", "Wo" if verb.frame == "where" else "Wohin")
    elif kind == "what":
        verb = draw.pick([v for v in verbs_of("acc") if "person" not in v.objects])
        words = ("What", "Was")
    else:
        verb = draw.pick(SHORT_VERBS)
        words = ("Why", "Warum") if kind == "why" else ("When", "Wann")
        tenses = tenses if kind == "why" else ("present", "past")
    clause = draw.clause(verb, tenses=tenses, adjuncts=0.0, negated=0.0)
    clause.manner = None
    if kind == "where":
        clause.place = clause.goal = None
    elif kind == "what":
        clause.accusative = None
    link = draw.links(1)
    label, tag = ("WHNP", "WP") if kind == "what" else ("WHADVP", "WRB")
    source = [(label, [word(tag, words[0], link)]), english_question(clause)]
    german_label, german_tag = ("NP", "PWS") if kind == "what" else ("ADVP", "PWAV")
    front = (german_label, [word(german_tag, words[1], link)])
    target = german_clause(clause, "second", front=front)
    return _sentence(source, target, "?", draw.links(1), "SBARQ")


def anaphora(draw: Draw) -> Pair:
    """*The cat does not eat the bread because it is tired (sour).*

    What *it* stands for follows from what is said of it; German needs its gender.
    """
    draw.tags.add("anaphora")
    shape = draw.random()
    if shape < 0.35:
        return _eat_because(draw)
    if shape < 0.7:
        return _buy_because(draw)
    if shape < 0.85:
        return _own(draw)
    return _because_of_self(draw)


def _pronoun_for(draw: Draw, phrase: NounPhrase) -> Pronoun:
    return draw.pronoun(phrase.gender, phrase.antecedent)


def _be_because(
    draw: Draw, main: Clause, phrase: NounPhrase, adjectives, degree: float
) -> Pair:
    noun = phrase.noun
    inner = Clause(_pronoun_for(draw, phrase), None, main.tense, draw.links(3))
    fitting = [adjective for adjective in adjectives if adjective.fits(noun)]
    chosen = draw.pick(fitting)
    pair = ("too", "zu") if draw.chance(degree) else None
    inner.predicate = AdjectivePhrase(chosen, pair, None, draw.links(2))
    clause = SubordinateClause(("because", "weil"), inner, draw.links(1))
    return _with_subordinate(draw, main, clause, False)


def _faults(noun: Noun) -> list:
    names = FAULTS["food" if "food" in noun.classes else "thing"]
    return [a for a in adjectives_of(noun) if a.english in names]


_EATEN = tuple(noun for noun in nouns_of("food") if _faults(noun))
_BOUGHT = tuple(noun for noun in nouns_of("clothes vessel furniture") if _faults(noun))
_EAT: dict[str, Verb] = {verb.subjects: verb for verb in VERBS if verb.base == "eat"}


def _eat_because(draw: Draw) -> Pair:
    """An animal or child, and food: *it* may be either."""
    tense = draw.pick(("present", "past"))
    animal = draw.chance(0.7)
    eater = draw.pick(nouns_of("animal")) if animal else BY_NAME["child"]
    verb = _EAT["animal" if animal else "person"]
    eaten = _EATEN
    if animal:
        eaten = tuple(noun for noun in eaten if "feed" in noun.classes)
    noun = draw.pick(eaten)
    while not draw.may_combine(verb, noun):
        noun = draw.pick(eaten)
    subject = draw.noun_phrase(eater, plural=0.1, adjective=0.0, determiner=THE)
    food = draw.noun_phrase(noun, plural=0.1, adjective=0.0, determiner=THE)
    clause = Clause(subject, verb, tense, draw.links(3), accusative=food, negated=True)
    if draw.chance(0.5):
        return _be_because(draw, clause, subject, FEELINGS, 0.5)
    return _be_because(draw, clause, food, _faults(noun), 0.6)


_OWNERS = tuple(noun for noun in nouns_of("person") if noun.singular != "girl")
"""Persons that a pronoun stands for: German leaves *es* or *sie* for a girl open."""
_GET = tuple(v for v in VERBS if v.name in ("buy", "look for", "take along", "carry"))
_LEAVE = tuple(v for v in VERBS if v.name in ("buy", "sell", "throw away", "wash"))
_NEED = next(v for v in VERBS if v.name == "need")


def _buy_because(draw: Draw) -> Pair:
    """*The woman buys the coat because she needs it (because it is cheap).*"""
    tense = draw.pick(("present", "past"))
    owner = draw.pick(_OWNERS)
    subject = draw.noun_phrase(owner, plural=0.15, adjective=0.1, determiner=THE)
    needs = draw.chance(0.5)
    noun = draw.pick(_BOUGHT)
    verbs = [v for v in (_GET if needs else _LEAVE) if noun in nouns_of(v.objects)]
    verb = draw.pick([v for v in verbs if draw.may_combine(v, noun)] or verbs[:1])
    if not draw.may_combine(verb, noun):
        return _buy_because(draw)
    thing = draw.noun_phrase(noun, plural=0.15, adjective=0.2, determiner=THE)
    clause = Clause(subject, verb, tense, draw.links(3), accusative=thing)
    if not needs:
        clause.negated = draw.chance(0.3)
        return _be_because(draw, clause, thing, _faults(noun), 0.5)
    inner = Clause(_pronoun_for(draw, subject), _NEED, tense, draw.links(3))
    inner.accusative = _pronoun_for(draw, thing)
    reason = SubordinateClause(("because", "weil"), inner, draw.links(1))
    return _with_subordinate(draw, clause, reason, False)


def _own(draw: Draw) -> Pair:
    """*The woman reads her book*: the possessive agrees with owner and owned."""
    subject = draw.noun_phrase(draw.pick(_OWNERS), plural=0.15, adjective=0.1, subject=True)
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
    return _statement(draw, clause)


_OWNING = tuple(
    v
    for v in VERBS
    if v.name
    in ("sell", "wash", "look for", "lose", "forget", "take off", "put on", "repair", "close")
)


def _because_of_self(draw: Draw) -> Pair:
    """*The cat sleeps because it is tired.*"""
    noun = draw.pick((*_OWNERS, *nouns_of("animal")))
    subject = draw.noun_phrase(noun, plural=0.2, adjective=0.1, determiner=THE)
    verbs = [v for v in _CALM if noun in nouns_of(v.subjects)]
    clause = draw.clause(draw.pick(verbs), subject, tenses=("present", "past"), adjuncts=0.1)
    return _be_because(draw, clause, subject, FEELINGS, 0.3)


_CALM = tuple(v for v in verbs_of("itr") if v.base in ("sleep", "cry", "fall", "work", "wake"))


def coordination(draw: Draw) -> Pair:
    """*The dog and the cat sleep.*, or two clauses with *and* or *but*."""
    draw.tags.add("coordination")
    first = draw.clause(draw.pick(SHORT_VERBS), tenses=PLAIN_TENSES, adjuncts=0.1)
    second = draw.clause(draw.pick(SHORT_VERBS), tenses=(first.tense,), adjuncts=0.1)
    link, comma = draw.links(1), draw.links(1)
    words = draw.pick((("and", "und"), ("but", "aber")))
    source = [("S", english_clause(first)), word("CC", words[0], link)]
    target = [("S", german_clause(first, "second")), word("KON", words[1], link)]
    if words[0] == "but":
        source.insert(1, word(",", ",", comma))
        target.insert(1, word("$,", ",", comma))
    source.append(("S", english_clause(second)))
    target.append(("S", german_clause(second, "second")))
    return _sentence(source, target, ".", draw.links(1))


KINDS: dict[str, tuple[Callable[[Draw], Pair], int]] = {
    "simple": (simple, 36),
    "copula": (copula, 8),
    "comparison": (comparison, 4),
    "relative-subject": (relative_subject, 8),
    "relative-object": (relative_object, 6),
    "subordinate": (subordinate, 9),
    "complement": (complement, 7),
    "question": (question, 6),
    "wh-question": (wh_question, 4),
    "anaphora": (anaphora, 8),
    "coordination": (coordination, 4),
}
"""Each kind's function and its share in percent."""

_WHEEL = tuple(name for name, (_, share) in KINDS.items() for _ in range(share))


def derive(draw: Draw) -> tuple[str, Pair]:
    """One sentence: its kind, and its English and German drafts."""
    kind = draw.pick(_WHEEL)
    return kind, KINDS[kind][0](draw)
