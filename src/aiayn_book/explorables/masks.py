"""Masks, rule by rule: what each forbids, and where the weight goes (§3.2.3).

A mask says no before the softmax. So what a forbidden key would have got is shared out
among the keys that are left, and a row that may attend to nothing gets zeros.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.explorables.base import (
    Explorable,
    as_table,
    exponentials,
    number,
    require_cell,
    rounded,
    short,
    status,
)
from aiayn_book.html import escape


def mask_rules(
    scores: Any,
    rules: Mapping[str, Any],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    title: str,
    description: str,
    on: Sequence[str] = (),
    start: tuple[int, int] = (0, 0),
) -> Explorable:
    """Rules to switch on and off, and the weights that they leave.

    Args:
        scores: ``(queries, keys)``, before the softmax.
        rules: for each rule's name its mask, ``(queries, keys)``, true where a query
            may attend to a key. What all rules that are on permit is permitted.
        query_tokens: a name for each row.
        key_tokens: a name for each column.
        title: the point that the figure makes.
        description: the text alternative.
        on: the rules that are on at first.
        start: query and key of the pair that is chosen at first.

    Raises:
        InputError: a shape or `start` does not fit, a rule in `on` is unknown, or a
            score is too large for e to it to be written out.
    """
    shape = len(query_tokens), len(key_tokens)
    table = as_table("scores", scores, shape)
    require_cell(start, *shape)
    parts = exponentials(table, query_tokens, key_tokens)
    masks = {
        name: as_table(name, mask, shape).astype(bool) for name, mask in rules.items()
    }
    if unknown := [name for name in on if name not in masks]:
        raise InputError(
            f"`on` names {unknown[0]!r}, which is none of the rules "
            f"{', '.join(map(repr, masks))}: copy one of them."
        )
    boxes = "".join(
        '<label><input type="checkbox" name="rule" autocomplete="off"'
        f"{' checked' if name in on else ''}> {escape(name)}</label>"
        for name in masks
    )
    active = {name: mask for name, mask in masks.items() if name in on}
    permitted = np.logical_and.reduce([np.ones(shape, bool), *active.values()])
    weights = _weights(parts, permitted)
    names = list(query_tokens), list(key_tokens)
    body = f"""<fieldset class="aiayn-controls"><legend>Rules:</legend>{boxes}
</fieldset>
{_grid(weights, permitted, names, start)}
{status(_sentence(parts, active, permitted, names, start))}"""
    numbers = {
        "scores": rounded(table),
        "rules": [(name, mask.astype(int).tolist()) for name, mask in masks.items()],
        "queries": names[0],
        "keys": names[1],
    }
    return Explorable("masks", title, description, body, numbers)


def _weights(parts: np.ndarray, permitted: np.ndarray) -> np.ndarray:
    left = parts * permitted
    total = left.sum(axis=1, keepdims=True)
    return left / np.where(total == 0, 1, total)


def _grid(
    weights: np.ndarray,
    permitted: np.ndarray,
    names: tuple[Sequence[str], Sequence[str]],
    start: tuple[int, int],
) -> str:
    queries, keys = names
    heads = "".join(f'<th scope="col" class="key">{escape(name)}</th>' for name in keys)

    def cell(i: int, j: int) -> str:
        pressed = (i, j) == start
        text = number(weights[i, j], 3) if permitted[i, j] else "×"
        return (
            f'<td><button type="button" data-row="{i}" data-column="{j}" '
            f'aria-pressed="{str(pressed).lower()}" tabindex="-1" '
            f'style="--share: {weights[i, j]:.4f}">{text}</button></td>'
        )

    rows = "\n".join(
        f'<tr><th scope="row" class="query">{escape(name)}</th>'
        f"{''.join(cell(i, j) for j in range(len(keys)))}</tr>"
        for i, name in enumerate(queries)
    )
    head = f"<thead><tr><td></td>{heads}</tr></thead>"
    table = f"<table>{head}\n<tbody>{rows}</tbody></table>"
    return f'<div class="aiayn-scrolls">{table}</div>'


def _sentence(
    parts: np.ndarray,
    active: Mapping[str, np.ndarray],
    permitted: np.ndarray,
    names: tuple[Sequence[str], Sequence[str]],
    at: tuple[int, int],
) -> str:
    """What becomes of one pair, and how many there are; the script says it alike."""
    i, j = at
    left = parts[i][permitted[i]]
    pair = f"{names[0][i]} → {names[1][j]}"
    if permitted[i, j]:
        row, share = " + ".join(map(short, left)), parts[i, j] / left.sum()
        says = (
            f"{pair}: permitted. Of its row {row} = {short(left.sum())} it has "
            f"{short(parts[i, j])}: weight {number(share, 3)}."
        )
    else:
        why = " and ".join(name for name, mask in active.items() if not mask[i, j])
        says = f"{pair}: forbidden ({why}). Score −∞, and e to that is 0: weight 0."
    if not len(left):
        says += " This row may attend to nothing, and gets zeros."
    return escape(f"{says} Permitted pairs: {permitted.sum()} of {permitted.size}.")
