"""The landing page: the figure that is a table of contents, and the map beside it."""

import re
from collections import Counter

import pytest
from selenium.webdriver import ActionChains, Keys

PAGE = "book/index.html"
TITLE = "return document.querySelector('.figure-note .block-title').textContent"
CURRENT = (
    "return [...document.querySelectorAll('.figure-one .current')]"
    ".map(block => block.dataset.block)"
)
WORDS = "return document.querySelector('.live-attention-words').textContent"


@pytest.fixture
def landing(browser):
    """The landing page, freshly opened."""
    browser.look(1280, "light")
    browser.open(PAGE)
    browser.console()
    return browser


def press(browser, *keys: str) -> None:
    """Keys, one after another."""
    ActionChains(browser.driver).send_keys(*keys).perform()


def focused(browser) -> str | None:
    """Which block has the focus."""
    return browser.run("return document.activeElement.dataset.block ?? null")


def test_every_block_is_reached_by_keyboard_and_explained(landing):
    """Tab goes through all blocks; the note follows; Enter opens the chapter."""
    blocks = landing.run(
        "return [...document.querySelectorAll('.figure-one .block')]"
        ".map(block => block.dataset.block)"
    )
    assert len(blocks) > 20
    landing.run("document.querySelector('.figure-one .block').focus()")
    titles = {}
    for expected in blocks:
        assert focused(landing) == expected
        assert set(landing.run(CURRENT)) == {expected}
        titles[expected] = landing.run(TITLE)
        press(landing, Keys.TAB)
    assert len(set(titles.values())) == len(titles)
    target = "document.querySelector('.figure-one [data-block=masked-self-attention]')"
    landing.run(f"{target}.focus()")
    press(landing, Keys.ENTER)
    landing.wait(lambda: "06-masks" in landing.driver.current_url)


def test_the_focused_block_is_seen(landing):
    """The ring around it is as thick as it was made, in the page's ink."""
    landing.run("document.querySelector('.figure-one .block').focus()")
    press(landing, Keys.TAB)
    ring = landing.run(
        "const style = getComputedStyle(document.activeElement.querySelector('rect'));"
        "const ink = getComputedStyle(document.body).color;"
        "return [style.strokeWidth, style.stroke === ink]"
    )
    assert ring == ["3px", True]


def test_pointing_tells(landing):
    """The mouse on a block brings its note, without a click."""
    block = "document.querySelector('.figure-one [data-block=softmax]')"
    element = landing.run(f"return {block}")
    ActionChains(landing.driver).move_to_element(element).perform()
    landing.wait(lambda: landing.run(TITLE) == "Softmax")
    assert landing.driver.current_url.endswith(PAGE)


def test_a_finger_is_told_first_and_led_then(browser):
    """One touch explains a block, the second opens its chapter."""
    browser.look(390, "light")
    browser.open(PAGE)
    browser.command("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        touch(browser, "feed-forward")
        browser.wait(lambda: browser.run(TITLE) == "Feed-forward")
        assert browser.driver.current_url.endswith(PAGE)
        touch(browser, "feed-forward")
        browser.wait(lambda: "07-feed-forward" in browser.driver.current_url)
    finally:
        browser.command("Emulation.setTouchEmulationEnabled", enabled=False)


def touch(browser, name: str) -> None:
    """A finger on a block."""
    x, y = browser.run(
        f"const block = document.querySelector('.figure-one [data-block={name}] rect');"
        "block.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const box = block.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]"
    )
    point = [{"x": x, "y": y}]
    browser.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=point)
    browser.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def test_the_map_says_where_a_word_looks(landing):
    """A focused word is named with the words that it looks at; others are redrawn."""
    rows = "document.querySelectorAll('.live-attention tbody button')"
    landing.run(f"{rows}[0].focus()")
    assert "“Ein”" in landing.run(WORDS)
    german = "document.querySelector('.live-attention-words [lang=de]')"
    assert landing.run(f"return {german}.textContent") == "Ein"
    before = landing.run(f"return [...{rows}].map(button => button.textContent)")
    menus = landing.run(
        "return [...document.querySelectorAll('.live-attention select')]"
    )
    menus[0].send_keys(Keys.DOWN)
    landing.wait(lambda: landing.run(f"return {rows}[0].textContent") != before[0])
    cells = (
        "return [...document.querySelectorAll('.live-attention tbody td')]"
        ".map(cell => cell.textContent).join(' ')"
    )
    mean = landing.run(cells)
    menus[1].send_keys(Keys.DOWN)
    landing.wait(lambda: landing.run(cells) != mean)
    assert landing.console() == []


def test_the_map_needs_no_server(site, landing):
    """Opened as a file, everything is there: data stands in the page itself."""
    landing.driver.get((site / PAGE).as_uri())
    landing.run("document.querySelectorAll('.live-attention tbody button')[0].focus()")
    assert "“Ein”" in landing.run(WORDS)
    landing.run("document.querySelector('[data-block=scale]').focus()")
    assert landing.run(TITLE) == "Scaling"


def test_numbers_are_counted(landing):
    """As many notebooks as the list of chapters has; verdicts as in the ledger."""
    items = landing.run(
        "return [...document.querySelectorAll('.measured-numbers li')]"
        ".map(item => item.textContent)"
    )
    written = landing.run(
        "return document.querySelectorAll('.chapters-list .written').length"
    )
    assert items[0].split()[0] == str(written)
    landing.open("book/ledger.html")
    labels = landing.run(
        "return [...document.querySelectorAll('table.ledger .verdict')]"
        ".map(label => label.textContent)"
    )
    verdicts = Counter(label.partition(" ")[2] for label in labels)  # without its sign
    total, _, settled = items[1].partition(": ")
    assert total == f"{len(labels)} claims of the paper"
    settled = re.sub(r" \([^)]*\)", "", settled)  # by what it is contradicted
    counts = [f"{count} {verdict}" for verdict, count in verdicts.items()]
    assert sorted(settled.split(", ")) == sorted(counts)
