"""§5.1: 'the standard WMT 2014 English-German dataset consisting of about 4.5 million
sentence pairs', and the English-French one of 36 million.

Both are put together from several archives, of 1.7 and 7 gigabytes. TensorFlow Datasets
or sacreBLEU have published checksums of most of them; the archives of the United
Nations and of the giga-word corpus, which only French needs, are 'unverified'.

The paper does not say which pairs it left out. Here only pairs that are empty on one
side are. Validation is newstest2013 and the test newstest2014, as in the paper's §6;
the test has the 3,003 sentences that were released after the evaluation.
"""

import gzip
import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiayn.data.download import RemoteFile, cache_folder, fetch
from aiayn.data.parallel import ParallelText
from aiayn.data.text import MemmapLines, read_stream
from aiayn.errors import InputError
from aiayn.storage import remove_parts, write_atomically

DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
LICENCE = "For research: see statmt.org/wmt14, and the pages of each of its corpora."
CITATION = (
    "Bojar et al. (2014): Findings of the 2014 Workshop on Statistical Machine "
    "Translation."
)

# Archives on the workshops' site, their hashes (None: not published), and the names of
# the texts in them, where {other} is the language that is not English and {side} either
# language. The hashes are those of tensorflow/datasets (wmt14_translate.txt).
_TRAIN = (
    (
        "wmt13/training-parallel-europarl-v7.tgz",
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        "training/europarl-v7.{other}-en.{side}",
    ),
    (
        "wmt13/training-parallel-commoncrawl.tgz",
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        "commoncrawl.{other}-en.{side}",
    ),
    (
        "wmt14/training-parallel-nc-v9.tgz",
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        "training/news-commentary-v9.{other}-en.{side}",
    ),
)
_FRENCH = (
    ("wmt13/training-parallel-un.tgz", None, "un/undoc.2000.{other}-en.{side}"),
    ("wmt10/training-giga-fren.tar", None, "giga-fren.release2.fixed.{side}.gz"),
)
# These hashes are those of sacreBLEU. {role} is src for English and ref for the other
# language; the files of the other direction contain the same sentences.
_HELD_OUT = {
    "validation": (
        "wmt13/test.tgz",
        "48eca5d02f637af44e85186847141f67",
        "test/newstest2013-src.{side}.sgm",
    ),
    "test": (
        "wmt14/test-full.tgz",
        "a8cd784e006feb32ac6f3d9ec7eb389a",
        "test-full/newstest2014-{other}en-{role}.{side}.sgm",
    ),
}
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)


def load(source: str, target: str) -> dict[str, ParallelText]:
    """The splits of WMT 2014 between English and German, or English and French.

    The first call downloads gigabytes and puts them together. In the cache that takes
    the size of the archives and of the texts.
    """
    other = target if source == "en" else source
    folder = cache_folder() / "wmt14" / f"{other}-en"
    train = {side: folder / f"train.{side}" for side in ("en", other)}
    if not all(path.exists() for path in train.values()):
        _assemble(train, other)
    text = MemmapLines.open(train[source]), MemmapLines.open(train[target])
    splits = {"train": ParallelText(*text)}
    for split in _HELD_OUT:
        lines = (_held_out(split, other, side) for side in (source, target))
        splits[split] = ParallelText(*lines)
    return splits


def _assemble(train: dict[str, Path], other: str) -> None:
    """Write the training texts: the pairs of all archives that are empty on no side."""
    english, foreign = train.values()
    for path in (english, foreign):
        remove_parts(path.parent, path.name, idle=86400)  # downloads lie in between
    with write_atomically(english) as first, write_atomically(foreign) as second:
        for path, digest, member in _TRAIN + (_FRENCH if other == "fr" else ()):
            archive = _fetch(path, digest)
            names = (member.format(other=other, side=side) for side in train)
            texts = [_lines(archive, name) for name in names]
            for source, target in zip(*texts, strict=True):
                if source.strip() and target.strip():
                    first.write(f"{source}\n".encode())
                    second.write(f"{target}\n".encode())


def _held_out(split: str, other: str, side: str) -> tuple[str, ...]:
    """One side of a validation or test set, without the mark-up around its lines."""
    path, digest, member = _HELD_OUT[split]
    name = member.format(other=other, side=side, role="src" if side == "en" else "ref")
    found = map(_SEGMENT.search, _lines(_fetch(path, digest), name))
    return tuple(html.unescape(match[1]).strip() for match in found if match)


def _lines(archive: Path, name: str) -> Iterator[str]:
    """The lines of one text of an archive, of which nothing is written to the disk.

    Raises:
        InputError: The archive lacks it, or it is not UTF-8.
    """
    with tarfile.open(archive, "r|*") as packed:
        for info in packed:
            if info.name.removeprefix("./") == name and info.isfile():
                text: Any = packed.extractfile(info)
                lines = gzip.GzipFile(fileobj=text) if name.endswith(".gz") else text
                yield from read_stream(lines, f"{name} in {archive}")
                return
    raise InputError(f"The archive {archive} has no file {name}.")


def _fetch(path: str, digest: str | None) -> Path:
    mirrors = (f"https://www.statmt.org/{path}", f"https://statmt.org/{path}")
    return fetch(RemoteFile(f"wmt14/{Path(path).name}", digest, mirrors))
