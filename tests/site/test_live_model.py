"""The model in the page computes what PyTorch computes with the very same weights."""

import gzip
import random
import re

import numpy as np
import pytest
import torch

from aiayn.data import Tokenizer
from aiayn.data.grammar import generate
from aiayn.inference import greedy_search
from aiayn.model import shift_right
from aiayn_book.head_scores import attention_by_sentence, without_heads
from aiayn_book.live import (
    EXTRA_LENGTH,
    NAME,
    load_quantised,
    without_positions,
    without_scale,
)
from aiayn_book.records import load_record

PAGE = "book/live-model.html"
SAME = 1e-4  # what the issue asks of the logits
WIRE = 500_000  # bytes, compressed as a static host does

SENTENCES = [sample.source for sample in generate(400, seed=7, split="test")]
SHORT = [text for text in SENTENCES if len(text.split()) <= 8]
STRANGE = [
    "",
    "   ",
    "the old dog",
    "THE OLD DOG SLEEPS.",
    "The  old\tdog \n sleeps .",
    "The elephant eats pizza!",
    "naïve café: “quotes” – dashes…",
    "u\u0308ber \u00fcber",
    "日本語 and 日本",
    "x日y日日z",
    "\u2581The\u2581dog\u2581sleeps.",
    "\ufeffThe dog\u200bsleeps.\u00a0\u3000",
    "a\x00b\x1fc\x85d",
    "👩‍👩‍👧 sleeps 🐕.",
    "<b>The dog</b> &amp; co",
    "..,,??''s's",
    "</s> <s> <unk> <pad>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]


@pytest.fixture(scope="module")
def quantised():
    return load_quantised()


@pytest.fixture(scope="module")
def model(quantised):
    """In 64 bits: the reference should have no rounding of its own."""
    return quantised.model().double()


@pytest.fixture(scope="module")
def tokenizer(quantised):
    return Tokenizer(quantised.tokenizer)


@pytest.fixture
def live(browser):
    """The page, opened anew, with everything on."""
    browser.look(1280, "light")
    browser.console()
    browser.open(PAGE)
    browser.wait(lambda: browser.run("return !!window.liveModel?.page"))
    return browser


def in_page(live, texts, *, scaled=True, positions=True, off=()):
    """What the page's scripts compute for each text."""
    return live.run(
        """
        const [texts, switches] = arguments;
        switches.off = new Set(switches.off);
        return texts.map(text => {
          const {source, steps, maps, text: german, ended} =
            liveModel.translator.translate(text, switches);
          const rows = weights => weights.map(heads => heads.map(
            queries => queries.map(row => [...row])));
          return {source, german, ended, tokens: steps.map(step => step.token),
                  logits: steps.map(step => [...step.logits]),
                  encoder: rows(maps.encoder), decoder: rows(maps.decoder),
                  cross: rows(maps.cross)};
        });
        """,
        list(texts),
        {"scaled": scaled, "positions": positions, "off": list(off)},
    )


def compare(found, text, model, tokenizer):
    """Hold one translation of the page against PyTorch."""
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    assert found["source"] == source
    (best,) = greedy_search(
        model,
        torch.tensor([source]),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        extra_length=EXTRA_LENGTH,
    )
    written = [*best.tokens, *([tokenizer.eos_id] if found["ended"] else [])]
    assert found["tokens"] == written
    assert found["german"] == tokenizer.decode(best.tokens)
    read = shift_right(torch.tensor([written]), tokenizer.bos_id)
    with torch.no_grad():
        logits = model(torch.tensor([source]), read)[0]
    assert np.abs(np.array(found["logits"]) - logits.numpy()).max() < SAME
    (weights,) = attention_by_sentence(
        model, [(source, written)], bos_id=tokenizer.bos_id
    )
    for use, expected in weights._asdict().items():
        for layer, heads in enumerate(found[use]):
            for head, rows in enumerate(heads):
                for query, row in enumerate(rows):
                    # The page's decoder has no columns for what is not written yet.
                    here = expected[layer, head, query].numpy()
                    assert np.abs(here[: len(row)] - row).max() < SAME
                    assert (here[len(row) :] == 0).all()


def test_pieces_are_sentencepieces(live, tokenizer):
    """Grammar, German, random characters, and whatever else somebody may type."""
    drawn = random.Random(0)
    letters = sorted(set("".join(SENTENCES)) | set("äöüßÄXYZ🐕 é  \t"))
    noise = ["".join(drawn.choices(letters, k=30)) for _ in range(400)]
    german = [sample.target for sample in generate(200, seed=8, split="test")]
    texts = [*SENTENCES, *german, *noise, *STRANGE]
    texts += [text.upper() for text in SENTENCES[:50]]
    found = live.run(
        "return arguments[0].map(text => liveModel.translator.tokenizer.encode(text))",
        texts,
    )
    for text, ids in zip(texts, found, strict=True):
        assert ids == tokenizer.encode(text), repr(text)
    texts_back = live.run(
        "return arguments[0].map(ids => liveModel.translator.tokenizer.decode(ids))",
        found,
    )
    assert texts_back == tokenizer.decode_batch(found)


def test_lone_surrogates_are_read_as_in_python(live, tokenizer):
    """No protocol carries them, so the page makes one itself."""
    ids = live.run("return liveModel.translator.tokenizer.encode('The \\ud800 dog')")
    assert ids == tokenizer.encode("The \ud800 dog")


def test_same_tokens_same_logits_same_weights(live, model, tokenizer):
    """Also for words that the model does not know, and for no words at all."""
    texts = [*SENTENCES[:20], *STRANGE]
    for text, found in zip(texts, in_page(live, texts), strict=True):
        compare(found, text, model, tokenizer)


def test_without_the_scale(live, model, tokenizer):
    with without_scale(model):
        for text, found in zip(
            SHORT[:8], in_page(live, SHORT[:8], scaled=False), strict=True
        ):
            compare(found, text, model, tokenizer)


def test_without_positions(live, model, tokenizer):
    with without_positions(model):
        for text, found in zip(
            SHORT[:8], in_page(live, SHORT[:8], positions=False), strict=True
        ):
            compare(found, text, model, tokenizer)


def test_without_positions_nobody_knows_who_chases_whom(live):
    """What the page lets its reader guess: a set of words has no order."""
    pair = ["The dog chases the cat.", "The cat chases the dog."]
    one, other = in_page(live, pair)
    assert one["german"] != other["german"]
    one, other = in_page(live, pair, positions=False)
    assert one["german"] == other["german"]


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_without_some_heads(live, model, tokenizer, use):
    """Two heads off in different layers: the others are as in PyTorch."""
    heads = [(use, 0, 1), (use, 1, 3)]
    places = [f"{use}/{layer}/{head}" for use, layer, head in heads]
    with without_heads(model, heads):
        for text, found in zip(
            SHORT[:6], in_page(live, SHORT[:6], off=places), strict=True
        ):
            compare(found, text, model, tokenizer)


def test_many_translations_are_the_same_text(live, quantised, tokenizer):
    """Against the record's own precision, 32 bits, and many sentences."""
    texts = SENTENCES[:100]
    found = live.run(
        "return arguments[0].map(text => liveModel.translator.translate(text).text)",
        texts,
    )
    model = quantised.model()
    for text, german in zip(texts, found, strict=True):
        source = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])
        ends = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
        (best,) = greedy_search(model, source, extra_length=EXTRA_LENGTH, **ends)
        assert german == tokenizer.decode(best.tokens)


