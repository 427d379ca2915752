"""What is checked of a built page: links, accessibility, requests, weight.

`audit` checks all pages and keeps the result; the browser tests share it.
"""

import gzip
import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from tools.site.browser import Browser

# A host compresses text; fonts and images are compressed already.
COMPRESSED_BY_A_HOST = {".html", ".css", ".js", ".json", ".svg", ".txt", ".inv"}
AXE_WHEEL = "axe-playwright-python"
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]  # levels A and AA
RUN_AXE = """
const done = arguments[1];
const rules = {type: "tag", values: arguments[0]};
axe.run(document, {runOnly: rules, resultTypes: ["violations"]}).then(
  found => done(found.violations.map(violation => ({
    rule: violation.id,
    help: violation.help,
    places: violation.nodes.map(node => node.target.join(" ")),
  }))),
  error => done([{rule: "axe itself", help: String(error), places: []}]),
);
"""
AXE_PATIENCE = 300  # seconds; its rule on contrast takes long where there is much code
UNFOLD = "for (const folded of document.querySelectorAll('details')) folded.open = true"
# Words of code of one kind look alike wherever they stand: three of each are enough.
# Without this most of the time goes into looking at them one by one.
LEAVE_OUT_REPEATED_CODE = """
const seen = new Map();
for (const token of document.querySelectorAll(".highlight pre span")) {
  if (token.children.length) continue;
  seen.set(token.className, (seen.get(token.className) || 0) + 1);
  if (seen.get(token.className) > 3) token.replaceWith(token.textContent);
}
"""


def written_pages(site: Path) -> list[str]:
    """Every page of the book, below the site's address; none that only leads on."""
    found = [*site.glob("book/**/*.html"), *site.glob("notebooks/*.html")]
    return [
        path.relative_to(site).as_posix()
        for path in sorted(found)
        if "window.location.replace" not in path.read_text(encoding="utf-8")
    ]


def broken_links(site: Path, page: str) -> list[str]:
    """Links of a page that lead to no file of the site, or to no anchor in it."""
    text = (site / page).read_text(encoding="utf-8")
    broken = []
    for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
        if re.match(r"[a-z]+:", link):
            continue
        address, anchor = urldefrag(unquote(urljoin(f"/{page}", link)))
        target = address.partition("?")[0]  # a filter of the ledger
        path = site / target.lstrip("/")
        if not path.is_file() or (anchor and anchor not in _anchors(path)):
            broken.append(link)
    return broken


@cache
def _anchors(path: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))


@cache
def axe_script() -> str:
    """The source of axe-core, out of the wheel that carries it."""
    files = distribution(AXE_WHEEL).files or []
    entry = next(file for file in files if file.name == "axe.min.js")
    return Path(str(entry.locate())).read_text(encoding="utf-8")


def axe_version() -> str:
    """The version of axe-core."""
    found = re.search(r"axe v([\d.]+)", axe_script())
    return found[1] if found else "unknown"


def violations(browser: Browser) -> list[dict[str, Any]]:
    """What axe finds on the page that is open, with everything folded out.

    Returns:
        For each rule that is broken: its name, what it asks, the elements that break
        it. Only rules of the levels A and AA of WCAG 2.2.
    """
    browser.run(UNFOLD)
    browser.settle()
    browser.run(LEAVE_OUT_REPEATED_CODE)
    browser.run(axe_script())
    return browser.run_slowly(RUN_AXE, AXE_TAGS, seconds=AXE_PATIENCE)


def elsewhere(browser: Browser, requests: list[str]) -> list[str]:
    """The requests that left the site."""
    own = (browser.address, "data:", "blob:", "about:")
    return [url for url in requests if not url.startswith(own)]


def weight(site: Path, requests: list[str]) -> int:
    """Bytes that a first visit loads, as a static host sends them."""
    paths = {unquote(urlsplit(url).path) for url in requests if url.startswith("http")}
    return sum(_sent_bytes(site / path.lstrip("/")) for path in paths)


@cache
def _sent_bytes(path: Path) -> int:
    if not path.is_file():
        return 0
    content = path.read_bytes()
    if path.suffix in COMPRESSED_BY_A_HOST:
        content = gzip.compress(content, compresslevel=6, mtime=0)
    return len(content)
