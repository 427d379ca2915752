"""Damaged and hostile files get a sentence; `make soak` tries many more of them."""

import json
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from aiayn.storage import describe_config
from tests.soak.damage import damaged_files
from tests.soak.hostile import READERS, TINY, try_reader

pytestmark = pytest.mark.costly

# What fuzzing has found, one of each kind, and what is known to break others.
FOUND = {
    "model's description": [
        b'{"kind": []}',
        b'{"kind": {}}',
        b"[" * 100_000,
    ],
    "training configuration": [
        b'{"output": 5}',
        b"[]",
        b"9" * 5000,
    ],
    "log": [b'{"step": "1"}\n', b"[1]\n", b"\xff\xfe{}", b"[" * 100_000],
    "checkpoint": [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        b"\x80\x04cos\nsystem\n(S'echo'\ntR.",
    ],
}


@pytest.mark.parametrize("name", READERS)
def test_a_whole_file_is_read(name):
    assert all(try_reader(name, content) for content in READERS[name].examples())


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused(name, unchecked_shapes):
    """And some are refused: else nothing would have been tried."""
    outcomes = set()

    @settings(max_examples=60)
    @given(st.one_of(damaged_files(READERS[name].examples()), st.binary(max_size=99)))
    def attempt(content):
        outcomes.add(try_reader(name, content))

    attempt()
    # A log is read as far as it goes, and any symbols are made a tree.
    assert False in outcomes or name in ("log", "symbols")


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name, found in FOUND.items() for content in found],
    ids=lambda value: value if isinstance(value, str) else repr(value[:12]),
)
def test_what_was_found(name, content, unchecked_shapes):
    assert try_reader(name, content) == (name == "log")


@pytest.mark.parametrize(
    "sizes",
    [
        {"d_model": 2**40},
        {"vocab_size": 2**40, "d_model": 2**20},
        {"num_encoder_layers": 10**9},
        {"max_length": 2**50},
        {"positions": "learned", "max_length": 2**50},
        {"d_ff": 2**62},
        {"vocab_size": 10**30},
    ],
    ids=str,
)
def test_a_small_file_cannot_ask_for_a_large_model(sizes):
    """It ends at once, in a sentence."""
    model = describe_config(TINY) | sizes
    info = json.dumps({"step": 1, "model": model})
    content = save({"a": torch.ones(1)}, metadata={"info": info})
    assert not try_reader("translator", content)


def test_a_description_may_not_ask_for_a_long_table_beside_the_right_weights():
    """max_length of sinusoids is in no weight; it is bounded all the same."""
    from aiayn.model import Transformer

    weights = Transformer(TINY).state_dict()
    info = json.dumps({"model": describe_config(TINY) | {"max_length": 2**40}})
    content = save({n: t.clone() for n, t in weights.items()}, metadata={"info": info})
    assert not try_reader("translator", content)
