"""The command that makes the course: of some chapters, and what it says at its end."""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from tools import project
from tools.course import make as make_course

PLACEHOLDER = "https://github.com/ORG/a-book"
PAGE = (project.ROOT / "book" / "teach" / "make-a-course.md").read_text("utf-8")
MINE = "https://github.com/me/my-book"


@pytest.fixture
def make(tmp_path, monkeypatch, capsys):
    """Makes a course of the named chapters; returns its folder and what was said."""

    def call(*names, address=MINE):
        monkeypatch.setattr(project, "repository", lambda *_: (address, "main"))
        monkeypatch.setattr(make_course, "repository", project.repository)
        wheel = tmp_path / "aiayn-1.0-py3-none-any.whl"
        wheel.touch()
        monkeypatch.setattr(make_course, "build_wheel", lambda _: wheel)
        folder = tmp_path / "course"
        monkeypatch.setattr(sys, "argv", ["", *names, "--out", str(folder)])
        status = make_course.main()
        return status, folder, capsys.readouterr().out

    return call


def test_a_course_of_some_chapters(make):
    status, folder, said = make("04-scaling", "03-attention")
    assert status == 0
    for kind in ("student", "instructor"):
        names = sorted(path.stem for path in (folder / kind).iterdir())
        assert names == ["03-attention", "04-scaling"]
    assert "10 exercises of 2 chapters are in" in said
    assert "rebrand" not in said


def test_a_chapter_that_there_is_not_is_named_before_anything_is_removed(make):
    _, folder, _ = make("03-attention")
    status, _, said = make("3-attention")
    assert status == 1
    assert "There is no chapter 3-attention" in said
    assert (folder / "student" / "03-attention.ipynb").exists()


def test_a_placeholder_for_an_address_is_named_with_its_remedy(make):
    """Every link in what is made is dead, until one command is given."""
    _, _, said = make("03-attention", address=PLACEHOLDER)
    assert f"Nothing is at {PLACEHOLDER} yet" in said
    assert "each link to the book or to Colab" in said
    (command,) = re.findall(r"^  (make .+)$", said, re.MULTILINE)
    assert f"\n{command}\n" in PAGE
    places = [said.index(word) for word in ("Fork", command, "Commit, push", "again")]
    assert places == sorted(places)


def test_the_students_branch_has_what_colab_opens(make, tmp_path):
    """The page's commands, as printed; a folder stands for GitHub."""
    _, folder, _ = make("03-attention")
    block = next(b for b in re.findall(r"```bash\n(.+?)```", PAGE, re.S) if "init" in b)
    into, *commands = block.splitlines()
    assert into == "cd _build/course/student"
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    settings = {
        f"url.{remote}.insteadOf": MINE,
        "user.name": "me",
        "user.email": "me@me",
    }
    env = os.environ | {"GIT_CONFIG_COUNT": str(len(settings))}
    for place, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    for command in commands:
        subprocess.run(
            command.replace('"Chapters for students"', "Chapters").split(),
            cwd=folder / "student",
            env=env,
            check=True,
        )
    title = nbformat.read(folder / "student" / "03-attention.ipynb", 4).cells[0].source
    (branch, path) = re.search(r"/blob/([\w-]+)/(\S+)\)", title).groups()
    show = ["git", "--git-dir", str(remote), "show", f"{branch}:{path}"]
    pushed = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    assert pushed == (folder / "student" / path).read_text("utf-8")
