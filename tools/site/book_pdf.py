"""The whole book as one PDF, printed from the built site.

    python -m tools.site.book_pdf                      # all pages, _build/book.pdf
    python -m tools.site.book_pdf --pages notebooks/03-attention --out /tmp/three.pdf

Chromium prints each page in the order of ``_toc.yml``, with solutions unfolded and
charts drawn; pypdf joins them behind a title page and a table of contents, numbers the
pages, and turns links between the site's pages into links inside the file.
"""

import argparse
import re
import sys
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import yaml

from tools.project import BUILD, ROOT
from tools.site.browser import browsing
from tools.site.pdf_join import Printed, join
from tools.site.pdf_pages import print_page


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
    known = contents()
    if unknown := set(given.pages or ()) - {path for path, _ in known}:
        parser.error(f"not in _toc.yml: {', '.join(sorted(unknown))}.")
    wanted = [page for page in known if not given.pages or page[0] in given.pages]
    book = make(BUILD / "html", wanted, given.out)
    size = given.out.stat().st_size / 1e6
    last = book[-1].first + len(book[-1])
    print(f"{given.out}: {last} pages, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
