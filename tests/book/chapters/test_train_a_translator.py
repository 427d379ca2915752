"""Chapter 16: its drawings show the measured, its claims can fail, its text holds."""

import math

import pandas as pd
import pytest
import torch
from torch import nn

from aiayn import TrainingConfig, Transformer, load_corpus, noam_rate
from aiayn.inference import AttentionMap, cross_attention_map
from aiayn_book import claims
from aiayn_book.chapters import train_a_translator as chapter
from aiayn_book.ledger import records_in_html
from aiayn_book.live import load_live_model
from aiayn_book.records import load_record
from tests.book.chapters.drawings import check_words, texts

CONFIG = TrainingConfig.grammar()
SAMPLE = chapter.relative_clause()
COSTS = {"one": 3.3e18, "two": 9.7e17, "three": 6.4e12}
ROWS = [(e, r[::-1], r) for e, r in chapter.SHOWN.items()]
DRAWINGS = {
    "beside the reference": chapter.beside_reference(ROWS),
    "two sides": chapter.two_sides(SAMPLE),
    "one step": chapter.one_step(CONFIG),
    "shares": chapter.exact_shares({"new sentences": (970, 1000), "pairs": (5, 10)}),
    "costs": chapter.costs(COSTS),
}


@pytest.fixture(scope="module")
def recorded():
    """The recorded translator's attention to the chapter's sentence."""
    model, tokenizer = load_live_model()
    return cross_attention_map(
        SAMPLE.source, model, tokenizer, layer=2, translation=SAMPLE.target
    )


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawing):
    """And there is a text alternative of more than a few words."""
    check_words(drawing)


def test_the_key_picture_shows_one_mistake():
    """Three of the four sentences are right, and the fourth has its reference below."""
    drawing, _ = chapter.recorded_translator()
    shown = [words for *_, words in texts(drawing)]
    assert shown.count("✓") == 3
    assert shown.count("✗") == 1
    assert "Traurige Nachbarn sollten im Dorf wohnen." in shown


def test_what_is_shown_was_never_trained_on():
    """The key picture's sentences belong to the split *test*."""
    drawn = chapter.generate(1500, seed=chapter.SEED, split="test")
    pairs = {sample.source: sample.target for sample in drawn}
    assert all(pairs[source] == target for source, target in chapter.SHOWN.items())


def test_recorded_translator_is_smaller():
    """As the caption says."""
    model, _ = load_live_model()
    sizes = [
        sum(weight.numel() for weight in one.parameters())
        for one in (model, Transformer(CONFIG.model))
    ]
    assert sizes[0] < sizes[1]


def test_it_attends_mostly_to_the_words_it_translates(recorded):
    """And *ausschaltet* attends to *turns* and *off* more than to all other words."""
    assert chapter.on_the_frames(recorded, SAMPLE) > 0.5
    sources, targets, weights = chapter.by_words(recorded)
    row = weights[targets.index("ausschaltet")]
    assert row[sources.index("turns")] + row[sources.index("off")] > 0.5


def test_words_of_the_map_are_the_grammar_s(recorded):
    """So that the gold alignment, which counts the grammar's words, fits the map."""
    sources, targets, weights = chapter.by_words(recorded)
    assert tuple(sources) == (*SAMPLE.source_tokens, "(end)")
    assert tuple(targets) == SAMPLE.target_tokens
    assert not any("▁" in word for word in sources + targets)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(targets)))


def test_weights_are_summed_over_a_source_word_and_averaged_over_a_target_one():
    seen = AttentionMap(
        source=["▁a", "b", "</s>"],
        target=["▁x", "y", "</s>"],
        weights=torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0, 0, 1.0]]),
        translation="xy",
    )
    sources, targets, weights = chapter.by_words(seen)
    assert sources == ["ab", "(end)"]
    assert targets == ["xy"]
    torch.testing.assert_close(weights, torch.tensor([[0.625, 0.375]]))


def test_the_rate_ends_at_nothing_and_begins_as_the_paper_s():
    data = chapter.learning_rates(CONFIG).to_dict()["data"]["values"]
    ours = {
        r["step"]: r["learning rate"] for r in data if r["schedule"] == "this chapter"
    }
    scale = CONFIG.learning_rate_scale
    assert ours[1] == pytest.approx(scale * noam_rate(1, CONFIG.model.d_model, 400))
    assert ours[max(ours)] < ours[401] / 100


