"""The site's colours for query, key, value: those of `aiayn_book.colours`, as CSS.

Notebooks colour a formula with the light page's value (``\\textcolor{#a65a00}{Q}``),
because Colab and code hosts know nothing else; on a dark page the rules below replace
it.
"""

from pathlib import Path

from sphinx.application import Sphinx

from aiayn_book.colours import ROLES, css_properties

DARK = "html[data-theme=dark]"


def style_sheet() -> str:
    """Custom properties for both themes, and the rules for coloured formulas."""
    rules = [
        f":root {{ {css_properties('light')} }}",
        f"{DARK} {{ {css_properties('dark')} }}",
    ]
    rules += [
        f'{DARK} mjx-container [style*="color: {written}"] '
        f"{{ color: var(--aiayn-{role}) !important; }}"
        for role, colour in ROLES.items()
        for written in (colour.light, _rgb(colour.light))
    ]
    return "\n".join(rules) + "\n"


def _rgb(colour: str) -> str:
    """``#a65a00`` the way in which browsers write it back into a style attribute."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def place_colours(app: Sphinx) -> None:
    """Write the style sheet into the site."""
    if app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        static.mkdir(parents=True, exist_ok=True)
        (static / "colours.css").write_text(style_sheet(), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    app.connect("builder-inited", place_colours)
