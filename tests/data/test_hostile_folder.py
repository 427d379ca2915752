"""A folder in which something else lies than the files that a reader expects.

Each gets an error in a sentence at once: nothing waits, nothing fills the memory.
"""

import os
import time
from pathlib import Path

import pytest

from aiayn.data import Tokenizer, load_corpus
from aiayn.data.tokenizer import MAX_MODEL_BYTES
from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.storage import RunFolder, load_tensors, read_json

SECONDS = 5  # of computing; a reader that waits would wait for ever


@pytest.fixture(autouse=True)
def _soon():
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


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
}
every_obstacle = pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)


@every_obstacle
@pytest.mark.parametrize(
    "read",
    [read_json, load_tensors, load_translator],
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
        lambda name: load_corpus(".", source=name),
    ],
    ids=["corpus", "run", "tokenizer", "tensors", "json", "language"],
)
def test_a_name_that_no_file_can_have(read, name):
    with pytest.raises(InputError):
        read(name)


@pytest.mark.parametrize("variable", ["AIAYN_DATA", "AIAYN_CACHE"])
def test_a_place_that_no_folder_can_have(variable, monkeypatch):
    monkeypatch.delenv("AIAYN_DATA", raising=False)
    monkeypatch.setattr("aiayn.data.download._chunks", lambda *_: [])
    monkeypatch.setenv(variable, "x" * 5000)
    with pytest.raises(InputError):
        load_corpus("multi30k")


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
