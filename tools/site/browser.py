"""A headless Chromium that reaches the built site and nothing else.

The browser tests and the tools share it. ``python -m tools.site.browser`` says
in its exit status whether there is one.
"""

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-prefers-reduced-motion",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
MISSING = "There is no browser: install Debian's chromium and chromium-driver."
PATIENCE = 30  # seconds, on a machine that does other things as well

# All that a page does by itself: fonts, formulas, charts; those further down it does
# only when a reader comes near, or when it is asked.
SETTLED = """
const done = arguments[0];
const started = window.MathJax?.startup?.promise ?? Promise.resolve();
const formulas = started.then(
  () => window.MathJax?.startup?.document?.lazyTypesetAll?.());
const frame = () => new Promise(requestAnimationFrame);
const ready = Promise.all([document.fonts.ready, formulas]);
ready.then(frame).then(frame).then(() => done(true));
"""
CHARTS_DRAWN = """
window.drawAllCharts?.();
return [...document.querySelectorAll(".vega-embed, [id^=altair-viz]")]
  .every(chart => chart.querySelector("svg, canvas"));
"""


def find_browser() -> tuple[str, str] | None:
    """Where Chromium and its driver are, or None where one is missing."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Sends files, without a line for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """The folder as a site on this machine; yields its address."""
    answer = functools.partial(handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class Browser:
    """One browser window of a given width and theme on one site."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver = driver
        self.address = address
        self._on_load: str | None = None

    def look(self, width: int, theme: str, height: int = 900) -> None:
        """Set the width in CSS pixels and the theme, ``light`` or ``dark``."""
        screen = {"width": width, "height": height, "mobile": width < 600}
        self.command(
            "Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, **screen
        )
        if self._on_load:
            self.command(
                "Page.removeScriptToEvaluateOnNewDocument", identifier=self._on_load
            )
        stored = f"localStorage.mode = localStorage.theme = '{theme}'"
        added = self.command("Page.addScriptToEvaluateOnNewDocument", source=stored)
        self._on_load = added["identifier"]

    def open(self, page: str) -> None:
        """Open a page and wait until it has stopped changing."""
        self.driver.get(self.address + page)
        self.settle()

    def settle(self) -> None:
        """Wait for fonts, formulas and charts."""
        self.driver.execute_async_script(SETTLED)
        self.wait(lambda: self.run(CHARTS_DRAWN))

    def wait(self, condition) -> None:
        """Wait until ``condition()`` is true."""
        WebDriverWait(self.driver, PATIENCE).until(lambda _: condition())

    def run(self, script: str, *arguments):
        """Run JavaScript in the page; returns what it returns."""
        return self.driver.execute_script(script, *arguments)

    def run_slowly(self, script: str, *arguments, seconds: float):
        """Run JavaScript that calls its last argument when it is done."""
        self.driver.set_script_timeout(seconds)
        try:
            return self.driver.execute_async_script(script, *arguments)
        finally:
            self.driver.set_script_timeout(PATIENCE)

    def command(self, name: str, **parameters) -> dict:
        """A command of Chromium's own protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call."""
        entries = (json.loads(e["message"]) for e in self.driver.get_log("performance"))
        messages = [entry["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def console(self) -> list[str]:
        """The console's warnings and errors since the last call."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in {"WARNING", "SEVERE"}
        ]


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser on the site in ``folder``."""
    found = find_browser()
    if found is None:
        raise RuntimeError("Chromium and chromedriver are needed; install both.")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for switch in SWITCHES:
        options.add_argument(switch)
    options.set_capability(
        "goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"}
    )
    with served(folder) as address:
        driver = webdriver.Chrome(options=options, service=Service(found[1]))
        driver.set_script_timeout(PATIENCE)
        try:
            yield Browser(driver, address)
        finally:
            driver.quit()


if __name__ == "__main__" and find_browser() is None:
    raise SystemExit(MISSING)
