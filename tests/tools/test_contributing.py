"""CONTRIBUTING.md says what is true: its commands, files and versions exist."""

import re
import tomllib

import pytest

import project

TEXT = (project.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_target_of_make_is_there():
    makefile = (project.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"`make ([\w-]+)", TEXT))
    assert {"book", "serve", "format", "lint", "test", "colab"} <= named <= targets


def test_every_file_is_there():
    linked = re.findall(r"\]\((?!http)([^)]+)\)", TEXT)
    named = re.findall(r"`((?:book|notebooks|src|tools|tests)/[\w./-]*)", TEXT)
    assert linked
    assert named
    for path in [*linked, *named, *re.findall(r"(tools/\w+\.py|tests/\w+)`", TEXT)]:
        assert (project.ROOT / path).exists(), path


@pytest.mark.parametrize("name", ["Python", "torch", "Altair"])
def test_the_supported_versions_are_those_of_the_metadata(name):
    """The oldest is pyproject's bound, the newest requirements.txt's pin."""
    (row,) = re.findall(rf"^\| {name} \| (\S+) \| (\S+) \|$", TEXT, re.MULTILINE)
    text = (project.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if name == "Python":
        metadata = tomllib.loads(text)["project"]
        listed = re.findall(r"Python :: (3\.\d+)", " ".join(metadata["classifiers"]))
        assert metadata["requires-python"] == f">={row[0]}"
        assert (listed[0], listed[-1]) == row
        return
    bounds = [*project.requirements(), *project.requirements("book")]
    assert f"{name.lower()}>={row[0]}" in bounds
    kept = (project.ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert re.search(rf"^{name.lower()}=={row[1]}\.", kept, re.MULTILINE)
