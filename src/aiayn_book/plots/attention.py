"""Attention weights as maps: rows are queries, columns are keys."""

from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import numpy as np

from aiayn.errors import InputError
from aiayn_book.colours import ALERT, WEIGHT
from aiayn_book.plots.theme import require_description, words
from aiayn_book.plots.tokens import (
    as_array,
    js_list,
    key_axis,
    query_axis,
    require_tokens,
    widest,
)

# One scale for all maps: nothing at 0, full strength at 1. In the strongest cells white
# letters read better than the page's own, on light pages and on dark ones.
_OPACITY = alt.Scale(domain=[0, 1], range=[0, 1], clamp=True)
STRONG = 0.8
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
    layers = [_cells(base)]
    if len(key_tokens) <= _NUMBERS_UP_TO:
        layers += _numbers(base)
    if gold:
        frame = base.transform_filter("datum.gold").mark_rect(filled=False)
        layers.append(frame.encode(stroke=alt.value(ALERT.mark), strokeWidth=_FRAME))
    step = 38 if len(key_tokens) <= _NUMBERS_UP_TO else 26
    return alt.LayerChart(layer=layers).properties(
        **words(title, description),
        width=alt.Step(step),
        height=min(step, 32) * len(query_tokens),
        usermeta=widest(len(key_tokens), query_tokens),
    )


def attention_maps(
    weights: Any,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    description: str,
    title: str = "",
    layer: int = 0,
    head: int = 0,
) -> alt.VConcatChart:
    """All heads of all layers, small, and one of them enlarged.

    A click on a small map, or the two menus below the chart, choose which.

    Args:
        weights: (layers, heads, queries, keys).
        query_tokens: one a row, top to bottom.
        key_tokens: one a column, left to right.
        description: the text alternative.
        title: the point that the maps make, where no caption says it.
        layer: the enlarged map's layer at first, counted from 0.
        head: the enlarged map's head at first, counted from 0.

    Raises:
        InputError: the tokens do not fit the weights, there is no such layer or head,
            or the description is empty.
    """
    require_description(description)
    table = as_array("weights", weights, 4, "(layers, heads, queries, keys)")
    require_tokens("weights", table[0, 0], query_tokens, key_tokens)
    num_layers, num_heads, queries, keys = table.shape
    if not (0 <= layer < num_layers and 0 <= head < num_heads):
        raise InputError(
            f"layer {layer}, head {head} was to be enlarged, but there are "
            f"{num_layers} layers of {num_heads} heads, counted from 0."
        )
    chosen = _choice(num_layers, num_heads, layer, head)
    base = _long_form(table, query_tokens, key_tokens)
    side = max(30, min(10 * keys, 260 // num_heads))
    small = (
        base.mark_rect(color=WEIGHT.light, stroke=WEIGHT.light, strokeOpacity=0.3)
        .encode(
            x=alt.X("j:O", axis=None),
            y=alt.Y("i:O", axis=None),
            opacity=alt.Opacity("weight:Q", scale=_OPACITY, legend=None),
            tooltip=["layer:O", "head:O"],
        )
        .properties(width=side, height=side * queries / keys)
        .add_params(chosen)
        .facet(
            row=alt.Row("layer:O", title="layer"),
            column=alt.Column("head:O", title="head"),
            spacing=4,
        )
    )
    step = 36 if keys <= _NUMBERS_UP_TO else 26
    large = (
        _cells(
            base.transform_filter(chosen).encode(
                x=key_axis(key_tokens),
                y=query_axis(query_tokens),
            )
        )
    ).properties(width=step * keys, height=min(step, 30) * queries)
    return alt.vconcat(small, large).properties(
        **words(title, description),
    )


def _choice(num_layers: int, num_heads: int, layer: int, head: int) -> alt.Parameter:
    """Which head is enlarged: two menus, for the keyboard too, and a click on a map."""
    menus = {
        # Vega puts the last one on top.
        "head": alt.binding_select(options=_counted(num_heads), name="Head "),
        "layer": alt.binding_select(options=_counted(num_layers), name="Layer "),
    }
    return alt.selection_point(
        name="chosen",
        fields=list(menus),
        value=[{"layer": layer + 1, "head": head + 1}],
        bind=menus,  # pyright: ignore[reportArgumentType]  (documented)
        on="click",  # menus alone would switch clicking off
        toggle=False,
        clear=False,
        empty=False,
    )


def _counted(number: int) -> list[int]:
    return list(range(1, number + 1))


def _long_form(
    table: np.ndarray, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> alt.Chart:
    """A chart with one row a weight, unfolded in the browser to keep the page small."""
    keys = len(key_tokens)
    heads = [
        {"layer": layer + 1, "head": head + 1, "weights": _rounded(table[layer, head])}
        for layer, head in np.ndindex(table.shape[:2])
    ]
    return (
        alt.Chart(alt.Data(values=heads))
        .transform_flatten(["weights"], ["weight"])
        .transform_window(place="row_number()", groupby=["layer", "head"])
        .transform_calculate(
            i=f"floor((datum.place - 1) / {keys})", j=f"(datum.place - 1) % {keys}"
        )
        .transform_calculate(
            query=f"{js_list(query_tokens)}[datum.i]",
            key=f"{js_list(key_tokens)}[datum.j]",
        )
    )


def _cells(base: alt.Chart) -> alt.Chart:
    return base.mark_rect(
        color=WEIGHT.light, stroke=WEIGHT.light, strokeOpacity=0.3
    ).encode(
        opacity=alt.Opacity("weight:Q", scale=_OPACITY, legend=None),
        tooltip=[
            alt.Tooltip("query:N"),
            alt.Tooltip("key:N"),
            alt.Tooltip("weight:Q", format=".3f"),
        ],
    )


def _numbers(base: alt.Chart) -> list[alt.Chart]:
    """The weights in their cells, but for those that would be printed as zero."""
    text = alt.Text("weight:Q", format=".2f")
    shown = base.transform_filter(f"datum.weight >= {_SHOWN}")
    strong = f"datum.weight >= {STRONG}"
    return [
        shown.transform_filter(f"!({strong})").mark_text().encode(text=text),
        shown.transform_filter(strong).mark_text(color="white").encode(text=text),
    ]


def _rounded(weights: np.ndarray) -> list[float]:
    return [round(float(weight), 3) for weight in weights.ravel()]
