"""Keeps the ledger of claims in step with the notebooks that settle them.

An executed notebook carries its settlements in the outputs, as data attributes that
`aiayn_book.claims.Settlement` writes. They are read back here and compared with the
data file: an unknown claim, a verdict that differs, and a claim that no cell settles
although the file says so are each a problem in words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from aiayn_book.claims import BY_EXPERIMENT, Claim, claims


@dataclass(frozen=True)
class Record:
    """A settlement as an executed notebook shows it."""

    chapter: str  # the notebook: "04-scaling"
    claim_id: str
    verdict: str
    scale: str
    measured: str
    expected: str = ""
    sample: str = ""
    detects: str = ""


class _Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if "data-claim" in named and "data-verdict" in named:
            self.found.append(named)


def records_in_html(html: str, chapter: str) -> list[Record]:
    """The settlements in a piece of HTML, in order."""
    if "data-claim" not in html:
        return []
    collector = _Collector()
    collector.feed(html)
    return [
        Record(
            chapter=chapter,
            claim_id=named["data-claim"],
            verdict=named["data-verdict"],
            scale=named.get("data-scale", ""),
            measured=named.get("data-measured", ""),
            expected=named.get("data-expected", ""),
            sample=named.get("data-sample", ""),
            detects=named.get("data-detects", ""),
        )
        for named in collector.found
    ]


def records_in_notebook(notebook: Any, chapter: str) -> list[Record]:
    """The settlements in the outputs of an executed notebook (an nbformat node)."""
    return [
        record
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        for record in records_in_html(_html_of(output), chapter)
    ]


def _html_of(output: Any) -> str:
    html = output.get("data", {}).get("text/html", "")
    return html if isinstance(html, str) else "".join(html)


def problems(records: Iterable[Record], chapters: Iterable[str]) -> Iterator[str]:
    """Where notebooks and data file disagree, one sentence each.

    Args:
        records: all settlements found.
        chapters: the notebooks that were read; claims that belong to others are left
            alone.
    """
    seen: dict[str, Record] = {}
    for record in records:
        claim = claims().get(record.claim_id)
        if claim is None:
            yield (
                f"{record.chapter} settles {record.claim_id!r}, which is not in the "
                "ledger: enter the claim in claims.json or mend its identifier."
            )
        elif record.claim_id in seen:
            yield (
                f"{record.chapter} settles {record.claim_id!r}, which "
                f"{seen[record.claim_id].chapter} has settled already: a claim has one "
                "verdict, so drop one of the two calls."
            )
        else:
            seen[record.claim_id] = record
            yield from _disagreement(record, claim)
    yield from _unsettled(seen, set(chapters))


def _disagreement(record: Record, claim: Claim) -> Iterator[str]:
    if record.chapter != claim.chapter:
        yield (
            f"{record.chapter} settles {claim.id!r}, but claims.json leaves it to "
            f"{claim.chapter}: change its `chapter` there or move the cell."
        )
    if record.verdict != claim.verdict:
        yield (
            f"{record.chapter} finds {claim.id!r} {record.verdict!r}, but claims.json "
            f"says {claim.verdict!r}: look at what changed, then correct the one that "
            "is wrong."
        )
    if record.verdict in BY_EXPERIMENT and not (record.sample and record.detects):
        yield (
            f"{record.chapter} settles {claim.id!r} by an experiment, but does not say "
            "how large it was and what it could have detected: give settle() `sample` "
            "and `detects`."
        )


def _unsettled(seen: dict[str, Record], chapters: set[str]) -> Iterator[str]:
    for claim in claims().values():
        expected = claim.verdict != "open" and claim.chapter in chapters
        if expected and claim.id not in seen:
            yield (
                f"claims.json says that {claim.chapter} finds {claim.id!r} "
                f"{claim.verdict!r}, but no cell there settles it: call settle(), or "
                'set its verdict to "open".'
            )
