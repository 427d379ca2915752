"""Chapter 23, scaling: the recorded curve, its fits, its drawings and charts (§6.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

from aiayn_book import scaling
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, SERIES
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

Array = np.ndarray
WIDE = 1283
"""The width whose layers have a hundred times the parameters of the largest size."""
TWENTY = 20
"""Tokens for each parameter that Hoffmann et al. (2022) found to be best."""
PARAMETERS = "parameters in the layers"
TICKS = [1e3, 1e4, 1e5]
LINEAR_TICKS = [1e5, 2e5, 3e5, 4e5]
MIDDLE = [2.5, 97.5]
"""Percentiles between which 95 % lie."""


# The record.


@dataclass(frozen=True)
class Curve:
    """Six sizes, each trained with three seeds on the same text."""

    widths: tuple[int, ...]
    layers: Array
    """Parameters of the stack, by size."""
    embedding: Array
    """Parameters of the one matrix for words in and words out."""
    losses: Array
    """Held-out loss a token, in nats: (sizes, seeds)."""

    @property
    def mean(self) -> Array:
        """The loss of each size, over its seeds."""
        return self.losses.mean(axis=1)

    @property
    def everything(self) -> Array:
        """All parameters, the embedding included."""
        return self.layers + self.embedding

    @property
    def tokens_each(self) -> Array:
        """Tokens read for each parameter, the embedding included."""
        return scaling.STEPS * scaling.ROWS * scaling.ROW / self.everything

    @property
    def deviation(self) -> float:
        """The standard deviation between seeds, pooled over the sizes."""
        return float(self.losses.var(axis=1, ddof=1).mean() ** 0.5)

    @property
    def standard_error(self) -> Array:
        """Of each mean, as a share of it, from the pooled deviation."""
        return self.deviation / self.losses.shape[1] ** 0.5 / self.mean


@cache
def recorded() -> Curve:
    """What ``python -m tools.records.scaling`` wrote."""
    runs = load_record("scaling")["runs"]
    first = {run["width"]: run for run in runs if run["seed"] == 0}
    losses = [
        [run["loss"] for run in sorted(runs, key=_seed) if run["width"] == width]
        for width in scaling.WIDTHS
    ]
    layers, embedding = (
        np.array([first[width][part] for width in scaling.WIDTHS])
        for part in ("layers", "embedding")
    )
    return Curve(scaling.WIDTHS, layers, embedding, np.array(losses))


def _seed(run: dict[str, Any]) -> int:
    return run["seed"]


def kinds() -> dict[str, list[float]]:
    """Losses by kind of token, one for each size, of seed 0."""
    runs = sorted(load_record("scaling_kinds")["runs"], key=lambda run: run["width"])
    return {kind: [run["kinds"][kind] for run in runs] for kind in scaling.KINDS}


def counted(width: float, words: int = 1657) -> tuple[float, float]:
    """The parameters of the layers and of the whole model, for a width."""
    layers = 24.0 * width**2 + 20 * width
    return layers, layers + words * width


# Fits.


def fit(sizes: Array, losses: Array) -> tuple[Any, Any]:
    """A and exponent of ``loss = A · size^-exponent``; a column each, if several."""
    x, y = np.log(sizes), np.log(losses)
    slope, height = np.polyfit(x, y, 1)
    return np.exp(height), -slope


def resample(losses: Array, times: int = 1000, repair: bool = True) -> Array:
    """Bootstrap means: (times, sizes), from losses of (sizes, seeds)."""
    chance, seeds = np.random.default_rng(23), losses.shape[1]
    shape = (times, *losses.shape)
    drawn = chance.integers(seeds, size=shape)
    means = np.take_along_axis(losses[None], drawn, axis=2)
    means = means.mean(axis=2)  # (times, sizes)
    widen = (seeds / (seeds - 1)) ** 0.5 if repair else 1.0
    middle = losses.mean(axis=1)
    return middle + widen * (means - middle)


def error_bar(sizes: Array, losses: Array, **options: Any) -> Array:
    """The middle 95 % of the bootstrap's exponents."""
    exponents = fit(sizes, resample(losses, **options).T)[1]
    return np.percentile(exponents, MIDDLE)


