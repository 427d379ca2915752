"""The decks in a browser: nothing overflows, nothing is too small, no other host."""

import pytest

from tests.site.conftest import ROOT, chromium, missing

SLIDES = ROOT / "_build" / "html" / "slides"
WIDTH, HEIGHT = 1280, 720
# The body is set in 30 px on a slide of 720: shrunk to this, a line is still 1/40 of
# the height, the least that lecture-hall guides ask for.
SMALLEST = 0.6

# Of each slide: its title, how far its content leaves it, how it was scaled.
MEASURED = """
return [...document.querySelectorAll(".slides > section")].map(section => {
  const content = section.querySelector(".content");
  const [inner, outer] = [content, section].map(part => part.getBoundingClientRect());
  const { scale, zoom = 1 } = content.dataset;
  return {
    title: section.querySelector("h1, h2")?.textContent ?? "",
    over: Math.max(
      outer.left - inner.left, inner.right - outer.right,
      outer.top - inner.top, inner.bottom - outer.bottom),
    scale: Number(scale) * Math.min(1, Number(zoom)),
    words: content.textContent.trim().length,
  };
});
"""


def decks() -> list[str]:
    """The names of the decks that were made."""
    return sorted(path.name for path in SLIDES.glob("*.html"))


@pytest.fixture(scope="module")
def window():
    """A browser that reaches nothing but the decks."""
    if not decks():
        missing("There are no slides to test: run 'make slides' first.")
    if chromium.find_browser() is None:
        missing(chromium.MISSING)
    with chromium.browsing(SLIDES) as opened:
        opened.look(WIDTH, "light", height=HEIGHT)
        yield opened


@pytest.mark.parametrize("deck", decks() or ["index.html"])
def test_every_slide_fits_and_can_be_read(window, deck):
    """No slide's content leaves its slide, or had to be shrunk beyond reading."""
    window.requests()
    window.console()
    window.open(deck)
    asked = [url for url in window.requests() if not url.startswith("data:")]
    assert asked
    assert [url for url in asked if not url.startswith(window.address)] == []
    if deck != "index.html":
        window.wait(
            lambda: window.run("return document.documentElement.dataset.fitted")
        )
        slides = window.run(MEASURED)
        assert len(slides) > 5
        assert [slide["title"] for slide in slides if slide["over"] > 1] == []
        small = [slide for slide in slides if slide["scale"] < SMALLEST]
        assert [(slide["title"], slide["scale"]) for slide in small] == []
        assert [slide["title"] for slide in slides if not slide["words"]] == []
    assert window.console() == []


def test_a_menu_in_a_figure_keeps_its_arrow_keys(window):
    """The deck pages where nothing is chosen, and not from a menu."""
    with_menu = [n for n in decks() if "<select" in (SLIDES / n).read_text("utf-8")]
    assert with_menu, "no deck has a figure with a menu"
    window.open(with_menu[0])
    window.wait(lambda: window.run("return document.documentElement.dataset.fitted"))
    paged = (
        "const before = Reveal.getIndices().h;"
        "const options = {key: 'ArrowRight', keyCode: 39, bubbles: true};"
        "document.querySelector(arguments[0])"
        ".dispatchEvent(new KeyboardEvent('keydown', options));"
        "return Reveal.getIndices().h - before;"
    )
    assert window.run(paged, "select") == 0
    assert window.run(paged, "body") == 1
