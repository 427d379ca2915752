"""The decoder's attention to the source: the right weights, and a readable page."""

import pytest
import torch
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.inference import (
    AttentionMap,
    cross_attention_map,
    render_attention,
    translate,
)
from aiayn.model import shift_right
from tests.inference.models import random_transformer

LINE, GERMAN = "a dog sees the small cat", "ein Hund sieht die kleine Katze"


@pytest.fixture(scope="module")
def model():
    return random_transformer(vocab_size=60, seed=2)


def test_the_weights_are_those_of_the_model(model, tokenizer):
    source = torch.tensor([[*tokenizer.encode(LINE), tokenizer.eos_id]])
    target = torch.tensor([[*tokenizer.encode(GERMAN), tokenizer.eos_id]])
    model.eval()
    with torch.no_grad():
        weights = model.attention_weights(source, shift_right(target, 1)).cross
    model.train()

    def chosen(**options):
        found = cross_attention_map(
            LINE, model, tokenizer, translation=GERMAN, **options
        )
        assert found.source == tokenizer.pieces(source[0].tolist())
        assert found.target == tokenizer.pieces(target[0].tolist())
        assert found.translation == GERMAN
        return found.weights

    assert_close(chosen(layer=2, head=1), weights[1][0, 0].float())
    assert_close(chosen(layer=1), weights[0][0].mean(0).float())
    assert_close(chosen(head=2), ((weights[0] + weights[1]) / 2)[0, 1].float())
    assert_close(chosen(), torch.cat(weights).mean((0, 1)).float())


@pytest.mark.parametrize("beam_size", [1, 4])
def test_without_a_translation_it_is_the_models_own(model, tokenizer, beam_size):
    found = cross_attention_map(LINE, model, tokenizer, beam_size=beam_size)
    assert [found.translation] == translate(
        [LINE], model, tokenizer, beam_size=beam_size
    )
    assert found.target[-1] == found.source[-1] == "</s>"
    assert found.weights.shape == (len(found.target), len(found.source))
    assert_close(found.weights.sum(1), torch.ones(len(found.target)))


def test_the_weights_may_be_changed_in_place(tokenizer):
    model = random_transformer(vocab_size=60).float()
    options = {"layer": 1, "head": 1, "translation": GERMAN}
    found = cross_attention_map(LINE, model, tokenizer, **options)
    found.weights[:, -1] = 0.0
    assert not found.weights[:, -1].any()


def test_damaged_weights_are_not_drawn(tokenizer):
    """With a translation given, no search has refused them before."""
    model = random_transformer(vocab_size=60)
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.inner.weight.fill_(torch.nan)
    with pytest.raises(InputError, match="are NaN"):
        cross_attention_map(LINE, model, tokenizer, translation=GERMAN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"line": " "}, "empty sentence"),
        ({"layer": 0}, "no layer 0; choose one from 1 to 2"),
        ({"head": 3}, "no head 3; choose one from 1 to 2"),
    ],
)
def test_what_cannot_be_drawn(model, tokenizer, options, message):
    options = {"line": LINE} | options
    with pytest.raises(InputError, match=message):
        cross_attention_map(model=model, tokenizer=tokenizer, **options)


def test_a_small_map():
    weights = torch.tensor([[0.96, 0.04, 0.0], [0.3, 0.5, 0.2]])
    attention = AttentionMap(["▁a", "▁dog", "</s>"], ["▁Hund", "</s>"], weights, "Hund")
    assert render_attention(attention).split("\n") == [
        "           ▁   <",
        "           d   /",
        "       ▁   o   s",
        "       a   g   >",
        "▁Hund 96█  4   ·",
        "</s>  30▒ 50▓ 20░",
    ]


@pytest.mark.parametrize("width", [10, 40, 80])
def test_no_line_is_wider_than_the_page(width):
    source, target = [f"piece{i}" for i in range(50)], ["longestofpieces", "字", "x"]
    weights = torch.full((3, 50), 0.07)
    page = render_attention(AttentionMap(source, target, weights, ""), width)
    lines = page.split("\n")
    assert max(len(line) + line.count("字") for line in lines) <= max(width, 18)
    assert page.count("7░") == 3 * 50  # and no cell is lost
    assert page.count("字") == page.count("\n\n") + 1


def test_characters_that_would_disturb_the_page():
    pieces = ["\x1b[31m", "e\u0301", "क\u093c\u0947", "\u202eab"]
    weights = torch.eye(4)
    page = render_attention(AttentionMap(pieces, pieces, weights, ""))
    assert all(c == "\n" or c.isprintable() for c in page)
    assert "é" in page
    rows = page.split("\n")[-4:]
    assert [row.index("█") for row in rows] == [8, 12, 16, 20]
