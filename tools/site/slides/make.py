"""Slides: one deck a chapter, with the figures of the last execution.

``python -m tools.site.slides.make`` writes them into the built site, as ``slides/``;
``make site`` does so each time, for all decks take a few seconds. They need no network,
and are those of some chapters only, if these are named.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache

from tools.project import BUILD, CACHE, chosen, taught_paths
from tools.site.slides.deck import slides_of
from tools.site.slides.page import deck_page, index_page, place_assets

SLIDES = BUILD / "html" / "slides"


def main() -> int:
    """Write the decks of all chapters, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="such as 03-attention; all by default")
    parser.add_argument("--out", type=Path, default=SLIDES, help="the folder to write")
    given = parser.parse_args()
    try:
        paths = chosen(given.names, taught_paths())
    except ValueError as error:
        parser.error(str(error))
    cache = get_cache(CACHE)
    place_assets(given.out)
    here = {p.stem for p in taught_paths() if (given.out / f"{p.stem}.html").exists()}
    here |= {path.stem for path in paths}
    titles = {}
    for path in taught_paths():
        notebook = nbformat.read(path, as_version=4)
        if path.stem in here:
            titles[path.stem] = notebook.cells[0].source.splitlines()[0].lstrip("# ")
        if path not in paths:
            continue
        try:
            _, notebook = cache.merge_match_into_notebook(notebook)
        except KeyError:
            print(
                f"{path.name} has no outputs yet: run 'make slides', which executes it."
            )
            return 1
        page = deck_page(slides_of(notebook), path.stem, here)
        (given.out / f"{path.stem}.html").write_text(page, encoding="utf-8")
    (given.out / "index.html").write_text(index_page(titles), encoding="utf-8")
    many = f"{len(paths)} deck{'s' * (len(paths) != 1)}"
    print(f"{many}: open {given.out}/index.html.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
