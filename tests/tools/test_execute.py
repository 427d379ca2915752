"""When outputs are kept and when they are dropped; how times are filed."""

import json
import sys

import pytest
import run_times

import execute
import record_time


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
        ("requirements.txt", True),
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


@pytest.mark.parametrize(
    ("stamp", "ran", "case"),
    [(110.0, 3, "environment"), (90.0, 3, "all"), (90.0, 0, "cache"), (90.0, 1, None)],
)
def test_cases_of_times_are_kept_apart(tmp_path, stamp, ran, case):
    """A new environment, all notebooks, none; a mixture is not filed."""
    import os

    environment = tmp_path / "stamp"
    environment.touch()
    os.utime(environment, (stamp, stamp))
    assert record_time.case(100.0, environment, ran=ran, of=3) == case


def test_recorded_time_is_shown(tmp_path, monkeypatch):
    """What the tool files is what the page's table reads."""
    stamp, times = tmp_path / "stamp", tmp_path / "times.json"
    stamp.touch()
    (tmp_path / "last_run.json").write_text(json.dumps({"ran": 0, "of": 2}))
    monkeypatch.setattr(record_time, "TIMES", times)
    monkeypatch.setattr(record_time, "LAST_RUN", tmp_path / "last_run.json")
    monkeypatch.setattr(record_time.time, "time", lambda: stamp.stat().st_mtime + 42)
    began = str(stamp.stat().st_mtime + 1)
    monkeypatch.setattr(
        sys, "argv", ["", "make book", "--began", began, "--new", str(stamp)]
    )
    record_time.main()
    text = run_times.command_table(times).astext()
    assert "41.0 s" in text
    assert text.count(run_times.UNKNOWN) == 5


def test_times_read_well():
    """Seconds below a hundred, minutes above, a word where nothing is known."""
    assert run_times.as_time(4.23) == "4.2 s"
    assert run_times.as_time(185) == "3 min 5 s"
    assert run_times.as_time(None) == run_times.UNKNOWN
