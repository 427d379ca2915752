"""The search: what readers type leads to the page that answers, and to it first."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGE = "search.html"
FIELD = ".bd-search-container form.bd-search"
LINKS = """
return [...document.querySelectorAll(arguments[0] + " ~ .search-found ul > li")]
  .map(line => [...line.querySelectorAll("a")].map(a => a.getAttribute("href")));
"""
FIRST = {  # what is typed, and the page that comes first
    "how does the decoder work": "notebooks/11-how-the-decoder-writes",
    "why sqrt": "notebooks/04-scaling",
    "why divide by √dₖ": "notebooks/04-scaling",
    "what is attention": "notebooks/03-attention",
    "self attention": "notebooks/03-attention",
    "Self-Attention": "notebooks/03-attention",
    "multi head": "notebooks/05-multi-head",
    "causal mask": "notebooks/06-masks",
    "normalization": "notebooks/07-feed-forward-residual-norm",
    "weight tying": "notebooks/08-embeddings",
    "positional enc": "notebooks/09-positional-encoding",
    "cross attention": "notebooks/10-encoder-decoder",
    "kv cache": "notebooks/11-how-the-decoder-writes",
    "bpe": "notebooks/13-data-and-batching",
    "warmup": "notebooks/14-optimizer",
    "label smoothing": "notebooks/15-regularization",
    "beam search": "notebooks/17-search",
    "bleu": "notebooks/17b-bleu-and-table-2",
    "rope": "notebooks/21-what-changed",
    "glossary": "book/glossary",
    "notation": "book/notation",
    "beam_search": "book/api-inference",
    "exercises": "book/teach/exercises",
}


def results(browser, form=FIELD):
    """The addresses of each result: the page's, then places in it."""
    return browser.run(LINKS, form)


def ask(browser, query, form=FIELD):
    """Type a query, and wait for what it finds."""
    browser.run(
        "const field = document.querySelector(arguments[0] + ' input');"
        "field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        form,
        query,
    )
    asked = f"return document.querySelector({form!r}).dataset.asked"
    browser.wait(lambda: browser.run(asked) == query)
    return results(browser, form)


@pytest.fixture
def search(browser):
    """The page of the search, without a query."""
    browser.look(1280, "light")
    browser.console()
    browser.open(PAGE)
    browser.wait(lambda: browser.run("return !!window.bookSearch"))
    return browser


def test_the_answer_comes_first(search):
    """For everything in the table; and each page stands there once."""
    wrong = {}
    for query, page in FIRST.items():
        found = [links[0] for links in ask(search, query)]
        assert len(set(found)) == len(found)
        if not found or page not in found[0]:
            wrong[query] = found[:3]
    assert wrong == {}
    assert search.console() == []


def test_a_query_stands_in_the_address(browser):
    """A link to a search works, and the results name nothing but pages and places."""
    browser.look(1280, "light")
    browser.console()
    browser.open(f"{PAGE}?q=how+does+the+decoder+work")
    browser.wait(lambda: results(browser))
    text = browser.driver.find_element(By.CSS_SELECTOR, ".search-found").text
    for furniture in ("min to read", "Colab", "download", "Show the code"):
        assert furniture not in text
    assert browser.console() == []


def test_results_come_while_one_types(search):
    """By keyboard: letters, then the arrow to the first result."""
    field = search.driver.find_element(By.CSS_SELECTOR, f"{FIELD} input")
    field.send_keys("posit")
    search.wait(lambda: results(search))
    assert "09-positional-encoding" in results(search)[0][0]
    field.send_keys(Keys.ARROW_DOWN)
    focused = search.driver.switch_to.active_element.get_attribute("href")
    assert focused.endswith("09-positional-encoding.html")


def test_a_term_is_written_as_the_glossary_has_it(search):
    """BLEU, not bleu."""
    ask(search, "bleu")
    places = search.run(
        "return [...document.querySelectorAll('.search-place')].map(a => a.textContent)"
    )
    assert "BLEU" in places


def test_nothing_found_is_said(search):
    """In words, with what was typed as text."""
    assert ask(search, "<b>qqqq</b>") == []
    said = search.run(
        f"return document.querySelector('{FIELD} ~ .search-found p').textContent"
    )
    assert said.startswith("Nothing is found for “<b>qqqq</b>”.")


@pytest.mark.parametrize("width", [390, 1440])
def test_typed_text_is_clear_of_the_magnifier(browser, width):
    """On the page of the search, and in the dialogue of every other page."""
    browser.look(width, "light")
    for page, form in ((PAGE, FIELD), ("book/index.html", DIALOGUE)):
        browser.open(page)
        if form == DIALOGUE:
            open_dialogue(browser)
        gap = browser.run(
            "const form = document.querySelector(arguments[0]);"
            "const icon = form.querySelector('.fa-magnifying-glass');"
            "const field = form.querySelector('input');"
            "return field.getBoundingClientRect().left"
            "  + parseFloat(getComputedStyle(field).paddingLeft)"
            "  - icon.getBoundingClientRect().right",
            form,
        )
        assert gap > 2


DIALOGUE = "#pst-search-dialog form.bd-search"


def open_dialogue(browser):
    browser.run("document.querySelector('.search-button__button').click()")
    browser.run(f"document.querySelector('{DIALOGUE} input').focus()")
    browser.wait(lambda: browser.run("return !!window.bookSearch?.index"))


def test_every_page_can_be_searched_from(browser):
    """The index comes with the first focus; the page that is found bears no marks."""
    browser.look(1280, "light")
    browser.console()
    browser.open("book/index.html")
    index = (
        "return performance.getEntriesByType('resource')"
        ".some(entry => entry.name.includes('searchindex'))"
    )
    assert not browser.run(index)
    open_dialogue(browser)
    links = ask(browser, "attention", DIALOGUE)
    assert "03-attention" in links[0][0]
    browser.driver.get(browser.address + "book/index.html")
    left = "return document.querySelectorAll('.highlighted, .highlight-link').length"
    assert browser.run(left) == 0
    assert browser.console() == []
