"""Readers of files from outside, and how to damage what they read.

Each reader gets any bytes whatever and must return, or raise InputError: no other
exception, no code that runs, no file outside its folder, no endless time or memory.
"""

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save

from aiayn.data import Tokenizer, read_lines
from aiayn.data.parallel import read_parallel
from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.model import Transformer, TransformerConfig
from aiayn.parsing import brackets, linearise, parse_tree, repair
from aiayn.storage import (
    RunFolder,
    describe_config,
    load_tensors,
    read_config,
    read_json,
)
from aiayn.training import TrainingConfig

LINES = [
    "a dog sees the small cat",
    "zwei Frauen gehen zu dem großen Haus",
    "x" * 300,
    "",
    "日本語 \u2028 💡",
]
TINY = TransformerConfig.tiny(
    vocab_size=40,
    d_model=4,
    d_ff=4,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
)


@dataclass(frozen=True)
class Reader:
    """A reader, and whole files from which damaged ones are made."""

    read: Callable[[bytes], object]
    examples: Callable[[], list[bytes]]


def _among(files, read):
    """Read in a folder that holds these files; nothing is written there or outside."""
    with tempfile.TemporaryDirectory() as outside:
        folder = Path(outside) / "folder"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        whole = sorted(Path(outside).rglob("*"))
        try:
            return read(folder)
        finally:
            assert sorted(Path(outside).rglob("*")) == whole


def _in_file(name, read):
    """A reader of bytes from a reader of files."""
    return lambda content: _among({name: content}, lambda folder: read(folder / name))


def _text():
    return "".join(f"{line}\n" for line in LINES).encode()


def _pairs(content):
    half = len(content) // 2
    files = {"train.en": content[:half], "train.de": content[half:]}
    return _among(files, lambda folder: read_parallel(*(folder / n for n in files)))


def _tree(content):
    tree = parse_tree(content.decode("utf-8", "replace"))
    brackets(tree)
    assert parse_tree(str(tree)) == tree
    return tree


def _symbols(content):
    """What a model may write for five words is always made a tree."""
    symbols = content.decode("utf-8", "replace").split()
    tree = repair(symbols, ["a", "b", "c", "d", "e"])
    assert tree.leaves == ("a", "b", "c", "d", "e")
    return tree


@cache
def _tokenizer():
    texts = ["a dog sees the small cat", "zwei Frauen gehen zu dem großen Haus"]
    buffer = Tokenizer.train(texts * 3, 40)
    with tempfile.TemporaryDirectory() as folder:
        buffer.save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def _use_tokenizer(content):
    tokenizer = Tokenizer(content)
    ids = tokenizer.encode("a dog\0 sees 日本")
    return tokenizer.decode(ids), tokenizer.decode(range(tokenizer.vocab_size))


@cache
def _checkpoint():
    torch.manual_seed(0)
    weights = {n: t.contiguous() for n, t in Transformer(TINY).state_dict().items()}
    info = json.dumps({"step": 1, "model": describe_config(TINY)})
    return save(weights, metadata={"info": info})


def _translator(content):
    run = RunFolder("")
    files = {run.average: content, run.tokenizer: _tokenizer()}
    return _among(files, load_translator)


def _json(*values):
    return [json.dumps(value).encode() for value in values]


def _parsed(read):
    return _in_file("file.json", lambda path: read(read_json(path)))


READERS = {
    "lines": Reader(
        _in_file("text.en", lambda path: list(read_lines(path))), lambda: [_text()]
    ),
    "gzip": Reader(
        _in_file("text.gz", lambda path: list(read_lines(path))),
        lambda: [gzip.compress(_text(), mtime=0)],
    ),
    "parallel text": Reader(_pairs, lambda: [_text() * 2]),
    "tree": Reader(
        _tree,
        lambda: [
            b"(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))",
            b"( (S (NP-SBJ=2 (-LRB- -LRB-) (NN tea)) (VP (VBZ is))))",
        ],
    ),
    "symbols": Reader(
        _symbols,
        lambda: [
            " ".join(linearise(parse_tree("(S (NP (A a) (B b)) (VP (C c)))"))).encode()
        ],
    ),
    "tokenizer": Reader(_use_tokenizer, lambda: [_tokenizer()]),
    "checkpoint": Reader(
        _in_file("a.safetensors", load_tensors), lambda: [_checkpoint()]
    ),
    "translator": Reader(_translator, lambda: [_checkpoint()]),
    "training configuration": Reader(
        _parsed(TrainingConfig.from_dict),
        lambda: _json(TrainingConfig().as_dict(), TrainingConfig.grammar().as_dict()),
    ),
    "model's description": Reader(
        _parsed(read_config),
        lambda: _json(describe_config(TINY)),
    ),
    "log": Reader(
        _in_file("log.jsonl", lambda path: RunFolder(path.parent).read_log()),
        lambda: [b'{"step": 0, "event": "begin"}\n{"step": 5, "loss": 2.5}\n'],
    ),
}


def try_reader(name: str, content: bytes) -> bool:
    """Whether the reader took it; False: it said why not, in a sentence."""
    try:
        READERS[name].read(content)
    except InputError:
        return False
    return True
