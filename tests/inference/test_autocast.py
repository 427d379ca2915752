"""§6.1 in bfloat16: search and perplexity under the caller's `torch.autocast`.

A model that has learned to reverse a sentence writes the same outputs in both types.
"""

import pytest
import torch
from torch.nn import functional as F

from aiayn import fast
from aiayn.data import Batch
from aiayn.inference import beam_search, greedy_search, perplexity
from aiayn.model import Transformer, TransformerConfig, shift_right
from tests.inference.models import BOS, ENDS, EOS, PAD

SEARCHES = {"greedy": greedy_search, "beam": beam_search}


def sentences(count, seed):
    """Padded sentences of two to four words, and the same in reverse."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((count, 5), PAD)
    target = source.clone()
    for row in range(count):
        length = int(torch.randint(2, 5, (), generator=generator))
        words = torch.randint(3, 9, (length,), generator=generator)
        source[row, : length + 1] = torch.tensor([*words, EOS])
        target[row, : length + 1] = torch.tensor([*words.flip(0), EOS])
    return source, target


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    sizes = {"vocab_size": 9, "d_model": 32, "d_ff": 64, "dropout": 0.0}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1, "norm": "pre"}
    model = fast.accelerate(Transformer(TransformerConfig.tiny(**sizes)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    for step in range(150):
        source, target = sentences(64, seed=step)
        logits = model(source, shift_right(target, BOS))
        loss = F.cross_entropy(logits.mT, target, ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@pytest.fixture(params=["plain", "fast"])
def model(request, trained):
    if request.param == "fast":
        yield trained
    else:
        with fast.disabled(trained):
            yield trained


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_the_outputs_are_the_same_and_their_scores_are_summed_in_32_bits(model, search):
    source, target = sentences(20, seed=1000)
    wide = search(model, source, **ENDS)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = search(model, source, **ENDS)
        logits = model.decode_step(torch.full((20,), BOS), model.init_decode(source))
    assert logits.dtype == torch.bfloat16  # so the model did compute in 16 bits
    assert [one.tokens for one in narrow] == [one.tokens for one in wide]
    right = [row[: row.tolist().index(EOS)].tolist() for row in target]
    assert sum(one.tokens == row for one, row in zip(narrow, right, strict=True)) >= 18
    scores = torch.tensor([one.log_probability for one in narrow])
    assert not torch.equal(scores, scores.bfloat16().float())
    torch.testing.assert_close(
        scores, torch.tensor([one.log_probability for one in wide]), rtol=0.1, atol=0.1
    )


def test_perplexity_is_nearly_the_same(model):
    batches = [Batch(*sentences(20, seed=1001))]
    wide = perplexity(model, batches, bos_id=BOS)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = perplexity(model, batches, bos_id=BOS)
    assert narrow.loss != wide.loss
    assert narrow.loss == pytest.approx(wide.loss, abs=0.02)


def test_a_training_may_go_on_inside_the_same_context(model):
    """Weights that autocast has converted in a search must not lose their gradients."""
    source, target = sentences(4, seed=1002)
    with torch.autocast("cpu", torch.bfloat16):
        greedy_search(model, source, **ENDS)
        loss = model(source, shift_right(target, BOS)).float().square().mean()
    model.zero_grad()
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
