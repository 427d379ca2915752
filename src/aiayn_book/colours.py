"""The colours of the book, defined once: query, key, value and three that are free.

The hues are those of the Okabe–Ito palette, which stay apart for colour-blind readers,
darkened for light pages and lightened for dark ones until text in them has a contrast
of at least 4.5 to 1. Colour never carries a meaning alone: a label or a shape says it
too.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """One hue in three strengths, each a ``#rrggbb`` string."""

    light: str  # text and lines on a light page
    dark: str  # text and lines on a dark page
    mark: str  # areas and lines that cannot know the page: contrast 3 to 1 on both


QUERY = Colour(light="#a65a00", dark="#f0a830", mark="#c97800")
KEY = Colour(light="#0068a6", dark="#5cb8ee", mark="#2a86c4")
VALUE = Colour(light="#00755a", dark="#2fc79a", mark="#009e73")
WEIGHT = Colour(light="#a0477a", dark="#e08fbb", mark="#bb6496")
ALERT = Colour(light="#b34700", dark="#f08a4b", mark="#d55e00")
NEUTRAL = Colour(light="#5b636e", dark="#a7b0bb", mark="#7a828e")

ROLES = {
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "weight": WEIGHT,
    "alert": ALERT,
    "neutral": NEUTRAL,
}

# Series that are none of query, key and value, in the order in which charts take them.
SERIES = (KEY, QUERY, VALUE, WEIGHT, ALERT, NEUTRAL)

# Its mark is nobody else's, so that a drawing's ink can be told from its colours.
INK = Colour(light="#222832", dark="#ced6dd", mark="#7a828f")
PAGE = Colour(light="#ffffff", dark="#14181e", mark="#ffffff")

FULL = 0.65
"""Opacity of a cell's colour at full strength, where a number stands in the cell.

On a role's `light` colour, over a light page or a dark one, the page's ink still has a
contrast of 4.5 to 1; over `dark` and `mark` it has not.
"""


def css_properties(theme: str) -> str:
    """The declarations ``--aiayn-query: #...;`` and so on for one theme.

    Args:
        theme: ``"light"`` or ``"dark"``.
    """
    return " ".join(
        f"--aiayn-{role}: {getattr(colour, theme)};" for role, colour in ROLES.items()
    )


def css_colour(role: str) -> str:
    """A CSS colour that follows the page's theme and falls back to the mark colour."""
    return f"var(--aiayn-{role}, {ROLES[role].mark})"
