"""Chapter 14's trainings and drawings: what the text says of them."""

import json
import math
from pathlib import Path

import pytest
import torch

from aiayn import noam_rate
from aiayn_book.chapters import optimizer as chapter
from aiayn_book.svg import Svg

CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"


def test_adam_is_pytorchs():
    """Two hundred updates of very different gradients."""
    assert chapter.adam_gap() < 1e-12


def test_the_table_by_hand():
    """β of a half and no ε: the updates of the text's table."""
    halves = {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.0}
    assert list(chapter.updates((3, 3), **halves)) == [1, 1]
    _, second = chapter.updates((3, -1), **halves)
    assert second == pytest.approx((1 / 3) / math.sqrt(11 / 3))
    assert round(second, 2) == 0.17


@pytest.mark.parametrize("beta2", [0.98, 0.999])
def test_no_burst_makes_a_longer_update(beta2):
    """The growing burst reaches the bound, and noise stays below it."""
    bound = chapter.largest_update(beta2)
    burst = [(0.9 / beta2) ** k for k in reversed(range(200))]
    settings = {"before": chapter.UNCORRECTED, "beta2": beta2, "epsilon": 0.0}
    *_, last = chapter.updates(burst, **settings)
    assert last == pytest.approx(bound, rel=1e-6)
    noise = torch.randn(500, generator=torch.Generator().manual_seed(0)).tolist()
    assert max(map(abs, chapter.updates(noise, **settings))) < bound


def test_a_memory_of_a_thousand_steps_forgets_slowly():
    """Without correction the second moment makes the first step too long or short."""
    for beta2, first in ((0.98, 0.71), (0.999, 3.16)):
        found = next(chapter.updates([1.0], before=chapter.UNCORRECTED, beta2=beta2))
        assert round(found, 2) == first


def test_settings_share_weights_and_digits():
    """What differs between two settings is the setting."""
    weights = chapter.fresh("post", 2)
    assert all(torch.equal(w[:3], w[3:]) for w in weights.values())
    digits, answers = chapter.draw_digits(4, 2, 3, torch.Generator().manual_seed(0))
    assert torch.equal(digits[:3], digits[3:])
    assert torch.equal(answers, digits.sort(dim=-1).values)


def test_a_run_does_not_depend_on_its_neighbours():
    """A setting that is trained alone gives the same losses."""
    rates = torch.full((4, 2), 1e-3)
    rates[:, 1] = 1e-2
    both, _ = chapter.train(rates)
    alone, sizes = chapter.train(rates[:, :1])
    torch.testing.assert_close(both[:, :1], alone, rtol=1e-4, atol=1e-5)
    assert alone.shape == sizes.shape == (4, 1, 3)
    assert (sizes[0] > 0.85).all()


def test_adams_settings_differ_by_column():
    """A large ε makes the update of its own column small, and only that one's."""
    rates = torch.full((2, 2), 1e-3)
    _, sizes = chapter.train(rates, epsilon=torch.tensor([1e-9, 10.0]))
    assert (sizes[0, 0] > 0.85).all()
    assert (sizes[0, 1] < 0.01).all()


def test_a_longest_update_is_never_exceeded():
    """And is reached at first."""
    _, sizes = chapter.train(torch.full((3, 1), 1e-4), longest=0.25)
    assert sizes.max().item() == pytest.approx(0.25, rel=1e-5)


def test_starts_have_one_peak_and_one_fall():
    """They differ before the warm-up's end only; collecting moves nothing."""
    ramp, without, *others = (chapter.start(kind, 0.25) for kind in chapter.STARTS)
    assert torch.equal(ramp[chapter.WARMUP :], without[chapter.WARMUP :])
    assert (without[: chapter.WARMUP] == ramp.max()).all()
    for kind, rates in zip(list(chapter.STARTS)[2:], others, strict=True):
        assert torch.equal(rates[-chapter.STEPS :], without)
        still = rates[: -chapter.STEPS]
        assert len(still) == (chapter.COLLECT if "collected" in kind else 0)
        assert not still.any()


