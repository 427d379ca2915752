"""The directive ``{audit}``: what ``make audit`` last found (book/data/audit.json)."""

import json
import statistics
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_site.run_times import table

RECORD = Path(__file__).resolve().parents[2] / "data" / "audit.json"
ASKED = {  # of Lighthouse, by category
    "accessibility": "100",
    "best-practices": "100",
    "seo": "100",
    "performance": "at least 90",
}


class Audit(SphinxDirective):
    """Draws the table and says when and where it was measured."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD))
        if not RECORD.exists():
            return [nodes.paragraph("", "Not audited yet: make audit does it.")]
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        header = ["", "asked", "found"]
        return [table(header, rows(record)), closing(record)]


def rows(record: dict[str, Any]) -> list[list[str]]:
    """What is asked of the site, and what was found."""
    pages = record["pages"]
    heaviest = max(pages, key=lambda page: pages[page]["bytes"])

    def total(what: str) -> str:
        return str(sum(page[what] for page in pages.values()))

    looks = " and ".join(f"{width} px {theme}" for width, theme in record["looks"])
    made = [
        [
            f"axe {record['axe']}, levels A and AA, {len(pages)} pages, {looks}",
            "no violation",
            total("violations"),
        ],
        ["internal links and anchors that lead nowhere", "0", total("broken_links")],
        ["requests to another host", "0", total("elsewhere")],
        [
            f"heaviest page on a first visit, compressed: {heaviest}",
            f"at most {_megabytes(record['limit_bytes'])}",
            _megabytes(pages[heaviest]["bytes"]),
        ],
    ]
    for one in record["translation"]:
        factor = one["slowed"]
        slowed = f", the processor slowed {factor}-fold" if factor > 1 else ""
        found = 1000 * statistics.median(one["seconds"])
        made.append(
            [
                f"ten words translated, once the model is there{slowed}",
                f"at most {1000 * one['most']:,.0f} ms",
                f"{found:,.0f} ms, the median of {len(one['seconds'])}",
            ]
        )
    measured = record["lighthouse"]
    for name, asked in ASKED.items() if measured else ():
        runs = measured["scores"][name]
        each = ", ".join(map(str, runs)) if len(set(runs)) > 1 else "each the same"
        made.append(
            [
                f"Lighthouse {measured['version']}, phone, {measured['page']}: {name}",
                asked,
                f"{measured['median'][name]:.0f}, the median of {len(runs)} ({each})",
            ]
        )
    return made


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


def closing(record: dict[str, Any]) -> nodes.paragraph:
    """When, on what, and by which command."""
    words, measured = _made(record), _made(record | (record["lighthouse"] or {}))
    if measured != words:
        words += f"; Lighthouse: {measured}"
    command = nodes.literal("", "make audit")
    return nodes.paragraph("", "", nodes.Text(f"{words}. Command: "), command)


def _made(record: dict[str, Any]) -> str:
    machine = record["machine"]["processor"]
    return f"{record['date']}, {machine}, commit {record['commit'][:10]}"


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("audit", Audit)
