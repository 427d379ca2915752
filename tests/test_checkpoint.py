"""Files are whole or not there, and nothing that is read can run code."""

import json

import pytest
import torch
from safetensors.torch import save_file

from aiayn.checkpoint import (
    load_info,
    load_tensors,
    read_json,
    save_tensors,
    write_json,
)
from aiayn.errors import InputError


def test_tensors_and_description_come_back(tmp_path):
    path = tmp_path / "folder" / "model.safetensors"
    tensors = {"a": torch.randn(3, 2), "b": torch.arange(4).bfloat16()}
    info = {"step": 3, "nested": {"rate": 0.1, "word": "größer"}}
    save_tensors(path, tensors, info)
    loaded, described = load_tensors(path)
    assert described == info
    torch.testing.assert_close(loaded, tensors, rtol=0, atol=0)


def test_a_path_may_be_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_tensors("new/a.safetensors", {"a": torch.ones(2)}, {"step": 1})
    loaded, info = load_tensors("new/a.safetensors")
    assert loaded["a"].equal(torch.ones(2))
    assert info == load_info("new/a.safetensors") == {"step": 1}
    write_json("new/a.json", [1])
    assert read_json("new/a.json") == [1]


def test_a_view_is_saved_as_what_it_shows(tmp_path):
    whole = torch.arange(6.0).view(2, 3)
    save_tensors(tmp_path / "view", {"t": whole.T})
    loaded, _ = load_tensors(tmp_path / "view")
    torch.testing.assert_close(loaded["t"], whole.T.contiguous())


def test_what_two_names_share_is_written_for_both(tmp_path):
    whole = torch.arange(6.0)
    tensors = {"all": whole, "again": whole, "half": whole[:3]}
    save_tensors(tmp_path / "shared", tensors)
    loaded, _ = load_tensors(tmp_path / "shared")
    torch.testing.assert_close(loaded, tensors)


@pytest.mark.parametrize("kept", [0, 4, 60, -1])
def test_a_file_cut_short_is_refused(tmp_path, kept):
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"a": torch.randn(50)}, {"step": 1})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"model\.safetensors is not a whole"):
        load_tensors(path)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="not a whole safetensors file"):
        load_tensors(path)


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="was not written by aiayn"):
        load_tensors(path)


@pytest.mark.parametrize("info", ["[1]", "{", "nul", "[" * 100_000])
def test_a_damaged_description_is_refused(tmp_path, info):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(1)}, path, metadata={"info": info})
    with pytest.raises(InputError, match=r"model\.safetensors"):
        load_tensors(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"There is no checkpoint .*nothing"):
        load_tensors(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"There is no file .*nothing"):
        read_json(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"^\S+ cannot be read: it is a folder"):
        read_json(tmp_path)


def test_json_keeps_every_digit(tmp_path):
    write_json(tmp_path / "a.json", {"loss": 0.1 + 0.2})
    assert json.loads((tmp_path / "a.json").read_text())["loss"] == 0.1 + 0.2
