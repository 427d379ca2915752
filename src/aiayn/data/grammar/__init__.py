"""The embedded corpus: a synchronous grammar of everyday English and German.

Not in the paper: it stands in for the WMT 2014 data of §5.1, which no chapter can
train on in two minutes.

One derivation yields a sentence pair, its gold word alignment and both
constituency trees. It is seeded and unlimited, and nothing is downloaded.

Choices that make each English sentence have one translation here:

- The simple past is the Perfekt, as one says it (*ate*: hat gegessen); only *was* is
  *war*. *They read* and *they put* are always the present.
- *you* is left out: German would need to know who is spoken to; *I* is no subject,
  which saves a form of every verb.
- Persons whose English noun has no gender are men (*teacher*: Lehrer), as *he* shows.
- *when* is *wenn* in the present and *als* in the past.
- *eat* is *essen* for persons and *fressen* for animals; *put* is *stellen* for what
  stands upright and *legen* for what lies flat.

Modules: `nouns`, `verbs` and `words` hold the lexicon; `german` and `english` inflect;
`phrases` and `clauses` hold one specification, written with `english_order` and
`german_order`; `draw`, `sentences` and `anaphora` draw specifications; `splits` says
what is held out; `sample` has the result; `corpus` is what `load_corpus` reads.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.phrases import Draft, Word
from aiayn.data.grammar.sample import GrammarSample, align, detokenise, grow, words_of
from aiayn.data.grammar.sentences import KINDS, derive
from aiayn.data.grammar.splits import SPLITS, held_out_combinations, split_of
from aiayn.errors import InputError

__all__ = [
    "KINDS",
    "SPLITS",
    "GrammarSample",
    "detokenise",
    "generate",
    "generate_pairs",
    "held_out_combinations",
    "load_grammar",
]

TRAIN_SIZE = 40_000
HELD_OUT_SIZE = 1_000
# Of one call: hours, and more than most memories hold.
LARGEST = 10_000_000
# Draws in a row of which none is new, after which a kind counts as used up: seconds.
USED_UP = 100_000


def generate(
    count: int, *, seed: int, split: str = "train", kinds: Sequence[str] = ()
) -> list[GrammarSample]:
    """Draws samples of one split, all with different English sides.

    Which split a sentence belongs to is a matter of the sentence alone, so splits never
    overlap, whatever the seeds and sizes.

    Args:
        count: How many.
        seed: The same seed gives the same samples; a longer list begins with a shorter.
        split: "train", "validation", "test" or "combinations".
        kinds: Constructions to draw from, each as often as the others; none: all of
            them, by their shares. The keys of `KINDS`.

    Raises:
        InputError: There is no such split or kind, the count is out of range, or there
            are not as many different sentences of these kinds.

    >>> generate(1, seed=3)[0].split
    'train'
    """
    with _without_collection():
        return [d.sample(split) for d in _derivations(count, seed, split, kinds)]


def generate_pairs(
    count: int, *, seed: int, split: str = "train"
) -> list[tuple[str, str]]:
    """The sentences alone of what `generate` draws: no trees, no alignment, sooner.

    Args:
        count: How many.
        seed: As for `generate`.
        split: As for `generate`.

    Returns:
        English and German.

    Raises:
        InputError: There is no such split, or the count is out of range.

    >>> sample = generate(1, seed=3)[0]
    >>> generate_pairs(1, seed=3) == [(sample.source, sample.target)]
    True
    """
    with _without_collection():
        return [d.pair() for d in _derivations(count, seed, split)]


def load_grammar(
    *, size: int = TRAIN_SIZE, held_out_size: int = HELD_OUT_SIZE, seed: int = 0
) -> Mapping[str, list[GrammarSample]]:
    """The four splits: train, validation, test and held-out combinations.

    Args:
        size: Training samples.
        held_out_size: Samples of each of the other three.
        seed: Decides which ones are drawn.

    >>> splits = load_grammar(size=100, held_out_size=10)
    >>> [len(samples) for samples in splits.values()]
    [100, 10, 10, 10]
    """
    sizes = split_sizes(size, held_out_size)
    return {split: generate(n, seed=seed, split=split) for split, n in sizes.items()}


def split_sizes(size: int, held_out_size: int) -> dict[str, int]:
    """How many samples each split has, by its name."""
    return {split: size if split == "train" else held_out_size for split in SPLITS}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Python would look for cycles in all samples made so far, again and again.

    A draw leaves few cycles behind, and the search for them takes half of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class _Derivation:
    """What was drawn; of the German side not even the words have been settled."""

    draw: Draw
    kind: str
    english: Draft
    german: Draft
    source_words: list[Word]
    source_tokens: tuple[str, ...]
    source: str

    def pair(self) -> tuple[str, str]:
        """The two sentences."""
        return self.source, detokenise(_tokens(words_of(self.german)))

    def sample(self, split: str) -> GrammarSample:
        """The two sentences, and everything that is known about them."""
        target_words = words_of(self.german)
        target_tokens = _tokens(target_words)
        return GrammarSample(
            source=self.source,
            target=detokenise(target_tokens),
            source_tokens=self.source_tokens,
            target_tokens=target_tokens,
            alignment=align(self.source_words, target_words),
            source_tree=grow(self.english),
            target_tree=grow(self.german),
            kind=self.kind,
            tags=frozenset(self.draw.tags),
            split=split,
        )


def _derivations(
    count: int, seed: int, split: str, kinds: Sequence[str] = ()
) -> Iterator[_Derivation]:
    """Derivations of one split without repetition of an English side."""
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got '{split}'.")
    if not 0 <= count <= LARGEST:
        raise InputError(f"count must lie between 0 and {LARGEST:,}, got {count:,}.")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(
            f"kinds must be some of {', '.join(KINDS)}, got '{unknown[0]}'."
        )
    rng = Random(f"{seed} {split}")
    seen: set[str] = set()
    missed = 0
    while len(seen) < count:
        if missed == USED_UP:
            raise InputError(
                f"Only {len(seen):,} different sentences of "
                f"{', '.join(kinds or KINDS)} were found in the split {split!r}, not "
                f"{count:,}: ask for fewer, or for more kinds."
            )
        missed += 1
        draw = Draw(rng, combine=split == "combinations")
        kind, (english, german) = derive(draw, kinds)
        words = words_of(english)
        tokens = _tokens(words)
        source = detokenise(tokens)
        if source not in seen and split_of(source, draw.combined) == split:
            seen.add(source)
            missed = 0
            yield _Derivation(draw, kind, english, german(), words, tokens, source)


def _tokens(words: list[Word]) -> tuple[str, ...]:
    return tuple(word[1] for word in words)
