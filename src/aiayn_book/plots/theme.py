"""One look for Altair and matplotlib.

Altair's charts are drawn with dark ink on white, readable in any notebook; the site
redraws them in its own theme. matplotlib's figures are drawn without a background, and
`as_svg` lets their ink follow the page.
"""

import io
import re
from typing import Any

import altair as alt
import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler

from aiayn.errors import InputError
from aiayn_book.colours import INK, NEUTRAL, SERIES
from aiayn_book.svg import Svg

_IDENTIFIED = re.compile(r'(<\w[^<>]*?) id="([^"]*)"')
_REFERENCE = re.compile(r'(?:href="|url\()#([^")]+)')

FONT_SIZE = 13  # at phone width, text of 13 pixels is still read with ease


@alt.theme.register("aiayn", enable=False)
def _altair_theme() -> Any:  # an alt.theme.ThemeConfig; its type is too narrow
    sizes = {"labelFontSize": FONT_SIZE, "titleFontSize": FONT_SIZE}
    words = {**sizes, "titleFontWeight": 500, "labelFontWeight": "normal"}
    # No colour of ink or page here: a chart's own settings outrank those by which the
    # site redraws it in its theme.
    return {
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": "transparent"},
            "axis": words,
            "header": words,
            "legend": {
                **words,
                "orient": "top",
                "symbolOpacity": 1,
                "symbolType": "stroke",
                "symbolStrokeWidth": 3,
            },
            "title": {"fontSize": 15, "anchor": "start"},
            "text": {"fontSize": FONT_SIZE},
            "range": {"category": [colour.mark for colour in SERIES]},
            "line": {"strokeWidth": 2.5},
        }
    }


def use_theme() -> None:
    """Use the book's look for every chart that follows."""
    alt.theme.enable("aiayn")
    alt.data_transformers.disable_max_rows()
    ink = INK.mark
    mpl.rcParams.update(
        {
            "figure.figsize": (4.8, 3.0),
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "savefig.bbox": "tight",
            "svg.fonttype": "none",  # letters stay letters: they follow the page's font
            "svg.hashsalt": "aiayn",  # the same figure gives the same file
            "font.size": 12,  # read on a phone, too, where the figure shrinks
            "font.family": "sans-serif",
            "text.color": ink,
            "axes.labelcolor": ink,
            "axes.edgecolor": ink,
            "axes.titlecolor": ink,
            "xtick.color": ink,
            "ytick.color": ink,
            "grid.color": NEUTRAL.mark,
            "grid.alpha": 0.3,
            "axes.grid": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "lines.linewidth": 2.0,
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=[colour.mark for colour in SERIES]),
        }
    )


def as_svg(drawing: Any, description: str) -> Svg:
    """A matplotlib figure as an image that follows the page's theme.

    Args:
        drawing: the figure; it is closed, so that a notebook does not show it twice.
        description: what it shows, for those who do not see it.

    Returns:
        The image; leave it as a cell's last line to show it.
    """
    require_description(description)
    buffer = io.StringIO()
    # Without a date, the same figure gives the same text.
    drawing.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(drawing)
    markup = buffer.getvalue()
    markup = markup[markup.index("<svg") :].replace(INK.mark, "currentColor")
    return Svg(_without_idle_ids(markup), description)


def _without_idle_ids(markup: str) -> str:
    """The mark-up without ids that nothing in it names.

    matplotlib calls the groups of every figure figure_1, axes_1, …, and a page holds
    several. A clip path's name is made of its content: equal names mean equal paths.
    """
    used = set(_REFERENCE.findall(markup))
    return _IDENTIFIED.sub(
        lambda found: found[0] if found[2] in used else found[1], markup
    )


def require_description(description: str) -> None:
    """Raise `InputError` unless there is a text alternative."""
    if not description.strip():
        raise InputError(
            "description is empty: say in a sentence what the figure shows, for "
            "readers who do not see it."
        )


def words(title: str, description: str) -> dict[str, str]:
    """A chart's text alternative, and its title where it has one."""
    named = {"title": title} if title else {}
    return {"description": description, **named}
