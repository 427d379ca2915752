"""An image made of SVG text, with its text alternative."""

import re
from dataclasses import dataclass

from aiayn_book.html import STYLE, escape


@dataclass(frozen=True)
class Svg:
    """SVG mark-up that a notebook shows; plain text where nothing can be drawn.

    Colours written as ``currentColor`` or as the book's CSS properties follow the
    page's theme, which an image file could not do.
    """

    markup: str  # from <svg to </svg>
    description: str

    @property
    def html(self) -> str:
        """The image with its text alternative, as a piece of a page."""
        return self.markup.replace(
            "<svg ",
            f'<svg role="img" aria-label="{escape(self.description)}" '
            'style="max-width: 100%; height: auto" ',
            1,
        )

    @property
    def width(self) -> float:
        """How wide it is drawn, in units."""
        return float(re.search(r'viewBox="\S+ \S+ (\S+)', self.markup)[1])

    def _repr_html_(self) -> str:
        return f'<div class="aiayn">{STYLE}{self.html}</div>'

    def __repr__(self) -> str:
        return f"[Figure: {self.description}]"
