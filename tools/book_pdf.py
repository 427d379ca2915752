"""The whole book as one PDF, printed from the built site.

    python tools/book_pdf.py                      # all pages, _build/book.pdf
    python tools/book_pdf.py --pages notebooks/03-attention --out /tmp/three.pdf

Chromium prints each page in the order of ``_toc.yml``, with solutions unfolded and
charts drawn; pypdf joins them behind a title page and a table of contents, numbers the
pages, and turns links between the site's pages into links inside the file.
"""

import argparse
import base64
import io
import re
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject

from browser import Browser, browsing
from project import BUILD, ROOT

A4 = {"paperWidth": 8.27, "paperHeight": 11.69}  # inches, as Chromium wants them
MARGINS = {"marginTop": 0.8, "marginBottom": 0.9, "marginLeft": 0.8, "marginRight": 0.8}
NO_MARGINS = dict.fromkeys(MARGINS, 0)

# Folded code that only draws a chart or sets up stays away; everything else opens.
# Anchors that other pages link to must be linked to here, for Chromium records the
# place of those alone.
PREPARE = """
for (const fold of document.querySelectorAll(".bd-article details")) {
  const words = fold.querySelector("summary")?.textContent ?? "";
  fold.open = true;
  fold.hidden = /Show the (set-up|code)/.test(words);
  const prompt = fold.querySelector("summary .collapsed")?.textContent;
  if (prompt) {
    const name = prompt.replace(/^Show /, "");
    fold.querySelector("summary").textContent = name[0].toUpperCase() + name.slice(1);
  }
}
for (const id of arguments[0]) {
  if (!document.getElementById(id)) continue;
  const link = document.createElement("a");
  link.href = "#" + id;
  link.textContent = ".";
  link.style.cssText = "font-size: 1px; color: transparent; text-decoration: none";
  document.querySelector(".bd-article").append(link);
}
return document.querySelector(".bd-article h1").firstChild.textContent;
"""

STYLE = """
@page { size: A4; margin: 0 }
body { margin: 0; font-family: "Book Sans", Arial, sans-serif }
section { position: relative; width: 210mm; height: 296.9mm; break-after: page }
section p { position: absolute; bottom: 9mm; left: 20mm; right: 20mm; margin: 0;
  font-size: 8.5pt; color: #59606b; display: flex; justify-content: space-between }
main { margin: 24mm 20mm }
@page contents { margin: 20mm }
h1 { font-size: 34pt; margin: 60mm 0 6mm } h2 { font-size: 20pt; margin: 0 0 8mm }
.lede { font-size: 13pt; color: #59606b }
ol { list-style: none; margin: 0 0 4mm; padding: 0; font-size: 11pt; line-height: 1.7 }
li { display: flex; gap: 2mm } li span { flex: 1; border-bottom: 1px dotted #a3abb6 }
a { color: inherit; text-decoration: none }
h3 { font-size: 11pt; margin: 3mm 0 1mm; break-after: avoid }
.contents { page: contents; break-before: page; margin: 0 }
"""


@dataclass
class Printed:
    """A page of the site, printed."""

    path: str
    """As in _toc.yml: notebooks/03-attention."""
    part: str
    """The part of the book that it belongs to."""
    title: str
    """Its heading."""
    pdf: PdfReader
    """What Chromium made of it."""
    first: int = 0
    """The number of its first page in the joined file, from 0."""

    @cached_property
    def places(self) -> dict[str, Any]:
        """Where its anchors lie."""
        return self.pdf.named_destinations

    def __len__(self) -> int:
        return len(self.pdf.pages)


def contents(toc: Path = ROOT / "_toc.yml") -> list[tuple[str, str]]:
    """Every page behind the landing page, with its part, in the order of the book."""
    found: list[tuple[str, str]] = []
    for part in yaml.safe_load(toc.read_text(encoding="utf-8"))["parts"]:
        for chapter in part["chapters"]:
            pages = [chapter, *chapter.get("sections", [])]
            found += [(page["file"], part["caption"]) for page in pages]
    return found


