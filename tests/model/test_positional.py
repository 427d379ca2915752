"""§3.5: positions, against a slow loop, by hand, and by the rotation they promise."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.model import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    sinusoidal_positional_encoding,
)


def slow_entry(position, column, d_model):
    """The paper's formula for one entry."""
    angle = position / 10000 ** ((column - column % 2) / d_model)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.mark.usefixtures("float64")
@given(
    length=st.integers(0, 20),
    d_model=st.integers(1, 20),
    start=st.sampled_from([0, 1, 1000]),
)
def test_the_closed_form(length, d_model, start):
    expected = [
        [slow_entry(position, column, d_model) for column in range(d_model)]
        for position in range(start, start + length)
    ]
    table = sinusoidal_positional_encoding(length, d_model, start)
    assert_close(table, torch.tensor(expected).view(length, d_model))


def test_by_hand():
    """Width 4: wavelengths 2π and 200π; position 0 is 0, 1, 0, 1 in every model."""
    sines, cosines = (math.sin(1), math.sin(0.01)), (math.cos(1), math.cos(0.01))
    expected = torch.tensor(
        [[0.0, 1.0, 0.0, 1.0], [sines[0], cosines[0], sines[1], cosines[1]]]
    )
    assert_close(sinusoidal_positional_encoding(2, 4), expected)


@pytest.mark.usefixtures("float64")
@given(offset=st.integers(-50, 50), d_model=st.sampled_from([2, 8, 64]))
def test_an_offset_is_a_rotation(offset, d_model):
    """PE(pos + k) = R(k) PE(pos), with one matrix R(k) for all positions."""
    rates = 10000.0 ** -(torch.arange(0, d_model, 2) / d_model)
    sin, cos = (offset * rates).sin(), (offset * rates).cos()
    turns = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    rotation = torch.block_diag(*turns)
    table = sinusoidal_positional_encoding(30, d_model, start=50)
    moved = sinusoidal_positional_encoding(30, d_model, start=50 + offset)
    assert_close(table @ rotation.T, moved)
    assert_close(rotation @ rotation.T, torch.eye(d_model))


def test_far_positions_keep_float32s_precision():
    """Computed in float32, the angle of position 100,000 would be off by 0.004."""
    row = sinusoidal_positional_encoding(1, 8, start=100_000)[0]
    expected = torch.tensor([slow_entry(100_000, column, 8) for column in range(8)])
    assert_close(row, expected)


@pytest.mark.parametrize(
    "kind", [SinusoidalPositionalEncoding, LearnedPositionalEncoding]
)
def test_start_says_where_a_sequence_stands(kind):
    positions = kind(6, max_length=10)
    x = torch.randn(2, 7, 6)
    assert positions(x)[:, 3:].equal(positions(x[:, 3:], start=3))
    assert_close(positions(x) - x, positions.table[:7].expand(2, 7, 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_sinusoids_grow_and_keep_their_type(dtype):
    positions = SinusoidalPositionalEncoding(6, max_length=4).to(dtype)
    with torch.inference_mode():
        long = positions(torch.zeros(1, 50, 6, dtype=dtype))
    assert long.dtype == dtype
    assert long[0].equal(sinusoidal_positional_encoding(50, 6).to(dtype))
    # What grew while nobody learned must not stop anybody from learning.
    x = torch.zeros(1, 50, 6, dtype=dtype, requires_grad=True)
    positions(x).sum().backward()
    assert x.grad.eq(1).all()


def test_sinusoids_are_no_parameters_and_not_saved():
    positions = SinusoidalPositionalEncoding(6)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_a_learned_table_starts_smaller_than_the_words():
    """Standard deviation 1/√d_model: 1 % is five standard errors of 131,072 numbers."""
    table = LearnedPositionalEncoding(256, max_length=512).table
    assert table.std().item() == pytest.approx(1 / 16, rel=0.01)


def test_a_learned_table_learns_and_says_where_it_ends():
    positions = LearnedPositionalEncoding(6, max_length=4)
    positions(torch.zeros(2, 3, 6)).sum().backward()
    assert positions.table.grad.tolist() == [[2.0] * 6] * 3 + [[0.0] * 6]
    with pytest.raises(
        InputError, match=r"5 positions does not fit .* max_length = 4: shorten it"
    ):
        positions(torch.zeros(1, 2, 6), start=3)


def test_the_table_is_computed_where_there_is_float64(monkeypatch):
    """Not on Apple's GPU, which it goes to afterwards; 'meta' stands in for that."""
    apple = torch.device("mps")
    moved = []

    class Apple(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.Tensor.to and args[1] == apple:
                moved.append(args[0].device.type)
                return args[0].to(*args[2:])
            return function(*args, **(kwargs or {}))

    monkeypatch.setattr(torch, "get_default_device", lambda: apple)
    with torch.device("meta"), Apple():
        SinusoidalPositionalEncoding(6, max_length=4)
    assert moved == ["cpu"]


def test_on_meta_where_a_file_is_examined_there_is_no_table():
    with torch.device("meta"):
        assert SinusoidalPositionalEncoding(8, max_length=10**12).table.is_meta


def test_a_table_grows_where_it_is():
    """Whatever device is the default by then."""
    positions = SinusoidalPositionalEncoding(6, max_length=4)
    x = torch.zeros(1, 9, 6)
    with torch.device("meta"):
        longer = positions(x)
    assert longer[0].equal(sinusoidal_positional_encoding(9, 6))


def test_a_table_that_another_thread_takes_away_is_read_all_the_same():
    """Threads that share a model share its table, and the longer one need not stay."""

    class Undone(SinusoidalPositionalEncoding):
        def __setattr__(self, name, value):
            if name != "table":
                super().__setattr__(name, value)

    assert Undone(6, max_length=4)(torch.zeros(1, 9, 6)).shape == (1, 9, 6)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("way", ["to_empty", "assign"])
def test_a_model_made_on_meta_has_a_table_with_its_weights(positions, way):
    """`to_empty` leaves what was in the memory; assigned weights, nothing at all."""
    config = TransformerConfig.tiny(vocab_size=20, positions=positions)
    model = Transformer(config).eval()
    with torch.device("meta"):
        twin = Transformer(config).eval()
    if way == "to_empty":
        twin.to_empty(device="cpu").load_state_dict(model.state_dict())
    else:
        twin.load_state_dict(model.state_dict(), assign=True)
    source, target = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8, 9]])
    assert_close(twin(source, target), model(source, target), rtol=0, atol=0)
