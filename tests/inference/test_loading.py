"""Models that are saved without a training's help, and what is no place for them."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from aiayn import cli
from aiayn.data import Tokenizer
from aiayn.errors import InputError
from aiayn.inference import (
    load_translator,
    loading,
    save_translator,
)
from aiayn.storage import RunFolder, save_tensors, write_json
from aiayn.training import TrainingConfig, average_checkpoints
from aiayn_book.ensemble import Ensemble, load_ensemble
from tests.inference.models import random_transformer

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def saved(folder, tokenizer, seed=0):
    model = random_transformer(tokenizer.vocab_size, seed).float()
    save_translator(model, tokenizer, folder)
    return model


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_saved_is_what_is_loaded(dtype, tokenizer, tmp_path):
    model = random_transformer(tokenizer.vocab_size).to(dtype)
    save_translator(model, tokenizer, str(tmp_path / "new" / "folder"))
    loaded, pieces = load_translator(tmp_path / "new" / "folder")
    assert pieces.digest == tokenizer.digest
    assert loaded.config == model.config
    assert not loaded.training
    weights = {name: weight.float() for name, weight in model.state_dict().items()}
    assert_close(loaded.state_dict(), weights, rtol=0, atol=0)


def test_one_that_was_saved_there_before_is_replaced(tokenizer, tmp_path):
    first, second = (saved(tmp_path, tokenizer, seed).output_weight for seed in (0, 1))
    loaded, _ = load_translator(tmp_path)
    assert loaded.output_weight.equal(second)
    assert not loaded.output_weight.equal(first)
    assert {path.name for path in tmp_path.iterdir()} == {
        "best.safetensors",
        "tokenizer.model",
    }


@pytest.mark.parametrize("kept", ["config", "state", "average", "step"])
def test_no_run_is_written_over(kept, tokenizer, tmp_path):
    """The average would be loaded in its place, to begin with."""
    run = RunFolder(tmp_path)
    if kept == "config":
        write_json(run.config, TrainingConfig(output=tmp_path).as_dict())
    else:
        file = run.path / "step-000001.safetensors"
        save_tensors({"state": run.state, "average": run.average}.get(kept, file), {})
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=f"^{tmp_path} holds a run or a model alr"):
        saved(tmp_path, tokenizer)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_no_one_could_load_is_refused(tokenizer, tmp_path, unchecked_shapes):
    model = random_transformer(tokenizer.vocab_size)
    folder = tmp_path / "new"
    for other in (Ensemble([model]), torch.nn.DataParallel(model), None):
        name = type(other).__name__
        with pytest.raises(InputError, match=f"of the type {name} cannot be saved"):
            save_translator(other, tokenizer, folder)
    with pytest.raises(InputError, match="has 60 entries and the model 61"):
        save_translator(random_transformer(61), tokenizer, folder)
    assert not folder.exists()
    folder.write_text("a file")
    with pytest.raises(InputError, match=r"new/best\.safetensors cannot be written"):
        save_translator(model, tokenizer, folder)


def test_a_full_disk_spoils_no_model_that_was_there(tokenizer, tmp_path, monkeypatch):
    """Its weights under another tokenizer would translate nonsense, without a word."""
    saved(tmp_path, tokenizer)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = Tokenizer.train(["another text of the same length"], 30)

    def full(*_):
        raise InputError("No space left on device.")

    monkeypatch.setattr(loading, "save_tensors", full)
    with pytest.raises(InputError, match="No space"):
        save_translator(random_transformer(other.vocab_size), other, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_tokenizer_of_another_model_is_refused(tokenizer, tmp_path):
    """It would write nonsense; a larger one's ids lie beyond the table."""
    saved(tmp_path, tokenizer)
    other = Tokenizer.train(["another text of the same length"], 30)
    other.save(RunFolder(tmp_path).tokenizer)
    with pytest.raises(InputError, match=r"model has 30 entries and the model 60"):
        load_translator(tmp_path)


def test_a_file_without_a_model_is_named(tmp_path):
    """Such as a run's state, which lies beside those that have one."""
    save_tensors(tmp_path / "state.safetensors", {"x": torch.ones(1)}, {"step": 1})
    with pytest.raises(InputError, match=r"state\.safetensors holds no model"):
        load_translator(tmp_path / "state.safetensors")


def test_a_model_of_another_kind_is_named(tmp_path):
    """Such as the recurrent baseline, which the first edition saved."""
    info = {"step": 1, "model": {"kind": "recurrent", "d_model": 8}}
    save_tensors(RunFolder(tmp_path).best, {"weight": torch.ones(1)}, info)
    with pytest.raises(InputError, match="no Transformer: its kind is 'recurrent'"):
        load_translator(tmp_path)


def test_a_run_s_folder_is_a_path(tokenizer, tmp_path):
    saved(tmp_path, tokenizer)
    load_translator(RunFolder(tmp_path))
    assert repr(RunFolder("runs/a")) == "RunFolder('runs/a')"


def test_an_ensemble_takes_what_a_glob_gives(tokenizer, tmp_path):
    for seed in (0, 1):
        saved(tmp_path / f"seed-{seed}", tokenizer, seed)
    ensemble, _ = load_ensemble(tmp_path.glob("seed-*"))
    assert len(ensemble.models) == 2


def test_the_command_line_translates_with_it(tokenizer, tmp_path, monkeypatch, capsys):
    saved(tmp_path / "mine", tokenizer)
    words = ["aiayn", "translate", str(tmp_path / "mine"), "a dog"]
    monkeypatch.setattr("sys.argv", words)
    cli.main()
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("function", [load_ensemble, average_checkpoints])
def test_one_path_is_no_list_of_paths(function, kind, unchecked_shapes):
    """A text would be taken apart into letters, each of them a path."""
    with pytest.raises(InputError, match=r"not one path: give \['runs/x'\]"):
        function(kind("runs/x"))
