"""Charts: what they show, that they draw, and that their slips are sentences."""

import json
import re

import altair as alt
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from aiayn.errors import InputError
from aiayn_book.colours import FULL, INK, NEUTRAL, ROLES
from aiayn_book.plots import (
    as_svg,
    attention_map,
    curves,
    mask_map,
    use_theme,
)
from tests.book.conftest import drawn

WORDS = ["the", "cat", "the"]  # one of them twice
KEYS = ["die", "Katze"]
WEIGHTS = torch.tensor([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]], dtype=torch.bfloat16)


@pytest.fixture(autouse=True)
def _theme():
    use_theme()


def words(chart):
    """Title and text alternative, which every chart must have."""
    return {"title": "A point.", "description": "What it shows.", **chart}


def a_map(**changes):
    """The small attention map of these tests."""
    return attention_map(WEIGHTS, WORDS, KEYS, **words(changes))


def test_rows_are_queries():
    """Each weight stands at its query's row and its key's column."""
    rows = a_map().to_dict()["data"]["values"]
    assert len(rows) == 6
    assert [r["weight"] for r in rows] == [0.75, 0.25, 0.5, 0.5, 0, 1]
    assert [(r["i"], r["j"]) for r in rows] == [
        (i, j) for i in range(3) for j in range(2)
    ]
    assert (rows[3]["query"], rows[3]["key"]) == ("cat", "Katze")


def test_a_map_is_drawn_with_its_text_alternative():
    """Both tokens of a kind are there, and the numbers in the cells."""
    assert a_map().to_dict()["description"] == "What it shows."
    svg = drawn(a_map())
    assert svg.count(">the</text>") == 2
    assert ">0.75</text>" in svg
    assert f'stroke="{NEUTRAL.mark}"' in svg  # the frame around it


def test_a_map_has_one_scale_and_prints_no_zeros():
    """Full strength at 1, paler under numbers; what is next to nothing stays empty."""
    spec = a_map().to_dict()
    scale = spec["layer"][0]["encoding"]["opacity"]["scale"]
    assert (scale["domain"], scale["range"]) == ([0, 1], [0, FULL])
    wide = attention_map(np.eye(9), "abcdefghi", "abcdefghi", description="Wide.")
    scale = wide.to_dict()["layer"][0]["encoding"]["opacity"]["scale"]
    assert (scale["domain"], scale["range"]) == ([0, 1], [0, 1])
    svg = drawn(a_map())
    assert ">1.00</text>" in svg
    assert ">0.00</text>" not in svg


def test_a_chart_needs_no_title():
    """In a figure the caption says what it shows."""
    for chart in (
        attention_map(WEIGHTS, WORDS, KEYS, description="A map."),
        mask_map(WEIGHTS > 0, WORDS, KEYS, description="A mask."),
        curves(runs(), "step", "loss [nats]", "model", description="Curves."),
    ):
        assert "title" not in chart.to_dict()


def test_gold_alignments_are_framed():
    """Only the pairs that were named."""
    rows = a_map(gold=[(0, 0), (1, 1)]).to_dict()["data"]["values"]
    assert [(r["i"], r["j"]) for r in rows if r["gold"]] == [(0, 0), (1, 1)]
    assert drawn(a_map(gold=[(0, 0)])) != drawn(a_map())


def test_numbers_are_left_out_where_they_do_not_fit():
    """Twelve keys leave no room for numbers."""
    chart = attention_map(
        np.full((1, 12), 1 / 12), ["a"], list("abcdefghijkl"), **words({})
    )
    assert ">0.08</text>" not in drawn(chart)


def test_a_mask_shows_who_may_look():
    """Ticks and crosses say it, not colour alone."""
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    svg = drawn(mask_map(mask, WORDS, WORDS, **words({})))
    assert svg.count(">✓</text>") == 6
    assert svg.count(">×</text>") == 3


def runs(seeds=2):
    """Two curves, two steps, some seeds."""
    return [
        {"step": step, "loss [nats]": base + step + seed, "model": model, "seed": seed}
        for model, base in (("one", 1), ("two", 3))
        for step in (1, 2)
        for seed in range(seeds)
    ]


def test_curves_show_mean_spread_and_runs():
    """Three layers: the range, each run, the mean."""
    chart = curves(runs(), "step", "loss [nats]", "model", **words({}))
    band, single, mean = chart.to_dict()["layer"]
    assert band["encoding"]["y"]["aggregate"] == "min"
    assert band["encoding"]["y2"]["aggregate"] == "max"
    assert "detail" in single["encoding"]
    assert mean["encoding"]["y"]["aggregate"] == "mean"
    assert "strokeDash" in mean["encoding"]  # not told apart by colour alone
    svg = drawn(chart)
    assert "mean loss [nats]: 2.5" in svg  # (1 + 1 + 0) and (1 + 1 + 1), halved
    assert ">loss [nats]</text>" in svg


