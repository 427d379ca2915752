"""The style sheets that every page needs, as one file: one request and not seventeen.

A phone draws nothing until it has them all. The list is that of the index, a page that
has none of its own; what single pages add stays beside it. Of Font Awesome's two
thousand icons, those stay that some page shows.
"""

import hashlib
import posixpath
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from sphinx.application import Sphinx

MODEL = "genindex.html"  # written anew by every build
SHEET = re.compile(r'\s*<link\b(?=[^>]*rel="stylesheet")[^>]*href="([^"]+)"[^>]*>')
MADE = re.compile(r"_static/all-[0-9a-f]+\.css")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
ADDRESS = re.compile(r"""url\(\s*["']?(?!data:|#)([^"')]+)["']?\s*\)""")
SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")
ICON = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"[^"]*"\}')
ICON_NAME = re.compile(r"\bfa-[a-z0-9-]+")


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


def without_unused_icons(text: str, used: set[str]) -> str:
    """Font Awesome's rules without the icons that no page shows."""

    def kept(found: re.Match) -> str:
        return found[0] if used & set(ICON_NAME.findall(found[1])) else ""

    return ICON.sub(kept, text)


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
    scripts = (out / "_static" / "scripts").glob("*.js")
    shown = [*pages.values(), *(path.read_text(encoding="utf-8") for path in scripts)]
    used = {name for text in shown for name in ICON_NAME.findall(text)}
    text = "\n".join(whole(out, name) for name in common)
    text = without_unused_icons(text, used)
    made = f"_static/all-{hashlib.sha256(text.encode()).hexdigest()[:8]}.css"
    for old in (out / "_static").glob("all-*.css"):
        old.unlink()
    (out / made).write_text(text, encoding="utf-8")
    for path, page in pages.items():
        here = path.relative_to(out).as_posix()
        joined = asking_for(page, here, set(common), made)
        if joined != page:
            path.write_text(joined, encoding="utf-8")


def asking_for(page: str, here: str, common: set[str], made: str) -> str:
    """The page with one link for the common style sheets, where the first one was."""
    first = True

    def replaced(found: re.Match) -> str:
        nonlocal first
        target = urljoin(f"/{here}", urlsplit(found[1]).path).lstrip("/")
        if target not in common:
            return found[0]
        link = f'\n<link rel="stylesheet" href="{_from(here, made)}" />'
        kept, first = (link if first else ""), False
        return kept

    # A page that an earlier build wrote asks for that build's file.
    return SHEET.sub(replaced, MADE.sub(made, page))


def _from(here: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(here) or ".")


def setup(app: Sphinx) -> dict:
    """After the pages are written, before their policy is."""
    app.connect("build-finished", join_sheets, priority=450)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
