"""Writing one token at a time: the cache changes the work and never the result."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from aiayn.model import KVCache, Transformer, rotary
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
with_rotary = st.builds(
    small_config,
    norm=st.sampled_from(["post", "pre"]),
    positions=st.just("rotary"),
    d_k=st.sampled_from([None, 2, 6]),
).map(lambda config: Transformer(config).double().eval())
models = st.one_of(transformers, with_rotary, st.booleans().map(recurrent))


@given(model=models, rows=st.integers(1, 3), length=st.integers(1, 5))
def test_step_by_step_is_all_at_once(model, rows, length):
    source = sentences(rows, length)
    target = torch.randint(1, 30, (rows, 6))
    cache = model.init_decode(source)
    steps = [model.decode_step(tokens, cache) for tokens in target.unbind(1)]
    assert_close(torch.stack(steps, 1), model(source, target))


@given(model=models, data=st.data())
def test_hypotheses_may_be_reordered_repeated_and_dropped(model, data):
    """After any selections, a step is what the whole model says of the tokens kept."""
    source = sentences(3, 5)
    cache = model.init_decode(source)
    written = torch.randint(1, 30, (len(source), 1))
    scores = model.decode_step(written[:, -1], cache)
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
        cache.reorder(hypotheses, torch.tensor(kept))
        source, written = source[kept], written[hypotheses]
        new = torch.randint(1, 30, (len(written), 1))
        written = torch.cat([written, new], 1)
        scores = model.decode_step(new[:, 0], cache)
        whole = model(source.repeat_interleave(wanted, 0), written)
        assert_close(scores, whole[:, -1])


@pytest.mark.parametrize("attention", [True, False])
def test_a_recurrent_cache_can_be_widened_without_naming_sentences(attention):
    model, source = recurrent(attention), sentences(2, 4)
    cache = model.init_decode(source)
    cache.reorder(torch.tensor([0, 0, 1, 1]))
    tokens = torch.tensor([5, 6, 7, 8])
    whole = model(source.repeat_interleave(2, 0), tokens[:, None])
    assert_close(model.decode_step(tokens, cache), whole[:, 0])


def test_a_transformer_can_start_with_several_hypotheses_a_sentence():
    model, source = Transformer(small_config()).double().eval(), sentences(2, 4)
    tokens = torch.tensor([5, 6, 7, 8])
    whole = model(source.repeat_interleave(2, 0), tokens[:, None])
    assert_close(model.decode_step(tokens, model.init_decode(source)), whole[:, 0])


def test_the_newest_tokens_of_several_hypotheses_may_be_more_than_one():
    model, source = Transformer(small_config()).double().eval(), sentences(2, 4)
    x = torch.randn(6, 2, 12, dtype=torch.float64)
    caches = model.init_decode(source).layers
    memory = model.encode(source).repeat_interleave(3, 0)
    mask = (source != 0)[:, None, None]
    cached, _, _ = model.decoder(x, None, None, mask, caches=caches)
    whole, _, _ = model.decoder(x, memory, None, mask.repeat_interleave(3, 0))
    assert_close(cached, whole)


def test_training_makes_no_cache(monkeypatch):
    """A cache is for decoding; `KVCache` is not even made."""
    monkeypatch.setattr(KVCache, "__init__", None)
    model, source = Transformer(small_config()), sentences(2, 4)
    model(source, source).sum().backward()


def test_rotary_keys_are_rotated_once(monkeypatch):
    """When they are new: a step of decoding rotates one query and one key."""
    lengths, rotate = [], rotary.rotate

    def spy(x, sinusoids):
        lengths.append(x.size(2))
        return rotate(x, sinusoids)

    monkeypatch.setattr("aiayn.model.rotary.rotate", spy)
    model = Transformer(small_config(positions="rotary")).eval()
    cache = model.init_decode(sentences(2, 4))
    lengths.clear()
    for _ in range(5):
        model.decode_step(torch.tensor([5, 6]), cache)
    assert set(lengths) == {1}
