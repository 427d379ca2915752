"""The diagrams are sound SVG that follows the page and keeps inside its frame."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from aiayn.errors import InputError
from aiayn_book import diagrams
from aiayn_book.colours import FULL

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).resolve().parents[2]
BLOCKS = yaml.safe_load(
    (ROOT / "book" / "data" / "figure.yml").read_text(encoding="utf-8")
)
LINKS = {name: diagrams.Link(f"to-{name}", name, f"more-{name}") for name in BLOCKS}


def contents():
    """The landing page's figure, with a link on every block."""
    return diagrams.contents_diagram(LINKS)


DRAWINGS = [
    diagrams.scaled_dot_product_attention_diagram,
    diagrams.transformer_diagram,
    contents,
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
    down = {
        word: float(group.get("transform").removeprefix("translate(0 ").rstrip(")"))
        for group in root.iter(f"{SVG}g")
        for word in group.iter(f"{SVG}text")
    }
    width, height = float(root.get("width")), float(root.get("height"))
    for word in root.iter(f"{SVG}text"):
        x, length = float(word.get("x")), len(word.text or "")
        y = float(word.get("y")) + down.get(word, 0)
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


def test_every_block_is_a_link_with_room_for_a_finger():
    """As the file has them, no block more or less; each has an area that answers."""
    links = list(tree(contents).iter(f"{SVG}a"))
    assert {link.get("data-block") for link in links} == set(BLOCKS)
    for link in links:
        name = link.get("data-block")
        assert link.get("href") == f"to-{name}"
        assert link.get("aria-label") == name
        assert link.get("aria-describedby") == f"more-{name}"
        area = link.find(f"{SVG}rect")
        assert float(area.get("width")) * float(area.get("height")) >= 18 * 36


def test_without_links_the_same_is_drawn():
    """The chapters' figure is the landing page's, and has no links."""
    plain = diagrams.transformer_diagram().markup
    assert "<a " not in plain
    linked = re.sub("</?a(?: [^>]*)?>", "", contents().markup)
    inside = plain.partition("</title>")[2].removesuffix("</svg>")
    assert inside in linked


def test_every_chapter_has_its_place_in_the_figure():
    """The figure is a table of contents: only appendices may be missing from it."""
    parts = yaml.safe_load(
        (ROOT / "book" / "data" / "chapters.yml").read_text(encoding="utf-8")
    )
    chapters = {
        chapter["name"]
        for part in parts
        for chapter in part["chapters"]
        if "appendix" not in chapter
    }
    led_to = {
        name
        for block in BLOCKS.values()
        for name in (block["chapter"], *block.get("also", []))
    }
    assert led_to == chapters


def kit():
    """A drawing with one of each building block."""
    drawing = diagrams.Diagram(width=360, height=300)
    drawing.tokens(180, 30, ["cat", "drinks", "milk"], step=70)
    drawing.bars(90, 90, [2.0, -1.0], width=60, height=40)
    drawing.grid(180, 180, [[1, 0.25], [0, -0.5]], rows=["a", "b"], columns=["x", "y"])
    drawing.axis((20, 260), (200, 260), [(0, "0"), (1, "9")], label="position")
    drawing.dot(300, 100, role="key")
    return drawing.finish("The kit", "One of each.")


def test_a_matrix_reaches_full_strength_at_its_limit():
    """`FULL` where numbers stand in the cells; zeros stay empty."""
    root = tree(kit)
    styles = [rect.get("style") for rect in root.iter(f"{SVG}rect")]
    shares = [re.search(r"fill-opacity: ([\d.]+); stroke: curr", s) for s in styles]
    found = [float(share[1]) / FULL for share in shares if share]
    assert found == pytest.approx([1, 0.25, 0, 0.5], abs=0.002)
    words = {word.text: word.get("style") for word in root.iter(f"{SVG}text")}
    assert "−0.50" in words
    assert "0.00" not in words


def test_bars_are_as_long_as_their_numbers():
    """Downwards if negative, both from the same line."""
    drawing = diagrams.Diagram(width=100, height=100)
    drawing.bars(50, 50, [2.0, -1.0], height=40)
    up, down = re.findall(r'y="(\S+)" width="\S+" height="(\S+)"', str(drawing.parts))
    assert (float(up[0]), float(up[1])) == (30, 20)
    assert (float(down[0]), float(down[1])) == (50, 10)


def test_words_can_be_read_on_a_phone():
    """None is smaller than 12 pixels where the drawing has 360."""
    for draw in [*DRAWINGS, kit]:
        sizes = re.findall(r"font: ([\d.]+)px", draw().markup)
        assert min(map(float, sizes)) >= 12


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


def test_a_slanting_arrow_has_a_straight_head():
    """The tip lies on the line, as far from one corner as from the other."""
    drawing = diagrams.Diagram(width=100, height=100)
    drawing.arrow((0, 0), (30, 40))
    corners = re.search(r'<polygon points="([^"]+)"', "".join(drawing.parts))[1]
    tip, *others = [tuple(map(float, p.split(","))) for p in corners.split()]
    assert tip == (30, 40)
    one, other = (math.dist(tip, corner) for corner in others)
    assert one == pytest.approx(other, abs=0.1)


def test_only_matrices_and_vectors_are_drawn():
    with pytest.raises(InputError, match=r"shape \(2,\), but a matrix"):
        diagrams.Diagram(width=100, height=100).grid(50, 50, [1, 2])
