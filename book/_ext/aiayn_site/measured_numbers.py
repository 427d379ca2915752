"""The directive ``{measured-numbers}``: the book in figures that the build counted."""

import ast
from collections import Counter
from datetime import datetime
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from aiayn_book.claims import VERDICTS, claims
from aiayn_site.chapters import from_page
from aiayn_site.ledger import all_records, contradictions
from aiayn_site.run_times import as_time

TESTS = Path(__file__).resolve().parents[3] / "tests"


class numbers(nodes.General, nodes.Element):  # noqa: N801 (docutils' way)
    """Stands for the figures until all notebooks have been read."""


class MeasuredNumbers(SphinxDirective):
    """Leaves a placeholder."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["shows-numbers"] = True
        return [numbers()]


class FillIn(SphinxPostTransform):
    """Replace the placeholder when everything has been read."""

    default_priority = 8  # before references are resolved

    def run(self, **_: object) -> None:
        for node in list(self.document.findall(numbers)):
            items = nodes.bullet_list(classes=["measured-numbers"])
            for figure, words, rest, target in found(self.env):
                uri = from_page(self.env.docname, target)
                paragraph = nodes.paragraph("", "", nodes.strong("", figure))
                paragraph += nodes.Text(" ")
                paragraph += nodes.reference("", words, refuri=uri, internal=True)
                paragraph += nodes.Text(rest)
                items += nodes.list_item("", paragraph)
            node.replace_self(items)


def found(env: BuildEnvironment) -> list[tuple[str, str, str, str]]:
    """Each figure, what it counts, in more detail, and the page that has it all."""
    chapters = [name for name in env.found_docs if name.startswith("notebooks/")]
    verdicts = {record.claim_id: record.verdict for record in all_records(env)}
    counts = Counter(verdicts.get(name, "open") for name in claims())
    by_what = {"contradicted": f" ({contradictions(all_records(env))})"}
    settled = ", ".join(
        f"{counts[v]} {v}{by_what.get(v, '')}" for v in VERDICTS if counts[v]
    )
    figures = [
        (str(len(chapters)), "notebooks", ", each of which runs", "book/run-times"),
        (str(len(claims())), "claims of the paper", f": {settled}", "book/ledger"),
        (
            f"{count_tests():,}",
            "tests",
            ", many of them on all chapters or pages",
            "book/run-times",
        ),
    ]
    if runs := executions(env):
        last = datetime.fromtimestamp(max(when for when, _ in runs))
        figures.append(
            (
                f"{last.day} {last:%B %Y}",
                "last executed",
                f", in {as_time(sum(s for _, s in runs))} on one thread",
                "book/run-times",
            )
        )
    return figures


def executions(env: BuildEnvironment) -> list[tuple[float, float]]:
    """When each notebook was executed and how many seconds it took.

    The cache keeps UTC without saying so, and MyST-NB takes it for local time: as local
    time it is UTC again.
    """
    data = (d.get("exec_data") for d in NbMetadataCollector.get_doc_data(env).values())
    return [(d["mtime"], d["runtime"]) for d in data if d and d["runtime"]]


def count_tests() -> int:
    """How many test functions the tests' modules define."""
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def pages_to_write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The figures may be new although the page's source is not."""
    return [name for name, data in env.metadata.items() if "shows-numbers" in data]


def setup(app: Sphinx) -> None:
    """Register the directive and what fills it in."""
    app.add_node(numbers)
    app.add_directive("measured-numbers", MeasuredNumbers)
    app.add_post_transform(FillIn)
    app.connect("env-updated", pages_to_write_again)
