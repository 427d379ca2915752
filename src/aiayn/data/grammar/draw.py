"""Draws phrases and clauses at random, keeping to what makes sense.

A `Draw` makes one sentence. It hands out the links between the two languages and sees to
it that a plain sentence has no held-out combination, or that one is likely.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from aiayn.data.grammar.clauses import Clause, RelativeClause
from aiayn.data.grammar.nouns import BY_NAME, Noun, nouns_of
from aiayn.data.grammar.phrases import (
    BARE,
    EVERY,
    NUMERALS,
    POSSESSIVES,
    THE,
    THIS,
    A,
    AdjectivePhrase,
    AdverbPhrase,
    Determiner,
    NounPhrase,
    Possessor,
    PrepositionalPhrase,
    Pronoun,
)
from aiayn.data.grammar.splits import split_adjectives, split_objects
from aiayn.data.grammar.verbs import Verb, verbs_with_object, verbs_with_subject
from aiayn.data.grammar.words import (
    DEGREES,
    MANNERS,
    Adjective,
    adjectives_of,
    adverbials_of,
)

Item = TypeVar("Item")

TENSES = (
    *("present",) * 9,
    *("past",) * 7,
    *("perfect",) * 5,
    *("future", "can", "must", "want", "should", "could", "wanted"),
)
PLAIN_TENSES = ("present", "present", "past")
STATES = frozenset({"love", "know", "need", "trust", "belong to", "think", "see", "hear"})
"""Verbs of no action: no place, no manner, no modal."""
ADJUNCT_PLACES = "=garden =park =kitchen =room =house =village =city =street =market"
HAS = {"person": "=hat =umbrella =bag =suitcase =basket =camera =guitar =flower =dog"}


class Draw:
    """One sentence in the making."""

    def __init__(self, rng: Random, combine: bool) -> None:
        self.random = rng.random
        self.combine = combine
        self.combined = False
        self.tags: set[str] = set()
        self._link = 0

    def links(self, count: int) -> int:
        """Hands out so many links; returns the first."""
        first = self._link
        self._link += count
        return first

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    # Held-out combinations

    def _split(self, parts: tuple[Sequence[Item], Sequence[Item]]) -> Item | None:
        plain, held_out = parts
        if self.combine and held_out and self.chance(0.5):
            self.combined = True
            return self.pick(held_out)
        return self.pick(plain) if plain else None

    def adjective(self, noun: Noun) -> Adjective | None:
        return self._split(split_adjectives(noun))

    def object_of(self, verb: Verb) -> Noun:
        noun = self._split(split_objects(verb))
        assert noun is not None
        return noun

    def may_combine(self, verb: Verb, noun: Noun) -> bool:
        """Whether this verb may take this object here; notes a held-out pair."""
        held_out = noun in split_objects(verb)[1]
        if held_out and self.combine:
            self.combined = True
        return self.combine or not held_out

    # Phrases

    def noun_phrase(
        self,
        noun: Noun,
        *,
        plural: float = 0.2,
        adjective: float = 0.28,
        determiner: Determiner | None = None,
        subject: bool = False,
    ) -> NounPhrase:
        """Determiner, adjectives and this noun; `plural` and `adjective` are chances."""
        many = noun.has_plural and self.chance(plural)
        if determiner is None:
            determiner = self._determiner(noun, many, subject)
        adjectives: tuple[Adjective, ...] = ()
        if self.chance(adjective) and (first := self.adjective(noun)):
            adjectives = (first,)
        return NounPhrase(noun, many, determiner, adjectives, self.links(4))

    def _determiner(self, noun: Noun, many: bool, subject: bool) -> Determiner:
        number = self.random()
        if number < 0.55:
            return THE
        if number < 0.67:
            return POSSESSIVES["I" if number < 0.62 else "we"]
        if many:
            return self.pick(NUMERALS) if number < 0.9 else BARE
        if "mass" in noun.classes:
            return BARE
        if number < 0.74:
            return THIS
        return EVERY if subject and number < 0.77 else A

    def pronoun(self, who: str | None = None, english_who: str | None = None) -> Pronoun:
        who = who or self.pick(("I", "we", "m", "f", "p"))
        return Pronoun(who, english_who or who, self.links(1))

    def subject(self, verb: Verb) -> NounPhrase | Pronoun:
        classes = verb.subjects
        if "person" in classes and self.chance(0.18):
            return self.pronoun()
        phrase = self.noun_phrase(self.pick(nouns_of(classes)), subject=True)
        if self.chance(0.08):
            self.modify(phrase)
        return phrase

    def modify(self, phrase: NounPhrase) -> bool:
        """Adds *with the hat* to a person, *in the garden* to an animal or a thing."""
        noun = phrase.noun
        if noun.classes & {"person"}:
            thing = self.pick(nouns_of(HAS["person"]))
            inner = self.noun_phrase(thing, plural=0.15, determiner=self.pick((THE, A)))
            if inner.plural and inner.determiner is A:
                inner.determiner = BARE
            pair = ("with", "mit")
        elif noun.classes & {"flat", "upright", "animal"}:
            classes = "=garden =park tree" if "animal" in noun.classes else "furniture"
            spot = self.pick(nouns_of(classes))
            pair = self.pick(spot.places)
            inner = self.noun_phrase(spot, plural=0.3, adjective=0.1, determiner=THE)
        else:
            return False
        phrase.modifier = PrepositionalPhrase(*pair, "dat", inner, self.links(1))
        self.tags.add("distance")
        return True

    def possess(self, phrase: NounPhrase, owner: NounPhrase) -> None:
        """Makes it *the woman's …*, *… der Frau*."""
        phrase.determiner = THE
        phrase.modifier = Possessor(owner, phrase.link)
        self.tags.add("genitive")

    def place(self, classes: str) -> PrepositionalPhrase:
        """Where: a preposition with the dative."""
        noun = self.pick([noun for noun in nouns_of(classes) if noun.places])
        pair = self.pick(noun.places)
        inner = self.noun_phrase(noun, plural=0.05, adjective=0.2, determiner=None)
        return PrepositionalPhrase(*pair, "dat", inner, self.links(1))

    def goal(self, classes: str) -> PrepositionalPhrase:
        """Where to: *in* and its like with the accusative, or *zu* with the dative."""
        noun = self.pick(nouns_of(classes))
        english, german = self.pick(noun.places) if noun.places else ("to", "zu")
        inner = self.noun_phrase(noun, plural=0.05, adjective=0.2)
        case = "acc"
        if "town" in noun.classes:
            english = "to"
        elif "furniture" in noun.classes:
            english = "onto" if english == "on" else english
        elif german == "in" and ("built" not in noun.classes or self.chance(0.5)):
            english = "into"
        elif noun.singular in ("river", "lake") and "furniture" in classes:
            english, german = "into", "in"
        else:
            english, german, case = "to", "zu", "dat"
        return PrepositionalPhrase(english, german, case, inner, self.links(1))

    def predicate(self, noun: Noun, adjective: Adjective | None = None) -> AdjectivePhrase:
        adjective = adjective or self.adjective(noun) or self.pick(adjectives_of(noun))
        degree = self.pick(DEGREES) if self.chance(0.4) else None
        return AdjectivePhrase(adjective, degree, None, self.links(2))

    def adverb(self, kind: str, tense: str) -> AdverbPhrase | None:
        if tense in ("could", "wanted"):
            tense = "past"
        elif tense not in ("present", "past", "perfect"):
            tense = "later"
        choices = adverbials_of(kind, tense)
        return AdverbPhrase(self.pick(choices), self.links(2)) if choices else None

    # Clauses

    def clause(
        self,
        verb: Verb,
        subject: NounPhrase | Pronoun | None = None,
        *,
        tenses: Sequence[str] = TENSES,
        adjuncts: float = 0.3,
        negated: float = 0.12,
        gap: str = "",
        filler: NounPhrase | None = None,
    ) -> Clause:
        """A clause of this verb with everything that its frame asks for.

        Args:
            verb: The verb.
            subject: The subject, or None to draw one.
            tenses: Tenses and modals to draw from.
            adjuncts: The chance of each optional adverbial.
            negated: The chance of *not*.
            gap: The role that `filler` has, for a relative clause.
            filler: The noun phrase that the relative clause belongs to.
        """
        filled = filler if gap != "subject" else None
        subject = subject or self.subject(verb)
        tense = self._tense(verb, subject, tenses)
        clause = Clause(subject, verb, tense, self.links(3), gap=gap)
        clause.negated = tense not in ("must", "future") and self.chance(negated)
        if verb.frame in ("dat", "give"):
            clause.dative = filled if gap == "dative" else self._dative(verb, clause)
        if verb.frame in ("acc", "give", "put"):
            clause.accusative = filled if gap == "accusative" else self._accusative(clause)
        if verb.frame in ("to", "put"):
            classes = verb.objects if verb.frame == "to" else " ".join(verb.extra)
            clause.goal = self.goal(classes)
            if verb.frame == "put":
                self._onto_is_on(clause.goal)
        if verb.frame == "where" and gap != "place":
            clause.place = self.place(verb.objects)
        if verb.frame.startswith("prep"):
            _, english, german, case = verb.frame.split("/")
            inner = self._object(self.pick(nouns_of(verb.objects)), clause)
            link = self.links(1)
            clause.prepositional = PrepositionalPhrase(english, german, case, inner, link)
        self._adjuncts(clause, adjuncts)
        return clause

    def _tense(self, verb: Verb, subject: NounPhrase | Pronoun, tenses) -> str:
        person = isinstance(subject, Pronoun) or "person" in subject.noun.classes
        if not person or verb.name in STATES:
            tenses = [t for t in tenses if t in ("present", "past", "perfect")]
        tense = self.pick(tenses) if tenses else "present"
        if verb.name in ("know", "belong to", "lie", "stand") and tense == "perfect":
            tense = "past"
        return tense

    def _onto_is_on(self, goal: PrepositionalPhrase) -> None:
        if goal.english_words == "onto":
            goal.english_words = "on"

    def _object(self, noun: Noun, clause: Clause) -> NounPhrase:
        """An object; numerals and the like do not go well with a negation."""
        phrase = self.noun_phrase(noun)
        if clause.negated and phrase.determiner in NUMERALS:
            phrase.determiner = BARE
        return phrase

    def _dative(self, verb: Verb, clause: Clause) -> NounPhrase | Pronoun:
        if self.chance(0.15):
            return self._other_pronoun(clause.subject)
        phrase = self._object(self._other(verb.objects, clause), clause)
        if verb.frame == "give" and clause.negated:
            phrase.determiner = THE
        return phrase

    def _other(self, classes: str, clause: Clause) -> Noun:
        """A noun that is not the subject's: no king helps a king."""
        if clause.verb is not None and clause.verb.frame == "give":
            classes = "person"
        while True:
            noun = self.pick(nouns_of(classes))
            if isinstance(clause.subject, Pronoun) or noun is not clause.subject.noun:
                return noun

    def _other_pronoun(self, subject: NounPhrase | Pronoun) -> Pronoun:
        who = subject.who if isinstance(subject, Pronoun) else ""
        first = who in ("I", "we")
        return self.pronoun(self.pick(("m", "f", "p") if first else ("I", "we")))

    def _accusative(self, clause: Clause) -> NounPhrase | Pronoun:
        verb = clause.verb
        assert verb is not None
        if "person" in verb.objects and verb.frame == "acc" and self.chance(0.15):
            return self._other_pronoun(clause.subject)
        for _ in range(20):
            noun = self.object_of(verb)
            if isinstance(clause.subject, Pronoun) or noun is not clause.subject.noun:
                break
        if verb.base == "play":
            return NounPhrase(noun, False, THE, (), self.links(4))
        phrase = self._object(noun, clause)
        if self.chance(0.08) and "mass" not in noun.classes and not clause.negated:
            owner = self.pick(nouns_of("person"))
            self.possess(phrase, self.noun_phrase(owner, plural=0, adjective=0.1, determiner=THE))
        return phrase

    def _adjuncts(self, clause: Clause, chance: float) -> None:
        verb, tense = clause.verb, clause.tense
        assert verb is not None
        state = verb.name in STATES
        if verb.extra and verb.frame != "put" and self.chance(chance * 0.7):
            adverbial = MANNERS[self.pick(verb.extra)]
            clause.manner = AdverbPhrase(adverbial, self.links(2))
        elif clause.place is None and clause.goal is None and not state:
            inside = verb.frame in ("itr", "acc") and "line" not in verb.subjects
            if inside and "town" not in verb.objects and self.chance(chance * 0.7):
                clause.place = self.place(ADJUNCT_PLACES)
        if state or not self.chance(chance * 1.3):
            return
        if not clause.negated and self.chance(0.4):
            clause.often = self.adverb("often", tense)
        else:
            clause.point = self.adverb("point", tense)

    # Relative clauses

    def subject_relative(self, phrase: NounPhrase) -> bool:
        """*the dog that sleeps*; whether the noun can be the subject of anything."""
        verbs = verbs_with_subject(phrase.noun, "itr acc dat where")
        if not verbs:
            return False
        clause = self.clause(
            self.pick(verbs),
            phrase,
            tenses=("present", "present", "past", "perfect"),
            adjuncts=0.1,
            negated=0.05,
            gap="subject",
            filler=phrase,
        )
        phrase.relative = RelativeClause(phrase, clause, self.links(1))
        return True

    def object_relative(self, phrase: NounPhrase) -> bool:
        """*the book that the girl reads*, *the man that the boy helps*."""
        verbs = verbs_with_object(phrase.noun, "acc acc dat")
        verbs = tuple(v for v in verbs if v.base != "play" and v.name != "belong to")
        if not verbs:
            return False
        verb = self.pick(verbs)
        gap = "dative" if verb.frame == "dat" else "accusative"
        if gap == "accusative" and not self.may_combine(verb, phrase.noun):
            return False
        classes = nouns_of(verb.subjects)
        others = [noun for noun in classes if noun is not phrase.noun]
        subject = self.noun_phrase(self.pick(others), adjective=0.1, subject=False)
        if "person" in verb.subjects and self.chance(0.2):
            subject = self.pronoun()
        clause = self.clause(
            verb,
            subject,
            tenses=("present", "present", "past", "perfect"),
            adjuncts=0.0,
            negated=0.05,
            gap=gap,
            filler=phrase,
        )
        phrase.relative = RelativeClause(phrase, clause, self.links(1))
        return True

    def place_relative(self, phrase: NounPhrase) -> bool:
        """*the house in which the man lives*."""
        if not phrase.noun.classes & {"home", "town"}:
            return False
        verb = next(v for v in verbs_with_object(BY_NAME["house"], "where") if v.base == "live")
        clause = self.clause(verb, tenses=PLAIN_TENSES, adjuncts=0, negated=0, gap="place")
        pair = phrase.noun.places[0]
        clause.place = PrepositionalPhrase(*pair, "dat", phrase, self.links(1))
        phrase.relative = RelativeClause(phrase, clause, self.links(1))
        return True
