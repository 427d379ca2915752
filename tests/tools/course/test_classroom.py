"""The archive for a classroom without a network: its files, what its script says."""

import subprocess
import sys
import zipfile

import pytest

from aiayn.errors import InputError
from tools.course.classroom import NAME, SCRIPT, write_classroom
from tools.course.make import MADE_BY, empty_folder


@pytest.fixture
def archive(tmp_path):
    """The archive of a small course, unpacked; returns its folder."""
    course, site = (tmp_path / name for name in ("course", "site"))
    wheel = tmp_path / "aiayn-1.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    for file in (course / "student" / "01.ipynb", site / "_static" / "a.css"):
        file.parent.mkdir(parents=True)
        file.write_text(file.name, "utf-8")
    (course / "solutions").mkdir()
    (course / "solutions" / "01.ipynb").write_text("for teachers", "utf-8")
    with zipfile.ZipFile(write_classroom(course, wheel, site)) as packed:
        packed.extractall(tmp_path / "there")
    return tmp_path / "there" / NAME


def test_everything_but_the_solutions_is_in_the_archive(archive):
    """What students need, and the site with its slides."""
    files = {str(p.relative_to(archive)) for p in archive.rglob("*") if p.is_file()}
    assert files == {
        "READ-ME.txt",
        "LICENSE",
        "LICENSE-text.md",
        "classroom.py",
        "aiayn-1.0-py3-none-any.whl",
        "notebooks/01.ipynb",
        "html/_static/a.css",
    }
    assert (archive / "classroom.py").read_bytes() == SCRIPT.read_bytes()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["install"], "run 'python classroom.py gather' online"),
        ([], "python classroom.py start"),
        (["tidy"], "python classroom.py start"),
    ],
)
def test_the_script_says_what_to_do_first(archive, words, answer):
    command = [sys.executable, "classroom.py", *words]
    done = subprocess.run(command, cwd=archive, capture_output=True, text=True)
    assert done.returncode != 0
    assert answer in done.stderr
    assert "Traceback" not in done.stderr
    assert not (archive / ".venv").exists()


def test_what_students_handed_in_is_not_removed(tmp_path):
    empty_folder(tmp_path)
    answer = tmp_path / "nbgrader" / "submitted" / "ada" / "answer.ipynb"
    answer.parent.mkdir(parents=True)
    answer.touch()
    with pytest.raises(InputError, match="handed in"):
        empty_folder(tmp_path)
    assert answer.exists()


def test_a_folder_of_somebody_elses_is_not_removed(tmp_path):
    """One that a course was written into is, and a new or an empty one is taken."""
    folder = tmp_path / "home"
    empty_folder(folder)
    (folder / "student").mkdir()
    empty_folder(folder)
    assert [path.name for path in folder.iterdir()] == [MADE_BY]
    other = tmp_path / "other"
    other.mkdir()
    empty_folder(other)
    letter = tmp_path / "letters" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("Dear", "utf-8")
    for place in (letter.parent, letter):
        with pytest.raises(InputError):
            empty_folder(place)
    assert letter.read_text("utf-8") == "Dear"
