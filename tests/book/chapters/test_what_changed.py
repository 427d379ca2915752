"""Chapter 21's section on Muon: what the text says of its step, and of the record."""

import pytest
import torch

from aiayn.training import orthogonalized
from aiayn_book.chapters import what_changed as chapter


def test_the_polynomial_is_the_steps():
    """Of a diagonal matrix, the singular values are what the polynomial makes."""
    given = torch.tensor([0.8, 0.6, 0.01], dtype=torch.float64)
    [found] = orthogonalized(given.diag()[None])
    ours = chapter.polynomial(given / given.norm(), 4)
    assert torch.allclose(found.diagonal(), ours, atol=0.02)


def test_most_singular_values_end_near_one():
    values = torch.logspace(-2, 0, 50, dtype=torch.float64)
    after = chapter.polynomial(values, 4)
    assert 0.68 < after.min() < after.max() < 1.21


def test_muons_step_has_more_strong_directions_than_adams():
    strong = chapter.strong_directions()
    assert 1 <= strong["the gradient"] < strong["Adam's first step"] < 4
    assert strong["Muon's"] > 2 * strong["Adam's first step"]


def test_the_step_at_which_a_loss_is_met():
    """A straight line between two checks."""
    checks = [(100, 4.0), (200, 2.0), (300, 1.0)]
    assert chapter.met(checks, 3.0) == 150
    assert chapter.met(checks, 1.5) == 250
    with pytest.raises(ValueError, match="never"):
        chapter.met(checks, 0.5)


def test_muon_needs_a_part_of_its_steps():
    """And a larger part of the time, in each of three seeds."""
    found = chapter.needed()
    assert len(found.steps) == len(found.time) == 3
    for steps, time in zip(found.steps, found.time, strict=True):
        assert steps < time < 1


def test_the_second_check_and_all_later_ones_are_muons():
    """As the caption says."""
    runs = chapter.optimizer_runs()
    ours = runs.optimizer == "muon"
    muons = [dict(checks) for checks in runs[ours].validation]
    adams = [dict(checks) for checks in runs[~ours].validation]
    _, *later = muons[0]
    for step in later:
        assert max(run[step] for run in muons) < min(run[step] for run in adams)


def test_the_table_has_three_ways():
    table = chapter.optimizer_table()
    assert list(table.index) == ["Adam, half the rate", "Adam", "Muon and Adam"]
    others = table.drop("Muon and Adam")
    assert table.loc["Muon and Adam", "most"] < others["least"].min()
