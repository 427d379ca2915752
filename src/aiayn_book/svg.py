"""An image made of SVG text, with its text alternative."""

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

    def _repr_html_(self) -> str:
        named = self.markup.replace(
            "<svg ",
            f'<svg role="img" aria-label="{escape(self.description)}" '
            'style="max-width: 100%; height: auto" ',
            1,
        )
        return (
            f'<div class="aiayn">{STYLE}<div class="aiayn-figure">{named}</div></div>'
        )

    def __repr__(self) -> str:
        return f"[Figure: {self.description}]"
