"""The project's own consistency: addresses in one place, every chapter in its lists."""

import subprocess

import chapters
import pytest
import yaml

import project
import readme


def test_the_repositorys_address_stands_in_one_place():
    """Besides _config.yml only notebooks hold it, where `make format` writes it.

    And the citation file, which people fetch without the rest; `make rebrand` knows.
    """
    address, _ = project.repository()
    place = address.removeprefix("https://github.com/")
    found = subprocess.run(
        ["git", "grep", "-lF", place], cwd=project.ROOT, capture_output=True, text=True
    )
    if found.returncode > 1:
        pytest.skip("This is no git checkout.")
    files = {name for name in found.stdout.split() if not name.endswith(".ipynb")}
    assert files == {"_config.yml", "CITATION.cff"}


def test_every_notebook_is_a_page_and_a_chapter():
    """A notebook that _toc.yml or the table of chapters forgets would stay unseen."""
    toc = yaml.safe_load((project.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = {c["file"] for part in toc["parts"] for c in part["chapters"]}
    planned = [c["name"] for part in chapters.parts() for c in part["chapters"]]
    written = {path.stem for path in project.notebook_paths()}
    assert {f"notebooks/{name}" for name in written} <= pages
    assert written <= set(planned)
    assert planned == sorted(planned)


def test_readme_links_what_is_written(tmp_path):
    """The table names all chapters and links those that have a notebook."""
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "03-attention.ipynb").touch()
    text = (project.ROOT / "book" / "chapters.yml").read_text(encoding="utf-8")
    (tmp_path / "book" / "chapters.yml").write_text(text, encoding="utf-8")
    new = readme.updated(f"Above\n{readme.BEGIN}\nold\n{readme.END}\nBelow", tmp_path)
    assert new.startswith("Above\n")
    assert new.endswith("\nBelow")
    assert "old" not in new
    assert "[Attention](notebooks/03-attention.ipynb)" in new
    assert "| 4 | Scaling |" in new
    assert readme.updated(new, tmp_path) == new
