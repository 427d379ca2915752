"""A folder in which something else lies than the files that a reader expects.

Each gets an error in a sentence at once: nothing waits, nothing fills the memory.
"""

import os
import tarfile
import time
import tracemalloc
from pathlib import Path

import pytest

from aiayn.checkpoint import load_tensors, read_json
from aiayn.data import Tokenizer, load_corpus, read_lines
from aiayn.data.archives import MAX_HEADER_BYTES, unpack
from aiayn.data.parallel import MAX_SIDE_BYTES, read_parallel
from aiayn.data.tokenizer import MAX_MODEL_BYTES
from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.run import RunFolder

SECONDS = 5  # of computing; a reader that waits would wait for ever
HUGE = 10 * 2**30


@pytest.fixture(autouse=True)
def _soon():
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def sparse(path):
    """10 GB of zeros that take no room."""
    with path.open("wb") as stream:
        stream.truncate(HUGE)


def pipe(path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(path)


IN_THE_WAY = {
    "a pipe": pipe,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "10 GB of nothing": sparse,
}
every_obstacle = pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)


@every_obstacle
@pytest.mark.parametrize("name", ["train.en", "train.en.gz"])
def test_a_corpus(put, name, tmp_path):
    put(tmp_path / name)
    (tmp_path / "train.de").write_text("ein Hund\n")
    with pytest.raises(InputError):
        load_corpus(str(tmp_path))


@every_obstacle
@pytest.mark.parametrize(
    "read",
    [read_json, Tokenizer.load, load_tensors, load_translator],
    ids=lambda read: read.__qualname__,
)
def test_a_file_of_a_run(read, put, tmp_path):
    put(tmp_path / "file")
    with pytest.raises(InputError):
        read(tmp_path / "file")


@every_obstacle
def test_a_log_is_read_as_far_as_it_is_one(put, tmp_path):
    put(tmp_path / "log.jsonl")
    assert RunFolder(tmp_path).read_log() == []


@pytest.mark.parametrize(
    "name", ["x" * 5000, "a\0b", "\ud800", "/dev/null/x"], ids=repr
)
@pytest.mark.parametrize(
    "read",
    [
        load_corpus,
        load_translator,
        Tokenizer.load,
        lambda name: load_tensors(Path(name)),
        lambda name: read_json(Path(name)),
        lambda name: list(read_lines(name)),
        lambda name: load_corpus(".", source=name),
    ],
    ids=["corpus", "run", "tokenizer", "tensors", "json", "lines", "language"],
)
def test_a_name_that_no_file_can_have(read, name):
    with pytest.raises(InputError):
        read(name)


@pytest.mark.parametrize("variable", ["AIAYN_DATA", "AIAYN_CACHE"])
def test_a_place_that_no_folder_can_have(variable, monkeypatch):
    monkeypatch.delenv("AIAYN_DATA", raising=False)
    monkeypatch.setattr("aiayn.data.download._chunks", lambda url, timeout: [])
    monkeypatch.setenv(variable, "x" * 5000)
    with pytest.raises(InputError):
        load_corpus("multi30k")


def test_lines_without_number_are_not_all_read(tmp_path, monkeypatch):
    """Each line is short enough; together they are more than a memory should hold."""
    assert MAX_SIDE_BYTES < HUGE
    monkeypatch.setattr("aiayn.data.parallel.MAX_SIDE_BYTES", 100)
    for side, lines in {"en": 100, "de": 101}.items():
        (tmp_path / side).write_bytes(b"\n" * lines)
    with pytest.raises(InputError, match=r"de holds more than 100 characters"):
        read_parallel(tmp_path / "en", tmp_path / "de")
    (tmp_path / "de").write_bytes(b"x\n" * 50)
    (tmp_path / "en").write_bytes(b"y\n" * 50)
    assert len(read_parallel(tmp_path / "en", tmp_path / "de")) == 50


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME]
)
def test_a_header_in_an_archive_that_is_a_bomb(kind, tmp_path):
    """300 kB of archive, of which tarfile would read 256 MB into the memory."""
    size = 2**28
    path = tmp_path / "bomb.tgz"
    header = tarfile.TarInfo("text")
    header.type, header.size = kind, size
    with tarfile.open(path, "w:gz") as archive:
        archive.fileobj.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size // 2**20):
            archive.fileobj.write(bytes(2**20))
    tracemalloc.start()
    with pytest.raises(InputError, match="is damaged"):
        unpack(path, {"text": tmp_path / "out"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * MAX_HEADER_BYTES
    assert not (tmp_path / "out").exists()


def test_a_long_name_in_an_archive_is_no_bomb(tmp_path):
    path, name = tmp_path / "a.tar", "folder/" * 100 + "text"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(__file__, name)
    unpack(path, {name: tmp_path / "out"})
    assert (tmp_path / "out").read_bytes() == Path(__file__).read_bytes()


def field(number, content):
    """A field of a protocol buffer that holds bytes."""
    length = len(content)
    varint = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
    return bytes([number << 3 | 2]) + varint + content


HOSTILE_TOKENIZERS = {
    "fields without number": lambda: field(2, b"\x08\x00" * 1_000_000),
    "a piece of fields without number": lambda: field(1, b"\x10\x00" * 1_000_000),
    "pieces without number": lambda: (
        field(1, field(1, b"a") + b"\x15\0\0\0\0") * 1_000_000
    ),
    "pieces without text": lambda: field(1, b"") * 1_000_000,
    "more bytes than any": lambda: bytes(MAX_MODEL_BYTES + 1),
}


@pytest.mark.parametrize("model", HOSTILE_TOKENIZERS.values(), ids=HOSTILE_TOKENIZERS)
def test_a_tokenizer_that_is_large_in_the_wrong_place(model, tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(model())
    with pytest.raises(InputError, match="cannot be used"):
        Tokenizer.load(tmp_path / "tokenizer.model")
