"""The colours can be read on the pages that they are meant for."""

from importlib import resources

import pytest

from aiayn_book.colours import (
    FULL,
    INK,
    PAGE,
    ROLES,
    SERIES,
    WEIGHT,
    css_colour,
    css_properties,
)
from tests.book.conftest import contrast

TEXT, GRAPHICS = 4.5, 3.0  # WCAG 2.2, level AA: criteria 1.4.3 and 1.4.11


def blend(colour, page, opacity):
    """A colour with some of the page shining through."""
    pairs = [(int(colour[i : i + 2], 16), int(page[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(
        f"{round(opacity * c + (1 - opacity) * p):02x}" for c, p in pairs
    )


def test_the_measure_itself():
    """Black on white is 21 to 1, by definition."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("role", ROLES)
def test_text_and_graphics_stand_out(role):
    """Text on its own page; marks, which cannot know the page, on both."""
    colour = ROLES[role]
    assert contrast(colour.light, PAGE.light) >= TEXT
    assert contrast(colour.dark, PAGE.dark) >= TEXT
    assert contrast(colour.mark, PAGE.light) >= GRAPHICS
    assert contrast(colour.mark, PAGE.dark) >= GRAPHICS


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_in_cells_can_be_read(theme):
    """The page's ink, on every role's colour at full strength."""
    page, ink = getattr(PAGE, theme), getattr(INK, theme)
    for colour in ROLES.values():
        assert contrast(ink, blend(colour.light, page, FULL)) >= TEXT


def test_the_stepper_repeats_full_strength():
    """A style sheet cannot read it."""
    style = (resources.files("aiayn_book") / "explorables/stepper.css").read_text()
    assert f"{WEIGHT.light} calc(var(--share) * {FULL:.0%})" in style


def test_series_are_six_different_colours():
    """No two curves look alike."""
    assert len({colour.mark for colour in SERIES}) == len(SERIES) == 6


def test_css_names_every_role():
    """One declaration a role, with the theme's value."""
    for role, colour in ROLES.items():
        assert f"--aiayn-{role}: {colour.light};" in css_properties("light")
        assert f"--aiayn-{role}: {colour.dark};" in css_properties("dark")
        assert css_colour(role) == f"var(--aiayn-{role}, {colour.mark})"
