"""Cached decoding is uncached decoding, whatever the model, the sources, the search."""

import torch
from hypothesis import strategies as st

from aiayn import fast
from aiayn.inference import beam_search_n_best
from tests.inference.models import (
    ENDS,
    random_recurrent,
    random_source,
    random_transformer,
)
from tests.inference.uncached import Uncached

WIDTHS = st.sampled_from([(8, 1), (8, 2), (12, 3), (6, 6), (1, 1)])


@st.composite
def models(draw):
    """A Transformer of any shape, now and then a recurrent model."""
    seed, vocab_size = draw(st.integers(0, 2**20)), draw(st.integers(4, 12))
    if draw(st.integers(0, 7)) == 0:
        attention = draw(st.booleans())
        return random_recurrent(vocab_size, seed, attention=attention), vocab_size
    d_model, num_heads = draw(WIDTHS)
    positions = draw(st.sampled_from(["sinusoidal", "learned", "rotary"]))
    model = random_transformer(
        vocab_size,
        seed,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=draw(st.integers(1, 12)),
        d_k=draw(st.sampled_from([2, 6] if positions == "rotary" else [None, 1, 5])),
        d_v=draw(st.sampled_from([None, 1, 3])),
        num_encoder_layers=draw(st.integers(0, 2)),
        num_decoder_layers=draw(st.integers(0, 3)),
        norm=draw(st.sampled_from(["post", "pre"])),
        positions=positions,
        max_length=draw(st.integers(8, 12)),
        tie_embeddings=draw(st.booleans()),
    )
    return model, vocab_size


searches = st.fixed_dictionaries(
    {
        "beam_size": st.integers(1, 5),
        "length_penalty": st.sampled_from([0.0, 0.6, 2.0]),
        "extra_length": st.integers(0, 6),
    }
)
sentences = st.lists(st.integers(1, 6), min_size=1, max_size=4)


# What `decoding_agrees` takes, in the order of its arguments.
DECODINGS = (models(), sentences, searches, st.booleans(), st.data())


def decoding_agrees(model_and_size, lengths, search, accelerated, data):
    """The same outputs in the same order, and scores equal but for rounding."""
    model, vocab_size = model_and_size
    source = random_source(lengths, max(4, vocab_size), seed=sum(lengths))
    count = data.draw(st.integers(1, search["beam_size"]))
    if accelerated:
        fast.accelerate(model)
    cached, uncached = (
        beam_search_n_best(one, source, num_best=count, **search, **ENDS)
        for one in (model, Uncached(model))
    )
    assert [[h.tokens for h in row] for row in cached] == [
        [h.tokens for h in row] for row in uncached
    ]
    for rows in zip(cached, uncached, strict=True):
        scores = [torch.tensor([h.score for h in row]).double() for row in rows]
        torch.testing.assert_close(*scores, rtol=1e-9, atol=1e-9)
