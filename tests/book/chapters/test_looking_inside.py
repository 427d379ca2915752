"""How much each word owes to the source, measured on a model that is not trained."""

import pytest
import torch

from aiayn import Transformer, TransformerConfig
from aiayn.data.grammar import generate
from aiayn_book.chapters import looking_inside as chapter
from aiayn_book.heads import PAD, Words
from tests.book.conftest import drawn


@pytest.fixture(scope="module")
def attribution():
    torch.manual_seed(1)
    samples = generate(10, seed=3, kinds=("simple",))
    words = Words.of(samples)
    config = TransformerConfig.tiny(vocab_size=len(words.words), dropout=0.0)
    return chapter.source_attribution(Transformer(config).eval(), samples, words)


def test_padding_owes_nothing(attribution):
    """Every other token loses or gains something without its source."""
    padding = attribution.targets == PAD
    assert padding.any()
    for lost in (attribution.zeroed, attribution.exchanged):
        assert (lost[padding] == 0).all()
        assert (lost[~padding] != 0).all()


def test_a_word_that_is_hidden_where_there_is_none_changes_nothing(attribution):
    """Hiding padding leaves the source as it was."""
    padding = attribution.sources == PAD
    assert padding.any()
    assert (attribution.hidden[padding] == 0).all()


def test_each_token_is_of_one_kind(attribution):
    kinds = torch.stack(list(attribution.kinds().values()))
    assert (kinds.sum(dim=0) == (attribution.targets != PAD)).all()


def test_a_loss_that_follows_the_alignment_agrees_with_it(attribution):
    """The measure of agreement itself, on losses made from the gold pairs."""
    hidden, weights = attribution.hidden, attribution.weights
    attribution.hidden = torch.zeros_like(hidden)
    attribution.weights = torch.ones_like(weights)
    for k, sample in enumerate(attribution.samples):
        for i, j in sample.alignment:
            attribution.hidden[k, i, j] = 1.0
            attribution.weights[k, j, i] = 0.0
    found = attribution.agreement()
    attribution.hidden, attribution.weights = hidden, weights
    assert found["hidden"] == 1.0
    assert found["attention"] < 0.2
    assert 0 < found["chance"] < 1


def test_tables_and_chart(attribution):
    by_kind = attribution.lost_by_kind()
    assert set(by_kind) == {"zeroed", "exchanged"}
    low, high = by_kind["exchanged"]["end"]
    assert 0 <= low <= high
    assert {row["step"] for row in attribution.lost_by_step()} <= set(range(1, 8))
    assert "<svg" in drawn(chapter.hidden_word_chart(attribution, 0))
