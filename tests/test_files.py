"""A file is written whole, or it is as it was."""

import os
import stat
from pathlib import Path

import pytest

from aiayn.errors import InputError
from aiayn.files import remove_parts, write_atomically


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_what_is_no_ordinary_file_is_not_replaced(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.chdir(tmp_path)
    for path in (pipe, tmp_path, Path(".")):
        with (
            pytest.raises(InputError, match="folder, pipe or device"),
            write_atomically(path),
        ):
            pytest.fail("It was opened.")
    assert list(tmp_path.iterdir()) == [pipe]
    assert pipe.is_fifo()


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
