"""What a notebook needs and its page does not is left out of the page.

- Marks in the code: titles for Colab's forms, marks of solutions, of parity tests.
- The code of a figure, a claim or a quick check whose cell is hidden: the page shows
  what it made, and the notebook has the code.
- What the set-up cell prints: the machine, and the run time, which is under the title.

Figures and claims can be linked to by their anchors (``#figure-3-1``), and a claim's
link to the ledger leads to the page that was built with it.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from aiayn_book.html import site_address

MARK = re.compile(
    r"^[ \t]*(?:# @title\b.*|# parity:.*|### (?:BEGIN|END) SOLUTION)\n?", re.MULTILINE
)
SET_UP = "# @title Set-up\n"
SPEAKS_FOR_ITSELF = re.compile(r'class="aiayn-(?:figure|claim|box aiayn-quiz)\b')
ANCHOR = re.compile(r'\bid="((?:figure|claim)-[\w-]+)"')


class WithoutWorkshop(SphinxTransform):
    """Tidy the cells of a notebook's page."""

    default_priority = 410

    def apply(self, **_: object) -> None:
        for cell in list(self.document.findall(is_cell)):
            self._tidy(cell)

    def _tidy(self, cell: nodes.container) -> None:
        source, output = part(cell, "source"), part(cell, "output")
        html = "".join(raw.astext() for raw in cell.findall(nodes.raw))
        if source is None:
            return
        code = source.astext()
        for block in list(source.findall(nodes.literal_block)):
            text = MARK.sub("", block.rawsource or block.astext()).strip("\n")
            block.rawsource, block.children = text, []
            block += nodes.Text(text)
        if code.startswith(SET_UP) and output is not None:
            cell.remove(output)
        elif cell.get("hide_mode") == "input" and SPEAKS_FOR_ITSELF.search(html):
            cell.remove(source)
        self._make_linkable(cell, html)

    def _make_linkable(self, cell: nodes.container, html: str) -> None:
        """Let links of MyST find anchors, as they find headings."""
        slugs = getattr(self.document, "myst_slugs", None)
        if slugs is not None:
            for anchor in ANCHOR.findall(html):
                title = anchor.capitalize().replace("-", " ", 1).replace("-", ".")
                slugs[anchor] = (cell.line, anchor, title)
        for raw in cell.findall(nodes.raw):
            lead_here(raw)


def lead_here(raw: nodes.raw) -> None:
    """Let links to the published book lead to the pages beside this one."""
    away, here = f'href="{site_address()}book/', 'href="../book/'
    if away in raw.astext() and away != here:
        text = raw.astext().replace(away, here)
        raw.rawsource, raw.children = text, [nodes.Text(text)]


def is_cell(node: nodes.Node) -> bool:
    """Whether it is a cell of code."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def part(cell: nodes.container, name: str) -> nodes.Element | None:
    """What the cell says (``source``) or shows (``output``)."""
    wanted = f"cell_code_{name}"
    return next((c for c in cell.children if c.get("nb_element") == wanted), None)


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_transform(WithoutWorkshop)
