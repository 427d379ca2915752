"""The matrix walk: choose a number of an attention, and see what made it (§3.2.1).

Two products stand side by side, each with its left factor to the left and its right
factor above the result: the scores QKᵀ / √d_k, and the context, weights times V.
"""

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aiayn.book.explorables.base import Explorable, as_table, number, short, status
from aiayn.book.html import escape
from aiayn.errors import InputError

Place = tuple[str, int, int]


@dataclass(frozen=True)
class _Matrix:
    """One matrix of the walk: its numbers, and what its rows and columns are."""

    part: str  # also its colour, where it has one
    table: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    # The parts whose row and whose column made a number; without, it cannot be chosen.
    made_by: tuple[str, str] | None = None

    def cell(self, i: int, j: int, at: Place, lit: bool) -> str:
        share = self.table[i, j]
        text = number(share, 3) if self.part == "weight" else short(share)
        place = f'data-part="{self.part}" data-row="{i}" data-column="{j}"'
        kind = f'class="{self.part}{" lit" if lit else ""}" {place}'
        if not self.made_by:
            return f"<td><span {kind}>{text}</span></td>"
        pressed = at == (self.part, i, j)
        name = f"{self.part}, {self.rows[i]}, {self.columns[j]}: {text}"
        return (
            f'<td><button type="button" {kind} aria-label="{escape(name)}" '
            f'aria-pressed="{str(pressed).lower()}" tabindex="{0 if pressed else -1}" '
            f'style="--share: {share:.3f}">{text}</button></td>'
        )


