"""Printed pages joined to one file: contents, bookmarks, links, numbers."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any
from urllib.parse import unquote, urldefrag

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject

from tools.site.browser import Browser
from tools.site.pdf_pages import from_html


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
            title = _said_once(str(item.title))
            writer.add_outline_item(title=title, page_number=place, parent=parent)


def _said_once(title: str) -> str:
    """Chromium doubles the title of a heading that it moves to the next page."""
    half = title[: len(title) // 2]
    return half if title == 2 * half else title


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
