"""WMT 2014, put together from small archives that are laid out as the large ones."""

import gzip
import hashlib
import io
import os
import tarfile
import warnings

import pytest

from aiayn.data import MemmapLines, load_corpus, wmt14
from aiayn.errors import InputError


def pack(path, files):
    """A tar archive of texts, packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


# What the tests call the archives.
NAMES = {
    "wmt13/training-parallel-europarl-v7.tgz": "europarl",
    "wmt13/training-parallel-commoncrawl.tgz": "commoncrawl",
    "wmt14/training-parallel-nc-v9.tgz": "news",
    "wmt13/training-parallel-un.tgz": "un",
    "wmt10/training-giga-fren.tar": "giga",
}


def stored(path):
    """Where an archive of that path on the workshops' site lies in AIAYN_DATA."""
    return f"wmt14/{path.split('/')[-1]}"


def pack_first(published, english, german):
    """The first corpus's two texts, as the next call is to find them."""
    path, _, member = wmt14._TRAIN[0]
    names = (member.format(other="de", side=side) for side in ("en", "de"))
    texts = dict(zip(names, (english, german), strict=True))
    pack(published / stored(path), texts)


def pairs(part, other, count=3):
    """Lines of both sides; the second pair is empty on the English side."""
    english = [f"{part} sentence {i}" if i != 1 else " " for i in range(count)]
    foreign = [f"{part} {other} {i} \u2028 ä" for i in range(count)]
    return {"en": english, other: foreign}


@pytest.fixture
def published(monkeypatch, tmp_path):
    """All archives in AIAYN_DATA, and a table that knows them without hashes."""
    folder = tmp_path / "data"
    for table, others in (("_TRAIN", ("de", "fr")), ("_FRENCH", ("fr",))):
        archives = getattr(wmt14, table)
        unverified = tuple((path, None, member) for path, _, member in archives)
        monkeypatch.setattr(wmt14, table, unverified)
        for path, _, member in archives:
            files = {}
            for other in others:
                for side, lines in pairs(NAMES[path], other).items():
                    raw = "".join(f"{line}\n" for line in lines).encode()
                    name = member.format(other=other, side=side)
                    files[name] = gzip.compress(raw) if name[-3:] == ".gz" else raw
            pack(folder / stored(path), files)
    held_out = {}
    for split, (path, _, member) in wmt14._HELD_OUT.items():
        held_out[split] = (path, None, member)
        files = {}
        for other in ("de", "fr"):
            for side, role in (("en", "src"), (other, "ref")):
                text = f'<doc>\n<seg id="1"> {split} {side} &amp; </seg>\n</doc>\n'
                name = member.format(other=other, side=side, role=role)
                files[name] = text.encode()
        pack(folder / stored(path), files)
    monkeypatch.setattr(wmt14, "_HELD_OUT", held_out)
    monkeypatch.setenv("AIAYN_DATA", str(folder))
    return folder


def test_english_to_german_is_three_corpora_without_their_empty_pairs(published):
    corpus = load_corpus("wmt14")
    assert list(corpus.train) == [
        (f"{part} sentence {i}", f"{part} de {i} \u2028 ä")
        for part in ("europarl", "commoncrawl", "news")
        for i in (0, 2)
    ]
    assert list(corpus.test) == [("test en &", "test de &")]
    assert list(corpus.validation) == [("validation en &", "validation de &")]


def test_french_has_two_more_and_the_other_direction_is_the_same_turned(published):
    corpus = load_corpus("wmt14", source="fr", target="en")
    assert len(corpus.train) == 10
    assert next(iter(corpus.train)) == ("europarl fr 0 \u2028 ä", "europarl sentence 0")
    forth = load_corpus("wmt14", source="en", target="fr")
    assert list(forth.train.source) == list(corpus.train.target)


def test_it_stays_on_disk_and_is_put_together_once(published):
    first = load_corpus("wmt14").train
    assert isinstance(first.source, MemmapLines)
    for path in published.rglob("training-parallel-*.tgz"):
        path.unlink()
    assert list(load_corpus("wmt14").train) == list(first)


def test_nothing_of_the_assembly_stays_in_the_cache(published, tmp_path):
    load_corpus("wmt14")
    found = sorted(path.name for path in (tmp_path / "cache/wmt14/de-en").iterdir())
    assert found == ["train.de", "train.en"]


def test_what_a_killed_assembly_left_is_removed_a_day_later(published, tmp_path):
    """Another process may still be at work on what is younger."""
    folder = tmp_path / "cache/wmt14/de-en"
    folder.mkdir(parents=True)
    old, new = folder / ".train.de.1.part", folder / ".train.en.2.part"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    load_corpus("wmt14")
    found = sorted(path.name for path in folder.iterdir())
    assert found == [new.name, "train.de", "train.en"]


def test_every_archive_is_held_to_the_hash_that_was_published(monkeypatch):
    """Nobody has published one of the two that only French needs."""
    for _, digest, _ in (*wmt14._TRAIN, *wmt14._HELD_OUT.values()):
        assert len(bytes.fromhex(digest)) in (
            hashlib.sha256().digest_size,
            hashlib.md5().digest_size,
        )
    assert [digest for _, digest, _ in wmt14._FRENCH] == [None, None]
    monkeypatch.setattr(wmt14, "fetch", lambda file: file)
    file = wmt14._fetch(*wmt14._TRAIN[0][:2])
    assert file.path == "wmt14/training-parallel-europarl-v7.tgz"
    assert file.mirrors == (
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        "https://statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    )


def test_sides_of_unequal_length_are_not_put_together(published, tmp_path):
    pack_first(published, b"one\ntwo\n", b"eins\n")
    with pytest.raises(ValueError, match="shorter"):
        load_corpus("wmt14")
    assert list((tmp_path / "cache/wmt14/de-en").iterdir()) == []


def test_a_line_that_cannot_be_read_is_not_said_to_be_missing(published):
    pack_first(published, b"one\n", b"f\xfcnf\n")
    with pytest.raises(InputError, match=r"Line 1 of .*europarl.* is not UTF-8"):
        load_corpus("wmt14")


def test_an_archive_is_read_and_not_unfolded(tmp_path):
    path = tmp_path / "a.tgz"
    pack(path, {"../evil": b"x", "/abs": b"x", "./text": b"hello\n"})
    assert list(wmt14._lines(path, "text")) == ["hello"]
    with pytest.raises(InputError, match="has no file other"):
        list(wmt14._lines(path, "other"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("text")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(InputError, match="has no file text"):
        list(wmt14._lines(path, "text"))


def test_a_disk_without_room_is_no_damaged_archive(published, monkeypatch, tmp_path):
    """Whoever reads that it is one removes gigabytes that were whole."""
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("AIAYN_CACHE", str(in_the_way))
    with pytest.raises(InputError, match=r"train\.en cannot be written"):
        load_corpus("wmt14")


def test_nothing_warns_of_what_is_there(published):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_corpus("wmt14")
