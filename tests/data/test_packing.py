"""§5.1, packed: rows that hold several pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data import EOS_ID, EncodedPairs, TokenBatches, pack_pairs
from aiayn.errors import InputError

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


def test_a_row_has_room_for_a_token():
    pairs = EncodedPairs.from_lists([([5, EOS_ID], [6, EOS_ID])])
    for length in (0, -1):
        with pytest.raises(InputError, match=f"must be 1 or larger, not {length}"):
            pack_pairs(pairs, length)
