"""Attention weights as maps: rows are queries, columns are keys."""

from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import numpy as np

from aiayn_book.colours import ALERT, FULL, WEIGHT
from aiayn_book.plots.theme import require_description, words
from aiayn_book.plots.tokens import (
    BORDER,
    as_array,
    key_axis,
    query_axis,
    require_tokens,
    widest,
)

_SHOWN = 0.005  # what is less would be printed as 0.00
_FRAME = alt.value(2.5)
_NUMBERS_UP_TO = 8  # keys; beyond that the numbers do not fit


def attention_map(
    weights: Any,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    description: str,
    title: str = "",
    gold: Collection[tuple[int, int]] = (),
) -> alt.LayerChart:
    """One head's weights.

    Args:
        weights: (queries, keys), each row a distribution; a tensor or an array.
        query_tokens: one a row, top to bottom.
        key_tokens: one a column, left to right.
        description: the text alternative.
        title: the point that the map makes, where no caption says it.
        gold: pairs (query, key), counted from 0, that get a frame, such as the gold
            alignment of a translation.

    Raises:
        InputError: the tokens do not fit the weights, or the description is empty.
    """
    require_description(description)
    table = as_array("weights", weights, 2, "(queries, keys)")
    require_tokens("weights", table, query_tokens, key_tokens)
    rows = [
        {
            "i": i,
            "j": j,
            "query": query_tokens[i],
            "key": key_tokens[j],
            "weight": round(float(weight), 4),
            "gold": (i, j) in set(gold),
        }
        for (i, j), weight in np.ndenumerate(table)
    ]
    axes = {
        "x": key_axis(key_tokens),
        "y": query_axis(query_tokens),
    }
    base = alt.Chart(alt.Data(values=rows)).encode(**axes)
    numbered = len(key_tokens) <= _NUMBERS_UP_TO
    layers = [_cells(base, FULL if numbered else 1.0)]
    if numbered:
        layers.append(_numbers(base))
    if gold:
        frame = base.transform_filter("datum.gold").mark_rect(filled=False)
        layers.append(frame.encode(stroke=alt.value(ALERT.mark), strokeWidth=_FRAME))
    step = 38 if numbered else 26
    return alt.LayerChart(layer=layers).properties(
        **words(title, description),
        width=alt.Step(step),
        height=min(step, 32) * len(query_tokens),
        view=BORDER,
        usermeta=widest(len(key_tokens), query_tokens),
    )


def _cells(base: alt.Chart, full: float) -> alt.Chart:
    """Nothing at a weight of 0, and `full` strength at 1, whatever the largest is."""
    opacity = alt.Scale(domain=[0, 1], range=[0, full], clamp=True)
    return base.mark_rect(
        color=WEIGHT.light, stroke=WEIGHT.light, strokeOpacity=0.3
    ).encode(
        opacity=alt.Opacity("weight:Q", scale=opacity, legend=None),
        tooltip=[
            alt.Tooltip("query:N"),
            alt.Tooltip("key:N"),
            alt.Tooltip("weight:Q", format=".3f"),
        ],
    )


def _numbers(base: alt.Chart) -> alt.Chart:
    """The weights in their cells, but for those that would be printed as zero."""
    text = alt.Text("weight:Q", format=".2f")
    shown = base.transform_filter(f"datum.weight >= {_SHOWN}")
    return shown.mark_text().encode(text=text)
