"""The two things that a reader operates in every chapter: a slider, the theme."""

import re

import pytest

SLIDER = ".vega-bind input[type=range]"


@pytest.fixture
def page_with_slider(site):
    """The first page that holds a chart with a slider."""
    for path in sorted(site.glob("notebooks/*.html")):
        if re.search(r'"input": ?"range"', path.read_text(encoding="utf-8")):
            return path.relative_to(site).as_posix()
    pytest.fail("No chapter has a chart with a slider.")


def drawing(browser) -> str:
    """The drawing of the first chart that has a slider."""
    return browser.run(
        f"return document.querySelector('{SLIDER}')"
        ".closest('.vega-embed').querySelector('svg').outerHTML"
    )


def test_slider_redraws_its_chart(browser, page_with_slider):
    """Moving the slider to its other end changes the drawing."""
    browser.look(1280, "light")
    browser.open(page_with_slider)
    before = drawing(browser)
    browser.console()
    browser.run(
        f"const slider = document.querySelector('{SLIDER}');"
        "slider.value = slider.value === slider.max ? slider.min : slider.max;"
        "slider.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    browser.wait(lambda: drawing(browser) != before)
    assert browser.console() == []


def test_theme_switch_recolours_charts_and_keeps_the_slider(browser, page_with_slider):
    """After the switch the same chart stands there once, in the other theme's ink."""
    browser.look(1280, "light")
    browser.open(page_with_slider)
    charts = browser.run("return document.querySelectorAll('.vega-embed svg').length")
    browser.run(
        f"const slider = document.querySelector('{SLIDER}');"
        "slider.value = slider.max;"
        "slider.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    place = browser.run(f"return document.querySelector('{SLIDER}').value")
    before = drawing(browser)
    switch_to(browser, "dark")
    browser.wait(lambda: browser.run(f"return !!document.querySelector('{SLIDER}')"))
    browser.wait(lambda: drawing(browser) != before)
    browser.settle()
    assert browser.run(f"return document.querySelector('{SLIDER}').value") == place
    ink = browser.run(
        "return getComputedStyle(document.documentElement)"
        ".getPropertyValue('--book-ink').trim()"
    )
    assert ink in drawing(browser)
    after = browser.run("return document.querySelectorAll('.vega-embed svg').length")
    assert after == charts


MENU = (
    "[...document.querySelectorAll('.vega-bind select')].find(menu => menu.length > 2)"
)
# Where the marks of its chart lie and how strong they are, whatever their colour.
MARKS = f"""
const parts = ["d", "opacity", "fill-opacity", "stroke-width", "stroke-opacity"];
return [...{MENU}.closest(".vega-embed").querySelectorAll("svg path[aria-label]")]
  .map(mark => parts.map(name => mark.getAttribute(name)).join()).join(";");
"""


def test_theme_switch_keeps_what_was_chosen_in_a_menu(browser):
    """What a reader chose is still chosen, and the chart shows it."""
    browser.look(1280, "light")
    browser.open("notebooks/07-feed-forward-residual-norm.html")
    first = browser.run(MARKS)
    browser.run(
        f"const menu = window.old = {MENU};"
        "menu.selectedIndex = (menu.selectedIndex + 1) % menu.length;"
        "menu.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    browser.wait(lambda: browser.run(MARKS) != first)
    chosen, drawn = browser.run("return window.old.value"), browser.run(MARKS)
    switch_to(browser, "dark")
    browser.wait(lambda: browser.run(f"return !window.old.isConnected && !!{MENU}"))
    browser.settle()
    browser.wait(lambda: browser.run(MARKS) == drawn)
    assert browser.run(f"return {MENU}.value") == chosen


def test_theme_switch(browser):
    """The button's menu leads from light to dark, and the page's colour follows."""
    browser.look(1280, "light")
    browser.open("book/index.html")
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    switch_to(browser, "dark")
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert light != dark


def test_a_dark_page_is_printed_as_a_light_one(browser):
    """Paper is white; the screen is dark again afterwards."""
    browser.look(1280, "dark")
    browser.open("book/index.html")
    browser.run(
        "addEventListener('beforeprint', () => {"
        "window.printed = document.documentElement.dataset.theme})"
    )
    browser.command("Page.printToPDF")
    assert browser.run("return window.printed") == "light"
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


def test_a_chart_far_below_the_screen_is_printed(browser, page_with_slider):
    """Drawn when paper is asked for, with what has come since the reader stirred."""
    browser.look(1280, "light")
    far = (  # before the page's own scripts ask where the charts are
        "document.addEventListener('readystatechange',"
        " () => { document.body.style.paddingTop = '9000px'; }, {once: true})"
    )
    added = browser.command("Page.addScriptToEvaluateOnNewDocument", source=far)
    try:
        browser.driver.get(browser.address + page_with_slider)
    finally:
        browser.command("Page.removeScriptToEvaluateOnNewDocument", **added)
    browser.run("dispatchEvent(new Event('pointermove'))")
    come = "return 'vega' in window && document.fonts.status === 'loaded'"
    browser.wait(lambda: browser.run(come))
    browser.run(
        "window.drawn = () => [...document.querySelectorAll('[id^=altair-viz]')]"
        ".map(chart => !!chart.querySelector('svg'));"
        "addEventListener('afterprint', () => { window.printed = drawn(); });"
    )
    assert set(browser.run("return drawn()")) == {False}
    browser.command("Page.printToPDF")
    assert set(browser.run("return window.printed")) == {True}


def switch_to(browser, theme: str) -> None:
    """Choose the theme in the button's menu."""
    browser.run("document.querySelector('.theme-switch-button').click()")
    browser.run(f"document.querySelector('.show > li > [data-mode={theme}]').click()")
    assert browser.run("return document.documentElement.dataset.theme") == theme
