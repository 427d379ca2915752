"""Writing one token at a time: the cache changes the work and never the result."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from aiayn.model import Transformer
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator
from tests.model.samples import small_config


def recurrent(attention):
    return RecurrentTranslator(RecurrentConfig(30, 12, attention)).double().eval()


def sentences(rows, length):
    """Random sources of random lengths, padded, each ending in EOS."""
    source = torch.randint(4, 30, (rows, length))
    ends = torch.randint(0, length, (rows, 1))
    source[torch.arange(length) > ends] = 0
    return source.scatter(1, ends, 2)


transformers = st.builds(
    small_config,
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["sinusoidal", "learned"]),
    num_encoder_layers=st.integers(0, 2),
    num_decoder_layers=st.integers(0, 2),
    d_k=st.sampled_from([None, 1, 5]),
    tie_embeddings=st.booleans(),
).map(lambda config: Transformer(config).double().eval())
rotary = st.builds(
    small_config,
    norm=st.sampled_from(["post", "pre"]),
    positions=st.just("rotary"),
    d_k=st.sampled_from([None, 2, 6]),
).map(lambda config: Transformer(config).double().eval())
models = st.one_of(transformers, rotary, st.booleans().map(recurrent))


@given(model=models, rows=st.integers(1, 3), length=st.integers(1, 5))
def test_step_by_step_is_all_at_once(model, rows, length):
    source = sentences(rows, length)
    target = torch.randint(1, 30, (rows, 6))
    state = model.start(source)
    steps = [model.step(tokens, state) for tokens in target.unbind(1)]
    assert_close(torch.stack(steps, 1), model(source, target))


@given(model=models, data=st.data())
def test_hypotheses_may_be_reordered_repeated_and_dropped(model, data):
    """After any selections, a step is what the whole model says of the tokens kept."""
    source = sentences(3, 5)
    state = model.start(source)
    written = torch.randint(1, 30, (len(source), 1))
    scores = model.step(written[:, -1], state)
    for _ in range(3):
        beams = len(written) // len(source)
        kept = data.draw(
            st.lists(st.integers(0, len(source) - 1), min_size=1, unique=True)
        )
        wanted = data.draw(st.integers(1, 3))
        hypotheses = torch.tensor(
            [
                sentence * beams + data.draw(st.integers(0, beams - 1))
                for sentence in kept
                for _ in range(wanted)
            ]
        )
        state.select(hypotheses, torch.tensor(kept))
        source, written = source[kept], written[hypotheses]
        new = torch.randint(1, 30, (len(written), 1))
        written = torch.cat([written, new], 1)
        scores = model.step(new[:, 0], state)
        whole = model(source.repeat_interleave(wanted, 0), written)
        assert_close(scores, whole[:, -1])


@pytest.mark.parametrize("attention", [True, False])
def test_a_recurrent_state_can_be_widened_without_naming_sentences(attention):
    model, source = recurrent(attention), sentences(2, 4)
    state = model.start(source)
    state.select(torch.tensor([0, 0, 1, 1]))
    tokens = torch.tensor([5, 6, 7, 8])
    whole = model(source.repeat_interleave(2, 0), tokens[:, None])
    assert_close(model.step(tokens, state), whole[:, 0])


def test_a_transformer_can_start_with_several_hypotheses_a_sentence():
    model, source = Transformer(small_config()).double().eval(), sentences(2, 4)
    tokens = torch.tensor([5, 6, 7, 8])
    whole = model(source.repeat_interleave(2, 0), tokens[:, None])
    assert_close(model.step(tokens, model.start(source)), whole[:, 0])


def test_cross_attention_weights_come_one_row_a_hypothesis():
    model, source = Transformer(small_config()).double().eval(), sentences(2, 4)
    x = torch.randn(6, 2, 12, dtype=torch.float64)
    caches = model.start(source).layers
    memory = model.encode(source).repeat_interleave(3, 0)
    mask = (source != 0)[:, None, None]
    cached = model.decoder(x, caches, None, mask, need_weights=True)
    whole = model.decoder(
        x, memory, None, mask.repeat_interleave(3, 0), need_weights=True
    )
    for one, other in zip(cached, whole, strict=True):
        assert_close(one, other)
