"""The matrix walk: choose a number of an attention, and see what made it (§3.2.1).

Two products stand side by side, each with its left factor to the left and its right
factor above the result: the scores QKᵀ / √d_k, and the context, weights times V.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aiayn_book.explorables.base import (
    Explorable,
    as_table,
    exponentials,
    number,
    require_cell,
    short,
)
from aiayn_book.explorables.product import (
    Matrix,
    Product,
    column_names,
    product_table,
    readable,
    sum_of_products,
)
from aiayn_book.html import escape


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
        InputError: a shape, a number of names or `start` does not fit, or a matrix or
            a number is too large to be read.
    """
    Q = as_table("query", query, (len(query_tokens), None))
    K = as_table("key", key, (len(key_tokens), Q.shape[1]))
    V = as_table("value", value, (len(key_tokens), None))
    readable(query=Q, value=V)
    require_cell(start, len(Q), len(K))
    names = (
        column_names("features", features, Q),
        column_names("value_names", value_names, V),
    )
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
        product_table(caption, product, (part, i, j), says[part][i][j], lit)
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


def _products(
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
    tokens: tuple[Sequence[str], Sequence[str]],
    names: tuple[Sequence[str], Sequence[str]],
) -> tuple[Product, Product]:
    """Equation (1) as two products: left factor, right factor, result."""
    (Q, K, V), (asks, asked), (features, columns) = given, tokens, names
    scores = Q @ K.T / math.sqrt(K.shape[1])
    parts = exponentials(scores, asks, asked)
    weights = parts / parts.sum(axis=1, keepdims=True)
    looking = (
        Matrix("query", Q, asks, features),
        Matrix("key", K.T, features, asked),
        Matrix("score", scores, asks, asked, made_by=("query", "key")),
    )
    fetching = (
        Matrix("weight", weights, asks, asked, made_by=("score", "")),
        Matrix("value", V, asked, columns),
        Matrix("context", weights @ V, asks, columns, made_by=("weight", "value")),
    )
    return looking, fetching


def _sentences(made: Matrix, products: tuple[Product, Product]) -> list[list[str]]:
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


def _score(query: np.ndarray, key: np.ndarray) -> str:
    dot, d_k = query @ key, len(key)
    terms = sum_of_products("query", list(map(short, query)), "key", key)
    scaled = short(dot / math.sqrt(d_k))
    return f"{terms} = {short(dot)}. Divided by √{d_k}: <b>{scaled}</b>"


def _weight(scores: np.ndarray, j: int) -> str:
    parts = np.exp(scores)
    row = " + ".join(map(short, parts))
    return (
        f"e<sup>{short(scores[j])}</sup> / (sum over the row) = "
        f"{short(parts[j])} / ({row}) = "
        f"<b>{number(parts[j] / parts.sum(), 3)}</b>"
    )


def _context(weights: np.ndarray, values: np.ndarray) -> str:
    shares = [number(weight, 3) for weight in weights]
    terms = sum_of_products("weight", shares, "value", values)
    return f"{terms} = <b>{short(weights @ values)}</b>"
