"""WMT 2014, put together from small archives that are laid out as the large ones."""

import gzip
import hashlib
import io
import random
import tarfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from aiayn.data import LinesOnDisk, TokenRows, load_corpus, wmt14
from aiayn.data.archives import unpack
from aiayn.data.text import MAX_RATIO
from aiayn.errors import InputError
from aiayn.files import fcntl


def pack(path, files):
    """A tar archive of texts, packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def pack_first(published, english, german):
    """The first corpus's two texts, as the next call is to find them."""
    part = wmt14._PARTS[0]
    names = (part.member.format(other="de", side=side) for side in ("en", "de"))
    pack(
        published / part.archive.path, dict(zip(names, (english, german), strict=True))
    )


def pairs(part, other, count=3):
    """Lines of both sides; the second pair is empty on the English side."""
    english = [f"{part} sentence {i}" if i != 1 else " " for i in range(count)]
    foreign = [f"{part} {other} {i} \u2028 ä" for i in range(count)]
    return {"en": english, other: foreign}


@pytest.fixture
def published(monkeypatch, tmp_path):
    """All archives in AIAYN_DATA, and a registry that knows them without hashes."""
    folder = tmp_path / "data"

    def unverified(part):
        return replace(part, archive=replace(part.archive, size=None, sha256=None))

    for parts in ("_PARTS", "_FRENCH_PARTS"):
        own = tuple(unverified(part) for part in getattr(wmt14, parts))
        monkeypatch.setattr(wmt14, parts, own)
        for part in own:
            files = {}
            for other in ("fr",) if parts == "_FRENCH_PARTS" else ("de", "fr"):
                for side, lines in pairs(part.name, other).items():
                    raw = "".join(f"{line}\n" for line in lines).encode()
                    name = part.member.format(other=other, side=side)
                    files[name] = gzip.compress(raw) if name[-3:] == ".gz" else raw
            pack(folder / part.archive.path, files)
    tests = {}
    for split, (archive, member) in wmt14._TESTS.items():
        tests[split] = (replace(archive, md5=None), member)
        files = {}
        for other in ("de", "fr"):
            for side, role in (("en", "src"), (other, "ref")):
                text = f'<doc>\n<seg id="1"> {split} {side} &amp; </seg>\n</doc>\n'
                name = member.format(other=other, side=side, role=role)
                files[name] = text.encode()
        pack(folder / archive.path, files)
    monkeypatch.setattr(wmt14, "_TESTS", tests)
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
    assert isinstance(first.source, LinesOnDisk)
    for path in published.rglob("*.tgz"):
        path.unlink()
    assert list(load_corpus("wmt14").train) == list(first)


@pytest.mark.skipif(fcntl is None, reason="Windows locks no folder")
def test_of_two_that_begin_at_one_time_the_second_waits(published, monkeypatch):
    """Else whoever ends first takes away the parts that the other still reads."""
    go_on, said, assembled, assemble = threading.Event(), [], [], wmt14._assemble

    def meet(*args):
        assembled.append(args)
        if len(assembled) == 2:  # the second did not wait
            go_on.set()
        go_on.wait(timeout=60)
        assemble(*args)

    def tell(line, **_):
        said.append(line)
        go_on.set()

    monkeypatch.setattr(wmt14, "_assemble", meet)
    monkeypatch.setattr("aiayn.files.print", tell, raising=False)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(load_corpus, "wmt14") for _ in range(2)]
        first, second = (list(call.result().train) for call in calls)
    assert len(first) == 6
    assert first == second
    assert len(assembled) == 1
    assert [line[:29] for line in said] == ["Another program is at work in"]


def test_parts_that_somebody_else_still_reads(published, monkeypatch):
    """As on Windows, which removes no open file; the texts are whole by then."""

    def refuse(*_, **__):
        raise PermissionError("It is open elsewhere.")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    assert len(load_corpus("wmt14").train) == 6


def test_parts_that_somebody_else_has_removed(published, monkeypatch):
    """As where folders cannot be locked."""
    write = LinesOnDisk.write

    def interfere(path, lines):
        written = write(path, lines)
        if path.suffix == ".de":  # the last, when all has been read
            for part in path.parent.glob("europarl.*"):
                part.unlink()
        return written

    monkeypatch.setattr(LinesOnDisk, "write", interfere)
    folder = wmt14._train_path("de", "en").parent
    assert len(load_corpus("wmt14").train) == 6
    assert {path.name for path in folder.iterdir()} == {
        f"train.{side}{ending}"
        for side in ("en", "de")
        for ending in ("", ".starts.npy")
    }