def with_offset(sizes: Array, mean: Array) -> tuple[float, float, float]:
    """Offset, A and exponent of the best ``loss = E + A · size^-exponent``."""

    def misfit(offset: float) -> float:
        A, power = fit(sizes, mean - offset)
        errors = offset + A * sizes**-power - mean
        return np.square(errors).sum()

    E = min(np.arange(0, mean.min(), 0.05), key=misfit)
    return (E, *fit(sizes, mean - E))


def without_offset(sizes: Array, mean: Array) -> tuple[float, float, float]:
    """The same with an offset of zero."""
    return (0.0, *fit(sizes, mean))


def residuals(sizes: Array, mean: Array) -> Array:
    """Relative deviations from the fitted line."""
    A, power = fit(sizes, mean)
    return np.log(mean) - np.log(A * sizes**-power)


def bend(sizes: Array, mean: Array) -> float:
    """How far the two ends lie above the middle, seen from the fitted line."""
    off = residuals(sizes, mean)
    return float(off[[0, -1]].mean() - off[1:-1].mean())


def difference_of_halves(curve: Curve) -> tuple[Array, float]:
    """Exponent of the three largest less that of the three smallest: bar, share < 0."""
    draws = resample(curve.losses).T
    gaps = fit(curve.layers[3:], draws[3:])[1] - fit(curve.layers[:3], draws[:3])[1]
    return np.percentile(gaps, MIDDLE), float(np.mean(gaps < 0))


def ways(curve: Curve) -> dict[str, tuple[Array, Array]]:
    """Sizes and losses, by what one chooses to fit."""
    layers, losses = curve.layers, curve.losses
    return {
        "all six sizes": (layers, losses),
        "without the smallest": (layers[1:], losses[1:]),
        "without the largest": (layers[:-1], losses[:-1]),
        "the three smallest": (layers[:3], losses[:3]),
        "the three largest": (layers[3:], losses[3:]),
        "embedding counted": (curve.everything, losses),
    }


def pairs(curve: Curve) -> list[float]:
    """The exponent that each two neighbours give."""
    return [
        float(fit(curve.layers[i : i + 2], curve.mean[i : i + 2])[1])
        for i in range(len(curve.widths) - 1)
    ]


@dataclass(frozen=True)
class Coverage:
    """Error bars around a law that is known."""

    truth: float
    bars: Array
    """(times, 2)"""

    @property
    def inside(self) -> Array:
        """Whether each bar contains the truth."""
        return (self.bars[:, 0] < self.truth) & (self.truth < self.bars[:, 1])

    @property
    def share(self) -> float:
        """How many do."""
        return float(self.inside.mean())


def coverage(curve: Curve, times: int = 400, **options: Any) -> Coverage:
    """Error bars for losses drawn around a straight line, three for each size."""
    A, alpha = fit(curve.layers, curve.mean)
    chance, law = np.random.default_rng(1), A * curve.layers[:, None] ** -alpha
    drawn = [
        chance.normal(law, curve.deviation, curve.losses.shape) for _ in range(times)
    ]
    bars = [error_bar(curve.layers, losses, times=300, **options) for losses in drawn]
    return Coverage(float(alpha), np.array(bars))


@dataclass(frozen=True)
class Forecast:
    """One law, fitted to bootstrap draws, and what it says of a larger model."""

    name: str
    count: str
    """``layers`` or ``all``: what is counted."""
    law: tuple[float, float, float]
    """Offset, A and exponent, fitted to the means."""
    offset: Array
    exponent: Array
    loss: Array
    """At `WIDE`; each of the three is the middle 95 % of the draws."""

    def at(self, width: float) -> float:
        """The loss that the law predicts for a width."""
        E, A, power = self.law
        return E + A * counted(width)[self.count == "all"] ** -power


def forecasts(curve: Curve) -> list[Forecast]:
    """Both counts, each without an offset and with the best one."""
    found = []
    laws: dict[str, Callable[[Array, Array], tuple[float, float, float]]]
    laws = {"no offset": without_offset, "best offset": with_offset}
    for count, sizes in (("layers", curve.layers), ("all", curve.everything)):
        for name, law in laws.items():
            fits = [law(sizes, draw) for draw in resample(curve.losses, times=300)]
            E, A, power = np.array(fits).T
            far = E + A * counted(WIDE)[count == "all"] ** -power
            bars = (np.percentile(values, MIDDLE) for values in (E, power, far))
            label = f"{count} counted, {name}"
            found.append(Forecast(label, count, law(sizes, curve.mean), *bars))
    return found


