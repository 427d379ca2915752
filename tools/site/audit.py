"""Audit the built site: accessibility, links, requests, weight, speed.

    python -m tools.site.audit                       every page; keeps the result
    python -m tools.site.audit --pages book/index    only what is named; keeps nothing

Every page is opened wide and light, then narrow and dark, with all other hosts
unreachable. A whole audit also measures how long the landing page takes to translate.
The exit status is 1 if something has to be mended. Lighthouse measures too where it is
installed (``npm install --global lighthouse``, or ``LIGHTHOUSE=/path/to/cli``); it is
not needed for anything else.
"""

import argparse
import datetime
import statistics
import sys
from pathlib import Path
from typing import Any

from aiayn.device import describe_machine
from aiayn.storage import read_json, write_json
from tools.project import BUILD, ROOT, SITE_SOURCES, commit
from tools.site.browser import Browser, browsing
from tools.site.checks import (
    axe_version,
    broken_links,
    elsewhere,
    violations,
    weight,
    written_pages,
)
from tools.site.lighthouse import find_lighthouse, measure

RECORD = ROOT / "book" / "data" / "audit.json"
SITE = BUILD / "html"
LOOKS = [(1280, "light"), (390, "dark")]
LIMIT = 1_500_000  # bytes of a first load
MEASURED_PAGE = "notebooks/03-attention.html"  # a chapter with charts and formulas
TEN_WORDS = "The children are playing with their dog in the garden."
REPEATS = 20
MOST = {1: 0.25, 6: 1.0}
"""Seconds that a translation may take, by the factor that slows the processor down."""
TRANSLATION = """
const [sentence, repeats, done] = arguments;
const {everyday} = liveModel;
const written = document.getElementById("everyday-german");
const measure = async () => {
  await everyday.translator();
  const took = [];
  for (let i = 0; i < repeats; i += 1) {
    const begin = performance.now();
    await everyday.translate(sentence);
    took.push((performance.now() - begin) / 1000);
    if (!written.textContent) throw new Error("nothing was translated");
  }
  return took;
};
measure().then(done, (error) => done(String(error)));
"""


def look_at(browser: Browser, site: Path, page: str) -> dict[str, Any]:
    """All that is asked of one page."""
    found: list[dict[str, Any]] = []
    requests: list[str] = []
    left: list[str] = []
    for width, theme in LOOKS:
        browser.look(width, theme)
        browser.requests()
        browser.open(page)
        asked = browser.requests()
        requests = requests or asked
        left += elsewhere(browser, asked)
        found += [
            {"width": width, "theme": theme, **one} for one in violations(browser)
        ]
    return {
        "violations": found,
        "broken_links": broken_links(site, page),
        "elsewhere": left,
        "bytes": weight(site, requests),
    }


def tell(page: str, result: dict[str, Any]) -> bool:
    """Print what is wrong with a page; returns whether anything is."""
    lines = [
        f"{v['rule']} ({v['width']} px, {v['theme']}): {v['help']}\n"
        + "\n".join(f"      {place}" for place in v["places"][:8])
        for v in result["violations"]
    ]
    lines += [f"broken link: {link}" for link in result["broken_links"]]
    lines += [f"asks another host: {url}" for url in result["elsewhere"]]
    if result["bytes"] > LIMIT:
        lines.append(f"loads {result['bytes']:,} bytes, more than {LIMIT:,}")
    print(f"{'✗' if lines else '✓'} {page}: {result['bytes'] / 1000:,.0f} kB")
    for line in lines:
        print(f"    {line}")
    sys.stdout.flush()
    return bool(lines)


def time_translation(browser: Browser) -> list[dict[str, Any]]:
    """How long the landing page takes for ten words, once it has the model.

    Returns:
        For each of `MOST`: the factor that slowed the processor down, the times in
        seconds, and the most that their median may be.

    Raises:
        RuntimeError: the page translated nothing.
    """
    browser.open("book/index.html")
    found = []
    for slowed, most in MOST.items():
        browser.command("Emulation.setCPUThrottlingRate", rate=slowed)
        took = browser.run_slowly(TRANSLATION, TEN_WORDS, REPEATS, seconds=100)
        if isinstance(took, str):
            raise RuntimeError(f"The landing page failed: {took}.")
        found.append({"slowed": slowed, "seconds": took, "most": most})
    browser.command("Emulation.setCPUThrottlingRate", rate=1)
    return found


def tell_times(translation: list[dict[str, Any]]) -> bool:
    """Print how long translations took; returns whether any is too slow."""
    slow = False
    for one in translation:
        took, most = 1000 * statistics.median(one["seconds"]), 1000 * one["most"]
        slow |= took > most
        slowed = f", slowed {one['slowed']}-fold" if one["slowed"] > 1 else ""
        mark = "✗" if took > most else "✓"
        print(f"{mark} ten words{slowed}: {took:.1f} ms (at most {most:.0f})")
    return slow


def figures(result: dict[str, Any]) -> dict[str, int]:
    """What the book shows of a page's result."""
    return {
        "violations": sum(len(v["places"]) for v in result["violations"]),
        "broken_links": len(result["broken_links"]),
        "elsewhere": len(result["elsewhere"]),
        "bytes": result["bytes"],
    }


def now() -> dict[str, Any]:
    """When, from what, and on what the site is looked at."""
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(places=("src", *SITE_SOURCES)),
        "machine": describe_machine(),
    }


def keep(
    made: dict[str, Any],
    pages: dict[str, dict],
    translation: list[dict[str, Any]],
    run_lighthouse: bool,
) -> None:
    """Write the record: what `now` said, and all that was found.

    A measurement of Lighthouse has its own date, commit and machine: where none is made
    now, the last one stays.
    """
    old = read_json(RECORD) if RECORD.exists() else {"lighthouse": None}
    if run_lighthouse and find_lighthouse():
        speed = made | measure(SITE, MEASURED_PAGE)
    else:
        print("Lighthouse was not run; its last measurement stays.")
        last = old["lighthouse"]
        speed = last and {name: old[name] for name in made} | last
    record = {
        "command": "python -m tools.site.audit",
        **made,
        "axe": axe_version(),
        "looks": LOOKS,
        "limit_bytes": LIMIT,
        "pages": pages,
        "translation": translation,
        "lighthouse": speed,
    }
    write_json(RECORD, record)


def main() -> int:
    """Look at the pages that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", nargs="+", help="as in _toc.yml; nothing is kept")
    parser.add_argument("--no-lighthouse", action="store_true", help="keep the last")
    given = parser.parse_args()
    if not (SITE / "index.html").exists():
        sys.exit("There is no site to audit: run 'make book' first.")
    written = written_pages(SITE)
    chosen = [f"{page}.html" for page in given.pages or []] or written
    if unknown := [page for page in chosen if page not in written]:
        parser.error(f"no such page in the site: {', '.join(unknown)}.")
    made = {} if given.pages else now()
    pages, bad = {}, 0
    with browsing(SITE) as browser:
        translation = [] if given.pages else time_translation(browser)
        for page in chosen:
            result = look_at(browser, SITE, page)
            bad += tell(page, result)
            pages[page] = figures(result)
    slow = tell_times(translation)
    print(f"{len(chosen)} pages, {bad} of them with something to mend.")
    if not given.pages:
        keep(made, pages, translation, run_lighthouse=not given.no_lighthouse)
    return 1 if bad or slow else 0


if __name__ == "__main__":
    sys.exit(main())
