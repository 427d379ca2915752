"""The chart with which a reader turns a query: its arithmetic is equation (1)."""

import math

import pytest
import torch

from aiayn import scaled_dot_product_attention
from aiayn.errors import InputError
from aiayn_book.plots import use_theme
from aiayn_book.plots.lookup import KEY_LENGTH, QUERY_LENGTH, soft_lookup
from tests.book.conftest import drawn

ENTRIES = {
    "cat": (30.0, (10.0, 0.0)),
    "drinks": (260.0, (0.0, 0.0)),
    "milk": (120.0, (0.0, 10.0)),
}
WORDS = {"title": "A point.", "description": "What it shows."}


@pytest.fixture(autouse=True)
def _theme():
    use_theme()


def arrow(degrees, length):
    """A vector of two numbers."""
    angle = math.radians(degrees)
    return [length * math.cos(angle), length * math.sin(angle)]


@pytest.mark.parametrize("angle", [0, 60, 200, 315])
def test_the_browser_computes_attention(angle):
    """The shares in the drawing are the library's weights."""
    keys = [arrow(direction, KEY_LENGTH) for direction, _ in ENTRIES.values()]
    _, weights = scaled_dot_product_attention(
        torch.tensor([arrow(angle, QUERY_LENGTH)]),
        torch.tensor(keys),
        torch.zeros(3, 2),
    )
    svg = drawn(soft_lookup(ENTRIES, angle=angle, **WORDS))
    for word, weight in zip(ENTRIES, weights[0].tolist(), strict=True):
        assert f">{word} {weight:.0%}</text>" in svg


def test_the_answer_moves_with_the_query():
    """Another direction, another drawing."""
    one, other = (drawn(soft_lookup(ENTRIES, angle=a, **WORDS)) for a in (60, 65))
    assert one != other


def test_slips_are_sentences():
    """An angle that the slider lacks, and a missing text alternative."""
    with pytest.raises(InputError, match="from 0 to 360 in steps of 5"):
        soft_lookup(ENTRIES, angle=62, **WORDS)
    with pytest.raises(InputError, match="description is empty"):
        soft_lookup(ENTRIES, angle=60, title="A point.", description=" ")
