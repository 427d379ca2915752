"""Draws phrases and clauses at random, keeping to what makes sense.

A `Draw` makes one sentence. It hands out the links between the two languages and sees
to it that a plain sentence has no held-out combination, or that one is likely.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from aiayn.data.grammar.nouns import Noun, nouns_of
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
from aiayn.data.grammar.splits import is_held_out, split_adjectives, split_objects
from aiayn.data.grammar.verbs import Verb
from aiayn.data.grammar.words import (
    ABSOLUTE,
    EXCESSIVE,
    QUITE,
    TOO,
    VERY,
    Adjective,
    adverbials_of,
)

Item = TypeVar("Item")

HELD = "=hat =umbrella =bag =suitcase =basket =camera =guitar =dog"
"""What a person may be told by: the man with the hat."""


class PhraseDraw:
    """One sentence in the making."""

    def __init__(self, rng: Random, combine: bool) -> None:
        self.random = rng.random
        self.combine = combine
        self.combined = False
        self.richness = 1.0  # scales the chance of all that a sentence can do without
        self.tags: set[str] = set()
        self._link = 0
        self._used: set[Noun | Verb] = set()

    def links(self, count: int) -> int:
        """Hands out so many links; returns the first."""
        first = self._link
        self._link += count
        return first

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def extra(self, probability: float) -> bool:
        """Whether to add what the sentence can do without."""
        return self.chance(probability * self.richness)

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    def noun(self, nouns: Sequence[Noun]) -> Noun:
        """One of these nouns, if possible one that the sentence does not have yet."""
        noun = self.pick(nouns)
        for _ in range(10):
            if noun not in self._used:
                break
            noun = self.pick(nouns)
        self._used.add(noun)
        return noun

    # Held-out combinations

    def adjective(self, noun: Noun) -> Adjective | None:
        """An adjective that can be said of the noun, if there is any."""
        plain, held_out = split_adjectives(noun)
        if self.combine and held_out and self.chance(0.5):
            self.combined = True
            return self.pick(held_out)
        return self.pick(plain) if plain else None

    def object_of(self, verb: Verb) -> Noun:
        plain, held_out = split_objects(verb)
        if self.combine and held_out and self.chance(0.5):
            self.combined = True
            return self.noun(held_out)
        return self.noun(plain)

    def allows(self, word: Verb | Adjective, noun: Noun) -> bool:
        """Whether this sentence may combine the two."""
        return self.combine or not is_held_out(word, noun)

    def note(self, word: Verb | Adjective, noun: Noun) -> None:
        """Takes down that a combination is used that was not drawn here."""
        self.combined |= is_held_out(word, noun)

    # Phrases

    def noun_phrase(
        self,
        noun: Noun,
        *,
        plural: float = 0.2,
        adjective: float = 0.2,
        determiner: Determiner | None = None,
        subject: bool = False,
    ) -> NounPhrase:
        """Determiner, adjective and noun; `plural` and `adjective` are chances."""
        countable = noun.has_plural and not noun.places and "single" not in noun.classes
        many = countable and self.chance(plural)
        self._used.add(noun)
        if determiner is None:
            determiner = self._determiner(noun, many, subject)
        adjectives: tuple[Adjective, ...] = ()
        if self.extra(adjective) and (first := self.adjective(noun)):
            adjectives = (first,)
        return NounPhrase(noun, many, determiner, adjectives, self.links(4))

    def _determiner(self, noun: Noun, many: bool, subject: bool) -> Determiner:
        number = self.random()
        own = "own" in noun.classes
        if number < 0.45 or ("kin" in noun.classes and number > 0.8):
            return THE
        if (number < 0.57 and own) or "kin" in noun.classes:
            return POSSESSIVES["I" if self.chance(0.6) else "we"]
        if many:
            return self.pick(NUMERALS) if number < 0.7 else BARE
        if "mass" in noun.classes:
            return BARE
        if number < 0.65:
            return THIS
        return EVERY if subject and number < 0.68 else A

    def pronoun(
        self, who: str | None = None, english_who: str | None = None
    ) -> Pronoun:
        who = who or self.pick(("we", "m", "f", "p"))
        return Pronoun(who, english_who or who, self.links(1))

    def subject(self, verb: Verb) -> NounPhrase | Pronoun:
        classes = verb.subjects
        if "person" in classes and self.chance(0.18):
            return self.pronoun()
        phrase = self.noun_phrase(self.noun(nouns_of(classes)), subject=True)
        if self.extra(0.05) and verb.frame not in ("where", "put"):
            self.modify(phrase)
        return phrase

    def modify(self, phrase: NounPhrase) -> bool:
        """Adds *with the hat* to a person, *in the garden* to an animal or a thing."""
        noun = phrase.noun
        if noun.classes & {"person"}:
            thing = self.noun(nouns_of(HELD))
            article = BARE if phrase.plural else A
            inner = self.noun_phrase(
                thing, plural=float(phrase.plural), determiner=self.pick((THE, article))
            )
            pair = ("with", "mit")
        elif noun.classes & {"flat", "upright", "animal"}:
            classes = "=garden =park tree" if "animal" in noun.classes else "furniture"
            spot = self.noun(nouns_of(classes))
            pair = self.pick(spot.places)
            many = 0.3 if classes == "furniture" else 0.0
            inner = self.noun_phrase(spot, plural=many, adjective=0.1, determiner=THE)
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
        noun = self.noun(nouns_of(classes))
        pair = self.pick(noun.places)
        inner = self._spot(noun)
        return PrepositionalPhrase(*pair, "dat", inner, self.links(1))

    def _spot(self, noun: Noun) -> NounPhrase:
        determiner = THE if self.chance(0.6) else None
        return self.noun_phrase(noun, plural=0.0, adjective=0.2, determiner=determiner)

    def goal(self, classes: str) -> PrepositionalPhrase:
        """Where to: *in* and its like with the accusative, or *zu* with the dative."""
        noun = self.noun(nouns_of(classes))
        english, german = self.pick(noun.places)
        inner = self._spot(noun)
        case = "acc"
        if "town" in noun.classes:
            english = "to"
        elif english == "on":
            english = "onto"
        elif "furniture" in noun.classes:
            pass  # under the bed, behind the cupboard: the accusative says where to
        elif german == "in" and ("built" not in noun.classes or self.chance(0.5)):
            english = "into"
        elif noun.singular in ("river", "lake") and "furniture" in classes:
            english, german = "into", "in"
        else:
            english, german, case = "to", "zu", "dat"
        return PrepositionalPhrase(english, german, case, inner, self.links(1))

    def predicate(
        self, noun: Noun, adjective: Adjective | None = None
    ) -> AdjectivePhrase:
        adjective = adjective or self.adjective(noun)
        assert adjective is not None
        self.note(adjective, noun)
        degree = self.degree(adjective) if self.chance(0.4) else None
        return AdjectivePhrase(adjective, degree, None, self.links(2))

    def degree(self, adjective: Adjective) -> tuple[str, str] | None:
        """*very*, *quite*, *too*, as far as they can be said of the adjective."""
        if adjective.english in ABSOLUTE:
            return None
        return self.pick(
            (VERY, QUITE, TOO) if adjective.english in EXCESSIVE else (VERY, QUITE)
        )

    def adverb(self, kind: str, tense: str) -> AdverbPhrase | None:
        if tense not in ("present", "past"):
            tense = "later"
        choices = adverbials_of(kind, tense)
        return AdverbPhrase(self.pick(choices), self.links(2)) if choices else None
