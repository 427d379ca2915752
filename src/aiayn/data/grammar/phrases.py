"""Noun, prepositional and adjective phrases, each written in both languages.

A phrase is drawn once and then written twice. What it writes is a *draft*: a
constituent is a tuple (label, children), a word is a list [tag, word, links]. A link is
a number that the sentence hands out; an English and a German word that share one are
aligned.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from aiayn.data.grammar import english, german
from aiayn.data.grammar.nouns import Noun
from aiayn.data.grammar.words import Adjective, Adverbial

Word = list
"""[tag, word, links]; the links are a tuple of numbers."""

Draft = tuple
"""(label, children), where a child is a `Draft` or a `Word`."""


def word(tag: str, text: str, *links: int) -> Word:
    return [tag, text, links]


@dataclass(frozen=True, slots=True)
class Determiner:
    """English word and German stem, with their tags."""

    english: str
    german: str
    tag: str = "DT"
    german_tag: str = "ART"
    definite: bool = True


THE = Determiner("the", "d")
A = Determiner("a", "ein", definite=False)
BARE = Determiner("", "", definite=False)
THIS = Determiner("this", "dies", german_tag="PDAT")
EVERY = Determiner("every", "jed", german_tag="PIAT")
NUMERALS = (
    Determiner("two", "zwei", "CD", "CARD", False),
    Determiner("three", "drei", "CD", "CARD", False),
    Determiner("four", "vier", "CD", "CARD", False),
    Determiner("many", "viel", "JJ", "PIAT", False),
    Determiner("some", "einig", "DT", "PIAT", False),
)
POSSESSIVES = {
    owner: Determiner(
        english.POSSESSIVES[owner], german.POSSESSIVE[owner], "PRP$", "PPOSAT"
    )
    for owner in english.POSSESSIVES
}


@dataclass(slots=True)
class Pronoun:
    """A personal pronoun; `who` is I, we, or the gender of what it stands for.

    I is no subject (that would need the first person of every verb).
    English has *it* for a noun of any gender, so the two languages' genders differ.
    """

    who: str
    english_who: str
    link: int
    is_pronoun = True
    definite = True
    relative = None

    @property
    def plural(self) -> bool:
        return self.who in ("we", "p")

    def english(self, subject: bool = True) -> Draft:
        forms = english.SUBJECTS if subject else english.OBJECTS
        return ("NP", [word("PRP", forms[self.english_who], self.link)])

    def german(self, case: str) -> Draft:
        return ("NP", [word("PPER", german.PERSONAL[self.who, case], self.link)])


@runtime_checkable
class Relative(Protocol):
    """A relative clause; `clauses.RelativeClause` is it."""

    def english(self) -> Draft: ...
    def german(self) -> Draft: ...


@dataclass(slots=True)
class NounPhrase:
    """Determiner, adjectives, noun, and at most one modifier behind them.

    Links: `link` the determiner, `link + 1` the noun, `link + 2 …` the adjectives.
    `negation` is the link of *not* where German says *kein*.
    """

    noun: Noun
    plural: bool
    determiner: Determiner
    adjectives: tuple[Adjective, ...]
    link: int
    modifier: "PrepositionalPhrase | Possessor | None" = None
    relative: "Relative | None" = None
    negation: int | None = None
    is_pronoun = False

    @property
    def gender(self) -> str:
        return "p" if self.plural else self.noun.gender

    @property
    def definite(self) -> bool:
        return self.determiner.definite

    @property
    def antecedent(self) -> str:
        """The English pronoun that stands for this phrase, by the keys of `english`."""
        if self.plural:
            return "p"
        if "person" not in self.noun.classes or self.noun.singular == "child":
            return "n"
        return "f" if "she" in self.noun.classes else "m"

    def english(self, subject: bool = True) -> Draft:
        noun = self.noun
        words = [
            word("JJ", adjective.english, self.link + 2 + index)
            for index, adjective in enumerate(self.adjectives)
        ]
        form = noun.plural if self.plural else noun.singular
        words.append(word("NNS" if self.plural else "NN", form, self.link + 1))
        modifier = self.modifier
        if isinstance(modifier, Possessor):
            return ("NP", [modifier.english(), *words])
        determiner = self.determiner
        if text := determiner.english:
            if text == "a":
                text = english.article(words[0][1])
            elif text == "this" and self.plural:
                text = "these"
            words.insert(0, word(determiner.tag, text, self.link))
        if modifier is not None:
            return ("NP", [("NP", words), modifier.english()])
        return ("NP", words)

    def german(self, case: str) -> Draft:
        return self.german_after(None, case)

    def german_after(self, contracted: str | None, case: str) -> Draft:
        """The phrase, without its article if that has gone into a preposition."""
        gender = self.gender
        stem = self.determiner.german if self.negation is None else "kein"
        words = [
            word(
                "ADJA",
                german.adjective_form(adjective.stem, stem, case, gender),
                self.link + 2 + index,
            )
            for index, adjective in enumerate(self.adjectives)
        ]
        form = german.noun_form(self.noun, case, self.plural)
        words.append(word("NN", form, self.link + 1))
        if stem and contracted is None:
            text = german.determiner_form(stem, case, gender)
            tag = "PIAT" if stem == "kein" else self.determiner.german_tag
            links = (
                (self.link,) if self.negation is None else (self.link, self.negation)
            )
            words.insert(0, [tag, text, links])
        if self.modifier is not None:
            return ("NP", [("NP", words), self.modifier.german()])
        return ("NP", words)


@dataclass(slots=True)
class Possessor:
    """*the woman's …*, *… der Frau*: a genitive behind the German noun.

    The owned noun's German article has no counterpart but the *'s*.
    """

    owner: NounPhrase
    link: int

    def english(self) -> Draft:
        label, words = self.owner.english()
        return (label, [*words, word("POS", "'s", self.link)])

    def german(self) -> Draft:
        return self.owner.german("gen")


@dataclass(slots=True)
class PrepositionalPhrase:
    """A preposition, the German case it takes here, and a noun phrase."""

    english_words: str
    german_word: str
    case: str
    inner: NounPhrase | Pronoun
    link: int

    def english(self) -> Draft:
        words = [word("IN", text, self.link) for text in self.english_words.split()]
        return ("PP", [*words, self.inner.english(subject=False)])

    def german(self) -> Draft:
        inner = self.inner
        if isinstance(inner, NounPhrase) and inner.determiner is THE:
            article = german.determiner_form("d", self.case, inner.gender)
            contracted = german.CONTRACTIONS.get((self.german_word, article))
            if contracted and not inner.plural:
                preposition = word("APPRART", contracted, self.link, inner.link)
                return ("PP", [preposition, inner.german_after(contracted, self.case)])
        preposition = word("APPR", self.german_word, self.link)
        return ("PP", [preposition, inner.german(self.case)])


@dataclass(slots=True)
class AdjectivePhrase:
    """A predicate: *very old*, *sehr alt*; or *older than the house*."""

    adjective: Adjective
    degree: tuple[str, str] | None
    standard: NounPhrase | None
    link: int

    def english(self) -> Draft:
        if self.standard is not None:
            words = [
                word("RBR" if text == "more" else "JJR", text, self.link)
                for text in self.adjective.comparative.split()
            ]
            than = ("PP", [word("IN", "than", self.link + 1), self.standard.english()])
            return ("ADJP", [*words, than])
        words = [word("JJ", self.adjective.english, self.link)]
        if self.degree:
            words.insert(0, word("RB", self.degree[0], self.link + 1))
        return ("ADJP", words)

    def german(self) -> Draft:
        if self.standard is not None:
            than = word("KOKOM", "als", self.link + 1)
            adjective = word("ADJD", self.adjective.german_comparative, self.link)
            return ("ADJP", [adjective, ("PP", [than, self.standard.german("nom")])])
        words = [word("ADJD", self.adjective.german, self.link)]
        if self.degree:
            words.insert(0, word("ADV", self.degree[1], self.link + 1))
        return ("ADJP", words)


@dataclass(slots=True)
class AdverbPhrase:
    """An adverbial of the table, with its own links."""

    adverbial: Adverbial
    link: int

    def english(self) -> Draft:
        words = [word(t, text, self.link + n) for text, t, n in self.adverbial.english]
        return (self.adverbial.label, words)

    def german(self) -> Draft:
        words = [word(t, text, self.link + n) for text, t, n in self.adverbial.german]
        return (self.adverbial.german_label, words)