def anchors(site: Path, paths: list[str]) -> dict[str, set[str]]:
    """For each page, the anchors in it that any of these pages links to."""
    linked: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        text = (site / f"{path}.html").read_text(encoding="utf-8")
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
            target, anchor = urldefrag(urljoin(f"/{path}.html", link))
            linked[target.strip("/").removesuffix(".html")].add(unquote(anchor))
    return linked


def print_page(browser: Browser, path: str, linked: set[str]) -> tuple[str, PdfReader]:
    """A page's title, and the page as Chromium prints it."""
    browser.look(820, "light")
    browser.open(f"{path}.html")
    title = browser.run(PREPARE, sorted(linked - {""}))
    browser.settle()
    return title.strip(), to_pdf(browser, MARGINS, generateDocumentOutline=True)


def to_pdf(browser: Browser, margins: dict[str, float], **options) -> PdfReader:
    """What the browser shows, printed."""
    made = browser.command(
        "Page.printToPDF", printBackground=True, **A4, **margins, **options
    )
    return PdfReader(io.BytesIO(base64.b64decode(made["data"])))


def from_html(browser: Browser, body: str) -> PdfReader:
    """Pages of our own: the title, the contents, the page numbers."""
    browser.open("search.html")  # any page, for the address of its fonts
    head = f'<link rel="stylesheet" href="_static/fonts.css"><style>{STYLE}</style>'
    browser.run("document.head.innerHTML = arguments[0]", head)
    browser.run("document.body.innerHTML = arguments[0]", body)
    browser.settle()
    return to_pdf(browser, NO_MARGINS, preferCSSPageSize=True)


def front_matter(book: list[Printed], title: str, address: str) -> str:
    """The title page and the table of contents, with what is known of the numbers."""
    lines, part = [], None
    for page in book:
        if page.part != part:
            part = page.part
            lines.append(f"</ol><h3>{escape(part)}</h3><ol>")
        name = f'<a href="{address}{page.path}.html">{escape(page.title)}</a>'
        lines.append(f"<li>{name}<span></span>{page.first + 1}</li>")
    return (
        f"<main><h1>{escape(title)}</h1><p class=lede>The paper of Vaswani et al. "
        "(2017), section by section, in notebooks that run.</p></main>"
        "<main class=contents><h2>Contents</h2><ol>" + "".join(lines) + "</ol></main>"
    )


def numbers(book: list[Printed], front: int) -> str:
    """A transparent sheet for each page: the chapter's title and the page's number."""
    sheets = ["<section></section>" * front]
    for page in book:
        for number in range(page.first, page.first + len(page)):
            line = f"<span>{escape(page.title)}</span><span>{number + 1}</span>"
            sheets.append(f"<section><p>{line}</p></section>")
    return "".join(sheets)


def place(book: list[Printed], front: int) -> None:
    """Give each page its place behind the front matter."""
    for page in book:
        page.first = front
        front += len(page)


def join(browser: Browser, book: list[Printed], title: str) -> PdfWriter:
    """One file: front matter, pages, bookmarks, links and numbers."""
    address = browser.address
    front = from_html(browser, front_matter(book, title, address))
    place(book, len(front.pages))
    front = from_html(browser, front_matter(book, title, address))  # numbers known
    writer = PdfWriter()
    writer.add_metadata({"/Title": title})
    writer.append(front, import_outline=False)
    parts: dict[str, object] = {}
    for page in book:
        writer.append(page.pdf, import_outline=False)
        if page.part not in parts:
            parts[page.part] = writer.add_outline_item(
                title=page.part, page_number=page.first
            )
        mark = writer.add_outline_item(
            title=page.title, page_number=page.first, parent=parts[page.part]
        )
        _bookmark_sections(writer, page, mark)
    _mend_links(writer, book, address)
    sheets = from_html(browser, numbers(book, len(front.pages)))
    for sheet, below in zip(sheets.pages, writer.pages, strict=False):
        below.merge_page(sheet)
        below.compress_content_streams()
    writer.compress_identical_objects()
    return writer


