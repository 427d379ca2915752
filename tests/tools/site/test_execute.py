"""When outputs are kept and when they are dropped; how times are filed."""

import json
import shutil
import subprocess

import pytest

from aiayn_site import run_times
from tools.site import announce_times, execute


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project whose cache the tool may drop."""
    (tmp_path / "src" / "aiayn").mkdir(parents=True)
    (tmp_path / "src" / "aiayn" / "model.py").write_text("x = 1\n")
    (tmp_path / "requirements.txt").write_text("torch==1\n")
    (tmp_path / "README.md").write_text("Hello.\n")
    build = tmp_path / "_build"
    monkeypatch.setattr(execute, "BUILD", build)
    monkeypatch.setattr(execute, "CACHE", build / ".jupyter_cache")
    monkeypatch.setattr(execute, "DIGEST", build / "execution.digest")
    monkeypatch.setattr(execute.digest, "__defaults__", (tmp_path,))
    execute.drop_if_outdated()
    execute.CACHE.mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "dropped"),
    [
        ("src/aiayn/model.py", True),
        ("src/aiayn/claims.json", True),
        ("src/aiayn/figure.css", True),
        ("src/aiayn/figure.js", True),
        ("requirements.txt", True),
        ("requirements.lock", True),
        ("README.md", False),
    ],
)
def test_cache_is_dropped_when_the_code_has_changed(project, file, dropped):
    """Package and pins can change an output, prose cannot."""
    assert not execute.drop_if_outdated()
    (project / file).write_text("something else\n")
    assert execute.drop_if_outdated() is dropped
    assert execute.CACHE.exists() is not dropped
    assert not execute.drop_if_outdated()


def test_long_notebooks_run_first_and_unknown_ones_before_them(tmp_path, monkeypatch):
    times = tmp_path / "run_times.json"
    times.write_text(json.dumps({"seconds": {"short": 2.0, "long": 90.0}}))
    monkeypatch.setattr(execute, "STORE", times)
    paths = [tmp_path / f"{name}.ipynb" for name in ("short", "new", "long")]
    in_turn = [path.stem for path in execute.longest_first(paths)]
    assert in_turn == ["new", "long", "short"]


def test_times_read_well():
    """Seconds below a hundred, minutes above, a dash where nothing is known."""
    assert run_times.as_time(4.23) == "4.2\N{NO-BREAK SPACE}s"
    assert run_times.as_time(185).split() == ["3", "min", "5", "s"]
    assert run_times.as_time(119.6).split() == ["2", "min", "0", "s"]
    assert " " not in run_times.as_time(185)  # a table does not break it
    assert run_times.as_time(None) == run_times.UNKNOWN


def test_announced_times_change_only_when_they_differ():
    """An ordinary rerun leaves the stored figures alone."""
    old = {"03-attention": 20.0, "04-scaling": 20.0, "05-gone": 9.0}
    new = {"03-attention": 24.0, "04-scaling": 30.04, "16-new": 1.0}
    assert announce_times.merged(old, new) == {
        "03-attention": 20.0,
        "04-scaling": 30.0,
        "16-new": 1.0,
    }


def test_a_page_is_read_again_when_its_notebook_was_run(project, monkeypatch):
    """Its source is the same, so Sphinx would keep the outputs of the last time."""
    notebooks, kept = project / "notebooks", project / "_build/.doctrees/notebooks"
    kept.mkdir(parents=True)
    for name in ("run", "new", "other"):
        (kept / f"{name}.doctree").touch()
    (kept / "new.doctree").unlink()
    monkeypatch.setattr(execute, "ROOT", project)
    done = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(execute.subprocess, "run", lambda *_, **__: done)
    assert execute.run([notebooks / "run.ipynb", notebooks / "new.ipynb"]) == 1
    assert [path.stem for path in kept.iterdir()] == ["other"]


def test_a_chapter_that_has_not_run_keeps_its_announced_time(tmp_path, monkeypatch):
    """An empty cache would otherwise empty the file."""
    store = tmp_path / "run_times.json"
    shutil.copy(announce_times.STORE, store)
    before = store.read_bytes()
    monkeypatch.setattr(announce_times, "STORE", store)
    monkeypatch.setattr(announce_times, "CACHE", tmp_path / "cache")
    with pytest.raises(SystemExit, match=r"has not run yet: 'make book' runs it\."):
        announce_times.main()
    assert store.read_bytes() == before
