"""Curves over several seeds: the mean, the spread, and each run."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from aiayn.errors import InputError
from aiayn_book.colours import SERIES
from aiayn_book.plots.theme import require_description, words

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 4])

# Pixels: what a phone leaves to a chart, and what a legend's entry takes.
_PHONE, _SYMBOL, _LETTER = 310, 30, 6.5


def curves(
    data: Any,
    x: str,
    y: str,
    by: str,
    *,
    description: str,
    title: str = "",
    seed: str = "seed",
    log_x: bool = False,
    log_y: bool = False,
) -> alt.LayerChart:
    """One curve a group: the mean over seeds, a band from the lowest to the highest.

    With a handful of seeds, the range says more truly how far runs differ than an
    interval that supposes a bell curve; each run is drawn as a thin line as well.

    Args:
        data: a pandas DataFrame, or a list of mappings, one row a measurement.
        x: the column on the horizontal axis; its name is the axis title.
        y: the column on the vertical axis; likewise.
        by: the column that tells the curves apart, at most six values.
        description: the text alternative.
        title: the point that the chart makes, where no caption says it.
        seed: the column that tells runs of one curve apart, where there is one.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.

    Raises:
        InputError: a column is missing, there are too many curves, or the description
            is empty.
    """
    require_description(description)
    rows = _rows(data, (x, y, by))
    groups = list(dict.fromkeys(row[by] for row in rows))
    if len(groups) > len(SERIES):
        raise InputError(
            f"by={by!r} has {len(groups)} values, but at most {len(SERIES)} curves can "
            "be told apart: choose fewer, or draw small multiples."
        )
    colours = [colour.mark for colour in SERIES[: len(groups)]]
    dashes = list(_DASHES[: len(groups)])
    legend = alt.Legend(columns=_columns(groups))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(_field(x), title=x, scale=_scale(log_x)),
        color=alt.Color(
            _field(by, "N"),
            title=by,
            scale=alt.Scale(domain=groups, range=colours),
            legend=legend,
        ),
    )
    vertical = {"title": y, "scale": _scale(log_y)}
    mean = base.mark_line().encode(
        y=alt.Y(_field(y), aggregate="mean", **vertical),
        strokeDash=alt.StrokeDash(
            _field(by, "N"),
            title=by,
            scale=alt.Scale(domain=groups, range=dashes),
            legend=legend,
        ),
        tooltip=[
            alt.Tooltip(_field(by, "N"), title=by),
            alt.Tooltip(_field(x), title=x),
            alt.Tooltip(_field(y), aggregate="mean", title=f"mean {y}", format=".4g"),
        ],
    )
    layers = [mean]
    if all(seed in row for row in rows):
        band = base.mark_area(opacity=0.18).encode(
            y=alt.Y(_field(y), aggregate="min", **vertical),
            y2=alt.Y2(_field(y)[:-2], aggregate="max"),
        )
        runs = base.mark_line(strokeWidth=0.8, opacity=0.55).encode(
            y=alt.Y(_field(y), **vertical), detail=alt.Detail(_field(seed, "N"))
        )
        layers = [band, runs, mean]
    return alt.LayerChart(layer=layers).properties(
        **words(title, description),
        width="container",
        height=260,
    )


def _rows(data: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = (
        data.to_dict("records") if hasattr(data, "to_dict") else data
    )
    missing = [name for name in columns if any(name not in row for row in rows)]
    if missing or not rows:
        raise InputError(
            f"data has {len(rows)} rows and needs the columns {', '.join(columns)} in "
            f"each of them; missing: {', '.join(missing) or 'every row'}."
        )
    return [dict(row) for row in rows]


def _columns(names: Sequence[Any]) -> int:
    """How many entries of the legend fit side by side on a phone."""
    longest = max(len(str(name)) for name in names)
    return max(1, int(_PHONE / (_SYMBOL + _LETTER * longest)))


def _field(name: str, kind: str = "Q") -> str:
    """A column's name as Vega-Lite's shorthand, with its special letters escaped."""
    for letter in ".[]:":
        name = name.replace(letter, "\\" + letter)
    return f"{name}:{kind}"


def _scale(logarithmic: bool) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=False)
