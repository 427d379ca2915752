"""The field of the landing page: everyday sentences, translated in the browser."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from aiayn.data import Tokenizer
from aiayn.inference import beam_search
from aiayn.model import shift_right
from aiayn_book.live import EVERYDAY, SEARCH, load_quantised

PAGE = "book/index.html"
WIRE = 3_000_000  # bytes, as a static host compresses them
SAME = 1e-4  # of the logits, with the same quantised weights
SENTENCES = Path(__file__).with_name("everyday.tsv")


def rows() -> list[tuple[str, list[str]]]:
    """What visitors type first, and the translations that are right."""
    with SENTENCES.open(encoding="utf-8") as stream:
        _, *lines = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [(english, german.split("|")) for english, german in lines]


@pytest.fixture
def field(browser):
    """The landing page with the model loaded."""
    browser.look(1280, "light")
    browser.console()
    browser.open(PAGE)
    browser.run("liveModel.everyday.translator()")
    browser.wait(lambda: browser.run("return !!liveModel.everyday.transformer"))
    return browser


def written(browser, sentence: str) -> tuple[str, str]:
    """The translation, and what the page says about it."""
    browser.run("liveModel.everyday.translate(arguments[0])", sentence)
    browser.wait(lambda: browser.run(f"return {SAID}").strip(" |") or not sentence)
    german, notice = browser.run(f"return {SAID}").split("|")
    return german, notice


SAID = (
    "document.getElementById('everyday-german').textContent + '|' + "
    "document.getElementById('everyday-notice').textContent"
)


def test_nothing_is_fetched_before_somebody_types(browser):
    """The first visit pays for the page alone; the first letter fetches the model."""
    browser.look(1280, "light")
    browser.open(PAGE)
    count = (
        "return performance.getEntriesByType('resource')"
        ".filter(entry => entry.name.includes('/live/everyday/')).length"
    )
    assert browser.run(count) == 0
    browser.driver.find_element("id", "everyday-sentence").send_keys("I")
    said = browser.run(
        "liveModel.everyday.translate('I sleep.');"
        "return document.getElementById('everyday-notice').textContent"
    )
    assert said == "The model is on its way."
    browser.wait(lambda: browser.run("return !!liveModel.everyday.transformer"))
    assert browser.run(count) > 10


def test_what_visitors_type_first(field):
    """Each of the twenty sentences is translated as somebody would say it."""
    wrong = {
        english: found
        for english, right in rows()
        if (found := written(field, english)[0]) not in right
    }
    assert wrong == {}
    assert field.console() == []


def test_same_tokens_same_logits(field):
    """As in PyTorch with the same quantised weights."""
    quantised = load_quantised(EVERYDAY)
    model, tokenizer = quantised.model().double(), Tokenizer(quantised.tokenizer)
    for english, _ in rows():
        source = [*tokenizer.encode(english), tokenizer.eos_id]
        found = field.run(
            "const {tokenizer, transformer} = liveModel.everyday;"
            "const ids = [...tokenizer.encode(arguments[0]), transformer.config.endId];"
            "const {steps} = transformer.translate(ids);"
            "return [ids, steps.map(s => s.token), steps.map(s => [...s.logits])]",
            english,
        )
        assert found[0] == source
        read = shift_right(torch.tensor([found[1]]), tokenizer.bos_id)
        with torch.no_grad():
            logits = model(torch.tensor([source]), read)[0]
        assert np.abs(np.array(found[2]) - logits.numpy()).max() < SAME
        assert found[1] == logits.argmax(-1).tolist()


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("i love you", "I love you."),
        ("where is the train station", "Where is the train station?"),
        ("I DON\u2019T KNOW", "I don't know."),
        ("  We  have no time. ", "We have no time."),
        ("do i know you", "Do I know you?"),
        ("he said \u201cno\u201d", 'He said "no".'),
        ("don't you know me", "Don't you know me?"),
        ("was he there", "Was he there?"),
        ("have a nice day", "Have a nice day."),
        ("do it", "Do it."),
        ("when I was young I had a dog", "When I was young I had a dog."),
        ("what a beautiful day", "What a beautiful day."),
        ("do you speak english", "Do you speak English?"),
        ("i live in berlin", "I live in Berlin."),
        ("TODAY IS MONDAY", "Today is Monday."),
        ("you may march on sunday", "You may march on Sunday."),
        ("May is warm", "May is warm."),
        ("will he come", "Will he come?"),
        ("hawai'i is nice", "Hawai'i is nice."),
        ("he has two sisters,", "He has two sisters."),
        ("he left (yesterday.)", "He left (yesterday.)"),
    ],
)
def test_a_sentence_is_tidied_and_the_page_says_so(field, typed, read):
    """Case, a missing full stop, typographic marks."""
    assert field.run("return liveModel.everyday.tidy(arguments[0])", typed) == read
    german, notice = written(field, typed)
    assert german
    assert (f"Read as: {read}" in notice) == (typed.strip() != read)


def test_what_it_hardly_knows_is_named(field):
    """A word of many pieces, a character without one, and a sentence too long."""
    assert "“Rumpelstiltskin”" in written(field, "I know Rumpelstiltskin.")[1]
    assert "no piece for 日" in written(field, "The 日 is good.")[1]
    german, notice = written(field, "I see a dog and " * 12)
    assert german == ""
    assert "at most 40" in notice
    assert "looks like German" in written(field, "Ich liebe dich.")[1]
    assert written(field, "Peter's dog sleeps.")[1] == ""


def test_the_longest_input_is_said_before_it_is_reached(field):
    """While one types, and nothing that one types is cut."""
    box = field.driver.find_element("id", "everyday-sentence")
    notice = "return document.getElementById('everyday-notice').textContent"
    box.send_keys("I see a dog and " * 4)
    assert field.run(notice) == ""
    box.send_keys("I see a dog and " * 12)
    field.wait(lambda: "of at most 40 pieces" in field.run(notice))
    assert len(box.get_attribute("value")) == 16 * 16
    box.send_keys("\b" * (16 * 13))  # and no longer than it is so
    field.wait(lambda: field.run(notice) == "")


def test_code_that_could_not_be_fetched_is_fetched_again(browser):
    """The connection was lost for a moment."""
    browser.look(1280, "light")
    browser.open(PAGE)
    translate = "liveModel.everyday.translate('I sleep.')"
    browser.command("Network.setBlockedURLs", urls=["*live/beam.js*"])
    try:
        browser.run(translate)
        browser.wait(lambda: "could not be loaded" in browser.run(f"return {SAID}"))
    finally:
        browser.command("Network.setBlockedURLs", urls=[])
    browser.run(translate)
    browser.wait(lambda: browser.run(f"return {SAID}").startswith("Ich"))
    browser.console()  # the blocked script


def test_an_emptied_field_empties_the_answer(field):
    """Nothing stays that belongs to no sentence."""
    box = field.driver.find_element("id", "everyday-sentence")
    box.send_keys("It is raining.\n")
    german = "return document.getElementById('everyday-german').textContent"
    field.wait(lambda: field.run(german) != "")
    field.run(
        "const f = arguments[0]; f.value = ''; f.dispatchEvent(new Event('input'))", box
    )
    assert field.run(german) == ""


@pytest.mark.parametrize("typed", ["", "  ", "...", "\N{GRINNING FACE}"])
def test_where_there_is_no_sentence_none_is_translated(field, typed):
    """Asked for all the same, the page says what to do."""
    field.run("liveModel.everyday.translate(arguments[0])", typed)
    assert field.run(f"return {SAID}") == "|Type a sentence, or choose one."


def test_the_beam_is_the_librarys(field):
    """The same outputs as `aiayn.inference.beam_search`, with the page's settings."""
    quantised = load_quantised(EVERYDAY)
    model, tokenizer = quantised.model().double(), Tokenizer(quantised.tokenizer)
    for english, _ in rows():
        source = [*tokenizer.encode(english), tokenizer.eos_id]
        found = field.run(
            "return liveModel.beamSearch(liveModel.everyday.transformer, arguments[0])",
            source,
        )
        (best,) = beam_search(
            model,
            torch.tensor([source]),
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            **SEARCH,
        )
        assert found == {"tokens": list(best.tokens), "ended": True}


def test_a_search_without_an_end_says_so(field):
    """And shows no token that it did not choose."""
    field.run("liveModel.everyday.transformer.config.extraLength = -2")
    german, notice = written(field, "It is raining.")
    assert "found no end" in notice
    assert not german.endswith(".")


def test_it_is_light(site):
    """All its files, compressed as a static host does."""
    folder = site / "_static" / "live" / "everyday"
    code = ["arrays", "attention", "transformer", "tokenizer", "beam"]
    code += ["everyday-model", "everyday"]
    files = [*folder.glob("*.js"), *(folder.parent / f"{name}.js" for name in code)]
    sent = sum(len(gzip.compress(file.read_bytes())) for file in files)
    assert sent <= WIRE


def test_it_works_from_a_folder(site, browser):
    """Opened as a file, where a browser may fetch nothing."""
    browser.driver.get((site / PAGE).as_uri())
    browser.run("liveModel.everyday.translator()")
    browser.wait(lambda: browser.run("return !!liveModel.everyday.transformer"))
    assert written(browser, "It is raining.")[0]
