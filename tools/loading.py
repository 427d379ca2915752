"""What a phone waits for while a page loads, measured by Chromium itself.

    python tools/loading.py notebooks/03-attention

The processor is slowed down four times and the network to 1.6 Mbit/s, as Lighthouse
does it; the site is sent compressed, nothing is in the cache, and nobody scrolls.
Where Lighthouse cannot be had, this says what its performance score is made of. The
score itself is not computed: it also holds a film of the page's first seconds.
"""

import argparse
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from browser import Browser, browsing
from lighthouse import served_compressed
from project import BUILD

SLOWER = 4  # times
NETWORK = {  # Lighthouse's slow 4G, in its own figures for a real throttle
    "offline": False,
    "latency": 562.5,
    "downloadThroughput": 1.6e6 * 0.9 / 8,
    "uploadThroughput": 750e3 * 0.9 / 8,
}
RUNS = 5
QUIET = 5  # seconds after the page has loaded
# Lighthouse's limits for what it calls good: ninety of a hundred points.
GOOD = {
    "first paint, ms": 1800,
    "largest paint, ms": 2500,
    "blocked, ms": 200,
    "layout shift": 0.1,
}
WATCH = """
window.seen = {shift: 0, tasks: [], scripts: []};
const on = (type, note) => new PerformanceObserver(list =>
  list.getEntries().forEach(note)).observe({type, buffered: true});
on("paint", e => {
  if (e.name === "first-contentful-paint") seen.first = e.startTime;
});
on("largest-contentful-paint", e => { seen.largest = e.startTime; });
on("layout-shift", e => { if (!e.hadRecentInput) seen.shift += e.value; });
on("longtask", e => seen.tasks.push([e.startTime, e.duration]));
on("long-animation-frame", e => e.scripts.forEach(
  s => seen.scripts.push([s.sourceURL, s.duration])));
"""


def load(browser: Browser, page: str) -> dict[str, Any]:
    """One cold load: what is good when small, and the milliseconds of each script."""
    browser.command("Network.clearBrowserCache")
    browser.driver.get(browser.address + page)
    time.sleep(QUIET)
    seen = browser.run("return window.seen")
    first = seen["first"]
    blocked = sum(
        max(0, duration - 50) for start, duration in seen["tasks"] if start >= first
    )
    scripts: Counter[str] = Counter()
    for address, duration in seen["scripts"]:
        name = address.removeprefix(browser.address).partition("?")[0]
        scripts["in the page" if name == page else name] += round(duration)
    found = (first, seen["largest"], blocked, seen["shift"])
    return {**dict(zip(GOOD, found, strict=True)), "scripts": scripts}


def work(browser: Browser, page: str) -> dict[str, int]:
    """Milliseconds that the main thread computes, whatever else the machine does.

    Not slowed down: a phone takes about four times as long.
    """
    browser.command("Emulation.setCPUThrottlingRate", rate=1)
    browser.command("Performance.disable")
    browser.command("Performance.setTimeDomain", timeDomain="threadTicks")
    browser.command("Performance.enable")
    browser.driver.get(browser.address + page)
    time.sleep(QUIET)
    known = browser.command("Performance.getMetrics")["metrics"]
    seconds = {metric["name"]: metric["value"] for metric in known}
    kinds = ("Script", "RecalcStyle", "Layout", "Task")
    return {kind: round(1000 * seconds[f"{kind}Duration"]) for kind in kinds}


def measure(site: Path, page: str, runs: int = RUNS) -> dict[str, Any]:
    """The median of several loads by a phone.

    Returns:
        The page, all runs and the median of each figure of `GOOD`; the median of the
        main thread's own time; and the scripts that took longest in the last run.
    """
    with served_compressed(site) as address, browsing(site) as opened:
        browser = Browser(opened.driver, address)
        browser.look(412, "light", height=823)
        browser.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        browser.command("Network.enable")
        browser.command("Network.emulateNetworkConditions", **NETWORK)
        browser.command("Emulation.setCPUThrottlingRate", rate=SLOWER)
        loads = [load(browser, page) for _ in range(runs)]
        works = [work(browser, page) for _ in range(runs)]
    all_ = {name: [round(one[name], 3) for one in loads] for name in GOOD}
    return {
        "page": page,
        "runs": all_,
        "median": {name: statistics.median(values) for name, values in all_.items()},
        "work": {
            kind: statistics.median(one[kind] for one in works) for kind in works[0]
        },
        "scripts": dict(loads[-1]["scripts"].most_common(8)),
    }


def main() -> None:
    """Measure the pages that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="+", help="as in _toc.yml")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--site", type=Path, default=BUILD / "html")
    given = parser.parse_args()
    for page in given.pages:
        found = measure(given.site, f"{page}.html", given.runs)
        print(page)
        for name, value in found["median"].items():
            print(f"  {name}: {value:g} (good: {GOOD[name]:g}) {found['runs'][name]}")
        print(f"  main thread's own time, ms: {found['work']}")
        for name, milliseconds in found["scripts"].items():
            print(f"    {milliseconds} ms {name}")


if __name__ == "__main__":
    main()
