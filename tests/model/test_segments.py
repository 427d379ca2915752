"""§5.1, packed: sentences that share a row come out as they do alone."""

from contextlib import nullcontext
from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from aiayn.data import EncodedPairs, pack_pairs
from aiayn.model import (
    LearnedPositionalEncoding,
    Segments,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    positions_within,
    restart,
    segment_mask,
    shift_right,
)
from aiayn.model.forms import plain_form
from aiayn.training.loss import Criterion
from tests.model.twins import randomize

BOS, END, PAD = 1, 2, 0
sentences = st.lists(st.integers(3, 20), max_size=5).map(lambda words: [*words, END])
rows = st.lists(st.lists(sentences, min_size=1, max_size=4), min_size=1, max_size=3)


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


@given(rows=rows)
def test_segments_positions_and_shift_are_those_of_each_sentence(rows):
    tokens = padded([list(chain(*row)) for row in rows])
    segments = Segments.of(tokens, tokens, END).target
    places = positions_within(segments)
    shifted = restart(shift_right(tokens, BOS), segments, BOS)
    for number, row in enumerate(rows):
        real = sum(map(len, row))
        expected = [(s, i) for s in range(len(row)) for i in range(len(row[s]))]
        found = zip(segments[number, :real], places[number, :real], strict=True)
        assert [(int(s), int(i)) for s, i in found] == expected
        assert (segments[number, real:] == len(row) - 1).all()  # padding: the last's
        starts = [token for s in row for token in (BOS, *s[:-1])]
        assert shifted[number, :real].tolist() == starts


def test_a_row_without_an_end_is_one_sentence():
    tokens = torch.tensor([[5, 6, 7]])
    assert not Segments.of(tokens, tokens, END).source.any()


def test_the_mask_of_two_sentences_is_two_blocks():
    queries, keys = torch.tensor([[0, 0, 1]]), torch.tensor([[0, 1, 1, 1]])
    mask = segment_mask(queries, keys)
    assert mask.shape == (1, 1, 3, 4)
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    "kind", [SinusoidalPositionalEncoding, LearnedPositionalEncoding]
)
def test_positions_that_are_given_are_added(kind):
    encoding, x = kind(4, max_length=8), torch.zeros(1, 5, 4)
    found = encoding(x, positions=torch.tensor([[0, 1, 2, 0, 1]]))
    assert found.equal(torch.cat([encoding(x[:, :3]), encoding(x[:, :2])], dim=1))


PAIRS = EncodedPairs.from_lists(
    [
        ([5, 6, 7, END], [8, 9, END]),
        ([7, END], [9, 8, 10, 11, END]),
        ([6, 6, END], [11, END]),
        ([5, END], [END]),
        ([9, 5, 8, 7, 6, END], [10, 10, 8, END]),
    ]
)


@pytest.mark.parametrize("form", ["fast", "plain", "fused"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("row_length", [6, 9, 64])
def test_packed_rows_have_loss_and_gradients_of_padded_ones(
    form, positions, row_length, monkeypatch
):
    """float64; both sides of a row, one row or several, padding at the end of some."""
    if form == "fused":
        monkeypatch.setattr("aiayn.model.attention.FUSED_ABOVE", 0)
    config = TransformerConfig.tiny(
        vocab_size=20, d_model=8, d_ff=12, num_heads=2, dropout=0.0, positions=positions
    )
    model = randomize(Transformer(config).double())
    packed = pack_pairs(PAIRS, row_length)
    assert len(packed) < len(PAIRS)
    alone, together = (Criterion(model, 0.1, BOS, end_id) for end_id in (None, END))
    losses = []
    with plain_form() if form == "plain" else nullcontext():
        for objective, pairs in ((alone, PAIRS), (together, packed)):
            everything = torch.arange(len(pairs)).numpy()
            smoothed, plain = objective(
                pairs.source.padded(everything, PAD),
                pairs.target.padded(everything, PAD),
            )
            gradients = torch.autograd.grad(smoothed, list(model.parameters()))
            losses.append([smoothed, plain, *gradients])
    assert_close(losses[0], losses[1])
