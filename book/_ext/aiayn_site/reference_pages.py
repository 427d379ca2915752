"""The directives ``{discrepancies}`` and ``{readers-questions}``, drawn from data.

Sphinx knows which records and notebooks a page is drawn from, for the directives note
them. What many pages share, such as the glossary or these extensions, it learns here:
all pages are read anew when one of these files changes.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_book.paper import DISCREPANCIES, Discrepancy
from aiayn_site.chapters import link, number

BOOK = Path(__file__).resolve().parents[2]
QUESTIONS = BOOK / "data" / "questions.yml"
CHAPTERS = BOOK / "data" / "chapters.yml"
SHARED = (
    "_config.yml",
    "benchmarks/*.py",  # deeper lie the environments of the peers too
    "benchmarks/peers/*.py",
    "book/**/*.yml",
    "book/_ext/aiayn_site/*.html",
    "book/_ext/aiayn_site/*.js",
    "book/_ext/aiayn_site/*.py",
    "src/**/*.py",
)

KINDS = {
    "versions": "Between the paper's versions",
    "text": "Within the text",
    "code": "Between the text and the authors' code",
}


class PageOfSections(SphinxDirective):
    """What the directives of this module have in common: sections and links."""

    def section(self, title: str, *content: nodes.Node) -> nodes.section:
        """A section that the page's own table of contents will list."""
        section = nodes.section("", nodes.title("", title))
        section["names"].append(nodes.fully_normalize_name(title))
        self.state.document.note_implicit_target(section, section)
        section += list(content)
        return section

    def title(self, name: str) -> str:
        """How a chapter is called in running text."""
        chapter = f"Chapter {number(name)}, " if number(name) else ""
        return f"{chapter}{titles()[name]}"

    def place(self, where: str, words: str = "") -> pending_xref:
        """A link to a notebook or, after a hash, to a heading in it, by words or title.

        A name with a folder is that of a page, such as ``book/related-readings``.
        """
        name, _, heading = where.partition("#")
        name = name if "/" in name else f"notebooks/{name}"
        # MyST resolves it, and complains of a heading that is not there.
        return pending_xref(
            "",
            nodes.inline("", words),
            refdomain="doc",
            reftype="myst",
            reftarget=name,
            reftargetid=heading or None,
            refdoc=self.env.docname,
            refexplicit=bool(words),
        )

    def chapter(self, name: str) -> nodes.Node:
        """A chapter's title: a link if it is written, else marked as to come."""
        title = self.title(name)
        document = f"notebooks/{name}"
        if document not in self.env.found_docs:
            return nodes.emphasis("", f"{title} (to come)")
        return link(self.env.docname, document, nodes.inline("", title))


class Discrepancies(PageOfSections):
    """The disagreements, grouped by what disagrees."""

    def run(self) -> list[nodes.Node]:
        return [
            self.section(title, *map(self._one, of_kind(kind)))
            for kind, title in KINDS.items()
        ]

    def _one(self, found: Discrepancy) -> nodes.section:
        evidence, _ = self.parse_inline(f"Look it up in {found.evidence}. More in ")
        body = nodes.paragraph("", found.text)
        where = (self.chapter(found.chapter), nodes.Text("."))
        note = nodes.paragraph("", "", *evidence, *where)
        note["classes"].append("ledger-note")
        section = nodes.section("", nodes.title("", found.title), body, note)
        section["ids"].append(found.id)
        self.state.document.note_explicit_target(section)
        return section


class ReadersQuestions(PageOfSections):
    """The questions, in the order of the chapters that answer them."""

    def run(self) -> list[nodes.Node]:
        asked = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
        return [self._chapter(name, questions) for name, questions in asked.items()]

    def _chapter(self, name: str, questions: list[dict]) -> nodes.section:
        items = nodes.bullet_list()
        for question in questions:
            items += self._one(question)
        where = nodes.paragraph("", "", self.chapter(name))
        return self.section(titles()[name], where, items)

    def _one(self, question: dict) -> nodes.list_item:
        """The question, its answer in one sentence, and a link to what shows it."""
        asked = nodes.paragraph("", "", nodes.strong("", question["ask"]))
        answer, _ = self.parse_inline(question["answer"])
        link = self.place(question["where"])
        answered = nodes.paragraph("", "", *answer, nodes.Text(" → "), link)
        return nodes.list_item("", asked, answered)


def of_kind(kind: str) -> Iterator[Discrepancy]:
    """The discrepancies of one kind, in the order of the data."""
    return (found for found in DISCREPANCIES if found.between == kind)


def titles() -> dict[str, str]:
    """Each chapter's title by the name of its notebook."""
    parts = yaml.safe_load(CHAPTERS.read_text(encoding="utf-8"))
    return {c["name"]: c["title"] for part in parts for c in part["chapters"]}


def version_of_shared(root: Path = BOOK.parent) -> int:
    """A number that changes with any of the files that many pages are drawn from."""
    total = hashlib.sha256()
    for path in sorted(path for kind in SHARED for path in root.glob(kind)):
        total.update(path.relative_to(root).as_posix().encode())
        total.update(path.read_bytes())
    return int.from_bytes(total.digest()[:8])


def setup(app: Sphinx) -> dict:
    """Register the directives; with another version, Sphinx reads all pages anew."""
    app.add_directive("discrepancies", Discrepancies)
    app.add_directive("readers-questions", ReadersQuestions)
    return {"env_version": version_of_shared()}
