"""Decks without a browser: what a slide announces is on it; one deck can be made."""

import re
import sys

import nbformat
import pytest

from aiayn_site.chapters import taught
from tools.project import NOTEBOOKS
from tools.site import execute
from tools.site.slides import make
from tools.site.slides.deck import LONGEST_CODE, slides_of


def chapter(*cells):
    """A notebook of texts and code after a title and a heading."""
    made = [nbformat.v4.new_markdown_cell(text) for text in ("# 1. One", "## A part")]
    for cell in cells:
        new = {"text": "markdown", "code": "code", "hidden": "code"}[cell[0]]
        made.append(getattr(nbformat.v4, f"new_{new}_cell")(cell[1]))
        if cell[0] == "hidden":
            made[-1].metadata["tags"] = ["hide-input"]
    return nbformat.v4.new_notebook(cells=made)


@pytest.mark.parametrize("name", taught())
def test_no_slide_ends_in_a_colon_and_has_not_what_follows(name):
    """Neither its text nor its caption."""
    for slide in slides_of(nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)):
        if not (slide.code or slide.cell):
            assert not re.search(r":\s*$", slide.markdown), slide.title
        assert not re.search(r":\s*$", slide.caption), slide.title


def test_code_that_is_announced_is_on_the_slide():
    cells = ("text", "It takes two lines of code:"), ("code", "x = 1\ny = 2")
    (slide,) = slides_of(chapter(*cells))[-1:]
    assert slide.markdown == "It takes two lines of code:"
    assert slide.code == "x = 1\ny = 2"
    assert slide.cell.source == slide.code


@pytest.mark.parametrize(
    "after",
    [
        ("hidden", "x = 1"),
        ("code", "x = 1\n" * (LONGEST_CODE + 1)),
        ("text", "- " + "one item after another " * 30),
        ("text", "Something else."),
    ],
    ids=["hidden", "long", "long list", "text"],
)
def test_what_cannot_be_shown_is_not_announced(after):
    slides = slides_of(chapter(("text", "The numbers are these:"), after))
    assert slides[-1].markdown == "The numbers are these."
    assert not slides[-1].code


@pytest.mark.parametrize("follows", ["$$x = 1$$", "| a |\n|--|\n| b |", "- one\n- two"])
def test_formulas_tables_and_short_lists_stand_below_what_announces_them(follows):
    slides = slides_of(chapter(("text", f"There are two:\n\n{follows}")))
    assert [slide.markdown for slide in slides][-1] == f"There are two:\n\n{follows}"
    assert len(slides) == 1


def test_one_deck_alone_and_then_another(tmp_path, monkeypatch, capsys):
    """The index that is named is written, and lists what is there."""
    name = taught()[2]

    class Cache:
        def merge_match_into_notebook(self, notebook):
            return None, notebook

    monkeypatch.setattr(make, "get_cache", lambda _: Cache())
    monkeypatch.setattr(make, "place_assets", lambda _: None)
    other = taught()[3]
    for made, listed in ((name, [name]), (other, [name, other])):
        monkeypatch.setattr(sys, "argv", ["", made, "--out", str(tmp_path)])
        assert make.main() == 0
        index = tmp_path / "index.html"
        assert f"1 deck: open {index}." in capsys.readouterr().out
        text = index.read_text("utf-8")
        found = re.findall(r'<a href="([\w-]+)\.html">(.+?)</a>', text)
        assert [one for one, _ in found] == listed
        assert found[0][1] == "3. Attention"
    beside = (tmp_path / f"{other}.html").read_text("utf-8")
    decks = re.findall(r'href="([\w-]+)\.html', beside)
    assert set(decks) <= {name, other}
    assert 'href="../notebooks/' in beside


def test_only_the_named_notebooks_are_executed(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(execute, "drop_if_outdated", lambda: False)
    monkeypatch.setattr(execute, "stale", lambda paths: paths)
    monkeypatch.setattr(execute, "run", lambda paths: ran.extend(paths) or 0)
    monkeypatch.setattr(sys, "argv", ["", "--stale", "03-attention"])
    assert execute.main() == 0
    assert [path.stem for path in ran] == ["03-attention"]
    assert "Running 1 of 1 notebooks." in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["", "--stale", "3-attention"])
    with pytest.raises(SystemExit):
        execute.main()
    assert "There is no chapter 3-attention" in capsys.readouterr().err
