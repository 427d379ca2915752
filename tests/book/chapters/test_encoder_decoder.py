"""Chapter 10: who reads what, the census, the models of one stack, weights by hand."""

import pytest
import torch

from aiayn import Transformer, TransformerConfig, causal_mask
from aiayn_book import claims
from aiayn_book.chapters import encoder_decoder as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words

SIZES = {"d_model": 16, "d_ff": 24, "num_heads": 4, "dropout": 0.0}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(30, **SIZES)).eval()


@pytest.fixture(scope="module")
def tokens():
    source = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 0, 0]])
    return source, torch.tensor([[1, 20, 21, 22, 23], [1, 24, 25, 26, 27]])


@pytest.fixture(scope="module")
def calls(model, tokens):
    return chapter.attention_calls(model, *tokens)


@pytest.fixture(scope="module")
def steps(model, tokens):
    return chapter.trace(model, *tokens)


@pytest.mark.parametrize(
    "draw",
    [
        chapter.one_memory,
        chapter.three_sublayers,
        chapter.memory_grows,
        chapter.quarters,
        chapter.compartments,
        chapter.one_stack_three_models,
    ],
)
def test_words_stay_inside(draw):
    check_words(draw())


def test_words_stay_inside_of_what_is_read_off_a_model(steps, calls):
    for side, found in steps.items():
        check_words(chapter.shapes_drawing(found, side))
    check_words(chapter.eighteen(calls))


def test_shapes_of_both_sides(steps):
    """Seven source tokens, five target tokens, four heads of four numbers."""
    assert dict(steps["encoder"]) == {
        "tokens": (7,),
        "embedded, + positions": (7, 16),
        "keys of the heads": (4, 7, 4),
        "weights of the heads": (4, 7, 7),
        "inside a network": (7, 24),
        "memory z": (7, 16),
    }
    found = dict(steps["decoder"])
    assert found["self-attention weights"] == (4, 5, 5)
    assert found["cross-attention weights"] == (4, 5, 7)
    assert found["inside a network"] == (5, 24)
    assert found["scores"] == (5, 30)


def test_tracing_leaves_no_hook(model, steps, calls):
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_all_cross_attentions_read_the_last_encoder_layer(calls):
    cross = [call for call in calls if call.kind == "cross"]
    assert [call.layer for call in cross] == [1, 2, 3, 4, 5, 6]
    assert {(call.key, call.value) for call in cross} == {("encoder layer 6",) * 2}
    assert cross[2].query == "decoder layer 3, self-attention"


def test_self_attentions_read_the_layer_below(calls):
    of = {(call.kind, call.layer): call for call in calls}
    assert len(of) == len(calls) == 18
    for side, start in (("encoder", "source"), ("decoder", "target")):
        first, second = of[f"{side} self", 1], of[f"{side} self", 2]
        assert {first.query, first.key, first.value} == {start}
        assert {second.query, second.key, second.value} == {f"{side} layer 1"}


def test_the_masks_of_the_padded_sentence(calls):
    of = {(call.kind, call.layer): call.allowed for call in calls}
    real = torch.tensor([True] * 5 + [False] * 2)
    assert torch.equal(of["encoder self", 4], real.expand(7, 7))
    assert torch.equal(of["cross", 4], real.expand(5, 7))
    assert torch.equal(of["decoder self", 4], causal_mask(5))


def test_sub_layers_in_the_order_in_which_they_run(model, tokens):
    table = chapter.sub_layers(model, *tokens)
    assert table["sub-layer"].tolist() == [
        *("self-attention", "feed-forward"),
        *("self-attention", "cross-attention", "feed-forward"),
    ]
    assert table["heads"].tolist() == ["4", "–", "4", "4", "–"]


def test_layers_are_alike_unless_they_share_or_repeat(model):
    layers = list(model.encoder.layers)
    assert chapter.alike(layers)
    assert not chapter.alike([layers[0], layers[0], layers[2]])
    assert not chapter.alike([layers[0], layers[1], model.decoder.layers[0]])


def test_the_memory_is_all_that_the_decoder_reads(model, tokens):
    source, target = tokens
    found = chapter.memory_test(model, source, source.clamp(max=1) * 9, target)
    assert found.words_hidden < 1e-5
    assert found.to_the_other < 1e-5
    assert found.memory_swapped > 0.1


def verdicts(monkeypatch, settle):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    settle()
    pages = [one._repr_html_() for one in shown]
    return [r for page in pages for r in records_in_html(page, "10-encoder-decoder")]


def test_claims_are_settled(monkeypatch, model, tokens, calls):
    table = chapter.sub_layers(model, *tokens)
    found = verdicts(
        monkeypatch,
        lambda: (
            chapter.settle_memory(model, *tokens),
            chapter.settle_layers(model, calls, table),
        ),
    )
    assert [record.verdict for record in found] == ["defined"] * 3
    assert "keys and values from encoder layer 6" in found[2].measured


