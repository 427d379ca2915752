"""The page of the model in a reader's hands: keyboard, finger, eye, screen reader."""

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.book.conftest import contrast

PAGE = "book/live-model.html"
SENTENCE = "The old dog sleeps in the garden."
READABLE = 4.5  # WCAG 2.2 AA, contrast of text
TARGET = 24  # CSS pixels, WCAG 2.2 AA, 2.5.8


@pytest.fixture
def live(browser):
    """The page, opened anew."""
    open_at(browser, 1280, "light")
    return browser


def open_at(browser, width, theme):
    browser.look(width, theme)
    browser.console()
    browser.open(PAGE)
    browser.wait(lambda: browser.run("return !!window.liveModel?.page"))


def element(browser, name):
    return browser.driver.find_element(By.ID, f"live-{name}")


def text(browser, name):
    return browser.run("return arguments[0].textContent", element(browser, name))


def press(browser, found):
    """Click wherever it is: `click` of the driver refuses what is scrolled away."""
    browser.run("arguments[0].click()", found)


def type_sentence(browser, sentence, end=Keys.ENTER):
    field = element(browser, "sentence")
    field.clear()
    field.send_keys(sentence + end)


def translation(browser, sentence, off=()):
    """What the page's translator says, asked beside its controls."""
    return browser.run(
        "return liveModel.translator.translate(arguments[0], "
        "{scaled: true, positions: true, off: new Set(arguments[1])}).text",
        sentence,
        list(off),
    )


def table(browser):
    """The enlarged map: its column labels, row labels and numbers."""
    return browser.run(
        """
        const table = document.querySelector("table.live-map");
        const texts = cells => [...cells].map(cell => cell.textContent);
        return {
          columns: texts(table.tHead.querySelectorAll("th")),
          rows: texts(table.tBodies[0].querySelectorAll("th")),
          numbers: [...table.tBodies[0].rows]
            .map(row => texts(row.querySelectorAll("td"))),
        };
        """
    )


def test_a_sentence_is_translated_by_keyboard_alone(live):
    type_sentence(live, SENTENCE)
    assert text(live, "german") == translation(live, SENTENCE) != ""
    assert live.console() == []


def test_what_is_typed_is_text(live):
    """No mark-up of a reader's ever becomes part of the page."""
    attack = "<img src=x onerror=alert(1)><b>The</b> &lt;dog&gt;"
    before = live.run("return document.querySelectorAll('#live-model img, b').length")
    type_sentence(live, attack)
    after = live.run("return document.querySelectorAll('#live-model img, b').length")
    assert (before, after) == (0, 0)
    assert "“img”" in text(live, "notice")
    assert live.console() == []


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("The elephant sleeps.", "does not know “elephant”"),
        ("The dog sleeps 7 €.", "no piece for 7 €"),
        ("the dog sleeps.", "began with a capital"),
        ("The dog sleeps", "ended in . or ?"),
        ("The dog sleeps.", ""),
    ],
)
def test_it_says_what_it_does_not_know(live, sentence, said):
    type_sentence(live, sentence)
    notice = text(live, "notice")
    assert said in notice if said else notice == ""
    assert text(live, "german") == translation(live, sentence)


@pytest.mark.parametrize("sentence", ["", "   ", "e " * 80])
def test_what_cannot_be_shown_is_refused_in_words(live, sentence):
    type_sentence(live, sentence)
    assert text(live, "notice")
    assert text(live, "german") == ""  # nothing stays of an earlier sentence
    assert not element(live, "map").is_displayed()
    type_sentence(live, SENTENCE)
    assert element(live, "map").is_displayed()


def test_suggestions_complete_a_word_and_lead_on(live):
    """By keyboard: a suggestion taken, the focus is on the next."""
    type_sentence(live, "The old d", end="")
    chips = live.driver.find_elements(By.CSS_SELECTOR, "#live-next button")
    (dog,) = [chip for chip in chips if chip.text == "dog"]
    dog.send_keys(Keys.ENTER)
    assert element(live, "sentence").get_attribute("value") == "The old dog"
    focused = live.driver.switch_to.active_element
    assert focused.text in live.run(
        "return liveModel.translator.words.suggest('The old dog').map(s => s.word)"
    )


