"""§5.1, packed: rows that contain several pairs."""

from itertools import chain

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data import EOS_ID, EncodedPairs, TokenBatches, pack_pairs
from aiayn.data.segments import positions_within, segment_ids, shift_right_packed

ROW = 12
sides = st.lists(st.integers(4, 9), max_size=ROW - 1)
texts = st.lists(st.tuples(sides, sides), max_size=30)


def encoded(text):
    return EncodedPairs.from_lists(
        ([*source, EOS_ID], [*target, EOS_ID]) for source, target in text
    )


def sentences(row):
    """What stands between the ends, in order."""
    found = [[]]
    for token in row:
        if token == EOS_ID:
            found.append([])
        else:
            found[-1].append(token)
    assert found.pop() == [], "a row ends with a sentence's end"
    return found


def unpacked(packed):
    for row in range(len(packed)):
        source, target = sentences(packed.source[row]), sentences(packed.target[row])
        yield list(zip(source, target, strict=True))


@given(text=texts)
def test_every_pair_is_in_one_row_and_side_by_side(text):
    packed = pack_pairs(encoded(text), ROW)
    assert packed.packed
    found = [pair for row in unpacked(packed) for pair in row]
    assert sorted(found) == sorted(text)
    for side in (packed.source, packed.target):
        assert side.lengths.max(initial=0) <= ROW


@given(text=texts)
def test_no_row_was_begun_while_another_had_room(text):
    """A row's first pair fits into no row before it: not on the fuller side."""
    packed = pack_pairs(encoded(text), ROW)
    rooms = ROW - np.maximum(packed.source.lengths, packed.target.lengths)
    for number, row in enumerate(unpacked(packed)):
        longer = 1 + max(map(len, row[0]))
        assert (rooms[:number] < longer).all()


def test_the_fullest_row_with_room_is_taken():
    lengths = [7, 6, 4, 3]  # 4 fits beside 6 only, 3 beside 7
    packed = pack_pairs(encoded([([4] * (n - 1),) * 2 for n in lengths]), row_length=10)
    assert packed.source.lengths.tolist() == [10, 10]
    lengths = [7, 6, 3]  # 3 beside either: 7 leaves nothing over
    packed = pack_pairs(encoded([([4] * (n - 1),) * 2 for n in lengths]), row_length=10)
    assert packed.source.lengths.tolist() == [10, 6]


def test_packing_leaves_less_padding_than_sorting_when_batches_are_few():
    """Lengths of every kind, in large batches: what sorting can do has an end."""
    drawn = np.random.default_rng(0)
    text = [([4] * n, [4] * m) for n, m in drawn.integers(1, 60, (600, 2))]
    pairs = encoded(text)
    whole = TokenBatches(pairs, tokens_per_batch=10_000)
    packed = TokenBatches(pack_pairs(pairs, 240), tokens_per_batch=10_000)
    assert packed.target_tokens == whole.target_tokens
    assert packed.padding_share() < 0.5 * whole.padding_share()


def test_a_pair_longer_than_a_row_has_one_of_its_own():
    packed = pack_pairs(encoded([([4], [4]), ([4], [4] * 4), ([4], [4])]), row_length=4)
    assert packed.target.lengths.tolist() == [5, 4]


# Which sentence a token belongs to

BOS, PAD = 1, 0
sentences_with_eos = sides.map(lambda words: [*words, EOS_ID])
packed_rows = st.lists(
    st.lists(sentences_with_eos, min_size=1, max_size=4), min_size=1, max_size=3
)


def padded(rows):
    """Rows of sentences as one tensor."""
    rows = [list(chain(*row)) for row in rows]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


@given(rows=packed_rows)
def test_segments_positions_and_shift_are_those_of_each_sentence(rows):
    tokens = padded(rows)
    segments = segment_ids(tokens, EOS_ID)
    positions = positions_within(segments)
    shifted = shift_right_packed(tokens, segments, BOS)
    for number, row in enumerate(rows):
        real = sum(map(len, row))
        expected = [(s, i) for s in range(len(row)) for i in range(len(row[s]))]
        found = zip(segments[number, :real], positions[number, :real], strict=True)
        assert [(int(s), int(i)) for s, i in found] == expected
        assert (segments[number, real:] == len(row) - 1).all()  # padding: the last's
        starts = [token for s in row for token in (BOS, *s[:-1])]
        assert shifted[number, :real].tolist() == starts


def test_a_row_without_an_end_is_one_sentence():
    assert not segment_ids(torch.tensor([[5, 6, 7]]), EOS_ID).any()
