"""What a page shows where somebody links to it: title, description, and a picture.

The picture is made by the build: the page's title and question beside a map of
attention, for each chapter that of another head. Such pictures need a full address. It
is `html_baseurl` if that is set; otherwise it follows from the repository's address, as
for a project's site on the same host. Cards of sphinxext-opengraph show title
and description beside one logo, the same on every page.
"""

import hashlib
import io
import json
import re
import textwrap
from functools import cache
from html import escape, unescape
from pathlib import Path

import vl_convert
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

from aiayn_book.colours import INK, KEY, PAGE, WEIGHT
from aiayn_book.html import pages_address
from aiayn_site.attention_figure import RECORD, read, views
from aiayn_site.chapters import number, parts
from aiayn_site.page_description import description_of
from aiayn_site.site_fonts import FACES, font_file

WIDTH, HEIGHT = 1200, 630
FOLDER = "_static/previews"
CELL, GAP = 42, 5
LAST = 500  # where the last line above the footer may stand
SANS, SERIF = "Source Sans Pro", "Source Serif Pro"


def site_address(app: Sphinx) -> str:
    """Where the site will stand, with a slash at its end."""
    if app.config.html_baseurl:
        return app.config.html_baseurl.rstrip("/") + "/"
    return pages_address(app.config.html_theme_options.get("repository_url", ""))


def picture(kicker: str, title: str, question: str, weights: list) -> str:
    """The preview as SVG."""
    lines = [_text(80, 110, kicker, 30, KEY.dark, SANS, 600)]
    y = 190
    for line in textwrap.wrap(title, 18)[:3]:
        lines.append(_text(80, y, line, 68, "#ffffff", SANS, 600))
        y += 78
    y += 8
    room = 1 + (LAST - y) // 48  # lines above the footer
    for line in textwrap.wrap(question, 34, max_lines=room, placeholder="…"):
        line = re.sub(r"[.,:;]…$", "…", line)  # cut behind such a mark
        lines.append(_text(80, y, line, 36, INK.dark, SERIF, 400))
        y += 48
    lines.append(
        _text(80, 570, "Attention Is All You Need, executable", 28, INK.dark, SANS, 400)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAGE.dark}"/>'
        f"{''.join(lines)}{''.join(_cells(weights))}</svg>"
    )


def _text(x, y, words, size, fill, family, weight) -> str:
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" '
        f'font-weight="{weight}" fill="{fill}">{escape(words)}</text>'
    )


def _cells(weights: list) -> list[str]:
    """The map of attention, down the right side."""
    step = CELL + GAP
    left = WIDTH - 80 - step * len(weights[0]) + GAP
    top = (HEIGHT - step * len(weights) + GAP) / 2
    return [
        f'<rect x="{left + step * i}" y="{top + step * j}" width="{CELL}" '
        f'height="{CELL}" rx="6" fill="{WEIGHT.dark}" '
        f'fill-opacity="{0.07 + 0.93 * share / 100:.2f}"/>'
        for j, row in enumerate(weights)
        for i, share in enumerate(row)
    ]


@cache
def _maps() -> list:
    """The recorded maps of one sentence; the fonts are made known with them."""
    for folder in {font_file(wheel, f"{name}.otf").parent for wheel, name, *_ in FACES}:
        vl_convert.register_font_directory(str(folder))
    sentence = read(json.loads(RECORD.read_text(encoding="utf-8")))[0]
    return list(views(sentence).values())


def _weights(page: str) -> list:
    """A page's own map: chapters take the recorded ones in turn."""
    place = [*_chapters()].index(page) if page in _chapters() else 0
    return _maps()[place % len(_maps())]


@cache
def _chapters() -> dict[str, tuple[str, str, str]]:
    """Each chapter's kicker, title and question, by its page."""
    return {
        f"notebooks/{chapter['name']}": (
            " · ".join(
                filter(
                    None,
                    (
                        f"Chapter {number(chapter['name'])}"
                        if number(chapter["name"])
                        else part["title"],
                        chapter["paper"],
                    ),
                )
            ),
            chapter["title"],
            chapter["question"],
        )
        for part in parts()
        for chapter in part["chapters"]
    }


def place_picture(app: Sphinx, page: str, title: str) -> str:
    """Write the page's picture, unless an earlier build did; returns its address."""
    kicker, name, question = _chapters().get(
        page, ("Vaswani et al., 2017", title, description_of(app.env, page))
    )
    svg = picture(kicker, name, question, _weights(page))
    digest = hashlib.sha256(svg.encode()).hexdigest()[:8]
    file = f"{FOLDER}/{page.replace('/', '-')}-{digest}.png"
    target = Path(app.outdir) / file
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        image = Image.open(io.BytesIO(vl_convert.svg_to_png(svg))).convert("RGB")
        # A palette is enough for so few colours, and a seventh of the size.
        image.quantize(colors=64).save(target, optimize=True)
    return file


def add_preview(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Add the tags that say what a link to the page shows."""
    if not isinstance(doctree, nodes.document):
        return
    title = unescape(nodes.Element.astext(app.env.titles[page]))
    site = site_address(app)
    question = _chapters().get(page, ("", "", ""))[2]
    tags = {
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": description_of(app.env, page) or title,
        "og:url": f"{site}{page}.html",
        "og:image": site + place_picture(app, page, title),
        "og:image:width": str(WIDTH),
        "og:image:height": str(HEIGHT),
        "og:image:alt": f"{title}. {question}".strip(),
    }
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<meta property="{name}" content="{escape(text)}" />'
        for name, text in tags.items()
    )
    context["metatags"] += (
        '\n<meta name="twitter:card" content="summary_large_image" />'
    )


def setup(app: Sphinx) -> None:
    """Connect to the build, after the descriptions."""
    app.connect("html-page-context", add_preview, priority=600)
