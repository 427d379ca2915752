"""Arithmetic by hand: a run's operations, a ring, and what is left of a step."""

import pytest

from aiayn.model import Transformer
from benchmarks import reckoning
from benchmarks.reckoning import Cluster, efficiency, exchange_seconds

RING = Cluster(4, bandwidth=6e9)


def test_a_ring_sends_everything_nearly_twice():
    """Of four, each sends three quarters of 4 GB, twice: 6 GB at 6 GB/s."""
    assert exchange_seconds(10**9, RING) == pytest.approx(1.0)


def test_efficiency_is_the_share_that_is_computed():
    assert efficiency(3.0, 1.0) == 0.75
    assert efficiency(1.0, 0.0) == 1.0


@pytest.mark.parametrize("name", ["base", "big"])
def test_a_run_needs_about_six_operations_a_weight_and_token(name):
    """The rule of thumb leaves out attention's products of words with words."""
    tokens = {"base": 2.5e9, "big": 7.5e9}[name]  # 100,000 or 300,000 times 25,000
    expected = 6 * reckoning.parameters(name) * tokens
    assert reckoning.whole_run_flops(name) == pytest.approx(expected, rel=0.03)


def test_parameters_are_counted_without_making_any():
    config = reckoning.sizes("base")
    made = sum(weight.numel() for weight in Transformer(config).parameters())
    assert reckoning.parameters("base") == made
