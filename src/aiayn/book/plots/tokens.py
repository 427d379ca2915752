"""Axes that carry tokens, and the checks that tokens fit the numbers."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from aiayn.errors import InputError


def token_axis(field: str, title: str, tokens: Sequence[str]) -> alt.X | alt.Y:
    """An axis by position, so that a token that occurs twice has two places.

    Args:
        field: ``"i"`` for rows or ``"j"`` for columns.
        title: what the axis counts.
        tokens: the labels.
    """
    label = f"{js_list(tokens)}[datum.value]"
    if field == "j":
        axis = alt.Axis(
            labelExpr=label, labelAngle=-45, orient="top", domain=False, ticks=False
        )
        return alt.X(f"{field}:O", title=f"{title} →", axis=axis)
    axis = alt.Axis(labelExpr=label, domain=False, ticks=False)
    return alt.Y(f"{field}:O", title=f"← {title}", axis=axis)


def js_list(tokens: Sequence[str]) -> str:
    """Texts as a list in a Vega expression."""
    return json.dumps(list(tokens), ensure_ascii=False)


def as_array(weights: Any, dimensions: int, shape: str) -> np.ndarray:
    """Weights or a mask as an array, if it has that many dimensions."""
    if hasattr(weights, "detach"):
        weights = weights.detach().float().cpu()
    table = np.asarray(weights)
    if table.ndim != dimensions:
        raise InputError(
            f"weights has the shape {table.shape}, but {shape} was expected: choose "
            "one sentence of the batch, and add or drop dimensions as needed."
        )
    return table


def require_tokens(
    table: np.ndarray, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> None:
    """Raise `InputError` unless there is a token for each row and each column."""
    names = ("query_tokens", "key_tokens")
    for name, tokens, count in zip(
        names, (query_tokens, key_tokens), table.shape, strict=True
    ):
        if len(tokens) != count:
            axis = "rows" if name == "query_tokens" else "columns"
            raise InputError(
                f"{name} holds {len(tokens)} tokens, but weights has {count} {axis}: "
                "rows are queries and columns are keys."
            )
