"""How often the rule of two standard errors finds a true effect."""

import random

import pytest

from aiayn_book.power import mean_and_error, power, smallest_effect


def test_power_against_simulation():
    """Ten thousand experiments with a known standard error."""
    draw = random.Random(0)
    found = [draw.gauss(0.9, 0.835) > 2 * 0.835 for _ in range(10_000)]
    assert sum(found) / len(found) == pytest.approx(power(0.9, 0.835), abs=0.015)


def test_the_smallest_effect_is_found_four_times_in_five():
    """The two functions are each other's inverse, at any scale and in any direction."""
    for error in (0.1, 1.0, 7.0):
        assert power(smallest_effect(error), error) == pytest.approx(0.8)
        assert power(-smallest_effect(error), error) == pytest.approx(0.8)


def test_mean_and_error_by_hand():
    """The squares of (1, 2, 3) around 2 sum to 2: variance 1, error 1 / sqrt(3)."""
    assert mean_and_error([1, 2, 3]) == (2, pytest.approx(3**-0.5))