def test_the_text_s_sizes_are_the_configuration_s():
    """*Two layers a side, 96 wide, 2,400 steps of about 500 pieces* …"""
    model = CONFIG.model
    assert (model.num_encoder_layers, model.num_decoder_layers) == (2, 2)
    assert (model.d_model, model.vocab_size, model.dropout) == (96, 2500, 0.0)
    assert (CONFIG.steps, CONFIG.warmup_steps, CONFIG.cooldown_steps) == (
        2400,
        400,
        1400,
    )
    assert (CONFIG.tokens_per_batch, CONFIG.keep) == (512, 2)
    assert CONFIG.learning_rate_scale == 1.0


def test_losses_are_those_of_the_log():
    log = pd.DataFrame(
        [
            {"event": "begin", "step": 0},
            {"event": "train", "step": 50, "loss": 3.0, "cross_entropy": 2.0},
        ]
    )
    rows = next(iter(chapter.losses(log, 1.2).to_dict()["datasets"].values()))
    assert {(r["loss"], r["nats"]) for r in rows if "loss" in r} == {
        ("with smoothing", 3.0),
        ("without", 2.0),
    }


def test_mistakes_are_the_wrong_ones():
    corpus = load_corpus("grammar", size=20)
    right = list(corpus.test.target[:3])
    written = {"test": [right[0], "falsch", *corpus.test.target[2:]]}
    (row,) = chapter.mistakes(corpus, written).data.to_dict("records")
    assert (row["the model"], row["reference"]) == ("falsch", right[1])


def test_costs_are_printed_as_in_the_paper():
    shown = [words for *_, words in texts(DRAWINGS["costs"])]
    assert "one: 3.3 · 10¹⁸" in shown
    assert {"10¹²", "10¹⁹"} <= set(shown)
    assert f"{chapter.machine_operations(12):.1e}" == "3.3e+18"


def test_a_recurrent_or_convolutional_module_is_found():
    parts = nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2), nn.Conv1d(2, 2, 1))
    assert chapter.recurrent_or_convolutional(parts) == ["1", "2"]
    assert not chapter.recurrent_or_convolutional(Transformer(CONFIG.model))


def test_what_the_results_page_says_of_the_caption_runs():
    """Each comparison of its text, from the records."""
    found = {}
    for recipe, record in chapter.caption_runs():
        found.setdefault(recipe, []).append(chapter.scores(record))
    assert sum(map(len, found.values())) == 12

    def each(recipe, name="BLEU"):
        return [run[name] for run in found[recipe]]

    for language in ("German", "French"):
        today, before = f"{language}, today's", f"{language}, sinusoids"
        assert min(each(today)) > max(each(before))
    mean = chapter.mean_scores()
    name = "BLEU / BP"
    assert mean["German, today's"][name] > mean["German, sinusoids"][name]
    assert min(each("German, today's", name)) < max(each("German, sinusoids", name))
    assert abs(mean["German, sinusoids"][name] - mean["German, post-norm"][name]) < 0.3


def test_post_norm_run_is_what_the_text_says():
    """Three layers a side, 256 wide, norm behind, rows sorted by length."""
    config = TrainingConfig.from_dict(load_record("multi30k-en-de")["config"])
    assert (config.model.num_encoder_layers, config.model.d_model) == (3, 256)
    assert config.model.norm == "post"
    assert config.packed_length is None
    assert config.model.dropout > 0.1
    assert config.warmup_steps < 4000


def test_no_entry_of_the_legend_is_cut():
    legend = chapter.caption_curves().to_dict()["encoding"]["color"]["legend"]
    assert legend["labelLimit"] == 0


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        (
            lambda: chapter.settle_attention_alone(Transformer(CONFIG.model), 97, 100),
            "reproduced at small scale",
        ),
        (
            lambda: chapter.settle_attention_alone(nn.LSTM(2, 2), 97, 100),
            "not reproduced at small scale",
        ),
        (
            lambda: chapter.settle_attention_alone(Transformer(CONFIG.model), 40, 100),
            "not reproduced at small scale",
        ),
        (chapter.settle_operations, "consistent with the paper's own figures"),
        (chapter.settle_step_time, "reported by the paper only"),
        (chapter.settle_twelve_hours, "reported by the paper only"),
    ],
)
def test_claims_can_fail(call, verdict, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    call()
    (record,) = records_in_html(shown.pop()._repr_html_(), "16-train-a-translator")
    assert record.verdict == verdict


def test_margin_is_two_standard_errors():
    assert chapter.margin(900, 1000) == pytest.approx(2 * math.sqrt(0.09 / 1000))
