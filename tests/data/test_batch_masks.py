"""A batch brings the masks, positions and decoder input that its rows need."""

import itertools
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    Batch,
    EncodedPairs,
    TokenBatches,
    pack_pairs,
)

MASKS = ("source_mask", "target_mask", "memory_mask")
POSITIONS = ("source_positions", "target_positions")
FIELDS = ("source", "target", "pad_id", "packed")

SIDE = st.lists(st.integers(4, 9), max_size=5).map(lambda words: [*words, EOS_ID])
PAIRS = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=8)


def in_one_batch(pairs):
    """All pairs side by side."""
    [batch] = TokenBatches(pairs, tokens_per_batch=10_000).epoch(0)
    return batch


def labels(tokens):
    """The sentence and the position of each token of a row; None for padding."""
    sentence = position = 0
    for token in tokens:
        yield None if token == PAD_ID else (sentence, position)
        position += 1
        if token == EOS_ID:
            sentence, position = sentence + 1, 0


def may_attend(query, key, causal):
    """The definition of all three masks."""
    if query is None or key is None or query[0] != key[0]:
        return False
    return key[1] <= query[1] or not causal


@given(lists=PAIRS, row_length=st.sampled_from([None, 6, 12, 40]))
def test_a_query_attends_to_its_own_sentence_and_never_to_padding(lists, row_length):
    """Query by query; what padding itself attends to does not matter."""
    pairs = EncodedPairs.from_lists(lists)
    batch = in_one_batch(pairs if row_length is None else pack_pairs(pairs, row_length))
    assert batch.packed == (row_length is not None)
    sides = {
        "source_mask": (batch.source, batch.source),
        "target_mask": (batch.target, batch.target),
        "memory_mask": (batch.target, batch.source),
    }
    for name, (queries, keys) in sides.items():
        mask = getattr(batch, name)
        assert mask.dtype == torch.bool
        heads = mask.expand(len(batch), 3, queries.size(1), keys.size(1))
        assert heads[:, 0].equal(heads[:, 2])
        for row in range(len(batch)):
            of_keys = list(labels(keys[row].tolist()))
            for at, query in enumerate(labels(queries[row].tolist())):
                causal = name == "target_mask"
                expected = [may_attend(query, key, causal) for key in of_keys]
                assert query is None or heads[row, 0, at].tolist() == expected, name


@given(lists=PAIRS, row_length=st.sampled_from([6, 12, 40]))
def test_positions_and_decoder_input_of_packed_rows(lists, row_length):
    batch = in_one_batch(pack_pairs(EncodedPairs.from_lists(lists), row_length))
    read = batch.decoder_input(BOS_ID)
    for side in ("source", "target"):
        tokens = getattr(batch, side)
        positions = getattr(batch, f"{side}_positions")
        assert positions.shape == tokens.shape
        for row in range(len(batch)):
            for at, label in enumerate(labels(tokens[row].tolist())):
                assert label is None or positions[row, at] == label[1]
    for row in range(len(batch)):
        for at, label in enumerate(labels(batch.target[row].tolist())):
            first = label and label[1] == 0
            expected = BOS_ID if first else batch.target[row, at - 1]
            assert label is None or read[row, at] == expected


def test_a_batch_of_single_sentences_needs_no_positions():
    source = torch.tensor([[5, 6, EOS_ID], [7, EOS_ID, PAD_ID]])
    batch = Batch(source, target=torch.tensor([[8, EOS_ID], [9, EOS_ID]]))
    assert batch.source_positions is None
    assert batch.target_positions is None
    assert batch.source_mask.shape == batch.memory_mask.shape == (2, 1, 1, 3)
    assert batch.source_mask[:, 0, 0].tolist() == [[True] * 3, [True, True, False]]
    assert batch.target_mask.tolist() == [[True, False], [True, True]]
    assert batch.decoder_input(BOS_ID).tolist() == [[BOS_ID, 8], [BOS_ID, 9]]


def test_the_shapes_of_packed_masks():
    source = torch.tensor([[5, EOS_ID, 7, EOS_ID, PAD_ID]])
    batch = Batch(source, torch.tensor([[8, EOS_ID, EOS_ID]]), packed=True)
    assert batch.source_mask.shape == (1, 1, 5, 5)
    assert batch.target_mask.shape == (1, 1, 3, 3)
    assert batch.memory_mask.shape == (1, 1, 3, 5)
    assert batch.target_positions.tolist() == [[0, 1, 0]]
    assert batch.decoder_input(BOS_ID).tolist() == [[BOS_ID, 8, BOS_ID]]


def test_padding_may_have_another_id():
    batch = Batch(torch.tensor([[5, EOS_ID, 9]]), torch.tensor([[EOS_ID]]), pad_id=9)
    assert batch.source_mask.flatten().tolist() == [True, True, False]
    assert batch.memory_mask.flatten().tolist() == [True, True, False]


@pytest.mark.parametrize("packed", [False, True])
def test_no_value_of_the_ids_decides_what_is_computed(packed):
    """The device "meta" has no values: so a step can be compiled or recorded."""
    source = torch.tensor([[5, EOS_ID, 7, EOS_ID]])
    batch = Batch(source, source[:, :2], packed=packed)
    elsewhere = batch.to("meta")
    assert elsewhere.packed == packed
    for name in (*MASKS, *POSITIONS):
        here, there = getattr(batch, name), getattr(elsewhere, name)
        assert (here is None) == (there is None)
        if here is not None:
            assert (there.device.type, there.shape) == ("meta", here.shape)
    assert elsewhere.decoder_input(BOS_ID).device.type == "meta"


def test_masks_are_not_stored_with_the_batch():
    source = torch.tensor([[5, EOS_ID, 7, EOS_ID]])
    batch = Batch(source, source, packed=True)
    for name in itertools.chain(MASKS, POSITIONS):
        getattr(batch, name)
    again = pickle.loads(pickle.dumps(batch))
    assert tuple(vars(batch)) == tuple(vars(again)) == FIELDS
    assert again.source_mask.equal(batch.source_mask)
