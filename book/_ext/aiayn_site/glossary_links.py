"""The first use of a glossary's term in a chapter leads to the glossary, quietly.

Only words that mean one thing are linked: those of more than one word or with a hyphen,
and others that the glossary marks with ``link: true``. *Key* or *head* may be any word
of English, and a wrong link is worse than none. A chapter that sets a term in bold
explains it there itself, as does the one to which the glossary leads.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from aiayn_site.callouts import callout, callout_lead
from aiayn_site.glossary_page import terms

# Where a word stands for itself, is a link already, or is somebody else's.
APART = (
    nodes.title,
    nodes.reference,
    pending_xref,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.raw,
    nodes.table,
    nodes.block_quote,
    callout_lead,
)


def linkable() -> dict[str, str]:
    """Each term that means one thing, and its chapter."""
    found = {}
    for names, entry in terms().items():
        chapter = entry["where"].partition("#")[0]
        for name in names.split(", "):
            if re.search(r"[ -]", name) or entry.get("link"):
                found[name] = chapter
    return found


def pattern(names: list[str]) -> re.Pattern[str]:
    """Any of the names as a whole word, in the plural too; the longest that fits."""
    longest_first = sorted(names, key=len, reverse=True)
    ways = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in longest_first)
    return re.compile(rf"(?<![\w-])(?:{ways})(?:s|es)?(?![\w-])", re.IGNORECASE)


def name_of(written: str, names: list[str]) -> str:
    """The term that is written there, in whatever letters, or in the plural."""
    plain = " ".join(written.lower().split())
    forms = (plain, plain.removesuffix("s"), plain.removesuffix("es"))
    return next(name for name in names if name.lower() in forms)


class GlossaryLinks(SphinxTransform):
    """Link each term once, where a chapter first uses it."""

    default_priority = 450  # the callouts are made

    def apply(self, **_: object) -> None:
        page = self.env.docname
        if not page.startswith("notebooks/"):
            return
        names = [
            name
            for name, chapter in linkable().items()
            if f"notebooks/{chapter}" != page
        ]
        places = pattern(names)
        left = set(names)
        for text in list(_running_text(self.document)):
            self._link(text, places, names, left)

    def _link(self, text: nodes.Text, places, names: list[str], left: set[str]) -> None:
        """Link the terms in one text that are left; those found are left no more."""
        parts: list[nodes.Node] = []
        done = 0
        for found in places.finditer(text):
            name = name_of(found[0], names)
            if name not in left:
                continue
            left.remove(name)
            if isinstance(text.parent, nodes.strong):
                continue
            parts += [nodes.Text(text[done : found.start()]), self._to(name, found[0])]
            done = found.end()
        if parts:
            rest = [*parts, nodes.Text(text[done:])]
            text.parent.replace(text, [part for part in rest if part.astext()])

    def _to(self, name: str, words: str) -> pending_xref:
        """A link to a term, like that of the role ``{term}``."""
        link = pending_xref(
            "", refdomain="std", reftype="term", reftarget=name, refexplicit=True,
            refdoc=self.env.docname, refwarn=True,
        )  # fmt: skip
        link += nodes.inline("", words, classes=["glossary-term"])
        return link


def _running_text(document: nodes.document) -> Iterator[nodes.Text]:
    """The texts of ordinary paragraphs and lists, in order."""
    for text in document.findall(nodes.Text):
        above, node = [], text.parent
        while node is not None:
            above.append(node)
            node = node.parent
        if not any(isinstance(node, nodes.paragraph) for node in above):
            continue
        if any(isinstance(node, APART) or _is_others(node) for node in above):
            continue
        yield text


def _is_others(node: nodes.Element) -> bool:
    """What a cell printed, or a quotation of the paper."""
    quoted = isinstance(node, callout) and node["kind"] == "paper"
    return quoted or "cell_output" in node.get("classes", [])


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_transform(GlossaryLinks)
