"""The positional-encoding explorer: a table of positions as clocks and stripes (§3.5).

Each pair of dimensions is the tip of a clock's hand. Two places are shown, ``ahead``
apart: on every clock the angle between their hands is the same wherever they stand.
"""

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.colours import NEUTRAL, WEIGHT
from aiayn_book.explorables.base import (
    Explorable,
    as_table,
    number,
    rounded,
    slider,
    status,
)


def positions_explorer(
    table: Any,
    *,
    title: str,
    description: str,
    position: int = 0,
    ahead: int = 1,
    farthest: int = 20,
) -> Explorable:
    """A table of positions, with two places in it to choose.

    Args:
        table: ``(positions, d_model)``, sines and cosines in turn; d_model is even and
            at most 8, so that the clocks fit a page.
        title: the point that the figure makes.
        description: the text alternative.
        position: the place at first.
        ahead: how many places later the other one stands at first.
        farthest: the largest such distance; the last place leaves room for it.

    Raises:
        InputError: the table does not fit, or the first setting is outside of it.
    """
    places = as_table("table", table, (None, None))
    if places.shape[1] % 2 or places.shape[1] > 8:
        raise InputError(
            f"table has {places.shape[1]} columns, but pairs of sine and cosine are "
            "drawn, at most four: choose d_model = 2, 4, 6 or 8."
        )
    last = len(places) - 1 - farthest
    if not (0 <= position <= last and 0 <= ahead <= farthest):
        raise InputError(
            f"position is {position} and ahead is {ahead}, but the sliders end at "
            f"{last} and {farthest}: choose smaller ones, or make the table longer."
        )
    body = f"""<div class="aiayn-controls">
{slider("position", "Position", position, f"{position}", high=last)}
{slider("ahead", "Ahead by k", ahead, f"{ahead}", high=farthest)}
</div>
<div class="clocks">
{_clocks(places, position, ahead)}
</div>
<div class="stripes"><img alt="{_STRIPES}" src="{as_png(places.T)}">\
{_marker("now", position, len(places))}{_marker("then", position + ahead, len(places))}\
</div>
<p class="scale"><span>position 0</span>\
<span>a row for each dimension: pink above 0, grey below</span>\
<span>{len(places) - 1}</span></p>
{status(_sentence(places, position, ahead))}"""
    return Explorable("positions", title, description, body, {"table": rounded(places)})


_STRIPES = (
    "The table as stripes, a row for each dimension and a column for each position: "
    "the upper rows change quickly, the lower ones slowly."
)


def _marker(name: str, place: int, count: int) -> str:
    return f'<span class="{name}" style="--at: {(place + 0.5) / count:.5f}"></span>'


def _clocks(table: np.ndarray, position: int, ahead: int) -> str:
    now, then = table[position], table[position + ahead]
    return "\n".join(
        _clock(i, now[i : i + 2], then[i : i + 2]) for i in range(0, len(now), 2)
    )


def _clock(i: int, now: np.ndarray, then: np.ndarray) -> str:
    """One pair as a clock, twelve is at (0, 1), and its numbers below."""

    def hand(name: str, tip: np.ndarray) -> str:
        return f'<line class="{name}" x2="{tip[0]:g}" y2="{-tip[1]:g}"/>'

    return (
        '<div class="clock"><svg viewBox="-1.1 -1.1 2.2 2.2" aria-hidden="true">'
        f'<circle r="1"/>{hand("then", then)}{hand("now", now)}</svg>'
        f"<p>dimensions {i} and {i + 1}</p>"
        f'<p class="tip">{number(now[0])}, {number(now[1])}</p>'
        f'<p class="turn">{_angle(now, then)}° between</p></div>'
    )


def _angle(now: np.ndarray, then: np.ndarray) -> str:
    """From one hand to the other, clockwise, in degrees from 0 to below 360."""
    turn = math.atan2(then[0], then[1]) - math.atan2(now[0], now[1])
    tenths = math.floor(turn * 1800 / math.pi + 0.5) % 3600
    return number(tenths / 10, 1)


def _sentence(table: np.ndarray, position: int, ahead: int) -> str:
    later = position + ahead
    product = number(table[position] @ table[later])
    return (
        f"PE({position}) · PE({later}) = {product}. The solid hands stand at position "
        f"{position}, the dashed ones at {later}."
    )


def as_png(table: np.ndarray) -> str:
    """A matrix as an image of one pixel a number: above zero pink, below grey.

    Returns:
        A data address, which an image's ``src`` or ``href`` can name. A number has its
        colour's full strength at 1 or -1; zero is transparent.
    """
    above, below = (
        np.array([int(colour.mark[i : i + 2], 16) for i in (1, 3, 5)])
        for colour in (WEIGHT, NEUTRAL)
    )
    values = table[:, :, None]  # (rows, columns, 1)
    hue = np.where(values > 0, above, below)
    strength = np.abs(values).clip(0, 1) * 255
    pixels = np.concatenate([hue, strength], axis=2).round().astype(np.uint8)
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # no filter in any row

    def chunk(name: bytes, content: bytes) -> bytes:
        size, check = len(content), zlib.crc32(name + content)
        return struct.pack(">I", size) + name + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits, RGBA
    image = b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows, 9)),
            chunk(b"IEND", b""),
        ]
    )
    return "data:image/png;base64," + base64.b64encode(image).decode()
