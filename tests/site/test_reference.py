"""The pages to look things up, operated as a reader does."""

from selenium.webdriver.common.keys import Keys

SHOWN = (
    "return [...document.querySelectorAll('table.ledger tbody tr')]"
    ".filter(row => row.offsetParent)"
    ".map(row => [row.closest('section').querySelector('h2').firstChild.textContent,"
    " row.querySelector('.verdict').textContent])"
)
CHOOSE = "document.querySelectorAll('.ledger-filter select')[arguments[0]].focus()"


def choose(browser, menu: int, key: str) -> list[list[str]]:
    """Press a key in one of the two menus; returns the rows that are left."""
    browser.run(CHOOSE, menu)
    browser.driver.switch_to.active_element.send_keys(key)
    return browser.run(SHOWN)


def test_the_ledger_is_filtered_by_keyboard(browser):
    """By verdict, by both, and back; the count says what is shown."""
    browser.look(1280, "light")
    browser.open("book/ledger.html")
    everything = browser.run(SHOWN)
    verdict = choose(browser, 0, Keys.ARROW_DOWN)
    first = verdict[0][1]
    assert verdict == [row for row in everything if row[1] == first]
    assert 0 < len(verdict) < len(everything)
    both = choose(browser, 1, Keys.END)
    assert both == [row for row in verdict if row[0] == everything[-1][0]]
    status = "return document.querySelector('.ledger-filter [role=status]').textContent"
    assert browser.run(status).startswith(f"{len(both)} of {len(everything)} ")
    choose(browser, 0, Keys.HOME)
    assert choose(browser, 1, Keys.HOME) == everything


def test_a_link_to_a_claim_shows_it_although_it_was_filtered_away(browser):
    """The ledger's own links, and those of the chapters, name a row."""
    browser.look(1280, "light")
    browser.open("book/ledger.html")
    count = len(browser.run(SHOWN))
    left = choose(browser, 1, Keys.END)
    assert len(left) < count
    browser.run("location.hash = document.querySelector('table.ledger tbody td').id")
    browser.wait(lambda: len(browser.run(SHOWN)) == count)


def test_the_reference_shows_every_signature_whole(browser):
    """On a phone nothing of a signature is cut off or must be scrolled to."""
    browser.look(390, "light")
    for page in ("api-model", "api-inference"):
        browser.open(f"book/{page}.html")
        signatures = browser.run(
            "return [...document.querySelectorAll('.api-signature pre')].map(block =>"
            " [block.textContent, block.scrollWidth > block.clientWidth])"
        )
        assert signatures
        assert [text for text, is_cut in signatures if is_cut] == []


def test_the_search_finds_a_function_of_the_package(browser):
    """Names of the package are objects that the search knows."""
    browser.look(1280, "light")
    browser.open("search.html?q=noam_rate")
    hits = "return [...document.querySelectorAll('ul.search a')].map(a => a.href)"
    browser.wait(lambda: any("api-training" in hit for hit in browser.run(hits)))
