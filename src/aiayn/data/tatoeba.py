"""Tatoeba: everyday sentences in English and German, written by volunteers.

169,813 pairs of 135,534 English sentences, whose median length is six words.
"""

import hashlib
from collections import defaultdict
from zipfile import ZipFile

from aiayn.data.download import RemoteFile, fetch, mirrors_of
from aiayn.data.parallel import ParallelText
from aiayn.data.text import read_stream

DIRECTIONS = ("en-de", "de-en")
LICENCE = (
    "CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/). Attribution: "
    "www.manythings.org/anki and tatoeba.org."
)
CITATION = "Tatoeba sentence pairs, selected by manythings.org, 13 May 2018."
_COMMIT = "de48b7027f7318d77010a6e08ed928c10748c23d"
_SHA256 = "b7688f84f99fa33c17397c14d8bd9cef1fdeb2ee0bf50074767023aee8926e28"
# manythings.org replaces its files as Tatoeba grows; this copy does not change.
REMOTE_FILE = RemoteFile(
    "tatoeba_deu_eng/deu-eng-2018-05-13.zip",
    _SHA256,
    mirrors_of("rioyshky/translation", _COMMIT, "deu-eng.zip", _SHA256),
)


def load(source: str, target: str) -> dict[str, ParallelText]:
    """Three splits; validation and test have one English sentence in a hundred each.

    An English sentence has several translations, so pairs drawn at random would put
    some translations of a test sentence into the training split. The hash of the
    English sentence therefore decides where all its pairs go. A pair whose German side
    was held out that way is not trained on either. Validation and test share no English
    sentence, and three German ones.
    """
    splits = defaultdict(list)
    with ZipFile(fetch(REMOTE_FILE)) as archive, archive.open("deu.txt") as stream:
        for line in read_stream(stream, "deu.txt"):
            english, german, *_ = line.split("\t")
            digest = hashlib.sha256(english.encode()).digest()
            bucket = int.from_bytes(digest[:8], "big") % 100
            split = {0: "test", 1: "validation"}.get(bucket, "train")
            splits[split].append((english, german))
    held_out = {german for _, german in splits["validation"] + splits["test"]}
    splits["train"] = [pair for pair in splits["train"] if pair[1] not in held_out]
    return {
        split: ParallelText.from_pairs(splits[split], swap=source == "de")
        for split in ("train", "validation", "test")
    }
