"""Hundreds of random models, sources and searches; `make soak` tries thousands."""

from hypothesis import settings

from tests.soak.decoding import decoding_agrees


def test_cached_decoding_is_uncached_decoding(unchecked_shapes):
    settings(max_examples=200)(decoding_agrees)()