def test_every_suggestion_is_a_word_that_it_knows(live):
    """One goes on choosing at random: no notice about words ever comes up."""
    unknown = live.run(
        """
        const {words} = liveModel.translator;
        const strange = [];
        let seed = 1;
        const draw = n => (seed = (seed * 48271) % 2147483647) % n;
        for (let i = 0; i < 200; i += 1) {
          let text = "";
          for (let k = 0; k < 12; k += 1) {
            const found = words.suggest(text);
            if (!found.length) break;
            text = words.take(text, found[draw(found.length)]);
          }
          strange.push(...words.unknown(text));
        }
        return strange;
        """
    )
    assert unknown == []


def test_a_step_shows_what_was_written_so_far(live):
    type_sentence(live, SENTENCE)
    whole = text(live, "german")
    slider = element(live, "step")
    slider.send_keys(Keys.HOME)
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert whole.startswith(text(live, "german"))
    assert len(text(live, "german")) < len(whole)
    assert text(live, "step-text").startswith("Step 3 of ")
    assert len(table(live)["rows"]) == 3
    current = live.driver.find_elements(By.CSS_SELECTOR, "#live-tokens [aria-current]")
    assert len(current) == 1
    slider.send_keys(Keys.END)
    assert text(live, "german") == whole


def test_every_map_has_its_tokens_on_both_axes(live):
    """Each layer and head of each kind, enlarged, and its numbers the weights."""
    type_sentence(live, SENTENCE)
    found = live.run(
        "const {maps, sourceLabels, readLabels, writtenLabels} = liveModel.page.result;"
        "return {maps, sourceLabels, readLabels, writtenLabels}"
    )
    source, read = found["sourceLabels"], found["readLabels"]
    assert read[0] == "<s>"
    assert source[-1] == found["writtenLabels"][-1] == "</s>"
    steps = [f"{a} → {b}" for a, b in zip(read, found["writtenLabels"], strict=True)]
    axes = {
        "encoder": (source, source),
        "decoder": (steps, read),
        "cross": (steps, source),
    }
    seen = 0
    for use, (rows, columns) in axes.items():
        press(live, live.driver.find_element(By.CSS_SELECTOR, f"[value={use}]"))
        for layer, heads in enumerate(found["maps"][use]):
            for head in range(len(heads)):
                place = f"[data-live-head='{use}/{layer}/{head}'] button"
                press(live, live.driver.find_element(By.CSS_SELECTOR, place))
                shown = table(live)
                assert shown["rows"] == rows
                assert shown["columns"] == columns
                weights = heads[head]
                for i, row in enumerate(shown["numbers"]):
                    for j, number in enumerate(row):
                        # What was not written yet has no weight at all.
                        weight = weights[i][j] if j < len(weights[i]) else 0.0
                        assert abs(float(number or 0) - 100 * weight) <= 0.5 + 1e-6
                title = text(live, "map-title")
                assert f"layer {layer + 1}, head {head + 1}" in title
                seen += 1
    assert seen == 24


def test_a_head_is_switched_off_and_everything_on_again(live):
    """The page shows what the model writes without it, and what it wrote before."""
    type_sentence(live, SENTENCE)
    whole = text(live, "german")
    off = []
    for head in range(4):
        off.append(f"cross/1/{head}")
        box = f"[data-live-head='{off[-1]}'] input"
        press(live, live.driver.find_element(By.CSS_SELECTOR, box))
        assert text(live, "german") == translation(live, SENTENCE, off)
    assert text(live, "german") != whole
    assert whole in text(live, "remark")
    assert text(live, "said").endswith(text(live, "remark"))  # to a screen reader
    assert "20 of 24" in text(live, "heads-on")
    press(live, element(live, "all-on"))
    assert text(live, "german") == whole
    assert "all 24" in text(live, "heads-on")


@pytest.mark.parametrize("name", ["scaled", "positions"])
def test_scale_and_positions_are_switches(live, name):
    type_sentence(live, SENTENCE)
    press(live, element(live, name))
    expected = live.run(
        "const switches = {scaled: true, positions: true, off: new Set()};"
        "switches[arguments[1]] = false;"
        "return liveModel.translator.translate(arguments[0], switches).text",
        SENTENCE,
        name,
    )
    assert text(live, "german") == expected
    assert text(live, "remark")