def test_it_is_light(site):
    """All that the page loads for the model, compressed as a static host does."""
    html = (site / PAGE).read_text(encoding="utf-8")
    names = set(re.findall(r"_static/(live/[\w.]+)", html))
    assert "live/record.js" in names
    files = [site / "_static" / name for name in names]
    total = sum(len(gzip.compress(p.read_bytes())) for p in files if p.is_file())
    assert total < WIRE
    others = [
        p for p in site.glob("notebooks/*.html") if "live/record.js" in p.read_text()
    ]
    assert others == []


def test_the_first_translation_is_there_within_a_second(browser):
    """Counted in the time that the page's thread computes: other jobs do not matter."""
    browser.look(1280, "light")
    browser.open("book/how-to-use.html")
    browser.command("Performance.enable", timeDomain="threadTicks")
    try:
        browser.open(PAGE)
        browser.wait(
            lambda: browser.run(
                "return performance.getEntriesByName('live-translated').length"
            )
        )
        found = browser.command("Performance.getMetrics")["metrics"]
    finally:
        browser.command("Performance.disable")
    metrics = {metric["name"]: metric["value"] for metric in found}
    assert 0 < metrics["TaskDuration"] < 1.0
    assert browser.run("return document.getElementById('live-german').textContent")


def test_it_works_from_a_folder(browser, site):
    """Opened as a file, where nothing can be fetched."""
    browser.look(1280, "light")
    browser.driver.get((site / PAGE).as_uri())
    browser.wait(lambda: browser.run("return !!window.liveModel?.page"))
    first = load_record(NAME)["examples"][0][0]
    german = browser.run(  # what is written, and what is still to come
        "return document.querySelector('.live-translation').textContent.trim()"
    )
    there = browser.run(
        "return liveModel.translator.translate(arguments[0]).text", first
    )
    assert german == there != ""
    browser.console()  # fonts may not be preloaded from a file
