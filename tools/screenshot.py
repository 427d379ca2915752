"""Screenshots of built pages, to look at while writing.

    python tools/screenshot.py book/index notebooks/03-attention --out shots

takes each page at 1280 and 390 px, light and dark. ``--part N`` takes the N-th stretch
of a long page (1,600 px each), ``--whole`` all of it.
"""

import argparse
import base64
from pathlib import Path

from browser import Browser, browsing
from project import BUILD
from site_checks import UNFOLD

STRETCH = 1600  # CSS pixels


def take(browser: Browser, top: int, height: int, width: int) -> bytes:
    """The picture of one stretch of the page that is open."""
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    return base64.b64decode(
        browser.command("Page.captureScreenshot", **options)["data"]
    )


def main() -> None:
    """Take the pictures that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="+", help="as in _toc.yml: book/index")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the pictures"
    )
    parser.add_argument("--widths", type=int, nargs="+", default=[1280, 390])
    parser.add_argument("--themes", nargs="+", default=["light", "dark"])
    parser.add_argument("--part", type=int, default=0, help="which stretch, from 0")
    parser.add_argument("--whole", action="store_true", help="the page from top to end")
    parser.add_argument("--unfold", action="store_true", help="open all folded parts")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with browsing(BUILD / "html") as browser:
        for page in given.pages:
            for width in given.widths:
                for theme in given.themes:
                    _shoot(browser, page, width, theme, given)


def _shoot(browser: Browser, page: str, width: int, theme: str, given) -> None:
    browser.look(width, theme)
    browser.open(f"{page}.html")
    if given.unfold:
        browser.run(UNFOLD)
    length = browser.run("return document.documentElement.scrollHeight")
    top = 0 if given.whole else min(given.part * STRETCH, length)
    height = length if given.whole else min(STRETCH, length - top)
    part = "" if given.whole else f"-{given.part}"
    name = f"{page.replace('/', '-')}-{width}-{theme}{part}.png"
    (given.out / name).write_bytes(take(browser, top, height, width))
    print(given.out / name)


if __name__ == "__main__":
    main()
