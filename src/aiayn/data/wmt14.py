"""§5.1: 'the standard WMT 2014 English-German dataset consisting of about 4.5 million
sentence pairs', and the English-French one of 36 million.

Both are several archives, 1.7 and 7 gigabytes, to be put together. Of most of them a
checksum has been published, by TensorFlow Datasets or by sacreBLEU; the archives of the
United Nations and of the giga-word corpus, which only French needs, are 'unverified'.

The paper does not say which pairs it left out. Here only those go that are empty on one
side. Validation is newstest2013 and the test newstest2014, as in the paper's §6; its
test has the 3,003 sentences that were released after the evaluation.
"""

import html
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from aiayn.data.archives import unpack
from aiayn.data.corpus import Corpus, check_languages
from aiayn.data.download import RemoteFile, cache_folder, fetch
from aiayn.data.lines import LinesOnDisk
from aiayn.data.parallel import ParallelText
from aiayn.data.text import read_lines
from aiayn.errors import InputError
from aiayn.files import in_turn, remove_parts


def _archive(
    path: str,
    size: int | None = None,
    sha256: str | None = None,
    md5: str | None = None,
) -> RemoteFile:
    """An archive of the workshops' site: one host, two names for it."""
    hosts = ("https://www.statmt.org", "https://statmt.org")
    mirrors = tuple(f"{host}/{path}" for host in hosts)
    return RemoteFile(f"wmt14/{Path(path).name}", size, sha256, mirrors, md5)


@dataclass(frozen=True)
class _Part:
    """Some of the training pairs."""

    name: str
    archive: RemoteFile
    member: str  # with {other} for the language that is not English, {side} for either


# Sizes and hashes: tensorflow/datasets, url_checksums/wmt14_translate.txt.
_PARTS = (
    _Part(
        "europarl",
        _archive(
            "wmt13/training-parallel-europarl-v7.tgz",
            657_632_379,
            "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        ),
        "training/europarl-v7.{other}-en.{side}",
    ),
    _Part(
        "commoncrawl",
        _archive(
            "wmt13/training-parallel-commoncrawl.tgz",
            918_311_367,
            "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        ),
        "commoncrawl.{other}-en.{side}",
    ),
    _Part(
        "news",
        _archive(
            "wmt14/training-parallel-nc-v9.tgz",
            80_418_416,
            "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        ),
        "training/news-commentary-v9.{other}-en.{side}",
    ),
)
_FRENCH_PARTS = (
    _Part(
        "un",
        _archive("wmt13/training-parallel-un.tgz"),
        "un/undoc.2000.{other}-en.{side}",
    ),
    _Part(
        "giga",
        _archive("wmt10/training-giga-fren.tar", 2_595_102_720),
        "giga-fren.release2.fixed.{side}.gz",
    ),
)
# Hashes: sacreBLEU's list of test sets.
_TESTS = {
    "validation": (
        _archive("wmt13/test.tgz", md5="48eca5d02f637af44e85186847141f67"),
        "test/newstest2013-src.{side}.sgm",
    ),
    "test": (
        _archive("wmt14/test-full.tgz", md5="a8cd784e006feb32ac6f3d9ec7eb389a"),
        "test-full/newstest2014-{other}en-{role}.{side}.sgm",
    ),
}
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)


def load_wmt14(source: str, target: str) -> Corpus:
    """WMT 2014 between en and de, or en and fr, in either direction.

    The first time it fetches gigabytes and puts them together, which takes about the
    size of the archives and twice that of the texts on the disk of the cache.
    """
    check_languages("wmt14", source, target, ("en", "de", "fr"))
    if "en" not in (source, target):
        raise InputError(
            f"WMT 2014 pairs English with German or French, not {source} with {target}."
        )
    other = target if source == "en" else source
    train = {side: _train_path(other, side) for side in ("en", other)}
    if not _all_there(train):
        with in_turn(cache_folder() / "wmt14"):  # trainings that begin at one time
            if not _all_there(train):
                remove_parts(train["en"].parent)
                _assemble(other, train)
    splits = {
        "train": ParallelText(
            LinesOnDisk.open(train[source]), LinesOnDisk.open(train[target])
        )
    }
    for split in _TESTS:
        sides = {side: _test_lines(split, other, side) for side in ("en", other)}
        splits[split] = ParallelText(sides[source], sides[target])
    return Corpus(
        name="wmt14",
        source_language=source,
        target_language=target,
        splits=splits,
        licence=(
            "For research: see the pages of the workshop, statmt.org/wmt14, and of "
            "each corpus; the crawled texts belong to whoever wrote them."
        ),
        citation=(
            "Bojar et al. (2014): Findings of the 2014 Workshop on Statistical Machine "
            "Translation."
        ),
    )


def _train_path(other: str, side: str) -> Path:
    return cache_folder() / "wmt14" / f"{other}-en" / f"train.{side}"


def _assemble(other: str, train: dict[str, Path]) -> None:
    """Put the training texts of all archives together, side by side."""
    parts = _PARTS + (_FRENCH_PARTS if other == "fr" else ())
    raw: list[dict[str, Path]] = []
    for part in parts:
        names = {side: part.member.format(other=other, side=side) for side in train}
        paths = {
            side: train[side].with_name(f"{part.name}.{Path(name).name}")
            for side, name in names.items()
        }
        if not _all_there(paths):
            unpack(fetch(part.archive), {names[side]: paths[side] for side in train})
        raw.append(paths)
    # Each side is written for itself, so each time the empty pairs are found anew.
    for side, path in train.items():
        LinesOnDisk.write(path, chain.from_iterable(_full(p, side) for p in raw))
    for paths in raw:
        for path in paths.values():
            with suppress(OSError):  # where nothing is locked, another may read it
                path.unlink()


def _all_there(paths: dict[str, Path]) -> bool:
    return all(path.exists() for path in paths.values())


def _full(paths: dict[str, Path], side: str) -> Iterator[str]:
    """One side of the pairs that are empty on neither."""
    texts: list[Iterable[str]] = [read_lines(path) for path in paths.values()]
    place = list(paths).index(side)
    try:
        for pair in zip(*texts, strict=True):
            if all(line.strip() for line in pair):
                yield pair[place]
    except InputError:  # a ValueError too: a line that cannot be read
        raise
    except ValueError:
        names = " and ".join(str(path) for path in paths.values())
        raise InputError(
            f"{names} differ in their number of lines; remove both, and the archive "
            "that they came from, so that they are fetched again."
        ) from None


def _test_lines(split: str, other: str, side: str) -> tuple[str, ...]:
    """A set of news, out of the mark-up in which it was published."""
    archive, member = _TESTS[split]
    # The files of the other direction hold the same sentences.
    name = member.format(other=other, side=side, role="src" if side == "en" else "ref")
    path = cache_folder() / "wmt14" / Path(name).name
    if not path.exists():
        unpack(fetch(archive), {name: path})
    found = (_SEGMENT.search(line) for line in read_lines(path))
    return tuple(html.unescape(match[1]).strip() for match in found if match)
