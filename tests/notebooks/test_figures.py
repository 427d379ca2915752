"""The numbered figures of each chapter: in order, and with sentences for captions."""

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PARTS = yaml.safe_load(
    (ROOT / "book" / "data" / "chapters.yml").read_text(encoding="utf-8")
)
LETTERS = {
    chapter["name"]: chapter["appendix"]
    for part in PARTS
    for chapter in part["chapters"]
    if "appendix" in chapter
}


def figures(source):
    """Number and caption of each call of `figure` in a cell; captions as written."""
    python = [
        "pass" if line.lstrip()[:1] in ("%", "!") else line
        for line in source.split("\n")
    ]
    for node in ast.walk(ast.parse("\n".join(python))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "figure":
            given = dict(zip(("picture", "number", "caption"), node.args, strict=False))
            given |= {option.arg: option.value for option in node.keywords}
            caption = given["caption"]
            parts = caption.values if isinstance(caption, ast.JoinedStr) else [caption]
            text = "".join(p.value for p in parts if isinstance(p, ast.Constant))
            yield given["number"].value, text


def numbered(path):
    """All of a chapter, in its order; none in one that does not number its figures."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return [one for source in code for one in figures(source)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_are_numbered_in_their_order(path):
    """From 1 on, under the number of the chapter or the letter of the appendix."""
    name = path.stem
    head = name.partition("-")[0]
    chapter = head.lstrip("0") if head[0].isdigit() else name[0].upper()
    chapter = LETTERS.get(name, chapter)
    numbers = [number for number, _ in numbered(path)]
    assert numbers == [f"{chapter}.{place + 1}" for place in range(len(numbers))]


def test_each_appendix_has_a_letter_of_its_own():
    """Which is not that of the bug clinic's exercises."""
    letters = [*LETTERS.values(), "B"]
    assert len(set(letters)) == len(letters)
    assert all(re.fullmatch("[A-Z]", letter) for letter in letters)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_captions_are_sentences(path):
    """They end with a full stop, and say more than a title would."""
    captions = [caption for _, caption in numbered(path)]
    assert [text for text in captions if not text.endswith(".")] == []
    assert [text for text in captions if len(text.split()) < 8] == []


def test_figures_are_found_in_a_cell():
    """The number may be named, and the caption may hold a number that is computed."""
    source = 'x = 1\nfigure(x, "3.1", "A.")\nfigure(x, number="3.2", caption=f"{x} B.")'
    assert list(figures(source)) == [("3.1", "A."), ("3.2", " B.")]
