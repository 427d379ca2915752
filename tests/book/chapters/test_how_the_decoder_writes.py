"""Chapter 11's experiments and drawings, on a translator that is hardly trained."""

import copy
import math
import random
from types import SimpleNamespace

import pytest
import torch

from aiayn import shift_right
from aiayn.inference import beam_search, greedy_search
from aiayn_book.chapters import how_the_decoder_writes as chapter
from aiayn_book.chapters.how_the_decoder_writes import BOS, EOS, PAD
from tests.book.conftest import drawn

READ = ["<s>", *chapter.TRANSLATION.split()]


@pytest.fixture(scope="module")
def translator():
    random.seed(1)
    torch.manual_seed(1)
    return chapter.train_translator(steps=120, drawn=4_000)


@pytest.fixture(scope="module")
def double(translator):
    return copy.deepcopy(translator.model).double()


@pytest.fixture
def example(translator):
    """The chapter's sentence and what the decoder reads."""
    source = translator.encode(chapter.SENTENCE.split())[None]
    read = translator.encode(chapter.TRANSLATION.split())[None, :-1]
    return source, torch.cat([torch.tensor([[BOS]]), read], dim=1)


def test_held_out_sentences_are_not_in_the_training(translator):
    """And words become tokens and words again."""
    seen = {s.source_tokens for s in translator.training}
    assert not seen & {s.source_tokens for s in translator.held_out}
    words = ["Die", "Großmutter"]
    assert translator.in_words(translator.encode(words)) == [*words, "</s>"]
    assert translator.sources.shape[0] == chapter.HELD_OUT
    ends = (translator.targets == EOS).sum(dim=1)
    assert (ends == 1).all()


def test_training_shows_a_hidden_part_and_inference_does_not():
    """Two panels fit side by side into a column of 696 px, and each a phone."""
    training, inference = chapter.training_beside_inference(READ, [*READ[1:], "</s>"])
    assert "causal mask" in training.markup
    assert "causal mask" not in inference.markup
    assert max(training.width, inference.width) <= 336
    # Eight rows of eight cells, or a triangle, and the cells of the legend.
    assert training.markup.count('width="17"') == 64
    assert inference.markup.count('width="17"') == 36


def test_panels_of_the_cache_count_positions():
    """36 without, 8 with: m(m + 1)/2 and m."""
    without, cached = chapter.rows_computed(READ)
    assert "36 positions" in without.markup
    assert "8 positions" in cached.markup


def test_every_layer_reads_the_same_memory(translator, example):
    """And self-attention what the layer below gave."""
    source, read = example
    table = chapter.attention_inputs(translator.model, source, read[:, :4])
    for layer in ("layer 1", "layer 2"):
        cross = table.loc[(layer, "cross-attention")]
        assert cross["key"] == cross["value"] == "memory (7, 64)"
        assert cross["query"] == f"{layer}, after self-attention (4, 64)"
        own = table.loc[(layer, "self-attention")]
        assert own.nunique() == 1
    assert own["key"] == "layer 1, after feed-forward (4, 64)"
    assert not any(m._forward_hooks for m in translator.model.modules())


def test_the_most_attended_word_has_the_greatest_weight(translator, example):
    """Of the last layer's mean; and the stepper shows the same rows."""
    source, read = example
    cross = translator.model.attention_weights(source, read).cross[-1][0]
    word, weight = chapter.most_attended(translator, source, read, step=6)
    assert weight == pytest.approx(cross[:, 5].mean(dim=0).max().item())
    assert word in [*chapter.SENTENCE.split(), "</s>"]
    html = chapter.stepper(translator, source, read)._repr_html_()
    assert "Step 6 of 8" in html
    assert "Attention to the source" in html


def test_a_further_token_changes_no_earlier_state_of_the_decoder(double, example):
    """And all of the encoder's; the drawing says so."""
    source, read = example
    changes = chapter.state_changes(double, source, read)
    assert max(map(max, changes["decoder"])) < chapter.ROUNDING
    assert min(map(min, changes["encoder"])) > 1e-4
    encoder, decoder = chapter.changed_states(changes, ["x"] * 7, READ)
    assert "no change" in decoder.markup
    assert "no change" not in encoder.markup


def test_first_words_are_those_of_teacher_forcing(translator):
    """For the start token; a token that began no sentence does worse."""
    shares = chapter.first_words(translator)
    assert set(shares) == {"<s>", "</s>", "<pad>", ".", "nicht"}
    given = shift_right(translator.targets, BOS)
    logits = translator.model(translator.sources, given)[:, 0]
    right = logits.argmax(dim=-1) == translator.targets[:, 0]
    assert shares["<s>"] == pytest.approx(right.float().mean().item(), abs=0.003)
    assert shares["<s>"] > shares["."]


