"""The light check on Colab: what the set-up cell installs fits what Colab holds.

`make colab` runs the chapters with these versions; here only the metadata is read.
"""

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import metadata, requires

import pytest
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import project
from tools.site import colab, notebooks

HELD = colab.colab_versions()
RUNTIME = {"python_version": colab.colab_python(), "sys_platform": "linux"}


def set_up_installs():
    """The packages that the cell's second line hands to pip."""
    lines = notebooks.set_up_cell("03-attention").splitlines()
    (line,) = [one for one in lines if one.startswith("    %pip") and "git" not in one]
    return line.split("--quiet")[1].split()


def needed_by(names):
    """All that pip would look at: what these packages need, and so on, with bounds."""
    waiting = [canonicalize_name(name) for name in names]
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for text in requires(name) or ():
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": "", **RUNTIME}):
                yield name, one
                waiting.append(canonicalize_name(one.name))


def test_nothing_that_colab_holds_is_replaced():
    """pip leaves a package alone whose version satisfies whoever asks for it."""
    missing = [
        name for name in set_up_installs() if canonicalize_name(name) not in HELD
    ]
    asked = list(needed_by(missing))
    assert {"jaxtyping", "tyro"} <= {name for name, _ in asked}
    for name, one in asked:
        held = HELD.get(canonicalize_name(one.name))
        assert held is None or one.specifier.contains(held), (
            f"{name} needs {one}, but Colab holds {held}: it would be replaced."
        )


@pytest.mark.parametrize("part", ["dependencies", "book"])
def test_what_colab_holds_is_new_enough_for_the_package(part):
    """Set-up installs the package without asking for its requirements."""
    texts = project.requirements(part)
    for one in map(Requirement, texts):
        held = HELD.get(canonicalize_name(one.name))
        if held is None:
            assert one.name in set_up_installs(), f"Colab has no {one.name}."
        else:
            assert one.specifier.contains(held), f"{one}, but Colab holds {held}."


def test_colabs_python_is_supported():
    """By the package and by everything that is installed on top."""
    python = Version(colab.colab_python())
    for name in set_up_installs():
        bounds = metadata(name)["Requires-Python"]
        assert SpecifierSet(bounds or "").contains(str(python)), name


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (CellTimeoutError("It took too long.\nThe cell: …"), "a: It took too long."),
        (DeadKernelError("Kernel died"), "a: Kernel died"),
        (CellExecutionError("…", "KeyError", "'b'"), "a: KeyError: 'b'"),
    ],
)
def test_a_chapter_that_fails_in_any_way_does_not_end_the_run(
    error, fault, monkeypatch, tmp_path
):
    """The others run, and each fault is one sentence."""

    def run(path, folder):
        if path.stem == "a":
            raise error
        return 1.0, 2.0

    monkeypatch.setattr(colab, "run", run)
    monkeypatch.setattr(colab, "runtime", lambda python: nullcontext(tmp_path))
    paths = [tmp_path / "a.ipynb", tmp_path / "b.ipynb"]
    assert colab.run_chapters(paths, sys.executable) == [fault]


def test_the_list_is_read_by_normal_names():
    text = "# python 3.9\n# words\nMarkup_Safe==3.0\n\ntorch==2.11.0\n"
    assert colab.colab_python(text) == "3.9"
    assert colab.colab_versions(text) == {"markup-safe": "3.0", "torch": "2.11.0"}


def test_a_replaced_package_is_named():
    before = {"numpy": "2.1.3", "torch": "2.11.0"}
    assert colab.replaced(before, before | {"tyro": "1.0"}) == []
    assert colab.replaced(before, {"numpy": "2.4.6"}) == [
        "The set-up cell replaced numpy 2.1.3 by 2.4.6.",
        "The set-up cell replaced torch 2.11.0 by nothing.",
    ]


def test_git_takes_the_snapshot_for_the_repositorys_address(tmp_path):
    """With this tree's files as they are, and nothing that git ignores."""
    address, _ = project.repository()
    with colab.runtime(sys.executable) as work:
        assert list(work.iterdir()) == []
        clone = tmp_path / "clone"
        subprocess.run(["git", "clone", "-q", address, str(clone)], check=True)
        kernel = work.parent / "jupyter" / "kernels" / "python3" / "kernel.json"
        assert json.loads(kernel.read_text())["argv"][0] == sys.executable
    assert (clone / "src" / "aiayn" / "py.typed").exists()
    assert not (clone / "_build").exists()
    text = (project.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert (clone / "pyproject.toml").read_text(encoding="utf-8") == text


def test_the_stand_in_has_nothing_to_offer():
    """A chapter that asks Colab's module for something fails here, and says why."""
    names = {}
    exec(colab.STAND_IN, names)
    with pytest.raises(RuntimeError, match=re.escape("google.colab.files")):
        names["__getattr__"]("files")
    with pytest.raises(AttributeError):
        names["__getattr__"]("_repr_html_")


def test_a_python_is_looked_for_where_it_may_be(tmp_path, monkeypatch, capsys):
    """On the path, then where pyenv keeps its own; failing that, this one is taken."""
    shim, kept = tmp_path / "bin" / "python9.9", tmp_path / ".pyenv/versions/9.9.1/bin"
    shim.parent.mkdir()
    kept.mkdir(parents=True)
    for path, body in ((shim, "exit 127"), (kept / "python", "echo 9.9")):
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setattr(colab.Path, "home", lambda: tmp_path)
    assert colab.find_python("9.9") == str(kept / "python")
    assert colab.find_python("9.8") == sys.executable
    assert "Colab runs Python 9.8, and none was found" in capsys.readouterr().out


def test_what_an_earlier_run_left_is_undone(tmp_path, monkeypatch):
    """What it added goes; what it replaced, or took away, comes back as it was."""
    held = {"numpy": "2.1.3", "torch": "2.11.0", "tqdm": "4.67.1"}
    (tmp_path / "held.json").write_text(json.dumps(held))
    there = {"numpy": "2.4.6", "torch": "2.11.0", "tyro": "1.0"}
    monkeypatch.setattr(colab, "installed", lambda python: there)
    asked = []
    monkeypatch.setattr(colab, "_pip", lambda python, *words: asked.append(words))
    assert colab.make_fresh(tmp_path, sys.executable) == held
    names = [[w for w in words if not w.startswith("-")] for words in asked]
    assert names == [["uninstall", "tyro"], ["install", "numpy==2.1.3", "tqdm==4.67.1"]]
    there = held
    asked.clear()
    colab.make_fresh(tmp_path, sys.executable)
    assert asked == []
