"""The directive ``{ledger}``: the paper's claims, each with the verdict and its cell.

Executed notebooks carry their settlements in the outputs. They are collected here while
the pages are read; where they disagree with the data file, the build warns, and strict
builds fail.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from aiayn_book.claims import VERDICTS, Claim, claims, in_words
from aiayn_book.ledger import Record, problems, records_in_html
from aiayn_site.chapters import called, from_page

LOG = logging.getLogger(__name__)

# A sign beside the words, so that the eye finds them; colour is only a third means.
SIGNS = {
    "defined": "≡",
    "derived": "✓",
    "consistent with the paper's own figures": "✓",
    "reproduced": "✓",
    "reproduced at small scale": "✓",
    "not reproduced at small scale": "–",
    "contradicted": "✗",
    "reported by the paper only": "–",
    "open": "○",
}

# The sections of the page, by how the claims' sections begin.
GROUPS = {
    "Abstract": ("abstract",),
    "§1 Introduction": ("1",),
    "§2 Background": ("2",),
    "§3 Model architecture": ("3",),
    "§4 Why self-attention": ("4", "table 1"),
    "§5 Training": ("5",),
    "§6 Results": ("6", "table 3"),
    "§7 Conclusion": ("7",),
    "Appendix": ("figure",),
}


class ledger_part(nodes.General, nodes.Element):  # noqa: N801 (docutils' way)
    """Stands for the summary or for one table until all notebooks have been read."""


class Ledger(SphinxDirective):
    """Leaves the page's sections, with a placeholder in each."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["shows-ledger"] = True
        made: list[nodes.Node] = [ledger_part(group="")]
        for title in GROUPS:
            section = nodes.section("", nodes.title("", title))
            section["names"].append(nodes.fully_normalize_name(title))
            self.state.document.note_implicit_target(section, section)
            section += ledger_part(group=title)
            made.append(section)
        return made


class FillIn(SphinxPostTransform):
    """Replace the placeholders when every notebook's outputs are known."""

    default_priority = 8

    def run(self, **_: object) -> None:
        for node in list(self.document.findall(ledger_part)):
            group = node["group"]
            new = self._table(group) if group else self._summary()
            node.replace_self(new)

    def _summary(self) -> nodes.bullet_list:
        found = {record.claim_id: record.verdict for record in all_records(self.env)}
        counts = Counter(found.get(name, "open") for name in claims())
        items = nodes.bullet_list(classes=["ledger-summary"])
        for verdict in VERDICTS:
            count, shown = nodes.strong("", str(counts[verdict])), label(verdict)
            if counts[verdict]:  # the address holds the page's filters
                shown = nodes.reference("", "", shown, refuri=asks_for(verdict))
            paragraph = paragraph_of(count, shown)
            if verdict == "contradicted" and counts[verdict]:
                paragraph += nodes.Text(f" ({contradictions(all_records(self.env))})")
            items += nodes.list_item("", paragraph)
        return items

    def _table(self, group: str) -> nodes.table:
        records = {record.claim_id: record for record in all_records(self.env)}
        rows = [
            nodes.row("", claim_entry(claim), self._verdict(claim, records.get(name)))
            for name, claim in claims().items()
            if claim.section.startswith(GROUPS[group])
        ]
        columns = nodes.tgroup(cols=2)
        columns += [nodes.colspec(colwidth=width) for width in (48, 52)]
        head = [nodes.entry("", nodes.paragraph("", t)) for t in ("claim", "verdict")]
        columns += nodes.thead("", nodes.row("", *head))
        columns += nodes.tbody("", *rows)
        return nodes.table("", columns, classes=["ledger"])

    def _verdict(self, claim: Claim, record: Record | None) -> nodes.entry:
        """The verdict as a link to its cell, or the chapter that is to settle it."""
        chapter = called(claim.chapter)
        if record is None:
            where = nodes.inline("", chapter, classes=["ledger-note"])
            return nodes.entry("", paragraph_of(label("open"), where))
        document = f"notebooks/{record.chapter}"
        uri = from_page(self.env.docname, document)
        link = nodes.reference(
            "", "", label(record.verdict), refuri=f"{uri}#{claim.anchor}", internal=True
        )
        notes = [f"{chapter}: {record.measured}"]
        if record.verdict == "defined" and claim.code:
            notes.insert(0, f"our code: {claim.code}")
        if record.sample:
            if record.expected:
                notes.append(f"expected: {record.expected}")
            notes.append(f"sample: {record.sample}")
        if record.detects:
            notes.append(f"could have detected: {record.detects}")
        entry = paragraph_of(link, note(notes[0]))
        by_what = in_words(record.verdict, record.scale).removeprefix(record.verdict)
        if by_what:
            entry.insert(1, nodes.inline("", by_what, classes=["verdict-scale"]))
        for words in notes[1:]:
            entry += note(words)
        return nodes.entry("", entry)


