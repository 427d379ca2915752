"""Slides: one deck a chapter, with the figures of the last execution.

``python tools/make_slides.py`` writes them into the built site, as ``slides/``; ``make
site`` does so each time, for all decks take a few seconds. They need no network.
`slides` holds the parts.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache

from project import BUILD, CACHE, taught_paths
from slides.deck import slides_of
from slides.page import deck_page, index_page, place_assets

SLIDES = BUILD / "html" / "slides"


def main() -> int:
    """Write the decks of all chapters, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="such as 03-attention; all by default")
    parser.add_argument("--out", type=Path, default=SLIDES, help="the folder to write")
    given = parser.parse_args()
    known = {path.stem: path for path in taught_paths()}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"no such chapter: {', '.join(unknown)}.")
    cache = get_cache(CACHE)
    place_assets(given.out)
    decks = {}
    for name in given.names or known:
        path = known[name]
        notebook = nbformat.read(path, as_version=4)
        try:
            _, notebook = cache.merge_match_into_notebook(notebook)
        except KeyError:
            print(f"{path.name} has no outputs yet: run 'make book' first.")
            return 1
        slides = slides_of(notebook)
        page = deck_page(slides, name)
        (given.out / f"{name}.html").write_text(page, encoding="utf-8")
        decks[name] = slides[0].title
    if not given.names:
        (given.out / "index.html").write_text(index_page(decks), encoding="utf-8")
    print(f"{len(decks)} decks: open {given.out}/index.html.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
