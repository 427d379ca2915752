"""Every page's description, for search engines, link previews and the pages beside it.

It is the page's first paragraph of running text. The description that
sphinxext-opengraph makes of a chapter begins with the words 'Open in Colab'.
"""

import re
from collections.abc import Callable
from html import escape

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

LONGEST = 160  # characters; search results show no more
# What may stand low or high beside a letter, as far as there are such characters.
SCRIPTS = {
    "_": str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"),
    "^": str.maketrans("0123456789inT", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁱⁿᵀ"),
}


def describe(doctree: nodes.document) -> str:
    """The first paragraph of running text, cut at a word, or an empty string."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.entry):
            continue
        text = " ".join(_words(paragraph).split()).replace("….", "…")
        only_links = all(isinstance(c, nodes.reference) for c in paragraph.children)
        if len(text) < 40 or only_links:
            continue
        if len(text) <= LONGEST:
            return text
        return text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return ""


def _words(paragraph: nodes.paragraph) -> str:
    """What it says, without citations: they are still keys while a page is read."""
    copy = paragraph.deepcopy()
    for reference in list(copy.findall(pending_xref)):
        if reference.get("refdomain") == "cite":
            reference.parent.remove(reference)
    for formula in list(copy.findall(nodes.math)):
        formula.replace_self(nodes.Text(in_a_line(formula.astext())))
    return copy.astext()


def in_a_line(tex: str) -> str:
    """A small formula as plain text: √dₖ, n²."""

    def small(found: re.Match) -> str:
        return (found[2] or found[3]).translate(SCRIPTS[found[1]])

    text = re.sub(r"([_^])(?:\{(\w+)\}|(\w))", small, tex.replace(r"\sqrt", "√"))
    return re.sub("[{}]", "", text)


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


def takes_notes(app: Sphinx, note: Callable, use: Callable) -> None:
    """Connect an extension that notes something of each page and uses it later."""
    app.connect("doctree-read", note)
    app.connect("html-page-context", use)


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    takes_notes(app, note_description, add_description)
