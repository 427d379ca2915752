"""A soft look-up to play with: turn the query or make it longer (§3.2.1).

Keys and query have two numbers each, so that they can be drawn as arrows; so have the
values, which are points. The answer is equation (1) for one query.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.explorables.base import Explorable, number, rounded, slider, status
from aiayn_book.html import escape

KEY_LENGTH = math.sqrt(2)
"""So that a query along a key scores its own length: the root of d_k = 2 cancels."""

_SCALE = 34  # pixels for one unit of a key or a query
_VALUE = 20  # and for one of a value
_SIDE = 300


def soft_lookup(
    entries: Mapping[str, tuple[float, tuple[float, float]]],
    *,
    title: str,
    description: str,
    angle: int = 60,
    length: float = 2.0,
) -> Explorable:
    """Keys and a query on the left, values and the answer on the right.

    Args:
        entries: for each word the direction of its key, in degrees, and its value, a
            point with coordinates from 0 to 10; the points are joined in this order.
        title: the point that the figure makes.
        description: the text alternative.
        angle: the query's direction at first, in degrees, a multiple of 5 up to 360.
        length: the query's length at first, from 0 to 4 in steps of 0.25.

    Raises:
        InputError: the first direction or length is none of the sliders'.
    """
    if angle not in range(0, 361, 5) or length not in np.arange(0, 4.25, 0.25):
        raise InputError(
            f"angle is {angle} and length is {length}, but the sliders go from 0 to "
            "360 in steps of 5, and from 0 to 4 in steps of 0.25."
        )
    words = list(entries)
    directions = np.array([direction for direction, _ in entries.values()])
    values = np.array([value for _, value in entries.values()], dtype=float)
    scores = length * np.cos(np.radians(angle - directions))
    weights = np.exp(scores) / np.exp(scores).sum()
    body = f"""<div class="aiayn-controls">
{slider("angle", "Direction", angle, f"{angle}°", high=360, step=5)}
{slider("length", "Length", length, number(length), high=4, step=0.25)}
</div>
<div class="panels">
{_arrows(words, directions, angle, length)}
{_points(words, values, weights)}
</div>
<table>
<thead><tr><th scope="col">key</th><th scope="col">score</th><th scope="col">weight\
</th><th scope="col">share</th></tr></thead>
<tbody>
{_rows(words, scores, weights)}
</tbody></table>
{status(_sentence(weights @ values))}"""
    numbers: dict[str, Any] = {
        "directions": rounded(directions),
        "values": rounded(values),
        "scale": _SCALE,
        "unit": _VALUE,
    }
    return Explorable("lookup", title, description, body, numbers)


def _arrows(
    words: Sequence[str], directions: np.ndarray, angle: float, length: float
) -> str:
    """The keys as arrows from the middle, and the query."""
    keys = "".join(
        f"{_arrow('key', direction, KEY_LENGTH)}"
        f"{_label(word, direction, KEY_LENGTH + 0.7)}"
        for word, direction in zip(words, directions, strict=True)
    )
    half = _SIDE / 2
    return (
        f'<svg viewBox="{-half:g} {-half:g} {_SIDE} {_SIDE}" aria-hidden="true">'
        f"{keys}{_arrow('query', angle, length)}"
        f"{_label('query', angle, length + 0.6)}</svg>"
    )


def _arrow(part: str, direction: float, length: float) -> str:
    tip = _SCALE * length
    return (
        f'<g class="{part}" transform="rotate({-direction:g})"><line x2="{tip:.2f}"/>'
        f'<path d="M5 0-9 7-9-7Z" transform="translate({tip:.2f})"/></g>'
    )


def _label(word: str, direction: float, length: float) -> str:
    turn = math.radians(direction)
    x, y = _SCALE * length * math.cos(turn), -_SCALE * length * math.sin(turn)
    kind = ' class="of-query"' if word == "query" else ""
    return f'<text{kind} x="{x:.2f}" y="{y:.2f}">{escape(word)}</text>'


def _points(words: Sequence[str], values: np.ndarray, weights: np.ndarray) -> str:
    """The values as points, as large as their weights, and the mean of them."""
    places = np.array([[_VALUE * x, -_VALUE * y] for x, y in values])
    corners = " ".join(f"{x:g},{y:g}" for x, y in places)
    points = "".join(
        f'<circle class="value" cx="{x:g}" cy="{y:g}" r="{_radius(weight):.2f}"/>'
        f'<text x="{x:g}" y="{y - 24 if y < -100 else y + 30:g}">{escape(word)}</text>'
        for word, weight, (x, y) in zip(words, weights, places, strict=True)
    )
    x, y = weights @ places
    return (
        f'<svg viewBox="-50 -250 {_SIDE} {_SIDE}" aria-hidden="true">'
        f'<polygon points="{corners}"/>{points}'
        f'<g class="answer" transform="translate({x:.2f} {y:.2f})">'
        '<path d="M0-9 9 0 0 9-9 0Z"/><text y="-22">answer</text></g></svg>'
    )


def _radius(weight: float) -> float:
    return 4 + 14 * math.sqrt(weight)


def _rows(words: Sequence[str], scores: np.ndarray, weights: np.ndarray) -> str:
    return "\n".join(
        f'<tr><th scope="row">{escape(word)}</th><td>{number(score)}</td>'
        f"<td>{number(weight, 3)}</td>"
        f'<td><div class="bar" style="--share: {weight:.4f}"></div></td></tr>'
        for word, score, weight in zip(words, scores, weights, strict=True)
    )


def _sentence(answer: np.ndarray) -> str:
    x, y = answer
    return f"The answer is the point ({number(x)}, {number(y)})."
