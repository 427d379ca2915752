"""Draws clauses at random, keeping to what makes sense."""

from collections.abc import Sequence

from aiayn.data.grammar.clauses import Clause, RelativeClause
from aiayn.data.grammar.draw_phrases import PhraseDraw
from aiayn.data.grammar.nouns import BY_NAME, Noun, nouns_of
from aiayn.data.grammar.phrases import (
    BARE,
    EVERY,
    NUMERALS,
    POSSESSIVES,
    THE,
    AdverbPhrase,
    Determiner,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
)
from aiayn.data.grammar.tenses import MODALS
from aiayn.data.grammar.verbs import Verb, verbs_with_object, verbs_with_subject
from aiayn.data.grammar.words import MANNERS

TENSES = (
    *("present",) * 7,
    *("past",) * 6,
    *("future", "can", "must", "want", "should"),
)
PLAIN_TENSES = ("present", "present", "past")
STATES = frozenset(
    {"love", "know", "need", "trust", "belong to", "think", "see", "hear"}
)
"""Verbs of no action: no place, no manner, no modal."""
UNWILLED = frozenset(
    {"lose", "forget", "find", "cry", "fall asleep", "wake up", "arrive", "see"}
)
"""Verbs that go with *can* and *will*, but not with *want*, *must* and *should*."""
PLACES = {
    "person": "=garden =park =kitchen =room =house =village =city =hotel =school =tree",
    "animal": "=garden =park =forest =village =meadow =tree",
    "buy": "=market =city =village",
}
PLACED = frozenset(
    {
        *("sleep", "work", "laugh", "cry", "dance", "sing", "wait", "read", "write"),
        *("paint", "eat", "drink", "play", "see", "find", "buy", "sell", "catch"),
        *("chase", "cook", "hear"),
    }
)
"""Verbs that say more with a place."""
WITHOUT_ARTICLE = Determiner("the", "", definite=False)
"""*plays the piano*, *spielt Klavier*."""


