"""Audit the built site: accessibility, links, requests, weight, speed.

    python tools/audit.py                every page; keeps the result for the book
    python tools/audit.py --pages book/index notebooks/03-attention    only these anew

Every page is opened wide and light, then narrow and dark, with all other hosts
unreachable.
Lighthouse measures too where it is installed (``npm install --global lighthouse``, or
``LIGHTHOUSE=/path/to/cli``); it is not needed for anything else.
"""

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

from aiayn.checkpoint import read_json, write_json
from aiayn.machine import describe_machine
from browser import Browser, browsing
from lighthouse import find_lighthouse, measure
from project import BUILD, ROOT, commit
from site_checks import (
    axe_version,
    broken_links,
    elsewhere,
    violations,
    weight,
    written_pages,
)

RECORD = ROOT / "book" / "audit.json"
SITE = BUILD / "html"
LOOKS = [(1280, "light"), (390, "dark")]
LIMIT = 1_500_000  # bytes of a first load
MEASURED_PAGE = "notebooks/03-attention.html"  # a chapter with charts and formulas


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


def figures(result: dict[str, Any]) -> dict[str, int]:
    """What the book shows of a page's result."""
    return {
        "violations": sum(len(v["places"]) for v in result["violations"]),
        "broken_links": len(result["broken_links"]),
        "elsewhere": len(result["elsewhere"]),
        "bytes": result["bytes"],
    }


def keep(known: dict[str, dict], lighthouse: dict | None) -> None:
    """Write the figures of the pages that there are, with when and on what."""
    pages = {page: known[page] for page in written_pages(SITE) if page in known}
    record = {
        "command": "python tools/audit.py",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": describe_machine(),
        "axe": axe_version(),
        "looks": [list(look) for look in LOOKS],
        "limit_bytes": LIMIT,
        "pages": pages,
        "lighthouse": lighthouse,
    }
    write_json(RECORD, record)


def main() -> int:
    """Look at the pages that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", nargs="+", help="as in _toc.yml; default: all")
    parser.add_argument("--no-lighthouse", action="store_true", help="keep the last")
    given = parser.parse_args()
    if not (SITE / "index.html").exists():
        sys.exit("There is no site to audit: run 'make book' first.")
    old = read_json(RECORD) if RECORD.exists() else {"pages": {}, "lighthouse": None}
    known = old["pages"]
    chosen = [f"{page}.html" for page in given.pages or []] or written_pages(SITE)
    bad = 0
    with browsing(SITE) as browser:
        for page in chosen:
            result = look_at(browser, SITE, page)
            bad += tell(page, result)
            known[page] = figures(result)
            keep(known, old["lighthouse"])  # what is interrupted is not lost
    print(f"{len(chosen)} pages, {bad} of them with something to mend.")
    speed = old["lighthouse"]
    if given.no_lighthouse or find_lighthouse() is None:
        print("Lighthouse was not run; its last measurement stays.")
    else:
        speed = measure(SITE, MEASURED_PAGE)
    keep(known, speed)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
