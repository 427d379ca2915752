"""The site's map, its own address, and the page for an address where there is none.

Pages that have moved stand in `_config.yml`, under `redirects`. The map is our own, as
sphinx-sitemap's holds only the pages that the last build wrote; so is the other page,
as sphinx-notfound-page's names style sheets where the build cannot join them. It is
shown at any address: what it asks for is named from the site's top.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from sphinx.application import Sphinx

from aiayn_site.link_previews import site_address

NO_PAGE = "404"  # hosts know it by this name
TEXT = {
    "title": "No such page",
    "body": "<h1>No such page</h1><p>It may have another name now: "
    '<a href="search.html">search for it</a>, or start with the '
    '<a href="index.html">first page</a>.</p>',
}
TAGS = re.compile(
    r'<title>.*?</title>|<meta (?:property="og:|name="(?:twitter|desc))[^>]*>'
)
RELATIVE = re.compile(r'((?:href|src|data-content_root)=")(?!#|/|[a-z]+:)(?:\./)?')


def no_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """The page that hosts show for an address that they do not have."""
    yield NO_PAGE, dict(TEXT), "page.html"


def write_map(app: Sphinx, exception: Exception | None) -> None:
    """List every page's address, and let the page for no page ask from the top."""
    if exception or app.builder.format != "html":
        return
    site, out = site_address(app), Path(app.outdir)
    pages = map(app.builder.get_target_uri, sorted(app.env.found_docs))
    urls = "".join(f"<url><loc>{escape(site + page)}</loc></url>\n" for page in pages)
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    head = f"<?xml version='1.0' encoding='utf-8'?>\n<urlset {space}>\n"
    (out / "sitemap.xml").write_text(f"{head}{urls}</urlset>\n", encoding="utf-8")
    path, top = out / f"{NO_PAGE}.html", urlsplit(site).path
    asked = RELATIVE.sub(rf"\g<1>{top}", path.read_text(encoding="utf-8"))
    path.write_text(asked, encoding="utf-8")
    root = app.builder.get_target_uri(app.config.root_doc)
    if root != "index.html":
        text = (out / root).read_text(encoding="utf-8")
        (out / "index.html").write_text(front(text, root), encoding="utf-8")


def front(page: str, address: str) -> str:
    """The page at the site's own address: it leads to the first one, whose title and
    picture are shown where somebody links to the site.
    """
    head = page.partition("</head>")[0]
    tags = "\n".join(TAGS.findall(head))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{tags}\n'
        f'<meta http-equiv="refresh" content="0; url={address}">\n</head>\n'
        f'<body><p><a href="{address}">To the first page</a></p></body>\n</html>\n'
    )


def setup(app: Sphinx) -> None:
    """After the style sheets are joined, before the pages get their policy."""
    app.connect("html-collect-pages", no_page)
    app.connect("build-finished", write_map, priority=950)
