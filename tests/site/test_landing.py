"""The landing page: one head, a field, verdicts, and the figure that is a contents."""

import re
from collections import Counter

import pytest
from selenium.webdriver import ActionChains, Keys

from aiayn.inference import translate
from aiayn_book.claims import claims
from aiayn_book.head_scores import without_heads
from aiayn_book.live import load_live_model

PAGE = "book/index.html"
SENTENCE = "The cow sleeps because it is tired."
HEAD = ("cross", 1, 1)
TITLE = "return document.querySelector('.figure-note .block-title').textContent"
CURRENT = (
    "return [...document.querySelectorAll('.figure-one .current')]"
    ".map(block => block.dataset.block)"
)
HERO = "return document.querySelector('.hero-words').innerText.trim()"


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


def test_the_head_decides_the_gender(landing):
    """The button shows what the model writes without the head, and shows it back."""
    model, tokenizer = load_live_model()
    (german,) = translate([SENTENCE], model, tokenizer, beam_size=1)
    with without_heads(model, [HEAD]):
        (without,) = translate([SENTENCE], model, tokenizer, beam_size=1)
    assert german == "Die Kuh schläft, weil sie müde ist."
    assert without == "Der Kuh schläft, weil er müde ist."
    button = landing.run("return document.querySelector('.hero-switch')")
    assert landing.run(HERO) == german
    for now in (without, german):
        button.click()
        assert landing.run(HERO) == now
        assert button.get_attribute("aria-pressed") == str(now == without).lower()
    assert landing.console() == []


@pytest.mark.parametrize("width", [390, 1440])
def test_the_first_screen_shows_the_head_and_the_field(browser, width):
    """Neither on a phone nor on a desk does one scroll to them."""
    browser.look(width, "light")
    browser.open(PAGE)
    height = 844 if width == 390 else 900
    for part in (".hero-switch", "#everyday-sentence"):
        bottom = f"document.querySelector('{part}').getBoundingClientRect().bottom"
        assert browser.run(f"return {bottom} + scrollY") <= height


def test_it_needs_no_server(site, landing):
    """Opened as a file, everything is there: data stands in the page itself."""
    landing.driver.get((site / PAGE).as_uri())
    landing.run("document.querySelector('[data-block=scale]').focus()")
    assert landing.run(TITLE) == "Scaling"


def test_the_bar_is_as_long_as_the_counts(landing):
    """Part by part, on a wide screen and on a phone."""
    for width in (1440, 390):
        landing.look(width, "light")
        landing.open(PAGE)
        shares, counts = landing.run(
            "const all = name => [...document.querySelector('.verdict-bar')"
            "  .querySelectorAll(name)];"
            "return [all('i').map(part => part.getBoundingClientRect().width),"
            " all('strong').map(count => Number(count.textContent))]"
        )
        shares = [share / sum(shares) for share in shares if share]
        expected = [count / sum(counts) for count in counts]
        assert shares == pytest.approx(expected, abs=0.01)


def test_each_door_shows_that_it_has_the_focus(landing):
    """By keyboard one sees where one is: at the doors, and at the buttons above."""
    for place in (".doors a", ".bd-header-article .primary-toggle"):
        landing.run("document.querySelector(arguments[0]).focus()", place)
        press(landing, Keys.SHIFT, Keys.NULL)  # a key: the focus is to be seen
        ring = landing.run(
            "const at = document.activeElement;"
            "return getComputedStyle(at.closest('.sd-card') ?? at).outlineStyle"
        )
        assert ring == "solid", place


def test_verdicts_are_those_of_the_ledger(landing):
    """The bar's counts are the ledger's, group by group, and none is lost."""
    shown = landing.run(
        "return Object.fromEntries([...document.querySelectorAll('.verdict-bar a')]"
        ".map(a => [a.querySelector('span').textContent,"
        " Number(a.querySelector('strong').textContent)]))"
    )
    landing.open("book/ledger.html")
    labels = landing.run(
        "return [...document.querySelectorAll('table.ledger .verdict')]"
        ".map(label => label.textContent)"
    )
    verdicts = Counter(label.partition(" ")[2] for label in labels)  # without its sign
    assert sum(shown.values()) == len(labels) == len(claims())
    contradicted = sum(n for v, n in verdicts.items() if v.startswith("contradicted"))
    assert shown["contradicted"] == contradicted
    # There, too, a count shows its claims.
    link = (
        "document.querySelector('.ledger-summary .verdict-contradicted').closest('a')"
    )
    landing.run(f"{link}.click()")
    landing.wait(lambda: "verdict=contradicted" in landing.driver.current_url)
    landing.settle()
    left = (
        "return document.querySelectorAll('table.ledger tbody tr:not([hidden])').length"
    )
    assert landing.run(left) == contradicted
    assert shown["defined by the paper"] == verdicts["defined"]


def test_numbers_are_counted(landing):
    """As many notebooks as the list of chapters has; verdicts as in the ledger."""
    written = landing.run(
        "return document.querySelectorAll('.chapters-list .written').length"
    )
    landing.open("book/run-times.html")
    items = landing.run(
        "return [...document.querySelectorAll('.measured-numbers li')]"
        ".map(item => item.textContent)"
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
