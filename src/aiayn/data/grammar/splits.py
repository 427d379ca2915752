"""Who belongs to which split: decided by hashing, for any size and any seed.

A *combination* is an adjective with the noun that it is said of, or a verb with the head
noun of its accusative object. A fixed set of combinations is held out: those with the
lowest hashes among each noun's adjectives and each verb's objects, so every word keeps
most of its partners. Sentences with a held-out combination form the split "combinations";
all others go by the hash of their English side.
"""

from functools import lru_cache
from hashlib import blake2b

from aiayn.data.grammar.nouns import Noun, nouns_of
from aiayn.data.grammar.verbs import Verb
from aiayn.data.grammar.words import Adjective, adjectives_of

SPLITS = ("train", "validation", "test", "combinations")
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


@lru_cache(maxsize=None)
def split_objects(verb: Verb) -> tuple[tuple[Noun, ...], tuple[Noun, ...]]:
    """A verb's accusative objects: (those of the plain splits, those held out)."""
    nouns = nouns_of(verb.objects)
    ranked = sorted(nouns, key=lambda noun: _hash(f"{verb.name} + {noun.singular}"))
    count = len(ranked) // HELD_OUT_SHARE
    return tuple(ranked[count:]), tuple(ranked[:count])


@lru_cache(maxsize=None)
def split_adjectives(noun: Noun) -> tuple[tuple[Adjective, ...], tuple[Adjective, ...]]:
    """A noun's adjectives: (those of the plain splits, those held out)."""
    ranked = sorted(
        adjectives_of(noun), key=lambda a: _hash(f"{a.english} + {noun.singular}")
    )
    count = len(ranked) // HELD_OUT_SHARE
    return tuple(ranked[count:]), tuple(ranked[:count])


@lru_cache(maxsize=None)
def held_out_combinations() -> frozenset[tuple[str, str]]:
    """Every held-out pair: (adjective or verb with its particle, noun)."""
    from aiayn.data.grammar.nouns import NOUNS
    from aiayn.data.grammar.verbs import VERBS

    pairs = {(a.english, noun.singular) for noun in NOUNS for a in split_adjectives(noun)[1]}
    for verb in VERBS:
        if verb.frame in ("acc", "give", "put"):
            pairs |= {(verb.name, noun.singular) for noun in split_objects(verb)[1]}
    return frozenset(pairs)
