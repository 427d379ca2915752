"""Tatoeba: everyday sentences in English and German, written by volunteers.

169,813 pairs of 135,534 English sentences, six words long in the middle.
"""

import hashlib

from aiayn.data.corpus import Corpus, check_languages
from aiayn.data.download import RemoteFile, fetch, mirrors_of
from aiayn.data.parallel import ParallelText
from aiayn.data.text import read_lines

_TATOEBA_SHA256 = "b7688f84f99fa33c17397c14d8bd9cef1fdeb2ee0bf50074767023aee8926e28"
# The site that makes these files replaces them as Tatoeba grows; this copy stays.
_TATOEBA_FILE = RemoteFile(
    path="tatoeba_deu_eng/deu-eng-2018-05-13.zip",
    size=4_012_023,
    sha256=_TATOEBA_SHA256,
    mirrors=mirrors_of(
        "rioyshky/translation",
        "de48b7027f7318d77010a6e08ed928c10748c23d",
        "deu-eng.zip",
        _TATOEBA_SHA256,
    ),
)


def load_tatoeba(source: str, target: str) -> Corpus:
    """Tatoeba from en to de or back; see `load_corpus`."""
    check_languages("tatoeba", source, target, ("en", "de"))
    lines = read_lines(fetch(_TATOEBA_FILE), member="deu.txt")
    english_german = [(pair[0], pair[1]) for pair in (x.split("\t") for x in lines)]
    splits = {}
    for split, pairs in _split_by_english(english_german).items():
        english, german = zip(*pairs, strict=True)
        sides = (english, german) if source == "en" else (german, english)
        splits[split] = ParallelText(*sides)
    return Corpus(
        name="tatoeba",
        source_language=source,
        target_language=target,
        splits=splits,
        licence=(
            "CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/). Attribution: "
            "www.manythings.org/anki and tatoeba.org."
        ),
        citation="Tatoeba sentence pairs, selected by manythings.org, 13 May 2018.",
    )


def _split_by_english(
    pairs: list[tuple[str, str]],
) -> dict[str, list[tuple[str, str]]]:
    """One English sentence in a hundred for the test, another for validation.

    An English sentence has several translations, so pairs drawn at random would put
    some of a test sentence's translations into training. All pairs of one English
    sentence go together, wherever its hash sends it; and a pair whose German side
    was held out that way is not trained on either.
    """
    splits: dict[str, list[tuple[str, str]]] = {
        "train": [],
        "validation": [],
        "test": [],
    }
    for english, german in pairs:
        digest = hashlib.sha256(english.encode()).digest()
        bucket = int.from_bytes(digest[:8], "big") % 100
        split = {0: "test", 1: "validation"}.get(bucket, "train")
        splits[split].append((english, german))
    held_out = {german for _, german in splits["validation"] + splits["test"]}
    splits["train"] = [pair for pair in splits["train"] if pair[1] not in held_out]
    return splits
