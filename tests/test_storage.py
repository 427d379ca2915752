"""Files are written as a whole or not at all, and reading them runs no code."""

import json
import os
import stat

import pytest
import torch
from safetensors.torch import save_file

from aiayn.errors import InputError
from aiayn.storage import (
    load_tensors,
    read_json,
    remove_parts,
    save_tensors,
    write_atomically,
    write_json,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "text.en"
    path.write_bytes(b"old")

    def stopped():
        yield b"half of the new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), write_atomically(path) as stream:
        stream.writelines(stopped())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot open a folder")
def test_the_file_and_then_its_folder_are_on_the_disk(tmp_path, monkeypatch):
    """Without its name in the folder, a file is lost when the power fails."""
    path, flushed, flush = tmp_path / "new", [], os.fsync

    def spy(handle):
        flushed.append((stat.S_ISDIR(os.fstat(handle).st_mode), path.exists()))
        flush(handle)

    monkeypatch.setattr(os, "fsync", spy)
    with write_atomically(path) as stream:
        stream.write(b"x")
    assert flushed == [(False, False), (True, True)]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    in_the_way = tmp_path / "folder"
    in_the_way.write_bytes(b"a file, not a folder")
    with (
        pytest.raises(InputError, match=r"folder/new cannot be written"),
        write_atomically(in_the_way / "new") as stream,
    ):
        stream.write(b"x")


def test_a_full_disk_is_a_sentence(tmp_path):
    with (
        pytest.raises(InputError, match=r"No space left on device\. Make room"),
        write_atomically(tmp_path / "new"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_short_write_has_words_too(tmp_path):
    """NumPy counts what was written, and gives no number of an error."""
    with (
        pytest.raises(InputError, match="written: 80 requested and 40 written"),
        write_atomically(tmp_path / "new"),
    ):
        raise OSError("80 requested and 40 written")


def test_a_folder_that_is_gone_is_not_made_anew_where_it_must_not_be(tmp_path):
    with (
        pytest.raises(InputError, match="gone/new cannot be written: No such file"),
        write_atomically(tmp_path / "gone" / "new", make_folder=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_cannot_be_removed_stays(tmp_path):
    """The write after it fails with a sentence, if nothing may be changed here."""
    stuck = tmp_path / ".a.part"
    stuck.mkdir()  # what no file's removal removes
    (tmp_path / ".b.part").touch()
    remove_parts(tmp_path)
    assert list(tmp_path.iterdir()) == [stuck]


def test_a_part_that_still_grows_is_somebodys_work(tmp_path):
    old, new, other = (tmp_path / f".{name}.part" for name in ("a.1", "a.2", "b.3"))
    for part in (old, new, other):
        part.touch()
    for part in (old, other):
        os.utime(part, (0, 0))
    remove_parts(tmp_path, "a", idle=60)
    assert sorted(tmp_path.iterdir()) == [new, other]


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
    assert info == {"step": 1}
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
    with pytest.raises(InputError, match=r"^There is no file"):
        read_json(tmp_path)


def test_json_keeps_every_digit(tmp_path):
    write_json(tmp_path / "a.json", {"loss": 0.1 + 0.2})
    assert json.loads((tmp_path / "a.json").read_text())["loss"] == 0.1 + 0.2