def test_without_a_mistake_the_share_is_that_of_teacher_forcing(translator):
    """One word after the position 1, 2, …: all target tokens but the first."""
    rows = chapter.after_a_mistake(translator, distances=(1, 2))
    assert len(rows) == 3 * 2 * 5
    targets = translator.targets[:100]
    logits = translator.model(translator.sources[:100], shift_right(targets, BOS))
    right = (logits.argmax(dim=-1) == targets)[:, 1:]
    expected = right[targets[:, 1:] != PAD].float().mean().item()
    first = next(
        row["share right"]
        for row in rows
        if row["mistake"] == "no mistake"
        and row["block"] == 0
        and row["words after the mistake"] == 1
    )
    assert first == pytest.approx(expected)
    assert "words after the mistake" in drawn(chapter.mistake_chart(rows))


def test_cached_greedy_is_greedy_search(translator):
    """As far as it goes; and with the position stuck it is another function."""
    found = greedy_search(
        translator.model, translator.sources, bos_id=BOS, eos_id=EOS, max_length=20
    )
    ours = chapter.cached_greedy(translator.model, translator.sources)
    same = [o[:18] == f.tokens[:18] for o, f in zip(ours, found, strict=True)]
    assert sum(same) >= 0.99 * len(same)  # ties in float32
    stuck = chapter.cached_greedy(translator.model, translator.sources, stuck=True)
    assert stuck != ours


def test_pitfalls_show_in_the_logits(translator, example):
    """And the model is left in evaluation mode."""
    table = chapter.pitfalls(translator, *example)
    assert float(table.loc["as it should be", "logits off by"]) < 1e-4
    assert float(table.loc["position stuck at 0", "logits off by"]) > 1e-3
    assert table.loc["as it should be", "same output twice"] == "100%"
    assert not translator.model.training


def test_the_cache_holds_what_the_formula_says(translator, example):
    """2 layers · 2 · (7 + 8) · 64."""
    source, read = example
    cache = translator.model.init_decode(source)
    for tokens in read.T:
        translator.model.decode_step(tokens, cache)
    assert chapter.elements(cache.layers) == 2 * 2 * (7 + 8) * 64


def test_times_are_measured_for_each_way(translator):
    times = chapter.time_per_token(translator, lengths=(2, 4), sentences=2, rounds=1)
    assert len(times) == 4
    assert min(times.values()) > 0
    assert "<svg" in drawn(chapter.time_chart(times))


def test_the_claim_is_settled_on_the_expected_output_only(
    translator, double, example, capsys
):
    source, read = example
    by_steps = double(source, read)[0]
    known = translator, double, source
    chapter.settle_one_at_a_time(*known, read, by_steps, {"one pass": 0.0})
    assert "Verdict: defined" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="another output"):
        chapter.settle_one_at_a_time(*known, read[:, :-1], by_steps, {"one pass": 0.0})


class Table(torch.nn.Module):
    """A decoder that reads only the newest token: the table of the text."""

    config = SimpleNamespace(pad_id=PAD, vocab_size=8)
    words = ("<pad>", "<s>", "</s>", "Der", "Ein", "Hund", "Hase", "Fuchs")

    def init_decode(self, source):
        return SimpleNamespace(reorder=lambda *rows: None)

    def decode_step(self, tokens, cache):
        ends = {"</s>": 1.0}
        rows = [chapter.TREE.get(self.words[token], ends) for token in tokens.tolist()]
        p = [[row.get(word, 0.0) for word in self.words] for row in rows]
        return torch.tensor(p).log()  # (hypotheses, vocab)


def test_greedy_search_misses_the_best_sentence_of_the_table():
    """0.24 and 0.36, as the text and the chart say."""
    ask = {"bos_id": BOS, "eos_id": EOS}
    nothing = torch.tensor([[EOS]])
    (one,) = greedy_search(Table(), nothing, **ask)
    (two,) = beam_search(Table(), nothing, beam_size=2, length_penalty=0.0, **ask)
    assert math.exp(one.log_probability) == pytest.approx(0.24)
    assert math.exp(two.log_probability) == pytest.approx(0.36)
    assert [Table.words[token] for token in two.tokens] == ["Ein", "Hund"]
    assert "greedy" in drawn(chapter.greedy_chart())