def asks_for(verdict: str) -> str:
    """The end of an address at which the page shows one verdict."""
    return f"?verdict={quote(verdict)}"


def label(verdict: str) -> nodes.inline:
    """A verdict with its sign."""
    name = "verdict-" + verdict.replace(" ", "-").replace("'", "")
    return nodes.inline("", f"{SIGNS[verdict]} {verdict}", classes=["verdict", name])


def note(words: str) -> nodes.inline:
    """A line in small print below the verdict."""
    return nodes.inline("", words, classes=["ledger-note"])


def contradictions(records: Iterable[Record]) -> str:
    """What contradicts the claims that are, and how many each: a count needs both."""
    found = Counter(
        in_words(record.verdict, record.scale).removeprefix("contradicted ")
        for record in records
        if record.verdict == "contradicted" and record.claim_id in claims()
    )
    return ", ".join(f"{count} {by_what}" for by_what, count in sorted(found.items()))


def claim_entry(claim: Claim) -> nodes.entry:
    """What the paper claims, and where."""
    place = note(f"{claim.place} · {claim.kind}")
    entry = nodes.entry("", paragraph_of(nodes.Text(claim.text), place))
    entry["ids"] = [f"ledger-{claim.anchor}"]
    return entry


def paragraph_of(first: nodes.Node, second: nodes.Node) -> nodes.paragraph:
    """Two inline pieces; the style sheet puts the second on a line of its own."""
    return nodes.paragraph("", "", first, nodes.Text(" "), second)


def settled(env: BuildEnvironment) -> dict[str, list[Record]]:
    """What each notebook settles, by document name."""
    if not hasattr(env, "aiayn_settled"):
        env.aiayn_settled = {}
    return env.aiayn_settled


def all_records(env: BuildEnvironment) -> Iterator[Record]:
    """All settlements, in the order of the chapters."""
    for name in sorted(settled(env)):
        yield from settled(env)[name]


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Note what the page that was just read settles."""
    name = app.env.docname
    if not name.startswith("notebooks/"):
        return
    settled(app.env)[name] = [
        record
        for node in doctree.findall(nodes.raw)
        for record in records_in_html(node.astext(), name.removeprefix("notebooks/"))
    ]


def forget(app: Sphinx, env: BuildEnvironment, name: str) -> None:
    """A page is read again or is gone."""
    settled(env).pop(name, None)


def merge(app: Sphinx, env: BuildEnvironment, names: set, other) -> None:
    """Take over what a parallel reader found."""
    settled(env).update({n: r for n, r in settled(other).items() if n in names})


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Warn where notebooks and data file disagree; write the ledger again."""
    chapters = [name.removeprefix("notebooks/") for name in settled(env)]
    for problem in problems(all_records(env), chapters):
        LOG.warning(problem, type="ledger")
    return [name for name, data in env.metadata.items() if "shows-ledger" in data]


def add_filter(app: Sphinx, page: str, template, context: dict, doctree) -> None:
    """The script of the filters, on the page that shows claims."""
    if "shows-ledger" in app.env.metadata.get(page, {}):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Register the directive, and collect settlements while pages are read."""
    app.add_node(ledger_part)
    app.add_directive("ledger", Ledger)
    app.add_post_transform(FillIn)
    app.add_css_file("ledger.css")
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", check)
    app.connect("html-page-context", add_filter)
