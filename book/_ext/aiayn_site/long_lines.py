"""Outputs that print longer lines than a page shows are wrapped, not scrolled.

A sentence or a list that a cell prints is read to its end; what is set in columns stays
as it is, for there a broken line would be worse than one to be scrolled. A cell of a
table that holds a sentence gets a class, too: on a phone it stays wide enough to be
read, and the table scrolls. Where two columns hold sentences, they stand below each
other there.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

LONGEST = 79  # characters that fit the page's measure
LONG_TEXT = 60  # characters; of a table's cell
FEW = 2  # columns; they share a phone's screen
TAG = re.compile(r"<[^>]*>")
COLUMNS = re.compile(r"\S {3,}\S")  # a gap inside a line


def is_wrapped(text: str) -> bool:
    """Whether lines are too long, and none of those is set in columns."""
    long = [line for line in text.splitlines() if len(line) > LONGEST]
    return bool(long) and not any(COLUMNS.search(line) for line in long)


def mark(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Give those outputs the class that the style sheet knows."""
    for cell in doctree.findall(nodes.container):
        if "cell_output" not in cell["classes"]:
            continue
        for block in cell.findall(nodes.literal_block):
            if is_wrapped(block.astext()):
                block["classes"].append("long-lines")
    for group in doctree.findall(nodes.tgroup):
        rows = [[e for e in row if _is_long(e)] for row in group.findall(nodes.row)]
        if group["cols"] == FEW and any(len(long) == FEW for long in rows):
            group.parent["classes"].append("stacks")
        elif group["cols"] > FEW:
            for entry in (entry for long in rows for entry in long):
                entry["classes"].append("long-text")


def _is_long(entry: nodes.entry) -> bool:
    """Whether it shows so much text; the tags of HTML are not shown."""
    parts = (
        TAG.sub("", part) if isinstance(part.parent, nodes.raw) else part
        for part in entry.findall(nodes.Text)
    )
    return sum(map(len, parts)) > LONG_TEXT


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    app.connect("doctree-resolved", mark)
