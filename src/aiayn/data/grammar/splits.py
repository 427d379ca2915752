"""Who belongs to which split: decided by hashing, for any size and any seed.

A *combination* is an adjective with the noun that it is said of, or a verb with the
head noun of its accusative object. A fixed set of combinations is held out: those with
the lowest hashes among each noun's adjectives and each verb's objects, so every word
keeps most of its partners. Sentences with a held-out combination form the split
"combinations"; all others go by the hash of their English side.
"""

from functools import cache
from hashlib import blake2b

from aiayn.data.grammar.nouns import NOUNS, Noun, nouns_of
from aiayn.data.grammar.verbs import VERBS, Verb
from aiayn.data.grammar.words import Adjective, adjectives_of

SPLITS = ("train", "validation", "test", "combinations")
"""The names of the four splits; the last holds what training never combines."""
HELD_OUT_SHARE = 8
"""One in so many partners of a word is held out, rounded down."""


def split_of(source: str, combined: bool) -> str:
    """The split of a sentence, given whether it has a held-out combination."""
    if combined:
        return "combinations"
    bucket = _hash(source) % 10
    return "train" if bucket < 8 else SPLITS[bucket - 7]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@cache
def split_objects(verb: Verb) -> tuple[tuple[Noun, ...], tuple[Noun, ...]]:
    """A verb's accusative objects: (those of the plain splits, those held out)."""
    held_out = _held_out_objects(verb.name)
    nouns = nouns_of(verb.objects)
    plain = tuple(noun for noun in nouns if noun not in held_out)
    return plain, tuple(noun for noun in nouns if noun in held_out)


@cache
def _held_out_objects(name: str) -> frozenset[Noun]:
    """What is held out for all verbs of this English name (eat: essen and fressen)."""
    verbs = [v for v in VERBS if v.name == name and v.frame in ("acc", "give", "put")]
    nouns = {noun for verb in verbs for noun in nouns_of(verb.objects)}
    ranked = sorted(nouns, key=lambda noun: _hash(f"{name} + {noun.singular}"))
    return frozenset(ranked[: len(ranked) // HELD_OUT_SHARE])


@cache
def split_adjectives(noun: Noun) -> tuple[tuple[Adjective, ...], tuple[Adjective, ...]]:
    """A noun's adjectives: (those of the plain splits, those held out)."""
    ranked = sorted(
        adjectives_of(noun), key=lambda a: _hash(f"{a.english} + {noun.singular}")
    )
    count = len(ranked) // HELD_OUT_SHARE
    return tuple(ranked[count:]), tuple(ranked[:count])


def is_held_out(word: Verb | Adjective, noun: Noun) -> bool:
    """Whether this verb with its object, this adjective of its noun, is held out."""
    split = split_objects(word) if isinstance(word, Verb) else split_adjectives(noun)
    return (noun if isinstance(word, Verb) else word) in split[1]


@cache
def held_out_combinations() -> frozenset[tuple[str, str]]:
    """Every held-out pair: (adjective or verb with its particle, noun).

    >>> ("rich", "student") in held_out_combinations()
    True
    """
    pairs = {
        (a.english, noun.singular) for noun in NOUNS for a in split_adjectives(noun)[1]
    }
    names = {verb.name for verb in VERBS}
    pairs |= {
        (name, noun.singular) for name in names for noun in _held_out_objects(name)
    }
    return frozenset(pairs)