def test_collecting_v_leaves_the_first_update_long():
    """Unless m begins at zero: then it is a tenth as long."""
    rates = torch.tensor([[0.0], [0.0], [1e-4]])
    _, long = chapter.train(rates, collect=2)
    _, short = chapter.train(rates, collect=2, from_zero=True)
    torch.testing.assert_close(short[2], 0.1 * long[2], rtol=1e-5, atol=0.0)
    assert (long[2] > 0.5).all()


def test_m_from_zero_is_adam_without_one_correction():
    """The first update is a tenth of the sign."""
    rates = torch.full((1, 1), 1e-4)
    _, full = chapter.train(rates)
    _, short = chapter.train(rates, from_zero=True)
    torch.testing.assert_close(short[0], 0.1 * full[0], rtol=1e-5, atol=0.0)


def test_the_way_is_the_sum_of_rate_times_update():
    """Two steps, one factor, one draw."""
    sizes = torch.tensor([1.0, 0.5]).view(2, 1, 1)
    one = chapter.Start(torch.tensor([[0.1], [0.2]]), sizes, sizes)
    assert one.way(0) == pytest.approx(0.1 * 1 + 0.2 * 0.5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_short_first_step_does_what_the_gradient_predicts(norm):
    """And the prediction grows with the rate."""
    found = chapter.predictions(norm)
    assert found.kept[0].min() > 0.98
    assert found.kept[-1].max() < 0.1
    assert torch.allclose(
        found.predicted / found.rates[:, None],
        (found.predicted / found.rates[:, None])[:1].expand_as(found.predicted),
    )


def test_chance_knows_the_positions():
    """Even digits give more to guess than rare ones, and less than a blind guess."""
    assert chapter.chance(chapter.SELDOM) < chapter.chance() < math.log(8)


def test_an_exponential_halves_after_equal_steps():
    """An inverse root after four times as many."""
    assert chapter.halvings("inverse root (paper)") == [16_000, 64_000]
    first, second = chapter.halvings("exponential")
    assert second - first == pytest.approx(first - 4000, abs=2)
    for kind in chapter.KINDS:
        assert chapter.decay(kind, 4000) == 1


def test_factors_are_named_as_fractions():
    assert [chapter.share(f) for f in (3 / 16, 1 / 4, 1)] == ["3/16", "1/4", "1"]


def test_the_map_marks_failures():
    """A cross for each draw above the threshold, and one scale to it."""
    losses = torch.tensor([[[1.0, 2.0, 2.0]]])
    chart = chapter.loss_map(
        losses, ["row"], ["column"], 1.9, column_title="x", description="One cell."
    )
    found = chart.to_dict()
    data = found.get("data", found["layer"][0].get("data"))
    [cell] = data["values"]
    assert (cell["crosses"], cell["failed"], cell["label"]) == ("××", 2, "1.7")


def test_the_verdict_is_the_recorded_one(capsys):
    recorded = {c["id"]: c["verdict"] for c in json.loads(CLAIMS.read_text("utf-8"))}
    chapter.settle_schedule(noam_rate)
    assert f"Verdict: {recorded['s5.3-schedule']}" in capsys.readouterr().out


def test_another_schedule_does_not_pass(capsys):
    """The authors' later settings, for example."""
    chapter.settle_schedule(lambda step, d: noam_rate(step, d, 8000))
    assert "Verdict: open" in capsys.readouterr().out
    chapter.settle_schedule(lambda step, d: noam_rate(step, 512))  # for all widths
    assert "Verdict: open" in capsys.readouterr().out


def test_the_formula_as_printed_is_far_too_high_for_so_small_a_model():
    """The peak with factor 1 is 45 times the base model's, as the text says."""
    here = chapter.formula(1.0, chapter.WARMUP).max().item()
    assert round(here / noam_rate(4000, 512)) == 45


def test_drawings_are_described():
    drawing = chapter.sign_of_the_gradient()
    assert isinstance(drawing, Svg)
    assert drawing.width <= 360
