"""Hundreds of random models, sources and searches; `make soak` tries thousands."""

import pytest
from hypothesis import given, settings

from tests.soak.decoding import DECODINGS, decoding_agrees

pytestmark = pytest.mark.costly


def test_cached_decoding_is_uncached_decoding(unchecked_shapes):
    settings(max_examples=200)(given(*DECODINGS)(decoding_agrees))()
