"""The book as one PDF, tried on three pages."""

import re

import nbformat
import pytest
from pypdf import PdfReader

from tools.site import book_pdf

PAGES = ["notebooks/03-attention", "book/glossary", "book/notation"]


@pytest.fixture(scope="module")
def printed(site, browser, tmp_path_factory):  # where there is no browser: skipped
    """The pages as printed, and the file that they became."""
    out = tmp_path_factory.mktemp("pdf") / "book.pdf"
    wanted = [page for page in book_pdf.contents() if page[0] in PAGES]
    return book_pdf.make(site, wanted, out), PdfReader(out)


def book_sections(path):
    """The chapter's headings of the second level."""
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^## (.+)$", text, flags=re.MULTILINE)


def links(pdf):
    """Every link: the number of its page, and what it leads to."""
    for number, page in enumerate(pdf.pages):
        for reference in page.get("/Annots", ()):
            yield number, reference.get_object()


def test_the_pages_follow_the_book_behind_title_and_contents(printed):
    book, pdf = printed
    assert [page.path for page in book] == PAGES
    assert "Contents" in pdf.pages[1].extract_text()
    for page in book:
        first = pdf.pages[page.first].extract_text()
        assert page.title in first
        line = f"{page.title} {page.first + 1}"
        assert line in " ".join(pdf.pages[1].extract_text().split())
    assert len(pdf.pages) == book[-1].first + len(book[-1])


def test_every_page_has_its_number_and_its_chapter(printed):
    book, pdf = printed
    for page in book:
        for number in range(page.first, page.first + len(page)):
            words = pdf.pages[number].extract_text().split()
            assert str(number + 1) in words[-12:]


def test_bookmarks_lead_to_parts_chapters_and_sections(printed):
    book, pdf = printed
    outline = pdf.outline
    chapters = [item for item in outline if isinstance(item, list)]
    assert outline[0].title == book[0].part
    assert chapters[0][0].title == book[0].title
    sections = {s.title: pdf.get_destination_page_number(s) for s in chapters[0][1]}
    headings = book_sections("notebooks/03-attention.ipynb")
    assert list(sections) == headings  # each once, also where it begins a page
    text = pdf.pages[sections["Exercises"]].extract_text()
    assert "Exercises" in text


def test_solutions_are_open_and_chart_code_is_not_there(printed):
    book, pdf = printed
    pages = range(book[0].first, book[0].first + len(book[0]))
    text = "\n".join(pdf.pages[number].extract_text() for number in pages)
    assert "def my_soft_lookup" in text
    assert "# @title" not in text
    assert "figure(" not in text
    assert "Fold" not in text.split()


def test_links_inside_the_book_lead_to_the_very_place(printed):
    """The glossary's entry on queries names a heading of chapter 3."""
    book, pdf = printed
    chapter, glossary, _ = book
    numbers = {page.indirect_reference.idnum: n for n, page in enumerate(pdf.pages)}
    heading = next(
        n
        for n in range(chapter.first, chapter.first + len(chapter))
        if "Word order is invisible" in pdf.pages[n].extract_text()
    )
    led = {
        numbers[link["/Dest"][0].idnum]
        for number, link in links(pdf)
        if "/Dest" in link and glossary.first <= number < glossary.first + len(glossary)
    }
    assert heading in led


def test_no_link_leads_to_the_machine_that_printed(printed):
    _, pdf = printed
    uris = [str(link["/A"].get("/URI", "")) for _, link in links(pdf) if "/A" in link]
    assert not [uri for uri in uris if "127.0.0.1" in uri]
