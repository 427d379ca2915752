"""§5.1, packed: sentences that share a row give the loss that they give alone."""

from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

from aiayn import fast
from aiayn.data import EncodedPairs, TokenBatches, pack_pairs
from aiayn.model import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
)
from aiayn.training import Criterion
from tests.model.twins import randomize

BOS, EOS = 1, 2
PAIRS = EncodedPairs.from_lists(
    [
        ([5, 6, 7, EOS], [8, 9, EOS]),
        ([7, EOS], [9, 8, 10, 11, EOS]),
        ([6, 6, EOS], [11, EOS]),
        ([5, EOS], [EOS]),
        ([9, 5, 8, 7, 6, EOS], [10, 10, 8, EOS]),
    ]
)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("row_length", [6, 9, 64])
def test_packed_rows_have_loss_and_gradients_of_padded_ones(
    accelerated, positions, row_length
):
    """float64; both sides of a row, one row or several, padding at the end of some."""
    config = TransformerConfig.tiny(
        vocab_size=20, d_model=8, d_ff=12, num_heads=2, dropout=0.0, positions=positions
    )
    model = randomize(Transformer(config))
    packed = pack_pairs(PAIRS, row_length)
    assert len(packed) < len(PAIRS)
    found = []
    for pairs in (PAIRS, packed):
        criterion = Criterion(model, 0.1, BOS, packed=pairs.packed)
        fast.accelerate(criterion)
        [batch] = TokenBatches(pairs, tokens_per_batch=1000).epoch(0)
        with nullcontext() if accelerated else fast.disabled(criterion):
            smoothed, plain = criterion(batch.source, batch.target)
            gradients = torch.autograd.grad(smoothed, list(model.parameters()))
        found.append([smoothed, plain, *gradients])
    assert_close(*found)


@pytest.mark.parametrize(
    "kind", [SinusoidalPositionalEncoding, LearnedPositionalEncoding]
)
def test_positions_that_are_given_are_added(kind):
    encoding, x = kind(4, max_length=8), torch.zeros(1, 5, 4)
    found = encoding(x, positions=torch.tensor([[0, 1, 2, 0, 1]]))
    assert found.equal(torch.cat([encoding(x[:, :3]), encoding(x[:, :2])], dim=1))
