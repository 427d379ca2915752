"""Chapter 23's module: its fits on laws that are known, and what the text says."""

import numpy as np
import pytest

from aiayn_book import scaling
from aiayn_book.chapters import scaling_laws as chapter
from tests.book.chapters.drawings import check_words

CURVE = chapter.recorded()
SIZES = np.array([1e3, 1e4, 1e5, 1e6])


@pytest.mark.parametrize(
    "drawing",
    [
        chapter.equal_factors(),
        chapter.where_parameters_are(CURVE),
        chapter.redraws(CURVE),
    ],
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_a_power_law_is_found_again():
    """Also several at once, one in each column."""
    A, alpha = chapter.fit(SIZES, 6 * SIZES**-0.1)
    assert (A, alpha) == (pytest.approx(6), pytest.approx(0.1))
    both = np.stack([SIZES**-0.1, 3 * SIZES**-0.3], axis=1)
    A, alpha = chapter.fit(SIZES, both)
    assert pytest.approx([1, 3]) == A
    assert alpha == pytest.approx([0.1, 0.3])


def test_an_offset_is_found_again():
    E, A, power = chapter.with_offset(SIZES, 1.5 + 12 * SIZES**-0.25)
    assert pytest.approx((1.5, 12, 0.25), rel=1e-6) == (E, A, power)
    assert chapter.without_offset(SIZES, 6 * SIZES**-0.1)[0] == 0


def test_bootstrap_means_have_the_variance_of_three_seeds():
    """With the correction; without it, two thirds of it."""
    losses = np.array([[1.0, 2.0, 4.0]])
    right = losses.var(ddof=1) / 3
    draws = chapter.resample(losses, times=40_000)
    assert draws.shape == (40_000, 1)
    assert draws.var() == pytest.approx(right, rel=0.02)
    plain = chapter.resample(losses, times=40_000, repair=False)
    assert plain.var() == pytest.approx(right * 2 / 3, rel=0.02)


def test_a_law_with_an_offset_bends_up_at_both_ends():
    """Seen from the straight line."""
    assert chapter.bend(SIZES, 1.5 + 12 * SIZES**-0.25) > 0
    assert chapter.bend(SIZES, 6 * SIZES**-0.1) == pytest.approx(0)


def test_which_bars_contain_the_truth():
    found = chapter.Coverage(0.1, np.array([[0.05, 0.2], [0.11, 0.2], [0.0, 0.09]]))
    assert found.inside.tolist() == [True, False, False]
    assert found.share == pytest.approx(1 / 3)


def test_parameters_by_width_are_the_record_s():
    for width, layers, everything in zip(
        CURVE.widths, CURVE.layers, CURVE.everything, strict=True
    ):
        assert chapter.counted(width) == (layers, everything)
    layers, everything = chapter.counted(chapter.WIDE)
    assert round(layers / CURVE.layers[-1]) == 100
    assert round(everything / CURVE.everything[-1]) == 69


def test_what_the_text_says_of_the_curve():
    """Perplexities, seeds, the price of half the loss, the share that is embedding."""
    assert np.exp(CURVE.mean[[0, -1]]).round().tolist() == [41, 9]
    assert CURVE.mean[[0, -1]].round(2).tolist() == [3.71, 2.23]
    assert round(CURVE.deviation, 3) == 0.035
    assert min(-np.diff(CURVE.mean)) > 3 * CURVE.deviation
    assert round(1 - 4 ** -chapter.fit(CURVE.layers, CURVE.mean)[1], 2) == 0.12
    assert CURVE.tokens_each[[0, -1]].round(2).tolist() == [27.39, 0.67]
    assert (CURVE.tokens_each > chapter.TWENTY).tolist() == [True] + [False] * 5
    shares = (CURVE.layers / CURVE.everything)[[0, -1]]
    assert shares.round(2).tolist() == [0.11, 0.65]


def test_what_the_text_says_of_the_exponent():
    """The difference of the halves, the two counts, the choice of seeds."""
    bar, below = chapter.difference_of_halves(CURVE)
    assert bar.round(3).tolist() == [0.0, 0.037]
    assert 0 < below < 0.05
    _, alpha = chapter.fit(CURVE.layers, CURVE.mean)
    assert round(1000 ** -float(alpha), 2) == 0.53
    low, high = chapter.error_bar(CURVE.layers, CURVE.losses)
    assert low < alpha < high
    assert low > 0
    chosen = CURVE.mean.copy()
    chosen[-2:] = CURVE.losses[-2:].min(axis=1)
    by_choice = chapter.fit(CURVE.layers, chosen)[1]
    assert [round(float(x), 3) for x in (alpha, by_choice)] == [0.093, 0.097]
    assert by_choice > high
    for sizes in (CURVE.layers, CURVE.everything):
        away = np.abs(chapter.residuals(sizes, CURVE.mean))
        assert (away < 2 * CURVE.standard_error).all()
    every = chapter.error_bar(CURVE.everything, CURVE.losses)
    straight = [
        chapter.error_bar(*some)[1]
        for name, some in chapter.ways(CURVE).items()
        if name != "embedding counted"
    ]
    assert every[0] > max(straight)


def test_an_offset_of_one_cannot_be_seen():
    """Exercise 23.5: a steeper law, and deviations of less than three pixels."""
    steeper = chapter.fit(CURVE.layers, CURVE.mean - 1)[1]
    low, high = chapter.error_bar(CURVE.layers, CURVE.losses)
    assert steeper / chapter.fit(CURVE.layers, CURVE.mean)[1] > high / low
    off = np.abs(chapter.residuals(CURVE.layers, CURVE.mean - 1)).max()
    assert 260 * off / np.log(4.5 / 0.2) < 3


def test_german_becomes_the_easier_half():
    """And both records have the same losses, but for rounding."""
    found = chapter.kinds()
    english, german = found["English words"], found["German words"]
    assert german[0] > english[0]
    assert german[-1] < english[-1]
    assert all(len(losses) == len(scaling.WIDTHS) for losses in found.values())
    assert max(found["end of sentence"]) < 0.01
    runs = chapter.load_record("scaling_kinds")["runs"]
    again = [run["loss"] for run in sorted(runs, key=lambda run: run["width"])]
    assert again == pytest.approx(CURVE.losses[:, 0], abs=3 * CURVE.deviation)


def test_a_forecast_is_its_law():
    """At a width that was trained, with what was counted."""
    law = (0.5, 10.0, 0.2)
    none = np.zeros(2)
    for count, sizes in (("layers", CURVE.layers), ("all", CURVE.everything)):
        one = chapter.Forecast("x", count, law, none, none, none)
        assert one.at(128) == pytest.approx(0.5 + 10 * sizes[-1] ** -0.2)
