"""§5.4: dropout drops the right share, makes up for it, and rests in evaluation."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from aiayn.fast.dropout import FastDropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_the_share_that_is_dropped(p):
    """Within five standard errors of p, and neighbours fall independently."""
    count = 200_000
    dropped = FastDropout(p)(torch.ones(count)) == 0
    error = math.sqrt(p * (1 - p) / count)
    assert abs(dropped.double().mean().item() - p) < 5 * error
    for step in (1, 2, 3, 4):
        both = (dropped[:-step] & dropped[step:]).double().mean().item()
        assert abs(both - p * p) < 5 * math.sqrt(p * p / count)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_stays_is_scaled_up(dtype):
    x = torch.full((50, 7), 3.0, dtype=dtype)
    output = FastDropout(0.25)(x)  # 0.25 is one of the levels: the scale is exact
    assert output.dtype == dtype
    assert_close(output[output != 0], torch.full_like(output[output != 0], 4.0))


@given(shape=st.lists(st.integers(0, 5), max_size=4), p=st.sampled_from([0.0, 0.4]))
def test_any_shape(shape, p):
    x = torch.ones(shape)
    output = FastDropout(p)(x)
    assert output.shape == x.shape
    assert p > 0 or output is x


def test_evaluation_changes_nothing():
    x = torch.randn(100)
    assert FastDropout(0.5).eval()(x) is x


def test_the_gradient_is_dropped_like_the_value():
    x = torch.ones(1000, requires_grad=True)
    output = FastDropout(0.5)(x)
    output.sum().backward()
    assert x.grad.equal(output.detach())


def test_the_seed_decides():
    layer, x = FastDropout(0.5), torch.ones(1000)
    torch.manual_seed(1)
    first = layer(x)
    assert not layer(x).equal(first)
    torch.manual_seed(1)
    assert layer(x).equal(first)


def test_a_double_is_scaled_in_double_precision():
    output = FastDropout(0.1)(torch.ones(1000, dtype=torch.float64))
    dropped = round(0.1 * 2**16)
    assert output.max().item() == pytest.approx(2**16 / (2**16 - dropped), rel=1e-15)


def test_a_probability_next_to_one_stays_finite():
    """One number in 65,536 stays: 16 of these, within five standard errors."""
    output = FastDropout(1 - 1e-9)(torch.ones(2**20))
    assert output.isfinite().all()
    assert 0 < output.count_nonzero() < 16 + 5 * 4


def test_whatever_looks_for_torchs_dropout_finds_it():
    """As Monte Carlo dropout does, and who switches dropout off by p = 0."""
    layer = FastDropout(0.5)
    assert isinstance(layer, nn.Dropout)
    assert (
        repr(layer) == repr(copy.deepcopy(layer)) == "FastDropout(p=0.5, inplace=False)"
    )
    assert not layer.state_dict()
    layer.p, x = 0.0, torch.ones(4)
    assert layer(x) is x


def test_what_it_draws_lies_where_the_input_does():
    """Whatever torch's default device is: here one that holds no numbers."""
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.ones(1000, dtype=dtype)
        with torch.device("meta"):
            output = FastDropout(0.5)(x)
        assert 0 < output.count_nonzero() < 1000


@pytest.mark.parametrize(("p", "inplace"), [(1.0, False), (0.5, True)])
def test_what_only_torch_can_do_is_left_to_torch(p, inplace):
    """It is put into foreign modules, which may drop all, or drop in place."""
    x = torch.ones(1000)
    output = FastDropout(p, inplace=inplace)(x)
    assert (output is x) == inplace
    assert set(output.tolist()) <= {0.0, 2.0}
    assert p == 0.5 or not output.any()
