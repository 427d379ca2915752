"""§5.1: corpora, by name or from a folder of one's own.

The paper trains on WMT 2014, which takes gigabytes and days. The other corpora are
small enough for a laptop: the embedded grammar (no download), Multi30k (29,000 captions
of pictures) and Tatoeba (166,000 everyday sentences). For parsing (§6.3), the target
language is "trees".
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiayn.data import multi30k, tatoeba, wmt14
from aiayn.data.grammar import corpus as embedded
from aiayn.data.parallel import ParallelText, read_parallel
from aiayn.errors import InputError

# Each has DIRECTIONS, LICENCE, CITATION, and a function `load` that gives the splits.
_MODULES = {
    "grammar": embedded,
    "multi30k": multi30k,
    "tatoeba": tatoeba,
    "wmt14": wmt14,
}

CORPORA = tuple(_MODULES)
"""The names that `load_corpus` knows. Not in the paper, which trains on WMT 2014."""

_STEMS = {"train": "train", "validation": "validation valid val dev", "test": "test"}


@dataclass(frozen=True)
class Corpus:
    """Parallel text in named splits, with the licence and citation of its makers.

    Paper: §5.1.

    >>> corpus = load_corpus("grammar", size=200)
    >>> corpus.source_language, corpus.target_language, len(corpus.train)
    ('en', 'de', 200)
    """

    name: str
    """As `load_corpus` knows it, or the path of the folder."""
    source_language: str
    """en, de, …"""
    target_language: str
    """en, de, …; trees for a parser."""
    splits: Mapping[str, ParallelText]
    """By name: train, validation, test and, for the grammar, combinations."""
    licence: str
    """The terms of use."""
    citation: str
    """Whom to cite."""

    @property
    def train(self) -> ParallelText:
        """The pairs to learn from."""
        return self.split("train")

    @property
    def validation(self) -> ParallelText:
        """The pairs to choose a model by."""
        return self.split("validation")

    @property
    def test(self) -> ParallelText:
        """The pairs to report a final score on."""
        return self.split("test")

    def split(self, name: str) -> ParallelText:
        """The split of that name; an InputError lists the names that there are."""
        if name not in self.splits:
            raise InputError(
                f"The corpus {self.name} has no split {name!r}; it has "
                f"{', '.join(self.splits)}."
            )
        return self.splits[name]


def corpus_place(name: str | os.PathLike[str]) -> str:
    """A name of `CORPORA`, or the absolute path of a folder of one's own.

    Raises:
        InputError: There is neither.
    """
    name = os.fspath(name)
    folder = os.path.expanduser(name)
    if name not in CORPORA and not os.path.isdir(folder):
        raise InputError(
            f"There is no corpus {name!r}; choose one of {', '.join(CORPORA)}, or give "
            "the path of a folder with train.en, train.de and so on."
        )
    return name if name in CORPORA else os.path.abspath(folder)


def load_corpus(
    name: str | Path, *, source: str = "en", target: str = "de", **options: Any
) -> Corpus:
    """Load a corpus: one of `CORPORA`, or a folder of your own.

    A folder contains ``train.en`` and ``train.de`` (the endings are the languages), and
    likewise ``validation`` (or ``valid``, ``val``, ``dev``) and ``test`` if you have
    them, each plain or packed (``train.en.gz``). Training needs train and validation.

    Args:
        name: "grammar", "multi30k", "tatoeba", "wmt14", or the path
            of a folder. If your folder has one of these names, give its whole path.
        source: The language to translate from: "en" or "de"; with Multi30k and WMT 2014
            also "fr".
        target: The language to translate to. "trees", with the grammar, is the
            constituency tree of the English sentence, written as symbols (§6.3).
        options: For the grammar only: `size` (number of training pairs),
            `held_out_size` (pairs of each other split) and `seed`. Pair i is sample i
            of `aiayn.data.grammar.load_grammar` with the same options.

    Returns:
        The corpus, with the splits train, validation and test; the grammar also has
        combinations, and a folder only the splits that it contains.

    Raises:
        InputError: There is no such corpus or language, or a file of it cannot be
            downloaded or read.
        TypeError: The corpus has no such option.

    Paper: §5.1, which takes WMT 2014.

    >>> corpus = load_corpus("grammar", size=200)  # embedded, no download
    >>> len(corpus.train), list(corpus.splits)
    (200, ['train', 'validation', 'test', 'combinations'])
    """
    name = corpus_place(name)
    if source == target:
        raise InputError(
            f"The languages are both {source!r}: choose another source=… or target=…"
        )
    if name not in CORPORA:
        return _load_folder(name, source, target, **options)
    module = _MODULES[name]
    if f"{source}-{target}" not in module.DIRECTIONS:
        raise InputError(
            f"The corpus {name} cannot be read from {source!r} to {target!r}; it has "
            f"the directions {', '.join(module.DIRECTIONS)}."
        )
    splits = dict(module.load(source, target, **options))
    return Corpus(name, source, target, splits, module.LICENCE, module.CITATION)


def _load_folder(folder: str, source: str, target: str) -> Corpus:
    splits = {}
    for split, stems in _STEMS.items():
        for stem in stems.split():
            paths = [_find(folder, f"{stem}.{side}") for side in (source, target)]
            if split not in splits and any(map(os.path.isfile, paths)):
                splits[split] = read_parallel(*paths)
    if not splits:
        raise InputError(
            f"{folder} contains no corpus from {source} to {target}; expected train."
            f"{source} and train.{target} (and validation.*, test.*) in it."
        )
    licence = "Your own files: on the terms under which you have them."
    return Corpus(folder, source, target, splits, licence, "Your own files.")


def _find(folder: str, name: str) -> str:
    """The path of a text, packed or plain."""
    plain = os.path.join(folder, name)
    return f"{plain}.gz" if os.path.isfile(f"{plain}.gz") else plain
