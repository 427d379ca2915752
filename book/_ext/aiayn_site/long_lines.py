"""Outputs that print longer lines than a page shows are wrapped, not scrolled.

A sentence or a list that a cell prints is read to its end; what is set in columns stays
as it is, for there a broken line would be worse than one to be scrolled.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

LONGEST = 79  # characters that fit the page's measure
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


def setup(app: Sphinx) -> dict:
    """Connect to the build."""
    app.connect("doctree-resolved", mark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
