"""Numbered figures: a picture, its number within the chapter, and its caption.

A caption opens with the conclusion, which is set in bold, and then says what to look at
or to try. The site, JupyterLab and Colab show the same HTML; on the site, the figure
can be linked to as ``#figure-3-1``.

Not in the paper.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from aiayn.errors import InputError
from aiayn_book.html import STYLE, escape
from aiayn_book.svg import Svg

Width = Literal["column", "margin"]
PHONE, MARGIN = 360, 306
"""The widest drawings, in units, that do not shrink: on a phone, in a margin."""

_STYLE = """<style>
.aiayn figure.aiayn-figure { margin: 0; padding: 0; container-type: inline-size;
  text-align: start; }
.aiayn-figure > .aiayn-panels { display: flex; flex-wrap: wrap; gap: 1rem;
  align-items: flex-end; justify-content: space-around; }
.aiayn-figure > .aiayn-panels > * { min-width: 0; }
.aiayn-figure > .aiayn-panels > svg:not(:only-child) { flex: 0 1 338px; }
.aiayn-figure :is(.aiayn-wide, .aiayn-phone) { flex: 1 1 100%; text-align: center; }
.aiayn figure.aiayn-figure > figcaption { font: inherit; font-size: .95em;
  line-height: 1.5; color: inherit; margin: .6rem 0 0; padding: 0; text-align: start; }
.aiayn-figure .aiayn-explorable > figcaption { display: none; }
@container (min-width: 481px) { .aiayn-figure .aiayn-phone { display: none; } }
@container (max-width: 480px) { .aiayn-figure .aiayn-wide { display: none; } }
</style>"""


@dataclass(frozen=True)
class Figure:
    """What `figure` returns; a notebook shows it."""

    panels: tuple[Any, ...]
    phone: Svg | None
    number: str
    caption: str
    width: Width

    @property
    def anchor(self) -> str:
        """The HTML identifier: ``figure-3-1`` for Figure 3.1."""
        return f"figure-{self.number.lower().replace('.', '-')}"

    def _repr_html_(self) -> str:
        panels = "\n".join(map(_html, self.panels))
        if self.phone is not None:
            panels = (
                f'<div class="aiayn-wide">{panels}</div>'
                f'<div class="aiayn-phone">{_html(self.phone)}</div>'
            )
        claim, *rest = re.split(r"(?<=[.?!])\s+", self.caption, maxsplit=1)
        return (
            f'<div class="aiayn">{STYLE}{_STYLE}\n'
            f'<figure class="aiayn-figure aiayn-{self.width}" id="{self.anchor}">\n'
            f'<div class="aiayn-panels">{panels}</div>\n'
            f"<figcaption><strong>Figure {self.number}. {_inline(claim)}</strong> "
            f"{_inline(' '.join(rest))}</figcaption></figure></div>"
        )

    def __repr__(self) -> str:
        return f"Figure {self.number}. {self.caption}"


def figure(
    picture: Any,
    number: str,
    caption: str,
    *,
    width: Width = "column",
    phone: Svg | None = None,
) -> Figure:
    """A picture with its number and caption; leave it as a cell's last line to show it.

    Args:
        picture: a chart of Altair, a drawing (`Diagram.finish`, `plots.as_svg`), an
            explorable, or a list of these: panels, which stand side by side where there
            is room and below each other on a phone.
        number: the number within the chapter, such as ``"3.1"``.
        caption: sentences; the first says what the figure shows and is set in bold.
            ``*word*`` is set in italics, and what stands between backquotes as code.
        width: ``"column"``, as wide as the text, or ``"margin"``, beside the paragraph
            that follows the cell.
        phone: for a drawing of more than 360 units, its form for phones. In a margin,
            a drawing has at most 306 units.

    Raises:
        InputError: the number or the caption has another form, or a wide drawing comes
            without its form for phones.
    """
    if not re.fullmatch(r"(?:\d+[a-z]?|[A-Z])\.\d+", number):
        raise InputError(
            f"number is {number!r}, but the chapter's number and the figure's within "
            "it were expected, such as '3.1'."
        )
    if not caption.endswith((".", "?")):
        raise InputError(
            f"The caption of figure {number} ends with {caption[-20:]!r}: write whole "
            "sentences, the first of which says what the figure shows."
        )
    if width not in get_args(Width):
        raise InputError(f"width is {width!r}, but 'column' or 'margin' was expected.")
    several = isinstance(picture, Sequence) and not isinstance(picture, str)
    panels = tuple(picture) if several else (picture,)
    limit = PHONE if width == "column" else MARGIN
    wide = [panel for panel in panels if isinstance(panel, Svg) and panel.width > limit]
    if wide and (phone is None or width == "margin"):
        place = "on a phone" if width == "column" else "in the margin"
        raise InputError(
            f"A drawing of figure {number} is {wide[0].width:g} units wide; {place} "
            f"its words would be too small. Keep to {limit} units, cut it into panels, "
            "or, in the column, give another form of it as `phone`."
        )
    return Figure(panels, phone, number, caption, width)


def _html(picture: Any) -> str:
    """A panel as HTML, a chart of Altair in the form in which it draws itself."""
    if isinstance(picture, Svg):
        return picture.html
    if hasattr(picture, "_repr_mimebundle_"):
        return _chart(picture)
    if hasattr(picture, "_repr_html_"):
        return f'<div style="flex: 1 1 18rem">{picture._repr_html_()}</div>'
    raise InputError(
        f"A figure was to be made of {type(picture).__name__}, but a chart of Altair, "
        "a drawing or an explorable was expected; `aiayn_book.plots.as_svg` makes a "
        "drawing of a figure of matplotlib."
    )


def _chart(chart: Any) -> str:
    """A chart of Altair; a map takes the room that there is, up to its widest."""
    meta = chart.usermeta if isinstance(chart.usermeta, dict) else {}
    style = "flex: 1 1 18rem"
    if "widest" in meta:
        chart = chart.properties(width="container")
        style = f"flex: 1 1 {min(meta['widest'], 300)}px; max-width: {meta['widest']}px"
    bundle = chart._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    return f'<div style="{style}">{bundle["text/html"]}</div>'


def _inline(text: str) -> str:
    """A caption's italics and code as HTML."""
    text = escape(text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
