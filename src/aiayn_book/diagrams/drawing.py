"""The building blocks of a drawing: boxes, arrows, vectors, matrices, tokens, axes.

Lines and letters take the page's own colour, so that they read on light and dark
pages; query, key and value have the colours that they have everywhere in the book.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.colours import FULL, ROLES, css_colour
from aiayn_book.html import escape
from aiayn_book.svg import Svg

Number = int | float
Point = tuple[Number, Number]

_FAMILY = "var(--book-sans, system-ui, sans-serif)"
_FONT = f"font: 13px {_FAMILY}"
_SMALL = "font: 13px ui-monospace, monospace"
_BOX_HEIGHT = 30


@dataclass(frozen=True)
class Link:
    """Where a block of a diagram leads."""

    address: str
    """Of a page, or of a place in it."""
    label: str
    """For those who do not see the block."""
    described_by: str = ""
    """The id of an element of the page that says more."""


@dataclass
class Diagram:
    """A drawing in the making; positions are centres, y grows downwards."""

    width: int
    """In units, which are pixels where there is room; at most 360 fit a phone."""
    height: int
    """In the same units."""
    parts: list[str] = field(default_factory=list)
    """Pieces of SVG, in the order in which they are painted."""
    links: dict[str, Link] = field(default_factory=dict)
    """Where a block leads, by the block's name."""

    @contextmanager
    def block(self, name: str) -> Iterator[None]:
        """What is drawn inside is one block: a link, where one is known for it."""
        outside, self.parts = self.parts, []
        yield
        inside, self.parts = "".join(self.parts), outside
        if link := self.links.get(name):
            described = f' aria-describedby="{link.described_by}"'
            inside = (
                f'<a class="block" data-block="{name}" href="{escape(link.address)}" '
                f'aria-label="{escape(link.label)}"'
                f"{described if link.described_by else ''}>{inside}</a>"
            )
        self.parts.append(inside)

    def target(self, x: Number, y: Number, width: Number, height: Number) -> None:
        """The area that answers to a finger, around a block that has no box."""
        self.parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" '
            f'height="{height:g}" rx="5" style="fill: transparent"/>'
        )

    def moved(self, down: Number, other: "Diagram") -> None:
        """Take over all of another drawing, further down."""
        inside = "".join(other.parts)
        self.parts.append(f'<g transform="translate(0 {down:g})">{inside}</g>')

    def box(
        self,
        x: Number,
        y: Number,
        label: str,
        *,
        width: Number = 110,
        height: Number = _BOX_HEIGHT,
        role: str = "neutral",
    ) -> None:
        """A labelled box in the colour of a role; ``\\n`` breaks the label."""
        self.parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" '
            f'height="{height:g}" rx="5" style="fill: {css_colour(role)}; '
            "fill-opacity: 0.16; "
            f'stroke: {css_colour(role)}; stroke-width: 1.5"/>'
        )
        lines = label.split("\n")
        for number, line in enumerate(lines):
            self.text(x, y + 16 * (number - (len(lines) - 1) / 2), line)

    def frame(self, x: Number, y: Number, width: Number, height: Number) -> None:
        """A dashed frame around what is repeated; x and y are its top left corner."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="9" '
            'style="fill: none; stroke: currentColor; stroke-opacity: 0.5; '
            'stroke-dasharray: 5 4"/>'
        )

    def text(
        self,
        x: Number,
        y: Number,
        words: str,
        *,
        anchor: str = "middle",
        role: str | None = None,
        small: bool = False,
        bold: bool = False,
        italic: bool = False,
    ) -> None:
        """Words, centred on their position; small ones are shapes or numbers."""
        fill = css_colour(role) if role else "currentColor"
        style = f"{_SMALL if small else _FONT}; fill: {fill}"
        style += "; font-weight: 600" if bold else ""
        style += "; font-style: italic" if italic else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
            f'dominant-baseline="central" style="{style}">{escape(words)}</text>'
        )

    def arrow(
        self,
        *points: Point,
        role: str | None = None,
        head: bool = True,
        dashed: bool = False,
        width: Number = 1.6,
    ) -> None:
        """A line through the points, with a head at the last one."""
        colour = css_colour(role) if role else "currentColor"
        line = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
        dashes = "; stroke-dasharray: 6 4" if dashed else ""
        self.parts.append(
            f'<polyline points="{line}" style="fill: none; stroke: {colour}; '
            f'stroke-width: {width:g}{dashes}"/>'
        )
        if head:
            self.parts.append(_arrow_head(points[-2], points[-1], colour))

    def dot(
        self, x: Number, y: Number, *, role: str | None = None, radius: Number = 5
    ) -> None:
        """A point."""
        colour = css_colour(role) if role else "currentColor"
        self.parts.append(
            f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{radius:.4g}" '
            f'style="fill: {colour}"/>'
        )

    def bars(
        self,
        x: Number,
        y: Number,
        vector: Any,
        *,
        role: str = "neutral",
        width: Number = 120,
        height: Number = 40,
        limit: float | None = None,
    ) -> None:
        """A vector as bars, upwards if positive; its frame is centred on the position.

        `limit` is the number at which a bar is as long as it can be: by default the
        largest of the vector. Vectors that are to be compared need a common one.
        """
        numbers = _array(vector, 1)
        limit = limit or float(np.abs(numbers).max()) or 1.0
        signed = bool((numbers < 0).any())
        room = height / 2 if signed else height
        zero = y if signed else y + height / 2
        step = width / len(numbers)
        left = x - width / 2
        for place, number in enumerate(numbers):
            length = room * min(1.0, abs(number) / limit)
            top = zero - length if number > 0 else zero
            self.parts.append(
                f'<rect x="{left + step * (place + 0.12):.4g}" y="{top:.4g}" '
                f'width="{0.76 * step:.4g}" height="{length:.4g}" '
                f'style="fill: {css_colour(role)}"/>'
            )
        self.arrow((left, zero), (left + width, zero), head=False, width=1)

    def grid(
        self,
        x: Number,
        y: Number,
        matrix: Any,
        *,
        role: str = "weight",
        negative: str = "alert",
        cell: Number = 40,
        tall: Number = 28,
        limit: float | None = 1.0,
        digits: int | None = 2,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """A matrix as shaded cells, centred on the position, rows from top to bottom.

        Args:
            x: the centre of the cells; names of rows and columns stand outside.
            y: likewise.
            matrix: nested lists, an array or a tensor.
            role: the colour; a cell has its full strength at `limit`.
            negative: the colour of numbers below zero.
            cell: how wide a cell is.
            tall: how high a cell is.
            limit: the number of full strength; None shades nothing. Where numbers are
                printed, full strength is `FULL`, so that they can be read.
            digits: decimals of the numbers in the cells; zeros stay empty. None prints
                no numbers.
            rows: a name for each row, to the left.
            columns: a name for each column, above.
        """
        table = _array(matrix, 2)
        left = x - cell * table.shape[1] / 2
        top = y - tall * table.shape[0] / 2
        full = 1.0 if digits is None else FULL
        for (i, j), number in np.ndenumerate(table):
            share = min(1.0, abs(float(number)) / limit) if limit else 0.0
            colour = ROLES[role if number >= 0 else negative].light
            centre = left + cell * (j + 0.5), top + tall * (i + 0.5)
            self.parts.append(
                f'<rect x="{left + cell * j:.4g}" y="{top + tall * i:.4g}" '
                f'width="{cell:.4g}" height="{tall:.4g}" style="fill: {colour}; '
                f"fill-opacity: {full * share:.3g}; stroke: currentColor; "
                'stroke-opacity: 0.25"/>'
            )
            text = "" if digits is None else _number(float(number), digits)
            if text:
                self.text(*centre, text, small=True)
        for i, name in enumerate(rows):
            self.text(left - 8, top + tall * (i + 0.5), name, anchor="end")
        for j, name in enumerate(columns):
            self.text(left + cell * (j + 0.5), top - 11, name)

    def tokens(
        self,
        x: Number,
        y: Number,
        words: Sequence[str],
        *,
        step: Number = 60,
        role: str = "neutral",
        height: Number = 26,
    ) -> list[Number]:
        """Tokens in a row, each in a box, centred on the position; returns their x."""
        first = x - step * (len(words) - 1) / 2
        places = [first + step * number for number in range(len(words))]
        for place, word in zip(places, words, strict=True):
            self.box(place, y, word, width=step - 6, height=height, role=role)
        return places

    def axis(
        self,
        start: Point,
        end: Point,
        ticks: Sequence[tuple[float, str]] = (),
        *,
        label: str = "",
    ) -> None:
        """An axis from start to end, level or upright.

        `ticks` are shares of its length, from 0 to 1, with the words that stand there:
        below a level axis, left of an upright one. The label stands beyond its end.
        """
        (x0, y0), (x1, y1) = start, end
        level = y0 == y1
        self.arrow(start, end, width=1.2)
        for share, words in ticks:
            x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
            over, down = (0, 5) if level else (-5, 0)
            self.arrow((x, y), (x + over, y + down), head=False, width=1.2)
            if level:
                self.text(x, y + 15, words)
            else:
                self.text(x - 9, y, words, anchor="end")
        if label and level:
            self.text(x1, y1 - 12, label, anchor="end", italic=True)
        elif label:
            self.text(x1, y1 - 10, label, italic=True)

    def plus(self, x: Number, y: Number) -> None:
        """A circled plus, where positional encodings are added."""
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="9" '
            'style="fill: none; stroke: currentColor; stroke-width: 1.5"/>'
        )
        self.arrow((x - 5, y), (x + 5, y), head=False)
        self.arrow((x, y - 5), (x, y + 5), head=False)

    def finish(self, title: str, description: str) -> Svg:
        """The finished image with its text alternative."""
        markup = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}">'
            f"<title>{escape(title)}</title>{''.join(self.parts)}</svg>"
        )
        return Svg(markup, f"{title}. {description}")


def _arrow_head(start: Point, end: Point, fill: str) -> str:
    """A small triangle that points from start to end."""
    (x0, y0), (x, y) = start, end
    length = math.hypot(x - x0, y - y0) or 1.0
    dx, dy = (x - x0) / length, (y - y0) / length
    left = (x - 7 * dx - 4 * dy, y - 7 * dy + 4 * dx)
    right = (x - 7 * dx + 4 * dy, y - 7 * dy - 4 * dx)
    corners = " ".join(f"{a:.4g},{b:.4g}" for a, b in ((x, y), left, right))
    return f'<polygon points="{corners}" style="fill: {fill}"/>'


def _array(values: Any, dimensions: int) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().float().cpu()
    table = np.asarray(values, dtype=float)
    if table.ndim != dimensions:
        raise InputError(
            f"The numbers of a drawing have the shape {table.shape}, but "
            f"{'a matrix' if dimensions == 2 else 'a vector'} was expected."
        )
    return table


def _number(number: float, digits: int) -> str:
    """A number with a true minus sign; nothing for what rounds to zero."""
    text = f"{number:.{digits}f}"
    return text.replace("-", "−") if text.strip("-0.") else ""
