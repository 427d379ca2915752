"""A ~ is the home folder wherever a path is given; hints are typed as printed."""

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aiayn import (
    Tokenizer,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    load_corpus,
    load_translator,
    resume_training,
    save_translator,
    train,
)
from aiayn.data import MemmapLines, RaggedTokens, read_lines, read_parallel
from aiayn.data.download import cache_folder
from aiayn.storage import (
    RunFolder,
    expand,
    hold,
    load_tensors,
    quoted,
    read_json,
    require_folder,
    save_tensors,
    write_json,
)
from aiayn.training import average_checkpoints
from tests.training.number_words import number_training, write_numbers

pytestmark = pytest.mark.usefixtures("unchecked_shapes")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder of one's own, and another folder in which one works."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "home"
    assert list(Path().iterdir()) == [], "a folder named ~ was made"


def test_a_training_and_what_reads_it(home):
    write_numbers(home / "corpus")
    config = replace(number_training("~/corpus", "~/my run"), steps=2)
    result = train(config)
    assert result.run.path == home / "my run"
    assert read_json("~/my run/config.json")["corpus"] == str(home / "corpus")
    model, tokenizer = load_translator("~/my run")
    save_translator(model, tokenizer, "~/saved")
    load_translator(Path("~/saved/best.safetensors"))
    assert resume_training("~/my run", corpus="~/corpus", steps=3).log[-1]["step"] == 3
    paths = [f"~/my run/{path.name}" for path in result.run.checkpoints()]
    assert average_checkpoints(paths)[1]["step"] == 3


def test_every_reader_and_writer(home):
    write_numbers(home / "corpus")
    assert len(load_corpus("~/corpus").train)
    assert len(load_corpus(Path("~/corpus")).train)
    sides = ("~/corpus/train.en", Path("~/corpus/train.de"))
    assert len(read_parallel(*sides)) == len(list(read_lines(sides[0])))
    (home / "x.en.gz").write_bytes(gzip.compress(b"a dog\n"))
    assert list(read_lines("~/x.en.gz")) == ["a dog"]
    (home / "large.en").write_bytes(b"a\n")
    assert list(MemmapLines.open("~/large.en")) == ["a"]
    assert list(MemmapLines.open(Path("~/large.en"))) == ["a"]
    RaggedTokens.from_lists([[1, 2]]).save("~/pairs")
    assert RaggedTokens.open("~/pairs")[0] == [1, 2]
    write_json("~/some.json", [1])
    assert read_json(Path("~/some.json")) == [1]
    save_tensors("~/some.safetensors", {"a": torch.ones(1)})
    assert load_tensors(Path("~/some.safetensors"))[0]["a"].item() == 1
    Tokenizer.train(["a dog"], 10).save("~/t.model")
    assert Tokenizer.load(Path("~/t.model")).vocab_size == 10
    require_folder(Path("~/made"))
    with hold(Path("~/held")):
        assert (home / "held").is_dir()
    assert (home / "made").is_dir()


def test_what_only_names_a_path(home, monkeypatch):
    assert RunFolder("~/run").path == home / "run"
    assert TrainingConfig(output="~/run").output == home / "run"
    monkeypatch.setenv("AIAYN_CACHE", "~/cache")
    assert cache_folder() == home / "cache"
    assert expand("~nobody-of-this-name/x") == Path("~nobody-of-this-name/x")
    assert expand("a/~/b") == Path("a/~/b")


def test_a_model_without_a_run_is_saved_there_too(home):
    model = Transformer(TransformerConfig.tiny(vocab_size=10, d_model=16))
    save_translator(model, Tokenizer.train(["a dog"], 10), Path("~/mine"))
    assert (home / "mine" / "best.safetensors").is_file()


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("runs/my", "runs/my"),
        (Path("/a-b/c_d.e"), "/a-b/c_d.e"),
        ("runs/my run", '"runs/my run"'),
        ("runs/(1)", '"runs/(1)"'),
    ],
)
def test_a_path_is_quoted_where_a_shell_needs_it(path, typed):
    assert quoted(path) == typed.replace("/", os.sep if os.sep == "\\" else "/")
