"""Fixtures of the browser tests: the built site, one browser for all of them."""

import os
from pathlib import Path

import pytest

from tools.site import browser as chromium
from tools.site.checks import written_pages

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"


def missing(reason: str) -> None:
    """Skip, but fail where all tests are expected to run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "index.html").exists():
        missing("There is no site to test: run 'make book' first.")
    return SITE


@pytest.fixture(scope="session")
def browser(site):
    """A browser that reaches nothing but the site."""
    if chromium.find_browser() is None:
        missing(chromium.MISSING)
    with chromium.browsing(site) as window:
        yield window


def pytest_generate_tests(metafunc):
    """Run a test that asks for a ``page`` once for every page."""
    if "page" in metafunc.fixturenames:
        # Before the first build there are none; the fixture `site` then says so.
        metafunc.parametrize("page", written_pages(SITE) or ["book/index.html"])
