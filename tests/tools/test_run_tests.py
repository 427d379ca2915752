"""Costly tests run again when something that they guard has changed."""

import pytest

from tools import run_tests


@pytest.fixture
def copy(tmp_path):
    """A repository with a package, a costly test, another one, and pins."""
    for path, text in {
        "src/aiayn/model.py": "x = 1",
        "src/aiayn_book/plots.py": "y = 1",
        "tests/test_costly.py": "pytestmark = pytest.mark.costly",
        "tests/test_quick.py": "",
        "requirements.txt": "torch",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("src/aiayn/model.py", True),
        ("tests/test_costly.py", True),
        ("requirements.txt", True),
        ("src/aiayn_book/plots.py", False),
        ("tests/test_quick.py", False),
    ],
)
def test_the_digest_tells_what_is_guarded(copy, path, counts):
    before = run_tests.digest(copy)
    with (copy / path).open("a") as file:
        file.write("# changed\n")
    assert (run_tests.digest(copy) != before) == counts


@pytest.mark.parametrize(
    ("changed", "everything", "left_out"),
    [(False, False, True), (False, True, False), (True, False, False)],
)
def test_costly_tests_are_left_out_when_nothing_has_changed(
    monkeypatch, tmp_path, changed, everything, left_out
):
    """And the digest is kept only when all tests have passed."""
    seen = []

    class Ran:
        returncode = 0

    monkeypatch.setattr(run_tests, "BUILD", tmp_path)
    monkeypatch.setattr(run_tests, "DIGEST", tmp_path / "digest")
    monkeypatch.setattr(run_tests, "digest", lambda: "now")
    monkeypatch.setattr(run_tests.sys, "argv", ["", *["--all"][:everything]])
    (tmp_path / "digest").write_text("before" if changed else "now")
    monkeypatch.setattr(
        run_tests.subprocess, "run", lambda command, **_: seen.append(command) or Ran
    )
    assert run_tests.main() == 0
    assert ("not costly" in seen[0]) == left_out
    assert (tmp_path / "digest").read_text() == "now"


def test_a_failure_is_not_taken_for_a_pass(monkeypatch, tmp_path):
    class Ran:
        returncode = 1

    monkeypatch.setattr(run_tests, "DIGEST", tmp_path / "digest")
    monkeypatch.setattr(run_tests.sys, "argv", [""])
    monkeypatch.setattr(run_tests.subprocess, "run", lambda *_, **__: Ran)
    assert run_tests.main() == 1
    assert not (tmp_path / "digest").exists()