def test_reading_another_layer_is_found(monkeypatch, model, tokens, calls):
    """The claim on the decoder can fail."""
    table = chapter.sub_layers(model, *tokens)
    wrong = [
        chapter.Call(c.kind, c.layer, c.query, "encoder layer 2", c.value, c.allowed)
        if (c.kind, c.layer) == ("cross", 2)
        else c
        for c in calls
    ]
    found = verdicts(monkeypatch, lambda: chapter.settle_layers(model, wrong, table))
    assert [record.verdict for record in found] == ["defined", "open"]


def test_the_census_counts_every_parameter():
    config = TransformerConfig(10, d_model=4, d_ff=8, num_heads=2)
    found = chapter.census(config)
    assert found == {
        "feed-forward": 12 * 76,
        "encoder self-attention": 6 * 64,
        "decoder self-attention": 6 * 64,
        "cross-attention": 6 * 64,
        "embedding matrix": 40,
        "LayerNorms": 30 * 8,
    }
    assert sum(found.values()) == 2344  # as the text says
    assert sum(chapter.census(TransformerConfig.base()).values()) == 63_045_632


def test_the_census_s_bar_of_the_embedding_follows_the_slider():
    chart = chapter.census_chart().to_dict()
    values = chart["data"]["values"]
    each = {row["part"]: row["each"] * 37_000 for row in values}
    assert each["embedding matrix"] == pytest.approx(18.944)
    assert each["feed-forward"] == 0


def test_the_prefix_mask_by_hand():
    rows = ["11000", "11000", "11100", "11110", "11111"]
    table = torch.tensor([[int(c) for c in row] for row in rows]).bool()
    assert torch.equal(chapter.prefix_mask(2, 3), table)


@pytest.mark.parametrize("kind", chapter.MODELS)
def test_no_model_sees_the_answer(kind):
    """The scores of a target token depend on the source and on earlier tokens only."""
    torch.manual_seed(0)
    model = chapter.learner(kind).eval()
    x, y = chapter.pairs(4)
    changed = y.clone()
    changed[:, -1] = 2 + (y[:, -1] - 1) % chapter.TOKENS
    other = 2 + (x - 1) % chapter.TOKENS
    with torch.no_grad():
        scores = [
            chapter.target_scores(model, kind, a, b)[:, -chapter.LENGTH :]
            for a, b in ((x, y), (x, changed), (other, y))
        ]
    assert torch.allclose(scores[0], scores[1], atol=1e-6)
    assert not torch.allclose(scores[0], scores[2], atol=1e-3)


def test_what_is_to_be_learned():
    x, y = chapter.pairs(3, torch.Generator().manual_seed(0))
    assert x.min() >= 2
    assert x.max() < 2 + chapter.TOKENS
    assert (y[:, 0] - 2).tolist() == [(int(t) - 2 + 3) % 10 for t in x[:, -1]]


def test_a_language_model_is_asked_for_the_source_too():
    torch.manual_seed(0)
    x, y = chapter.pairs(4)
    for kind, length in zip(chapter.MODELS, (5, 5, 10), strict=True):
        model = chapter.learner(kind)
        assert chapter.target_scores(model, kind, x, y).shape == (4, length, 12)
        loss = chapter.reversal_loss(model, kind, x, y).item()
        assert loss == pytest.approx(3.0, abs=0.9)  # ln 12 and a half


def test_learning_is_recorded():
    rows = chapter.learn_reversal("prefix model", seed=0, steps=4, every=2)
    assert [row["step"] for row in rows] == [2, 4]
    assert all(0 <= row["right"] <= 1 for row in rows)


def test_a_model_made_by_hand():
    """It reverses and replaces, and writes another order for another matrix."""
    x, y = chapter.pairs(50, torch.Generator().manual_seed(1), length=6)
    model = chapter.by_hand(torch.eye(6).flip(0), chapter.lexicon())
    assert torch.equal(chapter.write(model, x), y)
    assert len(chapter.written_by_hand(model)) == 8
    copies = chapter.by_hand(torch.eye(6), torch.eye(12))
    assert torch.equal(chapter.write(copies, x), x)


def test_what_a_stack_depends_on_is_its_mask():
    """Two layers reach no further than one: these masks are transitive."""
    for mask in (causal_mask(5), chapter.prefix_mask(2, 3)):
        assert torch.equal(chapter.depends_on(mask), mask)


def test_wrong_readings_change_scores_and_the_right_one_does_not():
    shown = chapter.wrong_readings()["largest change of a score"]
    changes = [float(change) for change in shown]
    assert changes[1] < 1e-12
    assert min(changes[0], changes[2]) > 0.01


def test_queries_from_the_wrong_side_run_at_equal_lengths():
    assert chapter.queries_from_the_memory(7, 5) == "stops with an error"
    assert chapter.queries_from_the_memory(5, 5) == "runs, and is wrong"
