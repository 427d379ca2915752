"""§3.1, §3.2.3: masks."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from aiayn.model import causal_mask, padding_mask


@given(length=st.integers(0, 9))
def test_a_position_sees_itself_and_the_past(length):
    mask = causal_mask(length)
    expected = [[key <= query for key in range(length)] for query in range(length)]
    assert mask.tolist() == expected


@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1),
    pad_id=st.integers(0, 3),
)
def test_padding_is_hidden_from_every_head_and_query(rows, pad_id):
    mask = padding_mask(torch.tensor(rows), pad_id)
    assert mask.shape == (len(rows), 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [[t != pad_id for t in row] for row in rows]


def test_masks_combine_to_the_decoders():
    mask = causal_mask(3) & padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), 0)
    assert mask.shape == (2, 1, 3, 3)
    assert mask[:, 0].int().tolist() == [
        [[1, 0, 0], [1, 1, 0], [1, 1, 0]],
        [[1, 0, 0], [1, 0, 0], [1, 0, 0]],
    ]
