"""The directives of the page of run times: measured on the machine that built the book.

``{chapter-times}`` shows what each notebook took when it was executed for this build,
``{machine}`` on what. MyST-NB's own table names files for chapters, and says when each
was executed, which no two builds have in common.
"""

from importlib.metadata import version

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from aiayn_book.setup import machine

SHOWN_VERSIONS = ("numpy", "altair", "matplotlib", "jupyter-book", "sphinx")
UNKNOWN = "–"


class measured(nodes.General, nodes.Element):  # noqa: N801 (docutils' way)
    """Stands for a table until all notebooks have been read."""


class MeasuredDirective(SphinxDirective):
    """Leaves a placeholder named after the directive."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["shows-measurements"] = True
        return [measured(what=self.name)]


class FillIn(SphinxPostTransform):
    """Replace the placeholders when everything has been read."""

    default_priority = 8  # before references are resolved

    def run(self, **_: object) -> None:
        for node in list(self.document.findall(measured)):
            chapters = node["what"] == "chapter-times"
            new = chapter_table(self.env) if chapters else machine_paragraph()
            node.replace_self(new)


def chapter_table(env) -> nodes.table:
    """Each executed notebook's run time, in the order of the book."""
    seconds = {
        name: data["exec_data"]["runtime"]
        for name, data in NbMetadataCollector.get_doc_data(env).items()
        if data.get("exec_data")
    }
    rows = [
        [env.titles[name].astext(), as_time(seconds[name])] for name in sorted(seconds)
    ]
    rows += [["all", as_time(sum(filter(None, seconds.values())))]] if rows else []
    return table(["chapter", "run time"], rows)


def machine_paragraph() -> nodes.paragraph:
    """Processor, cores and the versions that matter."""
    parts = [f"{name} {version(name)}" for name in SHOWN_VERSIONS]
    return nodes.paragraph("", " · ".join([machine(), *parts]))


def as_time(seconds: float | None) -> str:
    """Seconds as people read them: ``4.2 s``, ``3 min 5 s``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 100:
        return f"{seconds:.1f}\N{NO-BREAK SPACE}s"
    minutes, rest = divmod(round(seconds), 60)  # rounded first: no 1 min 60 s
    words = f"{minutes} min {rest} s"
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def table(header: list[str], rows: list[list[str]], headings: int = 1) -> nodes.table:
    """A plain table; what stands first in a row, in so many columns, is its heading."""
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=1, stub=1) for _ in header[:headings]]
    group += [nodes.colspec(colwidth=1) for _ in header[headings:]]
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(texts: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", t)) for t in texts))


def pages_to_write_again(app: Sphinx, env) -> list[str]:
    """The measurements may be new although the page's source is not."""
    return [name for name, data in env.metadata.items() if "shows-measurements" in data]


def setup(app: Sphinx) -> None:
    """Register the directives and what fills them in."""
    app.add_node(measured)
    for name in ("chapter-times", "machine"):
        app.add_directive(name, MeasuredDirective)
    app.add_post_transform(FillIn)
    app.connect("env-updated", pages_to_write_again)
