"""Positions by turning: against a slow loop, by hand, and by the law they exist for."""

import math
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.model import (
    MultiHeadAttention,
    RotaryAttention,
    SinusoidalPositionalEncoding,
    Transformer,
    rotate,
    sinusoidal_positional_encoding,
    split_heads,
)
from tests.model.samples import random, small_config
from tests.model.twins import randomize


def slowly_rotated(vector, position):
    """Pair i of one vector, number i of either half, times e to the iφ."""
    half = len(vector) // 2
    pairs = [complex(vector[i], vector[half + i]) for i in range(half)]
    for i in range(half):
        angle = position / 10000 ** (2 * i / len(vector))
        pairs[i] *= complex(math.cos(angle), math.sin(angle))
    return [pair.real for pair in pairs] + [pair.imag for pair in pairs]


@pytest.mark.usefixtures("float64")
@given(
    length=st.integers(0, 6),
    half=st.integers(1, 5),
    start=st.sampled_from([0, 1, 1000]),
)
def test_a_slow_loop_turns_alike(length, half, start):
    x = random(2, length, 2 * half)
    found = rotate(x, sinusoidal_positional_encoding(length, 2 * half, start))
    expected = [
        [slowly_rotated(v.tolist(), start + p) for p, v in enumerate(row)] for row in x
    ]
    assert_close(found, torch.tensor(expected).view_as(x))


def test_by_hand():
    """A quarter turn takes (1, 0) to (0, 1), and (0, 1) to (-1, 0)."""
    quarter = torch.tensor([[1.0, 0.0], [1.0, 0.0]])  # sin and cos of 90°
    turned = rotate(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), quarter)
    assert turned.tolist() == [[0.0, 1.0], [-1.0, 0.0]]


@pytest.mark.usefixtures("float64")
@given(
    distance=st.integers(-30, 30),
    place=st.integers(30, 100),
    later=st.integers(0, 1000),
)
def test_a_score_knows_the_distance_alone(distance, place, later):
    query, key = random(1, 8), random(1, 8)

    def score(at, of):
        sinusoids = [sinusoidal_positional_encoding(1, 8, start=p) for p in (at, of)]
        return (rotate(query, sinusoids[0]) * rotate(key, sinusoids[1])).sum()

    here = score(place, place + distance)
    assert_close(score(place + later, place + later + distance), here)
    if distance:
        assert not torch.isclose(score(place, place), here, rtol=1e-12, atol=0)


@pytest.mark.usefixtures("float64")
def test_the_paper_attention_of_turned_projections():
    """Nothing else is changed: values, mask, output and every weight are as before."""
    rotary = randomize(RotaryAttention(12, 3))
    x, mask = random(2, 5, 12), torch.ones(5, 5, dtype=torch.bool).tril()
    queries, keys, values = (
        split_heads(projection(x), 3)
        for projection in (
            rotary.query_projection,
            rotary.key_projection,
            rotary.value_projection,
        )
    )
    sinusoids = sinusoidal_positional_encoding(5, 4)
    scores = rotate(queries, sinusoids) @ rotate(keys, sinusoids).mT / 2
    expected = scores.masked_fill(~mask, -math.inf).softmax(-1)
    output, weights = rotary(x, x, x, mask, need_weights=True)
    assert_close(weights, expected)
    context = (expected @ values).transpose(1, 2).flatten(2)
    assert_close(output, rotary.output_projection(context))


def test_where_positions_are():
    """In every self-attention, in no cross-attention, and in no sum at the bottom."""
    model = Transformer(small_config(positions="rotary"))
    kinds = {
        name: type(module)
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    assert len(kinds) == 2 + 2 * 2
    for name, kind in kinds.items():
        assert (kind is RotaryAttention) == ("self_attention" in name)
    x = torch.randn(2, 5, 12)
    assert model.source_positions(x).equal(x)
    assert model.target_positions(x, start=3).equal(x)


def test_its_weights_are_the_papers():
    """The same names and shapes: angles are computed and not saved."""
    rotary, paper = (
        Transformer(small_config(positions=positions)).state_dict()
        for positions in ("rotary", "sinusoidal")
    )
    assert {n: w.shape for n, w in rotary.items()} == {
        n: w.shape for n, w in paper.items()
    }


@pytest.mark.usefixtures("float64")
def test_no_sentence_is_too_long():
    long = randomize(RotaryAttention(8, 2))
    short = deepcopy(long)
    short.positions = SinusoidalPositionalEncoding(4, max_length=4)
    x = random(1, 30, 8)
    assert_close(short(x, x, x), long(x, x, x))


def test_words_may_not_be_exchanged():
    """As they could be if nothing was turned: attention alone has no order."""
    model = randomize(Transformer(small_config(positions="rotary"))).eval()
    target = torch.tensor([[1, 9]])
    one, other = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[6, 5, 7, 2]])
    assert not torch.allclose(model(one, target), model(other, target))


@pytest.mark.parametrize("sizes", [{"d_k": 3}, {"d_model": 15}])
def test_an_odd_width_has_no_pairs(sizes):
    with pytest.raises(InputError, match=r"and d_k = (3|5) is odd: choose an even d_k"):
        small_config(positions="rotary", **sizes)
    with pytest.raises(InputError, match="d_k = 3 is odd"):
        RotaryAttention(9, 3)


def test_positions_of_two_sequences_are_not_comparable():
    attention = RotaryAttention(8, 2)
    x, memory = torch.randn(1, 6, 8), torch.randn(1, 5, 8)
    with pytest.raises(InputError, match="6 queries and 5 keys"):
        attention(x, memory, memory)
