"""Block quotes that open with a bold lead word become callouts.

A notebook must read well in Colab and on a code host, which know no directives, so a
callout is written as a quote there::

    > **Exercise 3.2 — temperature.** *code · 10 minutes* Scale the scores by …

The lead's first word chooses the kind. A number gives the callout an anchor
(``#exercise-3-2``). Solutions are folded.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxTranslator

KINDS = {
    "paper": "paper",
    "definition": "definition",
    "guess": "guess",
    "deviation": "deviation",
    "pitfall": "pitfall",
    "exercise": "exercise",
    "solution": "solution",
    "take-away": "take-away",
    "take-aways": "take-away",
}
LABEL = re.compile(
    r"(?:from )?(?:the )?(?P<kind>[a-z-]+)(?: first)?"
    r"(?: (?:[A-Z]\.)?\d+[a-z]?(?:\.\d+)*)?(?:,? §.*)?",
    re.IGNORECASE,
)
BETWEEN_LABEL_AND_TITLE = re.compile(r"\s*[—–:.]\s+")
NUMBER = re.compile(r"(?:[A-Z]|\d+[a-z]?)(?:\.\d+)+")


class callout(nodes.General, nodes.Element):  # noqa: N801 (docutils' way)
    """A boxed remark; its first child is a `callout_lead`."""


class callout_lead(nodes.Part, nodes.TextElement):  # noqa: N801
    """The kind of callout and, if it has one, its title."""


class Callouts(SphinxTransform):
    """Turn each quote with a known lead into a `callout`."""

    default_priority = 400

    def apply(self, **_: object) -> None:
        for quote in list(self.document.findall(nodes.block_quote)):
            if box := make_callout(quote):
                quote.replace_self(box)
                self._make_linkable(box)

    def _make_linkable(self, box: callout) -> None:
        """Let links of MyST find it by its anchor, as they find headings."""
        slugs = getattr(self.document, "myst_slugs", None)
        if slugs is not None:
            title = box.children[0].astext()
            slugs |= {anchor: (box.line, anchor, title) for anchor in box["ids"]}


def make_callout(quote: nodes.block_quote) -> callout | None:
    """The callout that a quote stands for, or None where it is just a quote."""
    first = quote.children[0] if quote.children else None
    if not isinstance(first, nodes.paragraph):
        return None
    # MyST opens the paragraph of a quote with an empty text node.
    content = list(first.children)
    while content and isinstance(content[0], nodes.Text) and not content[0].strip():
        content.pop(0)
    if not content or not isinstance(content[0], nodes.strong):
        return None
    lead = content[0].astext().strip().rstrip(".:")
    label, *title = BETWEEN_LABEL_AND_TITLE.split(lead, maxsplit=1)
    known = LABEL.fullmatch(label)
    kind = KINDS.get(known["kind"].lower()) if known else None
    if kind is None:
        return None
    box = callout(kind=kind, classes=["callout", f"callout-{kind}"])
    number = NUMBER.search(label)
    if number and "§" not in label:
        box["ids"].append(f"{kind}-{number.group().lower().replace('.', '-')}")
    head = callout_lead()
    head += nodes.inline("", label, classes=["callout-kind"])
    if title:
        head += nodes.Text(" ")
        head += nodes.inline("", "", *_title(content[0]), classes=["callout-title"])
    box += head
    box += _paragraph(content[1:])
    box += [child.deepcopy() for child in quote.children[1:]]
    return box


def _title(strong: nodes.strong) -> list[nodes.Node]:
    """What follows the label in the lead, with its mathematics and code if any."""
    children = [child.deepcopy() for child in strong.children]
    opening = BETWEEN_LABEL_AND_TITLE.split(children[0].astext(), maxsplit=1)[1]
    children[0] = nodes.Text(opening)
    if isinstance(children[-1], nodes.Text):
        children[-1] = nodes.Text(children[-1].astext().rstrip(".:"))
    return children


def _paragraph(content: list[nodes.Node]) -> list[nodes.paragraph]:
    """What follows the lead in its paragraph, if anything does."""
    content = [child.deepcopy() for child in content]
    if content and isinstance(content[0], nodes.Text):
        content[0] = nodes.Text(content[0].astext().lstrip(" .:—\n"))
    if not any(child.astext() for child in content):
        return []
    return [nodes.paragraph("", "", *content)]


def _open_box(self: SphinxTranslator, node: callout) -> None:
    tag = "details" if node["kind"] == "solution" else "div"
    self.body.append(self.starttag(node, tag))


def _close_box(self: SphinxTranslator, node: callout) -> None:
    self.body.append("</details>\n" if node["kind"] == "solution" else "</div>\n")


def _open_lead(self: SphinxTranslator, node: callout_lead) -> None:
    tag = "summary" if node.parent["kind"] == "solution" else "p"
    self.body.append(self.starttag(node, tag, "", CLASS="callout-lead"))


def _close_lead(self: SphinxTranslator, node: callout_lead) -> None:
    self.body.append("</summary>\n" if node.parent["kind"] == "solution" else "</p>\n")


def setup(app: Sphinx) -> None:
    """Register the transform and the two nodes."""
    app.add_node(callout, html=(_open_box, _close_box))
    app.add_node(callout_lead, html=(_open_lead, _close_lead))
    app.add_transform(Callouts)
