"""axe finds nothing on one page of each kind; ``make audit`` looks at all of them."""

from importlib.metadata import PackageNotFoundError

import pytest

from tests.site.conftest import missing
from tools.site.checks import axe_script, violations

ONE_OF_EACH_KIND = (
    "book/index",  # the landing page
    "book/ledger",  # tables
    "book/references",  # a list of references
    "book/how-to-use",  # callouts
    "book/live-model",  # a tool
    "book/teach/exercises",  # for teachers
    "notebooks/03-attention",  # code, charts, formulas, quizzes
)


@pytest.fixture(autouse=True)
def axe():
    """The script has to be there."""
    try:
        axe_script()
    except PackageNotFoundError:
        missing("axe is not installed: see requirements.txt.")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
def test_axe_finds_nothing(browser, kind, width, theme):
    """No violation of level A or AA."""
    browser.look(width, theme)
    browser.open(f"{kind}.html")
    assert violations(browser) == []


def test_axe_would_find_something(browser):
    """A page that is spoilt on purpose is noticed."""
    browser.look(1280, "light")
    browser.open("book/run-times.html")
    browser.run(
        "document.querySelector('article').insertAdjacentHTML('beforeend',"
        '\'<img src="data:,"><p style="color: #ccc; background: #fff">Pale</p>\')'
    )
    found = {violation["rule"] for violation in violations(browser)}
    assert {"image-alt", "color-contrast"} <= found
