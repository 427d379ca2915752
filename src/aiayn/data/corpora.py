"""§5.1: the corpora, by name.

The paper trains on WMT 2014, which is here for those who have the machine. The others
are small enough for a laptop: the embedded grammar (no download), Multi30k (29,000
captions of pictures) and Tatoeba (166,000 everyday sentences); or the reader's own
files. To parse (§6.3), the target language is "trees".
"""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any

from aiayn.data.corpus import Corpus, check_languages
from aiayn.data.grammar import (
    HELD_OUT_SIZE,
    TRAIN_SIZE,
    generate,
    generate_pairs,
    split_sizes,
)
from aiayn.data.multi30k import load_multi30k
from aiayn.data.parallel import ParallelText, read_parallel
from aiayn.data.tatoeba import load_tatoeba
from aiayn.data.trees import TREES, tree_pairs
from aiayn.data.wmt14 import load_wmt14
from aiayn.errors import InputError


def load_corpus(
    name: str | Path, *, source: str = "en", target: str = "de", **options: Any
) -> Corpus:
    """Load a corpus: one of `CORPORA`, or a folder of your own.

    A folder holds ``train.en`` and ``train.de`` (the endings are the languages), and
    likewise ``validation`` (or ``valid``, ``val``, ``dev``) and ``test`` if you have
    them, each plain or packed (``train.en.gz``). A training needs train
    and validation.

    Args:
        name: "grammar", "multi30k", "tatoeba", "wmt14", or the path of a folder; one
            that has such a name itself, by its whole path.
        source: The language to translate from: "en", "de"; with Multi30k and WMT 2014
            also "fr".
        target: The language to translate to. "trees", with the grammar: the English
            sentence's constituency tree, written as symbols (§6.3).
        options: For the grammar, `size` (training pairs), `held_out_size` (pairs of
            each other split) and `seed`; pair i is sample i of
            `aiayn.data.grammar.load_grammar` with the same options.

    Returns:
        The corpus, with the splits train, validation and test; the grammar also has
        combinations, a folder only what it holds.

    Raises:
        InputError: There is no such corpus, language or option, or a file of it cannot
            be had or read.

    Paper: §5.1, which takes WMT 2014.

    >>> corpus = load_corpus("grammar", size=200)  # embedded, no download
    >>> len(corpus.train), list(corpus.splits)
    (200, ['train', 'validation', 'test', 'combinations'])
    """
    if source == target:
        raise InputError(
            f"source and target are both {source!r}; choose two different languages."
        )
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if name in _LOADERS:
        _check_options(name, options)
        return _LOADERS[name](source, target, **options)
    if not name or not os.path.isdir(name):
        raise InputError(
            f"There is no corpus {name!r}; choose one of {', '.join(CORPORA)}, or give "
            "the path of a folder with train.en, train.de and so on."
        )
    if options:
        raise InputError(
            f"A folder takes no option {', '.join(options)}; leave it out."
        )
    return _load_folder(Path(name), source, target)


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    known = list(inspect.signature(_LOADERS[name]).parameters)[2:]
    for option in options:
        if option not in known:
            raise InputError(
                f"The corpus {name} has no option {option!r}; it has "
                f"{', '.join(known) or 'none'}."
            )


def _load_grammar(
    source: str,
    target: str,
    size: int = TRAIN_SIZE,
    held_out_size: int = HELD_OUT_SIZE,
    seed: int = 0,
) -> Corpus:
    options = {"size": size, "held_out_size": held_out_size, "seed": seed}
    for name, number in options.items():
        if not isinstance(number, Integral):
            raise InputError(f"{name} must be a whole number, not {number!r}.")
    corpus = _grammar(source, target, **options)
    return replace(corpus, splits=dict(corpus.splits))  # the reader's, to change


@lru_cache(maxsize=1)  # a notebook reads the corpus, and then its training does
def _grammar(
    source: str, target: str, size: int, held_out_size: int, seed: int
) -> Corpus:
    languages = ("en", TREES) if target == TREES else ("en", "de")
    check_languages("grammar", source, target, languages)
    splits = {}
    for split, count in split_sizes(size, held_out_size).items():
        if target == TREES:
            samples = generate(count, seed=seed, split=split)
            splits[split] = tree_pairs(sample.source_tree for sample in samples)
            continue
        pairs = generate_pairs(count, seed=seed, split=split)
        english, german = zip(*pairs, strict=True) if pairs else ((), ())
        sides = (english, german) if source == "en" else (german, english)
        splits[split] = ParallelText(*sides)
    return Corpus(
        name="grammar",
        source_language=source,
        target_language=target,
        splits=splits,
        licence="Made by this package; no rights are claimed in its sentences.",
        citation="The grammar embedded in aiayn.",
    )


_FOLDER_STEMS = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


def _load_folder(folder: Path, source: str, target: str) -> Corpus:
    splits = {}
    for split, stems in _FOLDER_STEMS.items():
        for stem in stems:
            left, right = (_side(folder, stem, side) for side in (source, target))
            if left is None and right is None:
                continue
            if left is None or right is None:
                there, missing = (right, source) if left is None else (left, target)
                raise InputError(
                    f"{there} has no other side; expected {stem}.{missing} or "
                    f"{stem}.{missing}.gz in {folder}."
                )
            splits[split] = read_parallel(left, right)
            break
    if not splits:
        raise InputError(
            f"{folder} holds no corpus from {source} to {target}; expected train."
            f"{source} and train.{target} (and validation.*, test.*) in it."
        )
    return Corpus(
        name=str(folder),
        source_language=source,
        target_language=target,
        splits=splits,
        licence="Your own files: on the terms under which you have them.",
        citation="Your own files.",
    )


def _side(folder: Path, stem: str, language: str) -> Path | None:
    for name in (f"{stem}.{language}", f"{stem}.{language}.gz"):
        if os.path.isfile(folder / name):
            return folder / name
    return None


_LOADERS: dict[str, Callable[..., Corpus]] = {
    "grammar": _load_grammar,
    "multi30k": load_multi30k,
    "tatoeba": load_tatoeba,
    "wmt14": load_wmt14,
}

CORPORA = tuple(_LOADERS)
"""The names that `load_corpus` knows. Not in the paper, which trains on WMT 2014."""
