"""CONTRIBUTING.md says what is true: its commands, files and versions exist."""

import re
import tomllib
from importlib.util import find_spec

import pytest

from tools import project

TEXT = (project.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_target_of_make_is_there():
    makefile = (project.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"`make ([\w-]+)", TEXT))
    assert {"book", "serve", "format", "lint", "test", "colab"} <= named <= targets


def test_teachers_are_told_the_order_and_how_to_open_the_notebooks():
    """Fork, rebrand, push; JupyterLab, pinned, in the environment of the book."""
    page = (project.ROOT / "book" / "teach" / "index.md").read_text(encoding="utf-8")
    words = ("*Fork*", "`make rebrand REPO=", "`git push`", "*Settings → Pages*")
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    makefile = (project.ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(
        r"^lab: environment.*\n((?:\t.*\n)+)", makefile, re.MULTILINE
    )
    assert re.search(r"--constraint requirements\.txt jupyterlab==[\d.]+\n", recipe)
    assert "$(BIN)/jupyter lab notebooks" in recipe
    for name in ("README.md", "CONTRIBUTING.md", "book/teach/index.md"):
        assert "`make lab`" in (project.ROOT / name).read_text(encoding="utf-8")
    readme = (project.ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"Without a network .*`AIAYN_DATA`", readme)


def test_every_file_is_there():
    linked = re.findall(r"\]\((?!http)([^)]+)\)", TEXT)
    named = re.findall(r"`((?:book|notebooks|src|tools|tests)/[\w./-]*)", TEXT)
    assert linked
    assert named
    for path in [*linked, *named, *re.findall(r"(tests/\w+)`", TEXT)]:
        assert (project.ROOT / path).exists(), path


def test_every_tool_that_is_called_by_its_name_is_there():
    """In commands of make, in pages and in notebooks."""
    files = ["Makefile", "README.md", "CONTRIBUTING.md", "book/**/*.md", "notebooks/*"]
    for path in [path for name in files for path in project.ROOT.glob(name)]:
        for tool in re.findall(r"-m (tools[\w.]+)", path.read_text(encoding="utf-8")):
            assert find_spec(tool), f"{path.name}: {tool}"


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