def test_it_opens_on_the_pronoun_and_its_noun(live):
    """At the step that writes *sie*, on the head that looks at *cow*; all in view."""
    assert text(live, "german") == "Die Kuh schläft, weil sie"
    assert text(live, "later") == " müde ist."
    shown = table(live)
    assert "Cross-attention, layer 2, head 2" in text(live, "map-title")
    assert shown["rows"][-1] == "weil → sie"
    looks = dict(zip(shown["columns"], shown["numbers"][-1], strict=True))
    assert int(looks["cow"]) > 90
    live.look(1440, "light", 900)
    live.open(PAGE)
    lowest = live.run(
        "return Math.max(...document.querySelectorAll('#live-heads svg, #live-map')"
        ".values().map(map => map.getBoundingClientRect().bottom))"
    )
    assert lowest <= 900


def test_an_example_is_translated(live):
    """Three for each model; those of the other one are hidden."""
    chips = live.driver.find_elements(By.CSS_SELECTOR, "#live-examples button")
    shown = [chip for chip in chips if chip.is_displayed()]
    assert (len(chips), len(shown)) == (6, 3)
    for chip in shown:
        sentence = chip.text
        press(live, chip)
        assert element(live, "sentence").get_attribute("value") == sentence
        assert text(live, "german") == translation(live, sentence)
        assert text(live, "notice") == ""


EXPERIMENTS = {  # what the button says it does without, and what is found
    "positions": "both sentences are translated alike",
    "this head": "3 of 3 translations are different",
    "the division by √dₖ": "1 of 3 translations are different",
}


@pytest.mark.parametrize("named", EXPERIMENTS)
def test_an_experiment_is_computed_at_one_press(live, named):
    """Each cell is what the model writes; what the text claims comes out."""
    (box,) = live.driver.find_elements(
        By.CSS_SELECTOR, f".live-experiment[data-named='{named}']"
    )
    press(live, box.find_element(By.CSS_SELECTOR, "button"))
    rows = live.run(
        "return [...arguments[0].querySelectorAll('tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))",
        box,
    )
    assert EXPERIMENTS[named] in box.text
    what = box.get_attribute("data-without")
    for english, on, off in rows:
        assert on == translation(live, english)
        assert off == live.run(
            "const switches = {scaled: true, positions: true, off: new Set()};"
            "if (arguments[1] === 'positions') switches.positions = false;"
            "else if (arguments[1] === 'scale') switches.scaled = false;"
            "else switches.off.add(arguments[1]);"
            "return liveModel.translator.translate(arguments[0], switches).text",
            english,
            what,
        )
    assert live.console() == []


def choose(browser, name):
    press(browser, browser.driver.find_element(By.CSS_SELECTOR, f"[value={name}]"))


def test_the_everyday_model_comes_when_it_is_chosen(live):
    """With its own sentences, its layers, its switches; and the small one is back."""
    fetched = (
        "return performance.getEntriesByType('resource')"
        ".filter(entry => entry.name.includes('/live/everyday/')).length"
    )
    assert live.run(fetched) == 0
    choose(live, "everyday")
    live.wait(lambda: text(live, "german") == "Ich liebe dich.")
    assert not element(live, "progress").is_displayed()
    layers, heads = live.run(
        "const {config} = liveModel.page.translator;"
        "return [config.encoderLayers + 2 * config.decoderLayers, config.heads]"
    )
    assert f"all {layers * heads} heads" in text(live, "heads-on")
    type_sentence(live, "where is the train station")
    expected = live.run(
        "const {everyday, beamSearch} = liveModel;"
        "const {tokenizer, transformer} = everyday;"
        "const ids = [...tokenizer.encode('Where is the train station?'),"
        "  transformer.config.endId];"
        "return tokenizer.decode(beamSearch(transformer, ids).tokens)"
    )
    assert text(live, "german") == expected
    assert "Read as: Where is the train station?" in text(live, "notice")
    choose(live, "grammar")
    assert text(live, "german") == "Die Kuh schläft, weil sie müde ist."
    assert "all 24" in text(live, "heads-on")
    assert live.console() == []


