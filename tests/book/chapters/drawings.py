"""What tests of drawings read in them."""

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
WIDEST_LETTER = 7.0  # units: a generous mean over a line of the site's typeface


def texts(drawing):
    """Every word of a drawing: x, y, anchor, text."""
    root = ElementTree.fromstring(drawing.markup)
    return [
        (float(t.get("x")), float(t.get("y")), t.get("text-anchor"), t.text or "")
        for t in root.iter(f"{SVG}text")
    ]


def check_words(drawing):
    """They stay inside, and there is a text alternative of more than a few words."""
    height = float(re.search(r'height="(\d+)"', drawing.markup)[1])
    assert len(drawing.description.split()) > 9
    for x, y, anchor, words in texts(drawing):
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        left = x - share * len(words) * WIDEST_LETTER
        assert left >= -1, words
        assert left + len(words) * WIDEST_LETTER <= drawing.width + 1, words
        assert 8 <= y <= height - 5, words
