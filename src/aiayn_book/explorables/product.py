"""A matrix product as a table: its two factors, and its numbers as buttons.

The left factor stands beside the result and the right factor above it, so that a number
lies where the row and the column cross that made it. The matrix walk of an attention is
made of two such products.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from aiayn.errors import InputError
from aiayn_book.explorables.base import (
    number,
    short,
    status,
)
from aiayn_book.html import escape

Place = tuple[str, int, int]
LARGEST = 8  # rows or columns that can still be read in a page


@dataclass(frozen=True)
class Matrix:
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
            f'aria-pressed="{str(pressed).lower()}" tabindex="-1" '
            f'style="--share: {share:.3f}">{text}</button></td>'
        )


Product = tuple[Matrix, Matrix, Matrix]


def readable(**tables: np.ndarray) -> None:
    """Raise an `InputError` where a matrix is too large to be read."""
    if any(max(table.shape) > LARGEST for table in tables.values()):
        sizes = " and ".join(f"{name} is {t.shape}" for name, t in tables.items())
        raise InputError(
            f"{sizes}: more than {LARGEST} rows or columns cannot be read in a page. "
            "Choose some of them."
        )


def column_names(
    name: str, given: Sequence[str] | None, table: np.ndarray
) -> Sequence[str]:
    """A name for each column, counted where none are given."""
    width = table.shape[1]
    if given is None:
        return [f"{place}" for place in range(1, width + 1)]
    if len(given) != width:
        raise InputError(
            f"{name} holds {len(given)} names for {width} numbers: give one for each."
        )
    return given


def product_table(
    caption: str,
    matrices: Product,
    at: Place,
    says: str,
    lit: Container[tuple[str, int, str]],
) -> str:
    """A product as a table: the right factor above the result, the left one beside."""
    left, right, result = matrices

    def row(matrix: Matrix, i: int) -> str:
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


def coloured(part: str, text: str) -> str:
    return f'<span class="{part}">{text}</span>'


def sum_of_products(
    part: str, one: list[str], other_part: str, other: np.ndarray
) -> str:
    """Two vectors as the sum of their products, each number in its colour."""
    first, *others = one
    firsts = [first, *map(_bracketed, others)]  # no minus right behind a plus
    return " + ".join(
        f"{coloured(part, a)} · {coloured(other_part, _bracketed(short(b)))}"
        for a, b in zip(firsts, other, strict=True)
    )


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("−") else text