def test_a_layer_that_another_attention_lacks_is_not_asked_for(live):
    """The everyday model has four layers in the encoder, and two in the decoder."""
    choose(live, "everyday")
    live.wait(lambda: text(live, "german") == "Ich liebe dich.")
    choose(live, "encoder")
    press(
        live,
        live.driver.find_element(
            By.CSS_SELECTOR, "[data-live-head^='encoder/3'] button"
        ),
    )
    assert "layer 4" in text(live, "map-title")
    choose(live, "cross")
    assert text(live, "map-title").startswith("Cross-attention, layer 2")
    type_sentence(live, "It is raining.")
    assert live.console() == []


def test_what_is_typed_while_a_model_comes_is_kept(live):
    live.run(
        "document.querySelector('[value=everyday]').click();"
        "document.getElementById('live-sentence').value = 'It is raining.'"
    )
    live.wait(lambda: text(live, "german").startswith("Es regnet"))
    value = "return document.getElementById('live-sentence').value"
    assert live.run(value) == "It is raining."


def test_a_model_that_cannot_be_fetched_is_said_to_be_missing(live):
    """And the small grammar goes on."""
    live.command("Network.setBlockedURLs", urls=["*everyday/3.js*"])
    try:
        choose(live, "everyday")
        live.wait(lambda: "could not be loaded" in text(live, "notice"))
    finally:
        live.command("Network.setBlockedURLs", urls=[])
    type_sentence(live, SENTENCE)
    assert text(live, "german") == translation(live, SENTENCE)


def test_a_map_wider_than_the_screen_says_so(browser):
    """On a phone; the column that the row looks at is in view."""
    open_at(browser, 390, "light")
    assert element(browser, "map-hint").is_displayed()
    open_at(browser, 1440, "light")
    assert not element(browser, "map-hint").is_displayed()


def test_it_plays_unless_motion_is_unwelcome(live):
    """Where motion is welcome, the first step comes first and the last at last."""
    motion = [{"name": "prefers-reduced-motion", "value": "no-preference"}]
    live.command("Emulation.setEmulatedMedia", features=motion)
    try:
        assert element(live, "play").is_displayed()
        type_sentence(live, SENTENCE)
        assert text(live, "play") == "Pause"
        live.wait(lambda: text(live, "play") == "Play")
        assert text(live, "german") == translation(live, SENTENCE)
    finally:
        live.command("Emulation.setEmulatedMedia", features=[])
    type_sentence(live, "The dog sleeps.")
    assert not element(live, "play").is_displayed()
    assert text(live, "german") == translation(live, "The dog sleeps.")


@pytest.mark.parametrize("control", ["button", "input"])
def test_a_press_is_heard_while_steps_go_by(live, control):
    """Between press and release, as they do while it plays: the head is still there."""
    found = f"document.querySelector('[data-live-head=\"cross/1/2\"] {control}')"
    go_to = (
        "const slider = document.getElementById('live-step');"
        "slider.value = arguments[0]; slider.dispatchEvent(new Event('input'));"
    )
    live.run(go_to, 2)
    pressed = live.run(f"{found}.scrollIntoView({{block: 'center'}}); return {found}")
    ActionChains(live.driver).click_and_hold(pressed).perform()
    live.run(go_to, 3)
    ActionChains(live.driver).release().perform()
    heard = {"button": "ariaPressed === 'true'", "input": "checked === false"}
    assert live.run(f"return {found}.{heard[control]}")
    assert live.run(f"return document.activeElement === {found}")


def test_german_is_marked_as_german(live):
    """Every label of the decoder's maps, and no word of English."""
    type_sentence(live, SENTENCE)
    press(live, live.driver.find_element(By.CSS_SELECTOR, ".live-head input"))
    marked = """
        return [...document.querySelectorAll(arguments[0])]
          .map(element => element.closest("[lang]").lang);
    """
    german = "#live-tokens button, #live-candidates li > :first-child"
    languages = {
        "encoder": ("en", "en"),
        "decoder": ("de", "de"),
        "cross": ("de", "en"),
    }
    assert set(live.run(marked, german)) == {"de"}
    for use, (rows, columns) in languages.items():
        press(live, live.driver.find_element(By.CSS_SELECTOR, f"[value={use}]"))
        assert set(live.run(marked, "#live-map tbody th")) == {rows}
        assert set(live.run(marked, "#live-map thead th span")) == {columns}
    assert live.run(marked, "#live-said, #live-remark, #live-tokens") == ["en"] * 3
    said = live.run(
        "return [...document.querySelectorAll('#live-said > *')]"
        ".map(part => [part.lang, part.textContent])"
    )
    assert ["de", text(live, "german")] in said
    assert {language for language, _ in said} == {"de"}


