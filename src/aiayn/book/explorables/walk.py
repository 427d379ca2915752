"""The matrix walk: choose a number of an attention, and see what made it (§3.2.1).

Two products stand side by side, each with its left factor to the left and its right
factor above the result: the scores QKᵀ / √d_k, and the context, weights times V.
"""

import math
from collections.abc import Container, Sequence
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


Product = tuple[_Matrix, _Matrix, _Matrix]


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
        InputError: a shape or a number of names does not fit, or a matrix is too large
            to be read.
    """
    Q = as_table("query", query, (len(query_tokens), None))
    K = as_table("key", key, (len(key_tokens), Q.shape[1]))
    V = as_table("value", value, (len(key_tokens), None))
    if max(*Q.shape, *V.shape) > 8:
        raise InputError(
            f"query is {Q.shape} and value is {V.shape}: more than 8 rows or columns "
            "cannot be read in a page. Choose some of them."
        )
    names = _names("features", features, Q), _names("value_names", value_names, V)
    products = _products((Q, K, V), (query_tokens, key_tokens), names)
    matrices = [matrix for product in products for matrix in product]
    makers = {matrix.part: matrix.made_by for matrix in matrices if matrix.made_by}
    says = {m.part: _sentences(m, products) for m in matrices if m.part in makers}
    chosen = ("score", *start), ("context", start[0], 0)
    lit = {
        maker
        for part, i, j in chosen
        for maker in zip(makers[part], (i, j), ("row", "column"), strict=True)
    }
    body = "\n".join(
        _product(caption, product, (part, i, j), says[part][i][j], lit)
        for caption, product, (part, i, j) in zip(
            _CAPTIONS, products, chosen, strict=True
        )
    )
    return Explorable(
        "walk",
        title,
        description,
        f'<div class="side-by-side">{body}</div>',
        {"says": says, "makers": makers},
    )


def _names(name: str, given: Sequence[str] | None, table: np.ndarray) -> Sequence[str]:
    """A name for each column, counted where none are given."""
    width = table.shape[1]
    if given is None:
        return [f"{place}" for place in range(1, width + 1)]
    if len(given) != width:
        raise InputError(
            f"{name} holds {len(given)} names for {width} numbers: give one for each."
        )
    return given


def _products(
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
    tokens: tuple[Sequence[str], Sequence[str]],
    names: tuple[Sequence[str], Sequence[str]],
) -> tuple[Product, Product]:
    """Equation (1) as two products: left factor, right factor, result."""
    (Q, K, V), (asks, asked), (features, columns) = given, tokens, names
    scores = Q @ K.T / math.sqrt(K.shape[1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    looking = (
        _Matrix("query", Q, asks, features),
        _Matrix("key", K.T, features, asked),
        _Matrix("score", scores, asks, asked, made_by=("query", "key")),
    )
    fetching = (
        _Matrix("weight", weights, asks, asked, made_by=("score", "")),
        _Matrix("value", V, asked, columns),
        _Matrix("context", weights @ V, asks, columns, made_by=("weight", "value")),
    )
    return looking, fetching


def _sentences(made: _Matrix, products: tuple[Product, Product]) -> list[list[str]]:
    """For each number of a matrix, how it came about."""
    (query, key, score), (weight, value, _) = products
    say = {
        "score": lambda i, j: _score(query.table[i], key.table[:, j]),
        "weight": lambda i, j: _weight(score.table[i], j),
        "context": lambda i, j: _context(weight.table[i], value.table[:, j]),
    }[made.part]
    return [
        [
            f"<b>{escape(_LEADS[made.part].format(row, column))}</b> {say(i, j)}"
            for j, column in enumerate(made.columns)
        ]
        for i, row in enumerate(made.rows)
    ]


_LEADS = {
    "score": "{0} asks {1}.",
    "weight": "{1}’s share for {0}.",
    "context": "What {0} gets, {1}.",
}
_CAPTIONS = (
    'Scores: <span class="query">Q</span> <span class="key">Kᵀ</span> / √dₖ',
    'Context: <span class="weight">softmax(scores)</span> <span class="value">V</span>',
)


def _product(
    caption: str,
    matrices: Product,
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


def _score(query: np.ndarray, key: np.ndarray) -> str:
    dot, d_k = query @ key, len(key)
    terms = _sum("query", list(map(short, query)), "key", key)
    scaled = short(dot / math.sqrt(d_k))
    return f"{terms} = {short(dot)}. Divided by √{d_k}: <b>{scaled}</b>"


def _weight(scores: np.ndarray, j: int) -> str:
    exponentials = np.exp(scores)
    row = " + ".join(short(term) for term in exponentials)
    return (
        f"e<sup>{short(scores[j])}</sup> / (sum over the row) = "
        f"{short(exponentials[j])} / ({row}) = "
        f"<b>{number(exponentials[j] / exponentials.sum(), 3)}</b>"
    )


def _context(weights: np.ndarray, values: np.ndarray) -> str:
    shares = [number(weight, 3) for weight in weights]
    terms = _sum("weight", shares, "value", values)
    return f"{terms} = <b>{short(weights @ values)}</b>"
