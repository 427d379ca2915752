"""Every page, light and dark, wide and narrow, with all other hosts unreachable."""

import re

import pytest

from audit import LIMIT
from site_checks import broken_links, elsewhere, weight, written_pages

WIDTHS = (1280, 390)
THEMES = ("light", "dark")
FILE_NAME = re.compile(r"\.(?:png|svg|jpe?g)$|^_images|/")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_quiet_and_fits(browser, page, width, theme):
    """No request to another host, nothing on the console, no sideways scrolling."""
    browser.look(width, theme)
    browser.requests()
    browser.console()
    browser.open(page)
    asked = browser.requests()
    assert asked
    assert elsewhere(browser, asked) == []
    assert browser.console() == []
    assert browser.run("return document.documentElement.dataset.theme") == theme
    overflow = browser.run(
        "const page = document.documentElement;"
        "return page.scrollWidth - page.clientWidth;"
    )
    assert overflow == 0, f"{page} scrolls sideways by {overflow} px at {width} px"


def test_code_is_folded_on_a_phone_and_not_scrolled(browser, page):
    """Each line of a cell is as wide as the screen."""
    browser.look(390, "light")
    browser.open(page)
    wide = browser.run(
        "return [...document.querySelectorAll('div.cell_input pre')]"
        ".filter(code => code.scrollWidth > code.clientWidth)"
        ".map(code => code.textContent.slice(0, 60))"
    )
    assert wide == []


def test_no_output_lies_on_a_light_sheet_in_the_dark(browser, page):
    """The theme puts one under every table and chart that it does not know."""
    browser.look(1280, "dark")
    browser.open(page)
    light = browser.run(
        "return [...document.querySelectorAll('.cell_output .text_html')]"
        ".map(output => getComputedStyle(output).backgroundColor)"
        ".filter(colour => Math.min(...colour.match(/[\\d.]+/g).slice(0, 3)) > 128)"
    )
    assert light == []


def test_formulas_are_typeset(browser, page):
    """No TeX is left raw, none was refused."""
    browser.look(1280, "light")
    browser.open(page)
    raw = browser.run(
        "return [...document.querySelectorAll('.math')]"
        ".filter(formula => !formula.querySelector('mjx-container'))"
        ".map(formula => formula.textContent)"
    )
    assert raw == []
    refused = browser.run(
        "return [...document.querySelectorAll('mjx-merror')]"
        ".map(formula => formula.textContent)"
    )
    assert refused == []


def test_no_dollar_sign_is_left_of_a_formula(site, page):
    """One that Markdown does not see: it stands there as it was typed."""
    text = (site / page).read_text(encoding="utf-8").partition("<article")[2]
    text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    shown = re.sub(r"<[^>]+>", "", text)
    assert re.findall(r".{0,30}\$.{0,30}", shown) == []


def test_figures_have_a_text_alternative(browser, page):
    """An image says what it shows; a chart has a label."""
    browser.look(1280, "light")
    browser.open(page)
    texts = browser.run(
        "return [...document.querySelectorAll('.bd-article img')].map(i => i.alt)"
    )
    assert [text for text in texts if not text or FILE_NAME.search(text)] == []
    unlabelled = browser.run(
        "return [...document.querySelectorAll('.bd-article .vega-embed')]"
        ".filter(c => !c.querySelector('[aria-label]:not([aria-label=\"\"])')).length"
    )
    assert unlabelled == 0, f"{unlabelled} charts lack description='…'"


def test_page_has_a_description(site, page):
    """Search engines and link previews have something to show."""
    text = (site / page).read_text(encoding="utf-8")
    found = re.search(r'<meta name="description" content="([^"]{5,200})"', text)
    assert found, f"{page} has no description"


def test_page_has_a_preview(site, page):
    """A link to the page shows title, description and a picture that is there."""
    text = (site / page).read_text(encoding="utf-8")
    found = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]+)"', text))
    assert {"title", "description", "url", "image"} <= set(found)
    address, _, path = found["image"].partition("/_static/")
    assert found["url"] == f"{address}/{page}"
    picture = (site / "_static" / path).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 1200


def test_page_says_what_it_takes(site, page):
    """Reading time everywhere; a chapter also its running time, notebook and source."""
    if page == "book/index.html":
        return
    text = (site / page).read_text(encoding="utf-8")
    facts = re.search(r'<p class="page-facts">(.*?)</p>', text)
    assert facts, f"{page} has no line of facts under its title"
    assert re.match(r"\d+ min to read", facts[1])
    assert f"/{page.removesuffix('.html')}." in facts[1]
    if page.startswith("notebooks/"):
        assert re.search(r"\d\ss to run", facts[1])
        assert "download" in facts[1]


def test_links_and_anchors_resolve(site, page):
    """Every link inside the site leads to a file, and to an anchor in it."""
    assert broken_links(site, page) == []


def test_first_visit_is_light(browser, site, page):
    """What a first visit loads, compressed as a static host does it."""
    browser.look(1280, "light")
    browser.requests()
    browser.open(page)
    asked = browser.requests()
    assert asked
    assert weight(site, asked) <= LIMIT


def test_the_map_lists_every_page_once(site):
    """And its addresses are those of the site."""
    text = (site / "sitemap.xml").read_text(encoding="utf-8")
    listed = re.findall(r"<loc>https://[\w.-]+/[\w.-]+/(.*?)</loc>", text)
    assert sorted(listed) == written_pages(site)


def test_a_page_that_has_moved_leads_to_a_page(site):
    """Also to the place in it that a link names."""
    moved = [*site.glob("book/**/*.html"), *site.glob("notebooks/*.html")]
    moved = {page.relative_to(site).as_posix() for page in moved}
    for page in moved - set(written_pages(site)):
        text = (site / page).read_text(encoding="utf-8")
        (target,) = re.findall(r'var target = "([^"]+)"', text)
        assert ((site / page).parent / target).is_file()


def test_the_page_for_no_page_asks_from_the_top(site):
    """A host shows it at any address."""
    text = (site / "404.html").read_text(encoding="utf-8")
    asked = re.findall(r'(?:href|src)="([^"]+)"', text)
    prefix = re.search(r'data-content_root="(/[^"]*)"', text)[1]
    for address in asked:
        if not re.match(r"#|[a-z]+:", address):
            path = address.removeprefix(prefix).partition("?")[0].partition("#")[0]
            assert address.startswith(prefix)
            assert (site / path).is_file(), address