def test_a_model_that_does_not_come_is_waited_for_in_words(browser):
    """A script of it is missing: the page says so, and Enter does not lead away."""
    browser.look(1280, "light")
    browser.command("Network.setBlockedURLs", urls=["*record.js*"])
    try:
        browser.open(PAGE)
        address = browser.driver.current_url
        assert "on its way" in text(browser, "notice")
        element(browser, "sentence").send_keys(SENTENCE + Keys.ENTER)
        assert browser.driver.current_url == address
        assert element(browser, "sentence").get_attribute("value") == SENTENCE
    finally:
        browser.command("Network.setBlockedURLs", urls=[])
    open_at(browser, 1280, "light")
    assert text(browser, "notice") == ""


def test_every_control_has_a_name(live):
    """As a screen reader is told it, by Chromium's own accessibility tree."""
    nodes = live.command("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "checkbox", "radio", "slider", "textbox", "combobox"}
    controls = [n for n in nodes if n.get("role", {}).get("value") in roles]
    names = [n.get("name", {}).get("value", "").strip() for n in controls]
    assert len(names) > 30
    assert all(names)


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_it_fits_a_screen_and_a_finger(browser, width):
    """A long sentence scrolls in its own box; controls are large enough to hit."""
    open_at(browser, width, "light")
    long = "My mother threw away a cup and the singer helped our young teacher."
    type_sentence(browser, long)
    overflow = browser.run(
        "const page = document.documentElement;"
        "return page.scrollWidth - page.clientWidth"
    )
    assert overflow == 0
    small = browser.run(
        """
        return [...document.querySelectorAll("#live-model :is(button, input, select)")]
          .filter(control => control.checkVisibility())
          .map(control => (control.closest("label") ?? control).getBoundingClientRect())
          .filter(({width, height}) => Math.min(width, height) < arguments[0])
          .map(({width, height}) => [width, height]);
        """,
        TARGET,
    )
    assert small == []


PAINT = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d");
const paint = colours => {
  for (const colour of colours) {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  }
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  return "#" + parts.map(part => part.toString(16).padStart(2, "0")).join("");
};
// Of an element: its text's colour, and what lies below.
const colours = element => {
  const grounds = [];
  for (let e = element; e; e = e.parentElement) {
    grounds.unshift(getComputedStyle(e).backgroundColor);
  }
  grounds.unshift(getComputedStyle(document.body).backgroundColor);
  return [paint([...grounds, getComputedStyle(element).color]), paint(grounds)];
};
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_can_be_read_on_every_weight(browser, theme):
    """A cell's text against its ground, at the weights from nothing to all."""
    open_at(browser, 1280, theme)
    found = browser.run(
        PAINT
        + """
        const cell = document.querySelector("table.live-map td:not(.live-corner)");
        return [0, 0.25, 0.5, 0.75, 1].map(weight => {
          cell.style.setProperty("--weight", weight);
          return colours(cell);
        });
        """
    )
    contrasts = [contrast(*pair) for pair in found]
    assert min(contrasts) >= READABLE
    assert contrasts[0] > contrasts[-1]  # the ground does change


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_can_be_read(browser, theme):
    """Also what is still to be written, what is switched off, and a notice."""
    open_at(browser, 1280, theme)
    type_sentence(browser, "The elephant sleeps")
    press(browser, browser.driver.find_element(By.CSS_SELECTOR, ".live-head input"))
    element(browser, "step").send_keys(Keys.HOME)
    found = browser.run(
        PAINT
        + """
        const ownText = element => [...element.childNodes]
          .some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        return [...document.querySelectorAll("#live-model *")]
          .filter(element => ownText(element) && element.checkVisibility())
          .map(element => {
            let opacity = 1;
            for (let e = element; e; e = e.parentElement) {
              opacity *= getComputedStyle(e).opacity;
            }
            return [element.textContent, opacity, ...colours(element)];
          });
        """
    )
    assert len(found) > 60
    pale = [
        text
        for text, opacity, ink, ground in found
        if opacity < 1 or contrast(ink, ground) < READABLE
    ]
    assert pale == []
