"""The learning rate, against the paper's closed form and its own peak."""

import math

import pytest

from aiayn.errors import InputError
from aiayn.training import noam_rate


def test_hand_example():
    # d_model 4, warm-up 4: 1/2 · min(1/√s, s/8)
    expected = [1 / 16, 1 / 8, 3 / 16, 1 / 4, 1 / (2 * math.sqrt(5)), 1 / (2 * 4)]
    steps = [1, 2, 3, 4, 5, 16]
    rates = [noam_rate(step, d_model=4, warmup_steps=4) for step in steps]
    assert rates == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (1024, 4000), (128, 7)])
def test_rises_in_a_line_peaks_at_warm_up_and_falls_as_an_inverse_root(d_model, warmup):
    peak = (d_model * warmup) ** -0.5
    assert noam_rate(warmup, d_model, warmup) == pytest.approx(peak, rel=1e-12)
    for step in (1, warmup // 2, warmup - 1):
        expected = peak * step / warmup
        assert noam_rate(step, d_model, warmup) == pytest.approx(expected, rel=1e-12)
    for step in (warmup + 1, 4 * warmup, 100 * warmup):
        expected = peak * math.sqrt(warmup / step)
        assert noam_rate(step, d_model, warmup) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("step", "warmup"), [(0, 4000), (-1, 4000), (1, 0)])
def test_steps_count_from_one(step, warmup):
    with pytest.raises(InputError, match="counted from 1"):
        noam_rate(step, 512, warmup)
