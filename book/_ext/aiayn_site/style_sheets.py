"""The style sheets that every page needs, as one file: one request and not seventeen.

A phone draws nothing until it has them all. The list is that of the index, a page that
has none of its own; what single pages add stays beside it. Rules that no page can use
are left out, such as Font Awesome's for two thousand icons; so are the letters of its
font and MathJax's that no rule draws. Kept because a phone would else load 70 kB more
before it draws (compressed: 105 instead of 34), and up to 240 kB more of fonts.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from sphinx.application import Sphinx

from aiayn_site.cut_fonts import with_cut_fonts
from aiayn_site.style_rules import asked_for, usable, words_of_page, words_of_script

MODEL = "genindex.html"  # written anew by every build
SHEET = re.compile(r'\s*<link\b(?=[^>]*rel="stylesheet")[^>]*href="([^"]+)"[^>]*>')
MADE = re.compile(r"_static/all-[0-9a-f]+\.css")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
ADDRESS = re.compile(r"""url\(\s*["']?(?!data:|#)([^"')]+)["']?\s*\)""")
SCRIPT_NAME = re.compile(r"[\w.-]+\.js\b")
SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")


def sheets(page: str) -> list[str]:
    """The addresses of a page's style sheets."""
    return SHEET.findall(page)


def whole(out: Path, name: str) -> str:
    """A style sheet with what it imports, its addresses as seen from ``_static``."""
    path = out / name
    text = SOURCE_MAP.sub("", path.read_text(encoding="utf-8"))
    folder = posixpath.dirname(name)

    def imported(found: re.Match) -> str:
        return whole(out, posixpath.normpath(posixpath.join(folder, found[1])))

    def moved(found: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        return f'url("{posixpath.relpath(target, "_static")}")'

    if IMPORT.search(text):
        return IMPORT.sub(imported, text)
    return ADDRESS.sub(moved, text)


def join_sheets(app: Sphinx, exception: Exception | None) -> None:
    """Write the one file, and let all pages ask for it."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = {
        path: path.read_text(encoding="utf-8")
        for path in out.rglob("*.html")
        if "_static" not in path.relative_to(out).parts
    }
    common = [urlsplit(address).path for address in sheets(pages[out / MODEL])]
    scripts = loaded_scripts(out, pages.values())
    words = set().union(*map(words_of_page, pages.values()))
    words |= set().union(*map(words_of_script, scripts))
    text = usable("\n".join(whole(out, name) for name in common), words)
    own = {
        _to(path.relative_to(out).as_posix(), address)
        for path, page in pages.items()
        for address in sheets(page)
    }.difference(common)
    others = [whole(out, name) for name in sorted(own) if not MADE.fullmatch(name)]
    text = asked_for(text, "\n".join([*pages.values(), *scripts, *others]))
    text = with_cut_fonts(text, out / "_static")
    made = f"_static/all-{hashlib.sha256(text.encode()).hexdigest()[:8]}.css"
    for old in (out / "_static").glob("all-*.css"):
        old.unlink()
    (out / made).write_text(text, encoding="utf-8")
    for path, page in pages.items():
        here = path.relative_to(out).as_posix()
        joined = asking_for(page, here, set(common), made)
        if joined != page:
            path.write_text(joined, encoding="utf-8")


def loaded_scripts(out: Path, pages: Iterable[str]) -> list[str]:
    """The scripts that a page or another script names; themes bring more than those."""
    there = {
        path: path.read_text(encoding="utf-8")
        for path in (out / "_static").rglob("*.js")
    }
    named, more = set(), {name for page in pages for name in SCRIPT_NAME.findall(page)}
    while more:
        named |= more
        texts = (text for path, text in there.items() if path.name in named)
        more = {name for text in texts for name in SCRIPT_NAME.findall(text)} - named
    return [text for path, text in there.items() if path.name in named]


def asking_for(page: str, here: str, common: set[str], made: str) -> str:
    """The page with one link for the common style sheets, where the first one was."""
    first = True

    def replaced(found: re.Match) -> str:
        nonlocal first
        if _to(here, found[1]) not in common:
            return found[0]
        link = f'\n<link rel="stylesheet" href="{_from(here, made)}" />'
        kept, first = (link if first else ""), False
        return kept

    # A page that an earlier build wrote asks for that build's file.
    return SHEET.sub(replaced, MADE.sub(made, page))


def _to(here: str, address: str) -> str:
    return urljoin(f"/{here}", urlsplit(address).path).lstrip("/")


def _from(here: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(here) or ".")


def setup(app: Sphinx) -> None:
    """After all style sheets are there, before the pages get their policy."""
    app.connect("build-finished", join_sheets, priority=900)
