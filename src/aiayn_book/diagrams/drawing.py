"""The building blocks of a diagram: boxes, arrows, frames, words and shapes.

Lines and letters take the page's own colour, so that they read on light and dark
pages; query, key and value have the colours that they have everywhere in the book.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiayn_book.colours import css_colour
from aiayn_book.html import escape
from aiayn_book.svg import Svg

Number = int | float
Point = tuple[Number, Number]

_FONT = "font: 13px system-ui, sans-serif"
_SMALL = "font: 11.5px ui-monospace, monospace"
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
    """In units; at most 360, to fit a phone."""
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

    def sheets(
        self, x: Number, y: Number, *, width: Number, height: Number, role: str
    ) -> None:
        """The edges of more boxes behind the one at this place: one of them a head."""
        for shift in (4, 8):
            left, right = x - width / 2 + shift, x + width / 2 + shift
            top, bottom = y - height / 2 - shift, y + height / 2 - shift
            corners = [(left, top + 4), (left, top), (right, top), (right, bottom)]
            self.arrow(*corners, (right - 4, bottom), role=role, head=False)

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
    ) -> None:
        """Words, centred on their position; small ones are shapes."""
        fill = css_colour(role) if role else "currentColor"
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
            f'dominant-baseline="central" style="{_SMALL if small else _FONT}; '
            f'fill: {fill}">{escape(words)}</text>'
        )

    def arrow(self, *points: Point, role: str | None = None, head: bool = True) -> None:
        """A line through the points, with a head at the last one."""
        colour = css_colour(role) if role else "currentColor"
        line = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{line}" style="fill: none; stroke: {colour}; '
            'stroke-width: 1.6"/>'
        )
        if head:
            self.parts.append(_arrow_head(points[-2], points[-1], colour))

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
    """A small triangle that points from start to end; lines are level or upright."""
    (x0, y0), (x, y) = start, end
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    left = (x - 7 * dx - 4 * dy, y - 7 * dy + 4 * dx)
    right = (x - 7 * dx + 4 * dy, y - 7 * dy - 4 * dx)
    corners = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), left, right))
    return f'<polygon points="{corners}" style="fill: {fill}"/>'