def test_the_registry_holds_every_archive_to_what_was_published():
    """Nobody has published a checksum of the two that only French needs."""
    archives = [part.archive for part in wmt14._PARTS]
    archives += [archive for archive, _ in wmt14._TESTS.values()]
    for archive in archives:
        assert archive.verified
        kind, value = archive.checksum
        assert len(bytes.fromhex(value)) == hashlib.new(kind).digest_size
    assert not any(part.archive.verified for part in wmt14._FRENCH_PARTS)
    assert archives[0].mirrors == (
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        "https://statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    )


def test_unequal_sides_name_both_files(published):
    pack_first(published, b"one\ntwo\n", b"eins\n")
    with pytest.raises(InputError, match=r"europarl.*differ in their number of lines"):
        load_corpus("wmt14")


def test_a_line_that_cannot_be_read_is_not_said_to_be_missing(published):
    pack_first(published, b"one\n", b"f\xfcnf\n")
    with pytest.raises(InputError, match=r"Line 1 of .*europarl.* is not UTF-8"):
        load_corpus("wmt14")


def test_languages_that_it_does_not_pair():
    with pytest.raises(InputError, match="English with German or French"):
        load_corpus("wmt14", source="de", target="fr")


def test_lines_on_disk_are_a_sequence(tmp_path):
    lines = ["eins", "", "drei ä", "vier\u2028"]
    found = LinesOnDisk.write(tmp_path / "text", lines)
    assert list(found) == lines
    assert found[-1] == lines[-1]
    assert list(found[1:3]) == lines[1:3]
    assert list(found[1:3][1:]) == lines[2:3]
    assert list(found[3:1]) == []
    assert list(found[::2]) == lines[::2]
    with pytest.raises(IndexError):
        found[4]
    assert list(LinesOnDisk.write(tmp_path / "none", [])) == []
    with (tmp_path / "text").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(InputError, match="do not belong together"):
        LinesOnDisk.open(tmp_path / "text")


def test_a_path_may_be_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(LinesOnDisk.write("text", ["eins", "zwei"])) == ["eins", "zwei"]
    assert list(LinesOnDisk.open("text")) == ["eins", "zwei"]
    assert list(LinesOnDisk("text", np.array([0, 5]))) == ["eins"]
    rows = TokenRows.from_lists([[5, 6], [7]])
    rows.save("rows")
    assert list(TokenRows.open("rows")) == [[5, 6], [7]]
    np.save("rows.tokens.npy", np.array([5, 6]))
    with pytest.raises(InputError, match="do not belong together"):
        TokenRows.open("rows")


def test_a_text_does_not_stand_without_the_list_of_its_lines(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aiayn.data.lines.np.save", full)
    with pytest.raises(InputError, match="No space left"):
        LinesOnDisk.write(tmp_path / "text", ["eins"])
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_searched_and_not_unfolded(tmp_path):
    path = tmp_path / "a.tgz"
    pack(path, {"../evil": b"x", "/abs": b"x", "./text": b"hello"})
    unpack(path, {"text": tmp_path / "out"})
    assert (tmp_path / "out").read_bytes() == b"hello"
    assert not (tmp_path.parent / "evil").exists()
    with pytest.raises(InputError, match="holds no file other"):
        unpack(path, {"other": tmp_path / "out2"})
    assert not (tmp_path / "out2").exists()


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("text")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(InputError, match="holds no file text"):
        unpack(path, {"text": tmp_path / "out"})


def test_a_bomb(tmp_path):
    path = tmp_path / "bomb.tgz"
    pack(path, {"text": bytes(2**22)})
    assert MAX_RATIO * path.stat().st_size < 2**22
    with pytest.raises(InputError, match="more than a text"):
        unpack(path, {"text": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_a_torn_archive(tmp_path):
    path = tmp_path / "torn.tgz"
    pack(path, {"text": random.Random(1).randbytes(10_000)})
    path.write_bytes(path.read_bytes()[:5_000])
    with pytest.raises(InputError, match="is damaged"):
        unpack(path, {"text": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_a_disk_without_room_is_no_damaged_archive(tmp_path):
    """Whoever reads that it is one removes gigabytes that were whole."""
    path = tmp_path / "a.tar"
    pack(path, {"text": b"hello"})
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(InputError) as caught:
        unpack(path, {"text": in_the_way / "out"})
    assert str(caught.value).startswith(f"{in_the_way / 'out'} cannot be written")


def test_nothing_warns_of_what_is_there(published):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_corpus("wmt14")


def test_what_are_no_lines_is_refused_and_leaves_nothing(tmp_path, unchecked_shapes):
    with pytest.raises(InputError, match="not a text: give"):
        LinesOnDisk.write(tmp_path / "text", "eins")
    with pytest.raises(InputError, match="Line 2 holds a line feed"):
        LinesOnDisk.write(tmp_path / "text", ["eins", "zwei\ndrei"])
    with pytest.raises(InputError, match="Line 1 holds half of a character"):
        LinesOnDisk.write(tmp_path / "text", ["\ud83d"])
    assert not list(tmp_path.iterdir())
