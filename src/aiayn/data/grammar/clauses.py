"""Clauses: one specification of who does what, when and where, for both languages.

`english_order` and `german_order` write it down.
"""

from dataclasses import dataclass
from typing import Any

from aiayn.data.grammar import german
from aiayn.data.grammar.english_order import english_clause
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.phrases import (
    AdjectivePhrase,
    AdverbPhrase,
    Draft,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    word,
)
from aiayn.data.grammar.verbs import Verb


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
    content: "SubordinateClause | None" = None

    @property
    def past(self) -> bool:
        return self.tense == "past"

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
            return (
                "SBAR",
                [("WHPP", [preposition, which]), ("S", english_clause(clause))],
            )
        who = gap == "subject" and "person" in self.noun_phrase.noun.classes
        pronoun = word("WP" if who else "WDT", "who" if who else "that", self.link)
        return ("SBAR", [("WHNP", [pronoun]), ("S", english_clause(clause))])

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