class Draw(PhraseDraw):
    """One sentence in the making: phrases, and clauses made of them."""

    def clause(
        self,
        verb: Verb,
        subject: NounPhrase | Pronoun | None = None,
        *,
        tenses: Sequence[str] = TENSES,
        adjuncts: float = 0.12,
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
        self._used.add(verb)
        filled = filler if gap != "subject" else None
        subject = subject or self.subject(verb)
        tense = self._tense(verb, subject, tenses)
        clause = Clause(subject, verb, tense, self.links(3), gap=gap)
        clause.negated = tense not in ("must", "future") and self.chance(negated)
        ambiguous = verb.past_is_present and subject.plural
        if tense == "past" and ambiguous:
            clause.negated = True  # they read: is it past? They did not read: it is.
        if clause.negated and isinstance(subject, NounPhrase) and not gap:
            every = subject.determiner is EVERY
            if every or not subject.definite:  # a dog does not sleep: does no dog?
                subject.determiner = THE
        if verb.frame in ("dat", "give"):
            clause.dative = filled if gap == "dative" else self._dative(verb, clause)
        if verb.frame in ("acc", "give", "put"):
            clause.accusative = (
                filled if gap == "accusative" else self._accusative(clause)
            )
        if verb.frame in ("to", "put") and gap != "goal":
            classes = verb.objects if verb.frame == "to" else " ".join(verb.extra)
            clause.goal = self.goal(classes)
            if verb.frame == "put":
                self._onto_is_on(clause.goal)
        if verb.frame == "where" and gap != "place":
            clause.place = self.place(verb.objects)
        if verb.frame.startswith("prep"):
            _, english, german, case = verb.frame.split("/")
            inner = self._object(self.noun(nouns_of(verb.objects)), clause)
            link = self.links(1)
            clause.prepositional = PrepositionalPhrase(
                english, german, case, inner, link
            )
        self._adjuncts(clause, adjuncts)
        self._tag(clause, verb)
        return clause

    def _tag(self, clause: Clause, verb: Verb) -> None:
        shown = {
            "separable": bool(verb.prefix),
            "perfect": clause.past,
            "modal": clause.tense in MODALS,
            "negation": clause.negated,
            "dative": verb.frame in ("dat", "give"),
            "direction": clause.goal is not None,
        }
        self.tags |= {name for name, is_shown in shown.items() if is_shown}

    def _tense(self, verb: Verb, subject: NounPhrase | Pronoun, tenses) -> str:
        if not _is_person(subject) or verb.name in STATES:
            tenses = [t for t in tenses if t in ("present", "past")]
        if verb.name in UNWILLED:
            unsuited = ("want", "must", "should")
            tenses = [t for t in tenses if t not in unsuited]
        return self.pick(tenses)

    def _onto_is_on(self, goal: PrepositionalPhrase) -> None:
        if goal.english_words == "onto":
            goal.english_words = "on"

    def _object(self, noun: Noun, clause: Clause) -> NounPhrase:
        """An object; numerals and the like do not go well with a negation."""
        phrase = self.noun_phrase(noun)
        if clause.negated and phrase.determiner in NUMERALS:
            phrase.determiner = THE if "person" in noun.classes else BARE
        return phrase

    def _dative(self, verb: Verb, clause: Clause) -> NounPhrase | Pronoun:
        if self.chance(0.15):
            return self._other_pronoun(clause.subject)
        classes = "person" if verb.frame == "give" else verb.objects
        phrase = self._object(self.noun(nouns_of(classes)), clause)
        if verb.frame == "give" and clause.negated:
            phrase.determiner = THE
        return phrase

    def _other_pronoun(self, subject: NounPhrase | Pronoun) -> Pronoun:
        who = subject.who if isinstance(subject, Pronoun) else ""
        first = who in ("I", "we")
        return self.pronoun(self.pick(("m", "f", "p") if first else ("I", "we")))

    def _accusative(self, clause: Clause) -> NounPhrase | Pronoun:
        verb = clause.verb
        assert verb is not None
        if "person" in verb.objects and verb.frame == "acc" and self.chance(0.15):
            return self._other_pronoun(clause.subject)
        noun = self.object_of(verb)
        if verb.base == "play":
            clause.negated = False
            return NounPhrase(noun, False, WITHOUT_ARTICLE, (), self.links(4))
        phrase = self._object(noun, clause)
        if self.extra(0.06) and "own" in noun.classes and not clause.negated:
            owner = self.noun(nouns_of("person"))
            determiner = POSSESSIVES["I"] if "kin" in owner.classes else THE
            owners = self.noun_phrase(
                owner, plural=0.0, adjective=0.0, determiner=determiner
            )
            self.possess(phrase, owners)
        return phrase

    def _adjuncts(self, clause: Clause, chance: float) -> None:
        verb, tense = clause.verb, clause.tense
        assert verb is not None
        state = verb.name in STATES
        manner = bool(verb.extra) and verb.frame != "put" and not clause.negated
        if manner and self.extra(chance * 0.7):
            adverbial = MANNERS[self.pick(verb.extra)]
            clause.manner = AdverbPhrase(adverbial, self.links(2))
        elif _has_place(verb) and self.extra(chance * 0.8):
            kind = "buy" if verb.name in ("buy", "sell") else "person"
            animal = not _is_person(clause.subject)
            clause.place = self.place(PLACES["animal" if animal else kind])
        lasting = state or verb.base == "live" or _is_thing(clause.subject)
        if lasting or not self.extra(chance * 1.3):
            return
        every = (
            isinstance(clause.subject, NounPhrase)
            and clause.subject.determiner is EVERY
        )
        if not (clause.negated or clause.manner or every) and self.chance(0.4):
            clause.often = self.adverb("often", tense)
        else:
            clause.point = self.adverb("point", tense)

    # Relative clauses

    def is_new(self, verb: Verb) -> bool:
        """Whether the sentence does not have this verb yet."""
        return verb not in self._used

    def _unused(self, verbs: Sequence[Verb]) -> list[Verb]:
        return [verb for verb in verbs if self.is_new(verb)]

    def subject_relative(self, phrase: NounPhrase) -> bool:
        """*the dog that sleeps*; whether the noun can be the subject of anything."""
        verbs = self._unused(verbs_with_subject(phrase.noun, "itr acc dat where"))
        if not verbs:
            return False
        clause = self.clause(
            self.pick(verbs),
            phrase,
            tenses=PLAIN_TENSES,
            adjuncts=0.1,
            negated=0.05,
            gap="subject",
            filler=phrase,
        )
        phrase.relative = RelativeClause(phrase, clause, self.links(1))
        return True

    def object_relative(self, phrase: NounPhrase) -> bool:
        """*the book that the girl reads*, *the man that the boy helps*."""
        verbs = self._unused(verbs_with_object(phrase.noun, "acc acc dat"))
        verbs = [verb for verb in verbs if verb.name not in ("play", "belong to")]
        if not verbs:
            return False
        verb = self.pick(verbs)
        gap = "dative" if verb.frame == "dat" else "accusative"
        if gap == "accusative":
            if not self.allows(verb, phrase.noun):
                return False
            self.note(verb, phrase.noun)
        classes = nouns_of(verb.subjects)
        others = [noun for noun in classes if noun is not phrase.noun]
        if "person" in verb.subjects and self.chance(0.2):
            subject = self.pronoun()
        else:
            subject = self.noun_phrase(self.noun(others), adjective=0.1)
        clause = self.clause(
            verb,
            subject,
            tenses=PLAIN_TENSES,
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
        verb = next(
            v for v in verbs_with_object(BY_NAME["house"], "where") if v.base == "live"
        )
        clause = self.clause(
            verb, tenses=PLAIN_TENSES, adjuncts=0.0, negated=0.0, gap="place"
        )
        pair = phrase.noun.places[0]
        clause.place = PrepositionalPhrase(*pair, "dat", phrase, self.links(1))
        phrase.relative = RelativeClause(phrase, clause, self.links(1))
        return True


def _has_place(verb: Verb) -> bool:
    return verb.name in PLACED and verb.frame in ("itr", "acc")


def _is_person(subject: NounPhrase | Pronoun) -> bool:
    return isinstance(subject, Pronoun) or "person" in subject.noun.classes


def _is_thing(subject: NounPhrase | Pronoun) -> bool:
    living = {"person", "animal", "line"}
    return isinstance(subject, NounPhrase) and not subject.noun.classes & living