def _bookmark_sections(writer: PdfWriter, page: Printed, parent: object) -> None:
    """The page's second-level headings, from the outline that Chromium made."""
    outline = page.pdf.outline
    top = next((item for item in outline if isinstance(item, list)), [])
    for item in top:
        if not isinstance(item, list):
            number = page.pdf.get_destination_page_number(item)
            place = page.first + (number or 0)
            writer.add_outline_item(title=item.title, page_number=place, parent=parent)


def _mend_links(writer: PdfWriter, book: list[Printed], address: str) -> None:
    """Links to the site lead to places in the file, or away where it is not in it."""
    by_path = {page.path: page for page in book}
    owners = {page.first + n: page.path for page in book for n in range(len(page))}
    for number, sheet in enumerate(writer.pages):
        kept = ArrayObject()
        for reference in sheet.get("/Annots", ()):
            link = reference.get_object()
            target = _target(link, owners.get(number, ""), address)
            if target and target[0] not in by_path:  # a page that is not in the file
                continue
            if target:
                path, anchor = target
                link.pop("/A", None)
                place = _destination(writer, by_path[path], anchor)
                link[NameObject("/Dest")] = place
            kept.append(reference)
        sheet[NameObject("/Annots")] = kept


def _target(link: dict, path: str, address: str) -> tuple[str, str] | None:
    """The page and the anchor that a link of the site means."""
    if "/Dest" in link and isinstance(link["/Dest"], str):
        return path, unquote(link["/Dest"].removeprefix("/"))
    action = link.get("/A", {})
    uri = str(action.get("/URI", ""))
    if "/D" in action and isinstance(action["/D"], str):
        return path, unquote(action["/D"].removeprefix("/"))
    if not uri.startswith(address):
        return None
    target, anchor = urldefrag(uri.removeprefix(address))
    return target.removesuffix(".html"), unquote(anchor)


def _destination(writer: PdfWriter, page: Printed, anchor: str) -> ArrayObject:
    """A place in the joined file: the anchor's if Chromium recorded it, or the top."""
    number, top = 0, NullObject()
    spot = page.places.get(f"/{anchor}") or page.places.get(anchor)
    if spot is not None:
        number = page.pdf.get_destination_page_number(spot) or 0
        top = FloatObject(spot.top) if spot.top is not None else top
    sheet = writer.pages[page.first + number].indirect_reference
    return ArrayObject([sheet, NameObject("/XYZ"), NullObject(), top, NullObject()])


def make(site: Path, pages: list[tuple[str, str]], out: Path) -> list[Printed]:
    """Print the pages, join them, write the file."""
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    linked = anchors(site, [path for path, _ in pages])
    with browsing(site) as browser:
        book = []
        for path, part in pages:
            began = time.perf_counter()
            name, pdf = print_page(browser, path, linked[path])
            book.append(Printed(path, part, name, pdf))
            seconds = time.perf_counter() - began
            print(f"{path}: {len(book[-1])} pages, {seconds:.0f} s", flush=True)
        writer = join(browser, book, title)
    out.parent.mkdir(parents=True, exist_ok=True)
    writer.write(out)
    return book


def main() -> int:
    """Make the PDF that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", nargs="+", help="only these, as in _toc.yml")
    parser.add_argument("--out", type=Path, default=BUILD / "book.pdf")
    given = parser.parse_args()
    wanted = [p for p in contents() if not given.pages or p[0] in given.pages]
    book = make(BUILD / "html", wanted, given.out)
    size = given.out.stat().st_size / 1e6
    last = book[-1].first + len(book[-1])
    print(f"{given.out}: {last} pages, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
