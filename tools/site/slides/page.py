"""A page of slides that needs no network: reveal.js, the book's fonts and scripts.

reveal.js comes out of the wheel ``sphinx-revealjs`` (MIT licence), the rest from the
same places as on the book's site.
"""

import html
import re
import shutil
from collections.abc import Collection
from importlib.metadata import distribution
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from aiayn_site import offline_assets, site_colours, site_fonts
from tools.site.slides.deck import Slide

OWN = Path(__file__).parent
REVEAL_FILES = (
    "dist/reveal.css",
    "dist/reset.css",
    "dist/reveal.js",
    "plugin/notes/notes.js",
)
TEMPLATE = (OWN / "deck.html").read_text(encoding="utf-8")
INDEX = (OWN / "index.html").read_text(encoding="utf-8")
NOTEBOOK_LINK = re.compile(r'href="([\w-]+)\.ipynb(#[^"]*)?"')
BOOK_LINK = re.compile(r'href="\.\./book/([\w-]+)\.md(#[^"]*)?"')
LOCAL_LINK = re.compile(r'<a href="#[^"]*">(.*?)</a>', re.DOTALL)
STANDING_FOR = "text/html", "image/svg+xml", "text/plain"


def place_assets(folder: Path) -> None:
    """Put everything that the decks load beside them."""
    static = folder / "static"
    (static / "fonts").mkdir(parents=True, exist_ok=True)
    files = distribution("sphinx-revealjs").files or []
    for name in REVEAL_FILES:
        source = next(f for f in files if str(f).endswith(f"revealjs/{name}"))
        shutil.copyfile(str(source.locate()), static / Path(name).name)
    offline_assets.place_mathjax(static / "mathjax")
    vega = f"{offline_assets.vega_script()}{offline_assets.vega_announcement()}\n"
    (static / "vega.js").write_text(vega, encoding="utf-8")
    (static / "colours.css").write_text(site_colours.style_sheet(), encoding="utf-8")
    (static / "fonts.css").write_text(site_fonts.style_sheet(), encoding="utf-8")
    for wheel, name, _, _, _ in site_fonts.FACES:
        target = static / "fonts" / f"{name}.woff2"
        site_fonts.cut(site_fonts.font_file(wheel, f"{name}.otf"), target)
    for name in ("slides.css", "slides.js"):
        shutil.copyfile(OWN / name, static / name)


def deck_page(slides: list[Slide], chapter: str, here: Collection[str]) -> str:
    """A deck as one HTML page.

    Args:
        slides: What it shows.
        chapter: The notebook's name.
        here: The decks that stand beside it. Links to other chapters lead to the site.
    """
    sections = _with_links("\n".join(_section(slide) for slide in slides), here)
    return TEMPLATE.replace("{{title}}", html.escape(slides[0].title)).replace(
        "{{sections}}", sections.replace("{{chapter}}", chapter)
    )


def index_page(decks: dict[str, str]) -> str:
    """The list of decks: file name and title of each."""
    items = "\n".join(
        f'<li><a href="{name}.html">{html.escape(title)}</a></li>'
        for name, title in decks.items()
    )
    return INDEX.replace("{{decks}}", items)


def _section(slide: Slide) -> str:
    tag = "h1" if slide.kind == "title" else "h2"
    parts = [f"<{tag}>{_inline(slide.title)}</{tag}>"] if slide.title else []
    if slide.markdown:
        parts.append(f'<div class="text">{rendered(slide.markdown)}</div>')
    if slide.code:
        parts.append(f"<pre><code>{html.escape(slide.code)}</code></pre>")
    if slide.cell is not None:
        parts.append(f'<div class="outputs">{_outputs(slide.cell)}</div>')
    if slide.caption:
        parts.append(f'<div class="caption">{rendered(slide.caption)}</div>')
    notes = rendered("\n\n".join(slide.notes))
    inner = "\n".join(parts)
    return (
        f'<section class="{slide.kind}"><div class="content">\n{inner}\n</div>'
        f'<aside class="notes">{notes}</aside></section>'
    )


def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True, "typographer": False})
    reader.enable(["table", "strikethrough"])
    for plugin in (dollarmath_plugin, amsmath_plugin):
        plugin(reader)
    reader.add_render_rule("math_inline", _as_inline_formula)
    reader.add_render_rule("math_inline_double", _as_formula)
    reader.add_render_rule("math_block", _as_formula)
    reader.add_render_rule("math_block_label", _as_formula)
    return reader


def _as_inline_formula(self, tokens, place, options, env) -> str:
    return rf"<span>\({html.escape(tokens[place].content)}\)</span>"


def _as_formula(self, tokens, place, options, env) -> str:
    return rf"<div>\[{html.escape(tokens[place].content)}\]</div>"


READER = _markdown()


def rendered(markdown: str) -> str:
    return LOCAL_LINK.sub(r"\1", READER.render(markdown))


def _inline(markdown: str) -> str:
    return LOCAL_LINK.sub(r"\1", READER.renderInline(markdown))


def _with_links(text: str, here: Collection[str]) -> str:
    """Links lead to the other decks, and to the pages of the site around them."""
    text = NOTEBOOK_LINK.sub(
        lambda link: (
            f'href="{link[1]}.html"'
            if link[1] in here
            else f'href="../notebooks/{link[1]}.html{link[2] or ""}"'
        ),
        text,
    )
    return BOOK_LINK.sub(r'href="../book/\1.html\2"', text)


def _outputs(cell) -> str:
    shown = []
    for output in cell.outputs:
        if output.output_type == "stream":
            shown.append(f"<pre>{html.escape(output.text)}</pre>")
            continue
        data = output.get("data", {})
        kind = next((kind for kind in STANDING_FOR if kind in data), None)
        if kind in {"text/html", "image/svg+xml"}:
            shown.append(data[kind])
        elif kind:
            shown.append(f"<pre>{html.escape(data[kind])}</pre>")
    return "\n".join(shown)
