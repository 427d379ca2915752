"""One command sets the repository's address everywhere; the citation file is valid."""

import shutil
import subprocess
import tomllib

import pytest
import yaml

from tools import project, rebrand
from tools.site import notebooks

NEW = "https://github.com/a-school/its-book"


@pytest.fixture
def fork(tmp_path):
    """A copy of the repository's tracked files, as a repository of its own."""
    try:
        files = rebrand.tracked_files(project.ROOT)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("This is no git checkout.")
    for path in files:
        if path.is_file():
            target = tmp_path / path.relative_to(project.ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for command in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_every_place_gets_the_new_address(fork):
    """Nothing is left of the old one, and notebooks stay in normal form."""
    old = project.repository(fork)[0].removeprefix(rebrand.HOST)
    changed = rebrand.rebrand(f"{NEW}.git", fork)
    assert project.repository(fork)[0] == NEW
    names = {path.relative_to(fork).as_posix() for path in changed}
    assert {"_config.yml", "CITATION.cff"} <= names
    for path in rebrand.tracked_files(fork):
        assert old.encode() not in path.read_bytes(), path
    for path in sorted((fork / "notebooks").glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        assert text == notebooks.normal_form(path, fork)
        assert NEW in text
    citation = yaml.safe_load((fork / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == NEW


@pytest.mark.parametrize("address", ["me/book", "https://gitlab.com/me/book", ""])
def test_an_address_that_colab_cannot_open_is_refused(fork, address):
    """In a sentence, and nothing is changed."""
    before = (fork / "_config.yml").read_bytes()
    with pytest.raises(ValueError, match="my-book was expected"):
        rebrand.rebrand(address, fork)
    assert (fork / "_config.yml").read_bytes() == before


def test_the_citation_file_agrees_with_the_package():
    """The keys that its format asks for, and the same version, licence and address."""
    text = (project.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = yaml.safe_load(text)
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"]
    for author in citation["authors"]:
        assert "name" in author or {"family-names", "given-names"} <= set(author)
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)
    with (project.ROOT / "pyproject.toml").open("rb") as file:
        package = tomllib.load(file)["project"]
    assert str(citation["version"]) == package["version"]
    assert package["license"] in citation["license"]
    assert "CC-BY-4.0" in citation["license"]
    assert citation["repository-code"] == project.repository()[0]


def test_both_licences_are_stated_where_people_look():
    """README, the site's footer, the package, the files themselves."""
    read_me = (project.ROOT / "README.md").read_text(encoding="utf-8")
    config = (project.ROOT / "_config.yml").read_text(encoding="utf-8")
    for text in (read_me, config):
        assert "MIT licence" in text
        assert "CC BY 4.0" in text
    assert "MIT License" in (project.ROOT / "LICENSE").read_text(encoding="utf-8")
    text = (project.ROOT / "LICENSE-text.md").read_text(encoding="utf-8")
    assert "Creative Commons Attribution 4.0" in text
