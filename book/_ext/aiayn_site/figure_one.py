"""The directive ``{figure-one}``: Figure 1 as the book's table of contents.

The drawing is `aiayn_book.diagrams.contents_diagram`; what each block is called and
where it leads stands in ``book/data/figure.yml``. Beside the drawing goes a note on the
block that is pointed at, and below it the same as a list, which is the figure's text
alternative. Without JavaScript the links and the list work all the same.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_book.diagrams import Link, contents_diagram
from aiayn_book.html import escape
from aiayn_site.chapters import from_page, number, parts

BLOCKS = Path(__file__).resolve().parents[2] / "data" / "figure.yml"
SHOWN_FIRST = "self-attention"

Address = Callable[[str], str]  # from a chapter's name to its page's address


def blocks() -> dict[str, dict]:
    """The blocks of the figure by their names, in the order of reading."""
    return yaml.safe_load(BLOCKS.read_text(encoding="utf-8"))


def titles() -> dict[str, str]:
    """Each chapter's number and title: ``3. Attention``."""
    return {
        chapter["name"]: ". ".join(filter(None, (number(chapter["name"]), title)))
        for part in parts()
        for chapter in part["chapters"]
        for title in [chapter["title"]]
    }


def drawing(address: Address) -> str:
    """The figure as SVG; no image to assistive techniques, but a group of links."""
    names = titles()
    links = {
        name: Link(
            address(block["chapter"]),
            f"{block['title']}: chapter {names[block['chapter']]}",
            described_by=f"block-{name}",
        )
        for name, block in blocks().items()
    }
    figure = contents_diagram(links)
    label = escape(figure.description)
    markup = re.sub("<title>.*?</title>", "", figure.markup)
    return markup.replace("<svg ", f'<svg role="group" aria-label="{label}" ', 1)


def note(block: dict, address: Address) -> str:
    """What there is to say about a block: its name, shapes, sentence, chapters."""
    names = titles()
    chapters = [block["chapter"], *block.get("also", [])]
    links = " ".join(
        f'<a href="{escape(address(name))}">{escape(names[name])}</a>'
        for name in chapters
    )
    return (
        f'<p class="block-title">{escape(block["title"])}</p>'
        f'<p class="block-shapes">{escape(block["shapes"])}</p>'
        f'<p class="block-says">{escape(block["says"])}</p>'
        f'<p class="block-chapters">{links}</p>'
    )


def figure(address: Address) -> Iterator[str]:
    """Drawing, note and list, each in a box of its own."""
    known = blocks()
    yield f'<div class="figure-one">{drawing(address)}</div>'
    first = note(known[SHOWN_FIRST], address)
    yield (
        f'<div class="figure-note" data-block="{SHOWN_FIRST}">'
        f'<div class="figure-note-text">{first}</div>'
        '<p class="figure-hint">Each block leads to its chapter.</p></div>'
    )
    items = "".join(
        f'<li id="block-{name}">{note(block, address)}</li>'
        for name, block in known.items()
    )
    yield (
        '<details class="figure-list"><summary>The figure as a list</summary>'
        "<p>From the bottom of the figure to its top, first the encoder, then the "
        "decoder, then what is inside each attention. n source tokens, m target "
        f"tokens, h heads.</p><ul>{items}</ul></details>"
    )


class FigureOne(SphinxDirective):
    """Draws figure, note and list."""

    def run(self) -> list[nodes.Node]:
        here = self.env.docname

        def address(name: str) -> str:
            return from_page(here, f"notebooks/{name}")

        return [nodes.raw("", box, format="html") for box in figure(address)]


def add_files(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Give the page that holds the figure its style sheet and script."""
    if 'class="figure-one"' in (context.get("body") or ""):
        app.add_css_file("landing.css")
        app.add_js_file("landing.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("figure-one", FigureOne)
    app.connect("html-page-context", add_files)