def quarter_of_the_text(width: int, seed: int, text: scaling.Text) -> float:
    """The loss of a size after a quarter of the text."""
    model = scaling.train_size(width, seed, text, scaling.STEPS // 4)
    return scaling.held_out_loss(model, text)


# Drawings.


def equal_factors() -> Svg:
    """A power law of exponent 0.1 on logarithmic axes, in steps of four."""
    drawing = Diagram(360, 272)
    names = ["1k", "4k", "16k", "64k", "256k", "1,024k"]
    ticks = [((24 + 52 * k) / 306, name) for k, name in enumerate(names)]
    drawing.axis((46, 222), (352, 222), ticks)
    drawing.text(352, 260, "parameters", anchor="end", italic=True)
    drawing.axis((46, 222), (46, 22), [(0.16, "2"), (0.89, "4")], label="loss")
    at = [(70 + 52 * k, 44 + 29.2 * k) for k in range(len(names))]
    for (x0, y0), (x1, y1) in pairwise(at):
        drawing.arrow((x0, y0), (x1, y0), role="key")
        drawing.arrow((x1, y0), (x1, y1), role="alert")
        drawing.text((x0 + x1) / 2, y0 - 11, "× 4", role="key")
    for k, (x, y) in enumerate(at):
        drawing.dot(x, y)
        drawing.text(x + 6, y + 15, f"{4 * 4 ** (-0.1 * k):.2f}", anchor="end")
    drawing.text(216, 62, "each fall: × 0.87", anchor="start", role="alert")
    return drawing.finish(
        "Equal factors are equal steps",
        "Six points on a straight line. From each to the next the parameters grow by "
        "the factor four and the loss falls by the factor 0.87: from 4.00 at a "
        "thousand parameters to 2.00 at a million.",
    )


def where_parameters_are(curve: Curve) -> Svg:
    """For each size, which share of the parameters is the embedding."""
    drawing = Diagram(360, 44 + 32 * len(curve.widths))
    left, wide = 62.0, 214
    drawing.text(54, 16, "width", anchor="end")
    drawing.text(left, 16, "layers", anchor="start", role="key")
    drawing.text(left + wide, 16, "embedding", anchor="end")
    drawing.text(356, 16, "in all", anchor="end")
    for row, width in enumerate(curve.widths):
        y = 46 + 32 * row
        share = curve.layers[row] / curve.everything[row]
        drawing.text(54, y, str(width), anchor="end")
        part = wide * share
        drawing.box(left + part / 2, y, "", width=part, height=24, role="key")
        rest = wide - part
        drawing.box(left + part + rest / 2, y, "", width=rest, height=24)
        inside = part > 40
        at = left + part / 2 if inside else left + part + 6
        drawing.text(at, y, f"{share:.0%}", anchor="middle" if inside else "start")
        drawing.text(356, y, f"{curve.everything[row]:,}", anchor="end")
    return drawing.finish(
        "Layers and embedding",
        "Six bars, one for each width from 8 to 128. The layers have 11 percent of "
        "the parameters of the smallest model and 65 percent of the largest; the rest "
        "is the embedding.",
    )


def redraws(curve: Curve, size: int = 3, rows: int = 4) -> Svg:
    """Three losses of one size, and what the bootstrap draws from them."""
    own = curve.losses[size]
    chance = np.random.default_rng(32)
    drawing = Diagram(360, 62 + 40 * (rows + 1))
    drawing.text(150, 14, f"losses of width {curve.widths[size]}")
    drawing.text(306, 14, "mean")
    drawn = [np.arange(3), *(chance.integers(3, size=3) for _ in range(rows))]
    roles = ("query", "key", "value")
    for row, picked in enumerate(drawn):
        y = 46 + 40 * row + (12 if row else 0)
        drawing.text(4, y, f"draw {row}" if row else "trained", anchor="start")
        for place, which in enumerate(picked):
            x = 92 + 62 * place
            drawing.box(
                x, y, f"{own[which]:.3f}", width=54, height=28, role=roles[which]
            )
        drawing.arrow((246, y), (272, y))
        drawing.text(306, y, f"{own[picked].mean():.3f}", bold=True)
    drawing.arrow((4, 72), (356, 72), head=False, width=0.8)
    return drawing.finish(
        "Drawing with replacement",
        "Above a line, the three losses of one size and their mean. Below it, four "
        "draws of three of them, in which some occur twice or three times and others "
        "not at all, each with its own mean.",
    )


# Charts.


def _points(curve: Curve) -> list[dict[str, Any]]:
    return [
        {
            PARAMETERS: int(n),
            "loss": float(losses.mean()),
            "least": float(losses.min()),
            "most": float(losses.max()),
            "width": f"width {width}",
        }
        for width, n, losses in zip(
            curve.widths, curve.layers, curve.losses, strict=True
        )
    ]


def two_axes(curve: Curve) -> list[alt.LayerChart]:
    """Loss against size: on ordinary axes, and on logarithmic ones."""
    A, alpha = fit(curve.layers, curve.mean)
    return [_loss_chart(curve, A, alpha, False), _loss_chart(curve, A, alpha, True)]


def _loss_chart(
    curve: Curve, A: float, alpha: float, logarithmic: bool
) -> alt.LayerChart:
    kind = "log" if logarithmic else "linear"
    x = alt.X(
        f"{PARAMETERS}:Q",
        title=PARAMETERS,
        scale=alt.Scale(type=kind, nice=False, domain=[1e3 if logarithmic else 0, 5e5]),
        axis=alt.Axis(
            values=TICKS if logarithmic else [1e5, 2e5, 3e5, 4e5], format="~s"
        ),
    )
    y = alt.Y(
        "loss:Q",
        title="loss a token",
        scale=alt.Scale(type=kind, nice=False, domain=[2, 4]),
        axis=alt.Axis(values=[2, 2.5, 3, 3.5, 4]),
    )
    line = [
        {PARAMETERS: float(n), "loss": float(A * n**-alpha)}
        for n in np.geomspace(1200, 5e5, 60)
    ]
    base = alt.Chart(alt.Data(values=_points(curve)))
    return alt.LayerChart(
        layer=[
            alt.Chart(alt.Data(values=line))
            .mark_line(color=QUERY.mark, strokeDash=[6, 4])
            .encode(x=x, y=y),
            base.mark_circle(color=KEY.mark, size=80, opacity=1).encode(
                x=x,
                y=y,
                tooltip=[
                    "width:N",
                    f"{PARAMETERS}:Q",
                    alt.Tooltip("loss:Q", format=".3f"),
                ],
            ),
        ]
    ).properties(
        width="container",
        height=250,
        description=f"Loss of six sizes against their parameters, on {kind} axes, "
        "with a fitted power law. "
        + (
            "The points lie near a straight line that falls."
            if logarithmic
            else "The curve falls steeply at first and flattens."
        ),
    )


def tokens_chart(curve: Curve) -> alt.LayerChart:
    """Tokens read for each parameter, by size."""
    rows = [
        {"width": str(width), "tokens": float(tokens), "words": f"{tokens:.2g}"}
        for width, tokens in zip(curve.widths, curve.tokens_each, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("width:N", sort=None, title="width"),
        x=alt.X(
            "tokens:Q",
            title="tokens for each parameter",
            scale=alt.Scale(type="log", nice=False, domain=[0.3, 60]),
            axis=alt.Axis(values=[1, 3, 10, 20], format="~g"),
        ),
    )
    rule = alt.Chart(alt.Data(values=[{"tokens": TWENTY}]))
    return alt.LayerChart(
        layer=[
            rule.mark_rule(color=ALERT.mark, strokeDash=[6, 4], strokeWidth=2).encode(
                x="tokens:Q"
            ),
            base.mark_circle(color=KEY.mark, size=110, opacity=1),
            base.mark_text(dy=-14).encode(text="words:N"),
        ]
    ).properties(
        width="container",
        height=230,
        description="Tokens for each parameter, on a logarithmic axis: 27 for width 8, "
        "12, 5.2, 2.0, 1.1, and 0.67 for width 128. A dashed line stands at twenty, "
        "between widths 8 and 16.",
    )


def kinds_chart(curve: Curve) -> alt.LayerChart:
    """The loss by kind of token."""
    rows = [
        {PARAMETERS: int(n), "loss a token": loss, "kind": kind}
        for kind, losses in kinds().items()
        for n, loss in zip(curve.layers, losses, strict=True)
    ]
    chart = curves(
        rows,
        PARAMETERS,
        "loss a token",
        "kind",
        description="Loss a token against the parameters of the layers, for four "
        "kinds of token. German words begin above English words and end far below "
        "them; punctuation falls as well, and the end of a sentence is always near "
        "zero.",
        log_x=True,
    )
    for layer in chart.layer:
        layer.encoding.x.axis = alt.Axis(values=TICKS, format="~s")
        layer.encoding.x.scale = alt.Scale(type="log", nice=False, domain=[1e3, 5e5])
    return chart


def coverage_chart(found: Coverage, shown: int = 60) -> alt.LayerChart:
    """The first of the bars, sorted; those that miss the truth are marked."""
    order = np.argsort(found.bars[:shown].mean(axis=1))
    rows = [
        {
            "place": place,
            "from": float(found.bars[i, 0]),
            "to": float(found.bars[i, 1]),
            "bar": "contains the truth" if found.inside[i] else "misses it",
        }
        for place, i in enumerate(order.tolist())
    ]
    names = ["contains the truth", "misses it"]
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_rule(strokeWidth=3)
        .encode(
            x=alt.X(
                "place:Q",
                axis=None,
                scale=alt.Scale(domain=[-1, shown], nice=False),
            ),
            y=alt.Y("from:Q", title="exponent", scale=alt.Scale(zero=False)),
            y2="to:Q",
            color=alt.Color(
                "bar:N",
                title=None,
                scale=alt.Scale(domain=names, range=[KEY.mark, ALERT.mark]),
            ),
            strokeDash=alt.StrokeDash(
                "bar:N",
                title=None,
                scale=alt.Scale(domain=names, range=[[1, 0], [3, 2]]),
            ),
        )
    )
    truth = alt.Chart(alt.Data(values=[{"from": found.truth}]))
    return alt.LayerChart(
        layer=[bars, truth.mark_rule(strokeDash=[6, 4]).encode(y="from:Q")]
    ).properties(
        width="container",
        height=230,
        description="Sixty error bars, in the order of their middles, and a line at "
        "the true exponent. Most cross the line; a few at both ends do not.",
    )


def ways_chart(curve: Curve) -> alt.LayerChart:
    """The exponent and its error bar, by what is fitted; and pairs of neighbours."""
    rows = [
        {
            "fit": name,
            "exponent": float(fit(sizes, some.mean(axis=1))[1]),
            "from": float(bar[0]),
            "to": float(bar[1]),
        }
        for name, (sizes, some) in ways(curve).items()
        for bar in [error_bar(sizes, some)]
    ]
    two = [{"fit": "two neighbours", "exponent": power} for power in pairs(curve)]
    order = [*ways(curve), "two neighbours"]
    y = alt.Y("fit:N", sort=order, title=None, axis=alt.Axis(labelLimit=170))
    scale = alt.Scale(domain=[0.08, 0.145], nice=False)
    axis = alt.Axis(values=[0.08, 0.1, 0.12, 0.14])
    x = alt.X("exponent:Q", title="exponent", scale=scale, axis=axis)
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    return alt.LayerChart(
        layer=[
            base.mark_rule(color=KEY.mark, strokeWidth=3).encode(
                x=alt.X("from:Q", title="exponent", scale=scale, axis=axis), x2="to:Q"
            ),
            base.mark_circle(color=KEY.mark, size=90, opacity=1).encode(x=x),
            alt.Chart(alt.Data(values=two))
            .mark_tick(color=QUERY.mark, thickness=3, size=16)
            .encode(x=x, y=y),
        ]
    ).properties(
        width="container",
        height=250,
        description="Seven rows of exponents with error bars. All six sizes 0.093; "
        "without the smallest or the largest nearly the same; the three smallest "
        "0.088 and the three largest 0.106; with the embedding counted 0.136, apart "
        "from all others. Pairs of neighbours lie between 0.086 and 0.107.",
    )


def offset_chart(curve: Curve) -> alt.LayerChart:
    """Loss minus an offset against size; a slider moves the offset."""
    offset = alt.param(
        name="offset",
        value=0,
        bind=alt.binding_range(min=0, max=1.9, step=0.1, name="Offset E "),
    )
    base = alt.Chart(alt.Data(values=_points(curve))).transform_calculate(
        over="datum.loss - offset",
        low="datum.least - offset",
        high="datum.most - offset",
        n=f"datum['{PARAMETERS}']",
    )
    x = alt.X(
        "n:Q",
        scale=alt.Scale(type="log", nice=False, domain=[1e3, 6e5]),
        axis=alt.Axis(values=TICKS, format="~s"),
        title=PARAMETERS,
    )
    scale = alt.Scale(type="log", domain=[0.2, 4.5], nice=False)
    axis = alt.Axis(values=[0.2, 0.5, 1, 2, 4])
    y = alt.Y("over:Q", scale=scale, axis=axis, title="loss − E")
    low = alt.Y("low:Q", scale=scale, axis=axis, title="loss − E")
    line = base.transform_regression("n", "over", method="pow")
    words = base.transform_regression(
        "n", "over", method="pow", params=True
    ).transform_calculate(
        words="'exponent ' + format(-datum.coef[1], '.3f')"
        " + ',  R² = ' + format(datum.rSquared, '.4f')"
    )
    layers = [
        base.mark_rule(color=KEY.mark, strokeWidth=3).encode(x=x, y=low, y2="high:Q"),
        line.mark_line(color=QUERY.mark, strokeDash=[6, 4]).encode(x=x, y=y),
        base.mark_circle(color=KEY.mark, size=70, opacity=1).encode(x=x, y=y),
        words.mark_text(align="left", fontSize=13).encode(
            x=alt.datum(1300), y=alt.datum(0.26), text="words:N"
        ),
    ]
    return (
        alt.LayerChart(layer=layers)
        .add_params(offset)
        .properties(
            width="container",
            height=260,
            description="Loss minus an offset over the parameters of the layers, both "
            "logarithmic, six sizes with the range of three seeds each, and a fitted "
            "straight line with its exponent. Without an offset the points lie close "
            "to the line.",
        )
    )


def residuals_charts(curve: Curve) -> list[alt.LayerChart]:
    """Deviations from the fitted line, for both ways to count."""
    return [
        _residuals_chart(curve, curve.layers, PARAMETERS, TICKS, (1e3, 6e5)),
        _residuals_chart(
            curve, curve.everything, "all parameters", [1e4, 1e5], (1e4, 8e5)
        ),
    ]


def _residuals_chart(
    curve: Curve,
    sizes: Array,
    title: str,
    ticks: Sequence[float],
    domain: tuple[float, float],
) -> alt.LayerChart:
    away = residuals(sizes, curve.mean)
    rows = [
        {
            "size": int(n),
            "deviation": float(off),
            "from": float(off - 2 * error),
            "to": float(off + 2 * error),
        }
        for n, off, error in zip(sizes, away, curve.standard_error, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "size:Q",
            title=title,
            scale=alt.Scale(type="log", nice=False, domain=list(domain)),
            axis=alt.Axis(values=list(ticks), format="~s"),
        ),
    )
    y, low = (
        alt.Y(
            field,
            title="deviation from the line",
            scale=alt.Scale(domain=[-0.03, 0.03]),
            axis=alt.Axis(values=[-0.02, 0, 0.02], format=".0%"),
        )
        for field in ("deviation:Q", "from:Q")
    )
    zero = alt.Chart(alt.Data(values=[{"deviation": 0}]))
    up = bend(sizes, curve.mean) > 0
    return alt.LayerChart(
        layer=[
            zero.mark_rule(color=QUERY.mark, strokeDash=[6, 4], strokeWidth=2).encode(
                y=y
            ),
            base.mark_line(color=KEY.mark, strokeWidth=1).encode(y=y),
            base.mark_rule(color=KEY.mark, strokeWidth=3).encode(y=low, y2="to:Q"),
            base.mark_circle(color=KEY.mark, size=80, opacity=1).encode(y=y),
        ]
    ).properties(
        width="container",
        height=220,
        description=f"Relative deviations of six sizes from the fitted line, against "
        f"{title}. Both ends lie {'above' if up else 'below'} the middle, by about "
        "one percent, and every error bar contains zero.",
    )


def forecast_chart(curve: Curve, found: Sequence[Forecast]) -> alt.LayerChart:
    """The laws within the data and beyond, with their error bars at the far end."""
    names = [one.name for one in found]
    widths = np.geomspace(8, WIDE, 50)
    rows = [
        {PARAMETERS: counted(w)[0], "loss": one.at(w), "law": one.name}
        for one in found
        for w in widths
    ]
    far = [
        {
            PARAMETERS: counted(WIDE)[0] * 1.35 ** (place + 1),
            "loss": float(one.loss[0]),
            "most": float(one.loss[1]),
            "law": one.name,
        }
        for place, one in enumerate(found)
    ]
    x = alt.X(
        f"{PARAMETERS}:Q",
        title=PARAMETERS,
        scale=alt.Scale(type="log", nice=False, domain=[1e3, 2e8]),
        axis=alt.Axis(values=[1e3, 1e4, 1e5, 1e6, 1e7], format="~s"),
    )
    y = alt.Y(
        "loss:Q",
        title="loss a token",
        scale=alt.Scale(type="log", nice=False, domain=[1.1, 4.2]),
        axis=alt.Axis(values=[1.2, 1.5, 2, 3, 4]),
    )
    colour = alt.Color(
        "law:N",
        title=None,
        scale=alt.Scale(domain=names, range=[one.mark for one in SERIES[:4]]),
        legend=alt.Legend(columns=1),
    )
    dash = alt.StrokeDash(
        "law:N",
        title=None,
        scale=alt.Scale(domain=names, range=[[1, 0], [6, 4], [2, 2], [8, 3, 2, 3]]),
        legend=alt.Legend(columns=1),
    )
    points = alt.Chart(alt.Data(values=_points(curve)))
    return alt.LayerChart(
        layer=[
            alt.Chart(alt.Data(values=rows))
            .mark_line()
            .encode(x=x, y=y, color=colour, strokeDash=dash),
            alt.Chart(alt.Data(values=far))
            .mark_rule(strokeWidth=4)
            .encode(x=x, y=y, y2="most:Q", color=colour),
            points.mark_circle(color=NEUTRAL.mark, size=70, opacity=1).encode(x=x, y=y),
        ]
    ).properties(
        width="container",
        height=320,
        description="Six measured points, and four fitted laws that agree among them. "
        "A hundred times further to the right the laws lie between 1.2 and 1.6, and "
        "the error bars of two of them do not overlap.",
    )


def more_chart(curve: Curve, few: Sequence[float], wider: float) -> alt.LayerChart:
    """The two smallest sizes, each on a quarter of the text and on all of it."""
    groups: dict[str, ArrayLike] = {
        "width 8, ¼ of the text": list(few),
        "width 16, ¼ of the text": [wider],
        "width 8, all of it": curve.losses[0],
        "width 16, all of it": curve.losses[1],
    }
    rows = [
        {"model": name, "loss": float(loss)}
        for name, losses in groups.items()
        for loss in np.asarray(losses)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("model:N", sort=list(groups), title=None, axis=alt.Axis(labelLimit=170))
    )
    scale = alt.Scale(domain=[3, 5.2], nice=False)
    axis = alt.Axis(values=[3, 3.5, 4, 4.5, 5])
    return alt.LayerChart(
        layer=[
            base.mark_tick(color=KEY.mark, thickness=3, size=26).encode(
                x=alt.X(
                    "loss:Q",
                    aggregate="mean",
                    title="loss a token",
                    scale=scale,
                    axis=axis,
                )
            ),
            base.mark_circle(color=QUERY.mark, size=60, opacity=1).encode(
                x=alt.X("loss:Q", title="loss a token", scale=scale, axis=axis)
            ),
        ]
    ).properties(
        width="container",
        height=180,
        description="Losses of three seeds each, one for width 16 with a quarter of "
        "the text: about 4.9 for width 8 with a quarter of the text and 4.6 for width "
        "16; 3.7 for width 8 with all of it and 3.3 for width 16.",
    )
