"""Every page's description, for search engines, link previews and the pages beside it.

It is the page's first paragraph of running text.
"""

from collections.abc import Callable
from html import escape

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

LONGEST = 160  # characters; search results show no more


def describe(doctree: nodes.document) -> str:
    """The first paragraph of running text, cut at a word, or an empty string."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.entry):
            continue
        text = " ".join(_without_citations(paragraph).split())
        only_links = all(isinstance(c, nodes.reference) for c in paragraph.children)
        if len(text) < 40 or only_links:
            continue
        if len(text) <= LONGEST:
            return text
        return text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return ""


def _without_citations(paragraph: nodes.paragraph) -> str:
    """Its words; a citation is still its key while a page is read."""
    copy = paragraph.deepcopy()
    for reference in list(copy.findall(pending_xref)):
        if reference.get("refdomain") == "cite":
            reference.parent.remove(reference)
    return copy.astext()


def note_description(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what the page that was just read says of itself."""
    app.env.metadata[app.env.docname]["description"] = describe(doctree)


def description_of(env: BuildEnvironment, page: str) -> str:
    """A page's description, or an empty string."""
    return env.metadata[page].get("description", "") if page in env.metadata else ""


def add_description(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Add the meta tag, unless the page brings its own."""
    tags = context.get("metatags", "")
    if doctree is not None and 'name="description"' not in tags:
        text = description_of(app.env, page) or context.get("title", "")
        tag = f'<meta name="description" content="{escape(text)}" />'
        context["metatags"] = f"{tags}\n{tag}"


def takes_notes(app: Sphinx, note: Callable, use: Callable) -> dict:
    """Connect an extension that notes something of each page and uses it later."""
    app.connect("doctree-read", note)
    app.connect("html-page-context", use)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def setup(app: Sphinx) -> dict:
    """Connect to the build."""
    return takes_notes(app, note_description, add_description)
