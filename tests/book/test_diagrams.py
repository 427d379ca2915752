"""The diagrams are sound SVG that follows the page and keeps inside its frame."""

import re
from xml.etree import ElementTree

import pytest

from aiayn.book import diagrams

SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS = [
    diagrams.scaled_dot_product_attention_diagram,
    diagrams.multi_head_diagram,
    diagrams.transformer_diagram,
]
WIDEST_LETTER = 8.0  # units, at 13 pixels; a generous mean over a line


def tree(draw):
    """The drawing as parsed XML."""
    return ElementTree.fromstring(draw().markup)


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_drawing_fits_a_phone(draw):
    """At most 360 units wide, so that its text need not shrink."""
    assert float(tree(draw).get("width")) <= 360


@pytest.mark.parametrize("draw", DRAWINGS)
def test_words_stay_inside(draw):
    """No label is cut off at an edge."""
    root = tree(draw)
    width, height = float(root.get("width")), float(root.get("height"))
    for word in root.iter(f"{SVG}text"):
        x, y, length = float(word.get("x")), float(word.get("y")), len(word.text or "")
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[word.get("text-anchor")]
        left = x - share * length * WIDEST_LETTER
        assert left >= -1, word.text
        assert left + length * WIDEST_LETTER <= width + 1, word.text
        assert 8 <= y <= height - 5, word.text


@pytest.mark.parametrize("draw", DRAWINGS)
def test_no_ink_but_the_pages_own(draw):
    """Fixed colours occur only as fall-backs of the book's properties."""
    markup = draw().markup
    bare = re.sub(r"var\(--aiayn-\w+, #[0-9a-f]{6}\)", "", markup)
    assert "#" not in bare
    assert "currentColor" in bare


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_screen_reader_gets_a_description(draw):
    """The image has a name that tells the way of the data."""
    html = draw()._repr_html_()
    label = re.search(r'<svg role="img" aria-label="([^"]+)"', html)[1]
    assert len(label.split()) > 30
    assert repr(draw()).startswith("[Figure: ")


def test_arrow_heads_point_ahead():
    """The tip is the line's end, the other corners lie behind it."""
    drawing = diagrams.Diagram(width=100, height=100)
    for end in ((50, 10), (50, 90), (10, 50), (90, 50)):
        drawing.arrow((50, 50), end)
    heads = re.findall(r'<polygon points="([^"]+)"', "".join(drawing.parts))
    for head, (x, y) in zip(heads, ((0, -1), (0, 1), (-1, 0), (1, 0)), strict=True):
        tip, *others = [tuple(map(float, p.split(","))) for p in head.split()]
        assert tip == (50 + 40 * x, 50 + 40 * y)
        for a, b in others:
            assert (a - tip[0]) * x + (b - tip[1]) * y == -7
