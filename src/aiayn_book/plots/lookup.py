"""A soft look-up to play with: turn the query, and the answer moves (§3.2).

Keys and query have two numbers each, so that they can be drawn as arrows; so have the
values, which are points. The browser does the arithmetic of equation (1) itself.
"""

from collections.abc import Mapping
from typing import Any

import altair as alt

from aiayn.errors import InputError
from aiayn_book.colours import KEY, NEUTRAL, QUERY, VALUE, WEIGHT
from aiayn_book.plots.theme import FONT_SIZE, require_description

KEY_LENGTH = 2**0.5
QUERY_LENGTH = 2.0  # so that a query along a key scores 2·√2 / √d_k = 2

_SIDE = 146  # pixels: two panels fit a phone


def soft_lookup(
    entries: Mapping[str, tuple[float, tuple[float, float]]],
    *,
    angle: int,
    title: str,
    description: str,
) -> alt.HConcatChart:
    """Keys and a query on the left, values and the answer on the right.

    Args:
        entries: for each word the direction of its key, in degrees, and its value, a
            point with coordinates from 0 to 10; the points are joined in this order.
        angle: the query's direction at first, in degrees, a multiple of 5.
        title: the point that the chart makes.
        description: the text alternative.

    Raises:
        InputError: the slider cannot show the angle, or the description is empty.
    """
    require_description(description)
    if angle not in range(0, 361, 5):
        raise InputError(
            f"angle is {angle}, but the slider goes from 0 to 360 in steps of 5: "
            "choose one of those."
        )
    slider = alt.param(
        name="angle",
        value=angle,
        bind=alt.binding_range(min=0, max=360, step=5, name="Direction of the query"),
    )
    attended = _attended(entries)
    panels = alt.hconcat(_look(attended), _answer(attended), spacing=6)
    return panels.add_params(slider).properties(title=title, description=description)


def _attended(
    entries: Mapping[str, tuple[float, tuple[float, float]]],
) -> alt.Chart:
    """One row an entry, with its score and its weight."""
    rows = [
        {"order": order, "word": word, "key": direction, "x": x, "y": y}
        for order, (word, (direction, (x, y))) in enumerate(entries.items())
    ]
    score = f"cos((angle - datum.key) * PI / 180) * {KEY_LENGTH * QUERY_LENGTH}"
    return (
        alt.Chart(alt.Data(values=rows))
        .transform_calculate(exponential=f"exp({score} / sqrt(2))")
        .transform_joinaggregate(total="sum(exponential)")
        .transform_calculate(weight="datum.exponential / datum.total")
    )


def _look(attended: alt.Chart) -> alt.LayerChart:
    """The keys as arrows from the middle, and the query."""
    arrow: dict[str, Any] = {"strokeWidth": 4, "strokeCap": "round"}
    origin: dict[str, Any] = {"x2": alt.datum(0), "y2": alt.datum(0)}
    ends = attended.transform_calculate(
        kx=_tip("cos", "datum.key", KEY_LENGTH), ky=_tip("sin", "datum.key", KEY_LENGTH)
    )
    beyond = ends.transform_calculate(x="datum.kx * 1.35", y="datum.ky * 1.35")
    query = alt.Chart(alt.Data(values=[{}])).transform_calculate(
        qx=_tip("cos", "angle", QUERY_LENGTH),
        qy=_tip("sin", "angle", QUERY_LENGTH),
        lx=_tip("cos", "angle", QUERY_LENGTH + 0.35),
        ly=_tip("sin", "angle", QUERY_LENGTH + 0.35),
    )
    low, high = -2.75, 2.75
    layers = [
        ends.mark_rule(color=KEY.mark, **arrow).encode(
            **_at("kx", "ky", low, high), **origin
        ),
        query.mark_rule(color=QUERY.mark, strokeDash=[7, 6], **arrow).encode(
            **_at("qx", "qy", low, high), **origin
        ),
        beyond.mark_text().encode(**_at("x", "y", low, high), text="word:N"),
        query.mark_text(fontStyle="italic").encode(
            **_at("lx", "ly", low, high), text=alt.value("query")
        ),
    ]
    return _panel("keys and query", layers)


def _answer(attended: alt.Chart) -> alt.LayerChart:
    """The values as points, as large as their weights, and the mean of them."""
    low, high = -4.2, 14.2
    at = _at("x", "y", low, high)
    answer = attended.transform_calculate(
        wx="datum.weight * datum.x", wy="datum.weight * datum.y"
    ).transform_aggregate(x="sum(wx)", y="sum(wy)")
    edge = attended.mark_line(
        interpolate="linear-closed", color=NEUTRAL.mark, strokeWidth=1
    )
    size = alt.Size(
        "weight:Q", scale=alt.Scale(domain=[0, 1], range=[30, 500]), legend=None
    )
    shares = attended.transform_calculate(
        label="datum.word + ' ' + format(datum.weight, '.0%')",
        label_y="datum.y + (datum.y > 5 ? 2.3 : -2.3)",  # away from the middle
    )
    layers = [
        edge.encode(**at, order="order:O"),
        attended.mark_circle(color=VALUE.mark, opacity=1).encode(**at, size=size),
        shares.mark_text().encode(**_at("x", "label_y", low, high), text="label:N"),
        answer.mark_point(
            shape="diamond", filled=True, size=170, opacity=1, color=WEIGHT.mark
        ).encode(**at),
        answer.mark_text(dy=-16, fontStyle="italic").encode(
            **at, text=alt.value("answer")
        ),
    ]
    return _panel("values and answer", layers)


def _tip(function: str, degrees: str, length: float) -> str:
    """One coordinate of an arrow's tip, in the browser's arithmetic."""
    return f"{function}({degrees} * PI / 180) * {length}"


def _at(x: str, y: str, low: float, high: float) -> dict[str, Any]:
    """Two columns as the place of a mark, in a square without axes."""
    scale = alt.Scale(domain=[low, high])
    return {
        "x": alt.X(f"{x}:Q", scale=scale, axis=None),
        "y": alt.Y(f"{y}:Q", scale=scale, axis=None),
    }


def _panel(words: str, layers: list[alt.Chart]) -> alt.LayerChart:
    title = alt.TitleParams(
        words, fontSize=FONT_SIZE, fontWeight="normal", anchor="middle", offset=6
    )
    return alt.LayerChart(layer=layers).properties(
        width=_SIDE, height=_SIDE, title=title
    )
