"""Every page, light and dark, wide and narrow, with all other hosts unreachable."""

import re

import pytest

from tools.site.audit import LIMIT
from tools.site.checks import broken_links, elsewhere, weight, written_pages

WIDTHS = (1280, 390)
THEMES = ("light", "dark")
FILE_NAME = re.compile(r"\.(?:png|svg|jpe?g)$|^_images|/")


SCROLLED = (
    "const page = document.documentElement;return page.scrollWidth - page.clientWidth;"
)
RAW_FORMULAS = (
    "return [...document.querySelectorAll('.math')]"
    ".filter(formula => !formula.querySelector('mjx-container'))"
    ".map(formula => formula.textContent)"
)
REFUSED_FORMULAS = (
    "return [...document.querySelectorAll('mjx-merror')]"
    ".map(formula => formula.textContent)"
)
ALTERNATIVES = (
    "return [...document.querySelectorAll('.bd-article img')].map(i => i.alt)"
)
CHARTS_WITHOUT_LABEL = (
    "return [...document.querySelectorAll('.bd-article .vega-embed')]"
    ".filter(c => !c.querySelector('[aria-label]:not([aria-label=\"\"])')).length"
)
# On a phone each line of a cell is folded at the screen's width.
CODE_THAT_IS_CUT = (
    "return [...document.querySelectorAll('div.cell_input pre')]"
    ".filter(code => code.scrollWidth > code.clientWidth)"
    ".map(code => code.textContent.slice(0, 60))"
)
# The theme puts one under every table and chart that it does not know.
LIGHT_SHEETS = (
    "return [...document.querySelectorAll('.cell_output .text_html')]"
    ".map(output => getComputedStyle(output).backgroundColor)"
    ".filter(colour => Math.min(...colour.match(/[\\d.]+/g).slice(0, 3)) > 128)"
)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_sound(browser, site, page, width, theme):
    """One visit for each look of a page, with all checks on it.

    No request to another host, nothing on the console, no sideways scrolling, all
    formulas typeset, a text alternative for each picture and chart.
    """
    browser.look(width, theme)
    browser.requests()
    browser.console()
    browser.open(page)
    asked = browser.requests()
    assert asked
    assert browser.run("return document.documentElement.dataset.theme") == theme
    alternatives = browser.run(ALTERNATIVES)
    faults = {
        "requests to other hosts": elsewhere(browser, asked),
        "on the console": browser.console(),
        "pixels scrolled sideways": browser.run(SCROLLED),
        "formulas left as TeX": browser.run(RAW_FORMULAS),
        "formulas with a mistake": browser.run(REFUSED_FORMULAS),
        "poor alternatives": [
            text for text in alternatives if not text or FILE_NAME.search(text)
        ],
        "charts without description='…'": browser.run(CHARTS_WITHOUT_LABEL),
    }
    if width == 390:
        faults["code that is cut"] = browser.run(CODE_THAT_IS_CUT)
    if theme == "dark":
        faults["light sheets in the dark"] = browser.run(LIGHT_SHEETS)
    if (width, theme) == (1280, "light"):  # compressed as a static host does it
        faults["bytes over the limit"] = max(0, weight(site, asked) - LIMIT)
    assert {name: found for name, found in faults.items() if found} == {}


def test_each_check_of_a_page_finds_its_fault(browser):
    """A page that is spoilt on purpose."""
    browser.look(390, "dark")
    browser.open("book/run-times.html")
    browser.run(
        "document.querySelector('article').insertAdjacentHTML('beforeend', `"
        "<div style='width: 2000px'>wide</div><span class='math'>x^2</span>"
        "<mjx-merror>refused</mjx-merror><img src='data:,' alt='a.png'>"
        "<div class='vega-embed'></div>"
        "<div class='cell_input'><pre style='white-space: pre'>${'x'.repeat(400)}</pre>"
        "</div><div class='cell_output'>"
        "<div class='text_html' style='background: white !important'>t</div></div>`)"
    )
    for check in (SCROLLED, RAW_FORMULAS, REFUSED_FORMULAS, CHARTS_WITHOUT_LABEL):
        assert browser.run(check), check
    assert any(FILE_NAME.search(text) for text in browser.run(ALTERNATIVES))
    assert browser.run(CODE_THAT_IS_CUT)
    assert browser.run(LIGHT_SHEETS)


def test_no_dollar_sign_is_left_of_a_formula(site, page):
    """One that Markdown does not see: it stands there as it was typed."""
    text = (site / page).read_text(encoding="utf-8").partition("<article")[2]
    text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    shown = re.sub(r"<[^>]+>", "", text)
    assert re.findall(r".{0,30}\$.{0,30}", shown) == []


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


def test_the_sites_own_address_is_called_as_its_first_page(site):
    """A link to it shows title and picture; it leads on without a script."""
    front = (site / "index.html").read_text(encoding="utf-8")
    first = (site / "book/index.html").read_text(encoding="utf-8")
    for tag in (r"<title>[^<]+</title>", r'<meta property="og:image" [^>]+>'):
        assert re.findall(tag, front) == re.findall(tag, first)[:1] != []
    assert 'content="0; url=book/index.html"' in front


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
