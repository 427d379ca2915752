"""Numbered figures: their number, their caption, and what they may be made of."""

import re

import pytest

from aiayn.errors import InputError
from aiayn_book import figure
from aiayn_book.diagrams import Diagram
from aiayn_book.explorables import soft_lookup
from aiayn_book.plots import attention_map

CAPTION = "Two words *meet*. Try `dot` & look."


def drawing(width=360):
    """A small drawing."""
    return Diagram(width=width, height=50).finish("A drawing", f"Of {width} units.")


def a_map():
    return attention_map([[0.5, 0.5]], ["a"], ["b", "c"], description="A map.")


def test_a_caption_opens_with_the_conclusion():
    """In bold, with the number; italics and code are set, other signs are text."""
    html = figure(drawing(), "3.1", CAPTION)._repr_html_()
    assert '<figure class="aiayn-figure aiayn-column" id="figure-3-1">' in html
    caption = re.search(r"<figcaption>(.*)</figcaption>", html)[1]
    assert caption == (
        "<strong>Figure 3.1. Two words <em>meet</em>.</strong> "
        "Try <code>dot</code> &amp; look."
    )
    assert 'aria-label="A drawing. Of 360 units."' in html


def test_plain_text_is_the_caption():
    assert repr(figure(drawing(), "B.2", CAPTION)) == f"Figure B.2. {CAPTION}"


def test_a_chapter_that_was_split_off_has_a_letter():
    assert figure(drawing(), "17b.1", CAPTION).anchor == "figure-17b-1"


@pytest.mark.parametrize(
    "picture",
    [
        drawing(306),
        a_map(),
        soft_lookup({"a": (0, (1, 1))}, title="T", description="D."),
    ],
)
def test_drawings_charts_and_explorables_are_panels(picture):
    """Also several of them."""
    html = figure([picture, picture], "3.1", CAPTION, width="margin")._repr_html_()
    assert html.count("<figcaption><strong>") == 1
    assert "aiayn-margin" in html


def test_a_map_takes_the_room_that_there_is():
    """And no more than its cells need."""
    html = figure(a_map(), "3.1", CAPTION)._repr_html_()
    assert '"width": "container"' in html
    widest = a_map().to_dict()["usermeta"]["widest"]
    assert f"max-width: {widest}px" in html


def test_a_wide_drawing_has_another_form_for_phones():
    """Else its words would be too small there."""
    with pytest.raises(InputError, match="690 units wide"):
        figure(drawing(690), "3.1", CAPTION)
    with pytest.raises(InputError, match=r"in the margin .* Keep to 306 units"):
        figure(drawing(), "3.1", CAPTION, width="margin")
    html = figure(drawing(690), "3.1", CAPTION, phone=drawing())._repr_html_()
    wide, _, phone = html.partition('class="aiayn-phone"')
    assert "Of 690 units" in wide
    assert "Of 360 units" in phone


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"number": "Figure 3.1"}, "such as '3.1'"),
        ({"number": "3"}, "such as '3.1'"),
        ({"caption": "No stop"}, "whole sentences"),
        ({"picture": 7}, "made of int"),
        ({"width": "page"}, "'column' or 'margin'"),
    ],
)
def test_slips_are_sentences(changes, complaint):
    given = {"picture": drawing(), "number": "3.1", "caption": CAPTION, **changes}
    with pytest.raises(InputError, match=complaint):
        figure(**given)._repr_html_()
