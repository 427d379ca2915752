"""The directive ``{chapters}``: the table of chapters, from ``book/data/chapters.yml``.

A chapter whose notebook is part of the book is a link; the others are named as planned.
What readers type into the search to find a chapter stands there too (``found_by``).
"""

from collections.abc import Iterator
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

DATA = Path(__file__).resolve().parents[2] / "data" / "chapters.yml"


def parts() -> list[dict]:
    """The parts of the book: each a title and its chapters."""
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


def taught() -> list[str]:
    """The notebooks with exercises, a lesson and slides: all but the appendices."""
    chapters = [chapter for part in parts() for chapter in part["chapters"]]
    return [chapter["name"] for chapter in chapters if "appendix" not in chapter]


def called(name: str) -> str:
    """How a note names a chapter: *chapter 3*, or *appendix A*."""
    if number(name):
        return f"chapter {number(name)}"
    chapters = {one["name"]: one for part in parts() for one in part["chapters"]}
    return f"appendix {chapters[name].get('appendix', '')}".rstrip()


def number(name: str) -> str:
    """The number in a notebook's name: 3 for ``03-attention``; none for some.

    A chapter that was split off has a letter as well: 17b for ``17b-…``.
    """
    head = name.partition("-")[0]
    return head.lstrip("0") if head[0].isdigit() else ""


def from_page(here: str, page: str) -> str:
    """The address of a page as seen from another, both named as in ``_toc.yml``."""
    return relative_uri(f"{here}.html", f"{page}.html")


class Chapters(SphinxDirective):
    """Draws the table."""

    def run(self) -> list[nodes.Node]:
        box = nodes.container(classes=["chapters"])
        for part in parts():
            box += nodes.rubric("", part["title"], classes=["chapters-part"])
            items = nodes.bullet_list(classes=["chapters-list"])
            items += list(self._items(part))
            box += items
        return [box]

    def _items(self, part: dict) -> Iterator[nodes.list_item]:
        for chapter in part["chapters"]:
            document = f"notebooks/{chapter['name']}"
            written = document in self.env.found_docs
            paragraph = nodes.paragraph()
            paragraph += nodes.inline(
                "", number(chapter["name"]), classes=["chapter-number"]
            )
            paragraph += nodes.Text(" ")
            title = nodes.inline("", chapter["title"], classes=["chapter-title"])
            docname = self.env.docname
            paragraph += link(docname, document, title) if written else title
            paragraph += nodes.Text(" ")
            paragraph += nodes.inline(
                "", chapter["question"], classes=["chapter-question"]
            )
            state = "written" if written else "planned"
            yield nodes.list_item("", paragraph, classes=[state])


def link(docname: str, document: str, title: nodes.inline) -> pending_xref:
    """A link from one page to another, by these words."""
    return pending_xref(
        "",
        title,
        refdomain="std",
        reftype="doc",
        reftarget=f"/{document}",
        refdoc=docname,
        refexplicit=True,
        refwarn=True,
    )


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("chapters", Chapters)