@pytest.mark.parametrize(("name", "columns"), [("a", 8), ("seventeen letters", 2)])
def test_legend_of_curves_fits_a_phone(name, columns):
    """Long names stand in fewer columns, in colour's legend and the dashes' alike."""
    rows = [{"step": 1, "loss": 1, "model": name}]
    chart = curves(rows, "step", "loss", "model", **words({})).to_dict()
    (mean,) = chart["layer"]
    for channel in ("color", "strokeDash"):
        assert mean["encoding"][channel]["legend"]["columns"] == columns


def test_curves_without_seeds_have_no_band():
    """One run is one line."""
    rows = [{k: v for k, v in r.items() if k != "seed"} for r in runs(1)]
    chart = curves(rows, "step", "loss [nats]", "model", log_x=True, **words({}))
    assert len(chart.to_dict()["layer"]) == 1
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


def test_curves_take_a_data_frame():
    """pandas or plain rows, the chart is the same."""
    pandas = pytest.importorskip("pandas")
    names = ("step", "loss [nats]", "model")
    framed = curves(pandas.DataFrame(runs()), *names, **words({}))
    assert framed.to_dict() == curves(runs(), *names, **words({})).to_dict()


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        (
            lambda: attention_map(WEIGHTS, KEYS, WORDS, **words({})),
            "2 tokens, but .* 3",
        ),
        (
            lambda: attention_map(WEIGHTS[None], WORDS, KEYS, **words({})),
            r"\(1, 3, 2\)",
        ),
        (lambda: a_map(description=" "), "description is empty"),
        (
            lambda: mask_map(WEIGHTS > 0, WORDS, WORDS, **words({})),
            "key_tokens holds 3 tokens, but mask has 2 columns",
        ),
        (
            lambda: mask_map(WEIGHTS[None] > 0, WORDS, KEYS, **words({})),
            r"mask has the shape \(1, 3, 2\)",
        ),
        (
            lambda: curves(runs(), "epoch", "seed", "model", **words({})),
            "missing: epoch",
        ),
        (lambda: curves([], "step", "seed", "model", **words({})), "every row"),
        (
            lambda: curves(
                [{"x": 0, "y": 0, "by": n} for n in range(7)],
                "x",
                "y",
                "by",
                **words({}),
            ),
            "at most 6 curves",
        ),
    ],
)
def test_slips_are_sentences(draw, complaint):
    """Axes swapped, a dimension too many, no text alternative, …"""
    with pytest.raises(InputError, match=complaint):
        draw()


def a_figure():
    """A matplotlib figure with some text."""
    drawing, axes = plt.subplots()
    axes.plot([0, 1])
    axes.set_title("Words")
    return as_svg(drawing, 'A line "up".')


def test_matplotlib_follows_the_page():
    """Ink is the page's own, there is no background, letters stay letters."""
    html = a_figure()._repr_html_()
    assert 'aria-label="A line &quot;up&quot;."' in html
    assert "currentColor" in html
    assert ">Words</text>" in html
    assert "#ffffff" not in html
    assert plt.get_fignums() == []


def test_no_colour_is_taken_for_ink():
    """Else a neutral line would be as dark as the words beside it."""
    drawing, axes = plt.subplots()
    for colour in ROLES.values():
        axes.plot([0, 1], color=colour.mark)
    markup = as_svg(drawing, "A line in each colour.").markup
    for colour in ROLES.values():
        assert f"stroke: {colour.mark}" in markup
    assert INK.mark not in markup


def test_a_backslash_in_a_description_is_a_sign_like_others():
    """An author who thinks of TeX gets a description, not an error or a lost group."""
    drawing, _ = plt.subplots()
    html = as_svg(drawing, r"The \sqrt of d_k, \1.")._repr_html_()
    assert r'aria-label="The \sqrt of d_k, \1."' in html


def test_a_figure_keeps_only_the_ids_that_it_uses():
    """A page holds several, and matplotlib calls a group of each figure_1."""
    drawing, panel = plt.subplots()
    panel.plot([1, 5], [2, 3], "o")
    markup = as_svg(drawing, "Two points.").markup
    named = re.findall(r' id="([^"]+)"', markup)
    used = re.findall(r'(?:href="|url\()#([^")]+)', markup)
    assert sorted(named) == sorted(set(used))
    assert re.search(r'clip-path="url\(#', markup)


def test_the_same_figure_gives_the_same_text():
    """No date and no random identifiers."""
    assert a_figure().markup == a_figure().markup


def test_the_theme_leaves_ink_to_the_page():
    """A chart's own settings would outrank those of the site in dark mode."""
    config = json.dumps(alt.Chart().mark_point().to_dict()["config"])
    for name in ("background", "labelColor", "titleColor", "gridColor", "domainColor"):
        assert name not in config