def matrix_walk(
    query: Any,
    key: Any,
    value: Any,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    title: str,
    description: str,
    features: Sequence[str] | None = None,
    value_names: Sequence[str] | None = None,
    start: tuple[int, int] = (0, 0),
) -> Explorable:
    """One attention, number by number.

    Args:
        query: ``(queries, d_k)``, few enough to be read: at most 8 of each.
        key: ``(keys, d_k)``.
        value: ``(keys, d_v)``.
        query_tokens: a name for each row of `query`.
        key_tokens: a name for each row of `key` and of `value`.
        title: the point that the figure makes.
        description: the text alternative.
        features: what the d_k numbers of a query and a key stand for.
        value_names: what the d_v numbers of a value stand for.
        start: query and key whose score is chosen at first; of the context, the first
            number of the same query.

    Raises:
        InputError: a shape does not fit, or a matrix is too large to be read.
    """
    Q = as_table("query", query, (len(query_tokens), None))
    K = as_table("key", key, (len(key_tokens), Q.shape[1]))
    V = as_table("value", value, (len(key_tokens), None))
    if max(*Q.shape, *V.shape) > 8:
        raise InputError(
            f"query is {Q.shape} and value is {V.shape}: more than 8 rows or columns "
            "cannot be read in a page. Choose some of them."
        )
    scores = Q @ K.T / math.sqrt(K.shape[1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    features = features or [f"{place}." for place in range(1, Q.shape[1] + 1)]
    columns = value_names or [f"{place}." for place in range(1, V.shape[1] + 1)]
    asks, asked = query_tokens, key_tokens
    products = (
        (
            _Matrix("query", Q, asks, features),
            _Matrix("key", K.T, features, asked),
            _Matrix("score", scores, asks, asked, made_by=("query", "key")),
        ),
        (
            _Matrix("weight", weights, asks, asked, made_by=("score", "")),
            _Matrix("value", V, asked, columns),
            _Matrix("context", weights @ V, asks, columns, made_by=("weight", "value")),
        ),
    )
    says = {
        "score": _each(scores, lambda i, j: _score(Q[i], K[j], asks[i], asked[j])),
        "weight": _each(scores, lambda i, j: _weight(scores[i], j, asks[i], asked[j])),
        "context": _each(
            weights @ V, lambda i, c: _context(weights[i], V[:, c], asks[i], columns[c])
        ),
    }
    chosen = ("score", *start), ("context", start[0], 0)
    makers = {m.part: m.made_by for product in products for m in product if m.made_by}
    lit = {
        maker
        for part, i, j in chosen
        for maker in zip(makers[part], (i, j), ("row", "column"), strict=True)
    }
    body = "\n".join(
        _product(caption, product, at, says[at[0]][at[1]][at[2]], lit)
        for caption, product, at in zip(_CAPTIONS, products, chosen, strict=True)
    )
    return Explorable(
        "walk",
        title,
        description,
        f'<div class="side-by-side">{body}</div>',
        {"says": says, "makers": makers},
    )


_CAPTIONS = (
    'Scores: <span class="query">Q</span> <span class="key">Kᵀ</span> / √dₖ',
    'Context: <span class="weight">softmax(scores)</span> <span class="value">V</span>',
)


def _product(
    caption: str,
    matrices: tuple[_Matrix, _Matrix, _Matrix],
    at: Place,
    says: str,
    lit: Container[tuple[str, int, str]],
) -> str:
    """A product as a table: the right factor above the result, the left one beside."""
    left, right, result = matrices

    def row(matrix: _Matrix, i: int) -> str:
        return "".join(
            matrix.cell(
                i, j, at,
                (matrix.part, i, "row") in lit or (matrix.part, j, "column") in lit,
            )
            for j in range(matrix.table.shape[1])
        )  # fmt: skip

    across = 2 + left.table.shape[1]
    heads = "".join(
        f'<th scope="col" class="{right.part}">{escape(name)}</th>'
        for name in right.columns
    )
    above = "\n".join(
        f'<tr><th scope="row" class="{right.part}" colspan="{across}">{escape(name)}'
        f"</th>{row(right, i)}</tr>"
        for i, name in enumerate(right.rows)
    )
    below = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{row(left, i)}<td></td>'
        f"{row(result, i)}</tr>"
        for i, name in enumerate(result.rows)
    )
    return (
        '<div class="aiayn-product"><div class="aiayn-scrolls">'
        f"<table><caption>{caption}</caption>\n"
        f'<thead><tr><td colspan="{across}"></td>{heads}</tr></thead>\n'
        f"<tbody>{above}</tbody>\n<tbody>{below}</tbody></table></div>\n"
        f"{status(says)}</div>"
    )


def _each(table: np.ndarray, say: Callable[[int, int], str]) -> list[list[str]]:
    return [[say(i, j) for j in range(table.shape[1])] for i in range(len(table))]


def _span(part: str, text: str) -> str:
    return f'<span class="{part}">{text}</span>'


def _sum(part: str, one: list[str], other_part: str, other: np.ndarray) -> str:
    """Two vectors as the sum of their products, each number in its colour."""
    return " + ".join(
        f"{_span(part, a)} · {_span(other_part, _bracketed(b))}"
        for a, b in zip(one, other, strict=True)
    )


def _bracketed(value: float) -> str:
    text = short(value)
    return f"({text})" if text.startswith("−") else text


def _score(query: np.ndarray, key: np.ndarray, asks: str, asked: str) -> str:
    dot, d_k = query @ key, len(key)
    return (
        f"<b>{escape(asks)} asks {escape(asked)}.</b> "
        f"{_sum('query', list(map(short, query)), 'key', key)} = {short(dot)}. "
        f"Divided by √{d_k}: <b>{short(dot / math.sqrt(d_k))}</b>"
    )


def _weight(scores: np.ndarray, j: int, asks: str, asked: str) -> str:
    exponentials = np.exp(scores)
    row = " + ".join(short(term) for term in exponentials)
    share = exponentials[j] / exponentials.sum()
    return (
        f"<b>{escape(asked)}’s share for {escape(asks)}.</b> "
        f"e<sup>{short(scores[j])}</sup> / (sum over the row) = "
        f"{short(exponentials[j])} / ({row}) = <b>{number(share, 3)}</b>"
    )


def _context(weights: np.ndarray, values: np.ndarray, asks: str, name: str) -> str:
    shares = [number(weight, 3) for weight in weights]
    return (
        f"<b>What {escape(asks)} gets, {escape(name)}.</b> "
        f"{_sum('weight', shares, 'value', values)} = "
        f"<b>{short(weights @ values)}</b>"
    )
