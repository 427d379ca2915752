"""Masks as maps: which query may attend to which key."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from aiayn_book.colours import FULL, NEUTRAL, VALUE
from aiayn_book.plots.theme import require_description, words
from aiayn_book.plots.tokens import (
    as_array,
    key_axis,
    query_axis,
    require_tokens,
    widest,
)


def mask_map(
    mask: Any,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    description: str,
    title: str = "",
) -> alt.LayerChart:
    """A mask: a filled cell with a tick where a query may attend, a cross where not.

    Args:
        mask: (queries, keys), True = may attend.
        query_tokens: one a row, top to bottom.
        key_tokens: one a column, left to right.
        description: the text alternative.
        title: the point that the map makes, where no caption says it.

    Raises:
        InputError: the tokens do not fit the mask, or the description is empty.
    """
    require_description(description)
    table = as_array("mask", mask, 2, "(queries, keys)")
    require_tokens("mask", table, query_tokens, key_tokens)
    rows = [
        {
            "i": i,
            "j": j,
            "query": query_tokens[i],
            "key": key_tokens[j],
            "may attend": "yes" if allowed else "no",
            "sign": "✓" if allowed else "×",
        }
        for (i, j), allowed in np.ndenumerate(table)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=key_axis(key_tokens), y=query_axis(query_tokens)
    )
    cells = base.mark_rect(stroke=NEUTRAL.mark, strokeOpacity=0.5).encode(
        color=alt.Color(
            "may attend:N",
            scale=alt.Scale(domain=["yes", "no"], range=[VALUE.light, "transparent"]),
            legend=None,
        ),
        opacity=alt.value(FULL),
        tooltip=["query:N", "key:N", "may attend:N"],
    )
    return alt.LayerChart(
        layer=[cells, base.mark_text().encode(text="sign:N")]
    ).properties(
        **words(title, description),
        width=alt.Step(32),
        height=32 * len(query_tokens),
        usermeta=widest(len(key_tokens), query_tokens),
    )
