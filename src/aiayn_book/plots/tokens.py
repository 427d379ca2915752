"""Axes that carry tokens, and the checks that tokens fit the numbers."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from aiayn.errors import InputError
from aiayn_book.colours import NEUTRAL

# A map has a frame: where its weights are near zero one sees its size all the same.
BORDER = alt.ViewBackground(stroke=NEUTRAL.mark, strokeOpacity=0.5)


def key_axis(tokens: Sequence[str]) -> alt.X:
    """Keys from left to right, by their place ``j``: a token may occur twice."""
    axis = alt.Axis(
        labelExpr=_label(tokens),
        labelAngle=-45,
        orient="top",
        domain=False,
        ticks=False,
    )
    return alt.X("j:O", title="key →", axis=axis)


def query_axis(tokens: Sequence[str]) -> alt.Y:
    """Queries from top to bottom, by their place ``i``."""
    axis = alt.Axis(labelExpr=_label(tokens), domain=False, ticks=False)
    return alt.Y("i:O", title="← query", axis=axis)


def _label(tokens: Sequence[str]) -> str:
    return f"{js_list(tokens)}[datum.value]"


def js_list(tokens: Sequence[str]) -> str:
    """Texts as a list in a Vega expression."""
    return json.dumps(list(tokens), ensure_ascii=False)


def widest(keys: int, query_tokens: Sequence[str]) -> dict[str, int]:
    """How wide a map should become in a figure, as a chart's ``usermeta``.

    A map of few keys does not fill the column: its cells would be no squares.
    """
    letters = max(map(len, query_tokens), default=0)
    return {"widest": max(26, min(56, 600 // keys)) * keys + 9 * letters + 40}


def as_array(name: str, values: Any, dimensions: int, shape: str) -> np.ndarray:
    """Weights or a mask as an array, if it has that many dimensions."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu()
    table = np.asarray(values)
    if table.ndim != dimensions:
        raise InputError(
            f"{name} has the shape {table.shape}, but {shape} was expected: choose "
            "one sentence of the batch, and add or drop dimensions as needed."
        )
    return table


def require_tokens(
    name: str,
    table: np.ndarray,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
) -> None:
    """Raise `InputError` unless there is a token for each row and each column."""
    rows, columns = table.shape
    for side, tokens, count, axis in (
        ("query_tokens", query_tokens, rows, "rows"),
        ("key_tokens", key_tokens, columns, "columns"),
    ):
        if len(tokens) != count:
            raise InputError(
                f"{side} holds {len(tokens)} tokens, but {name} has {count} {axis}: "
                "rows are queries and columns are keys."
            )
