"""Pins with hashes: complete, current, and free of any address."""

import re

import pytest

import pins
from project import ROOT

KEPT = (ROOT / pins.KEPT).read_text(encoding="utf-8")
MADE = (ROOT / pins.MADE).read_text(encoding="utf-8")


def test_every_pin_stands_there_with_its_hashes():
    assert pins.faults(KEPT, MADE) == []
    assert set(pins.pins(KEPT)) - set(pins.pins(MADE)) == pins.WITHOUT_HASH


def test_no_address_is_in_the_file():
    """Which index a machine uses is its own affair."""
    assert not re.search(r"://|--index|--find-links", MADE)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("numpy==1.0\n", "numpy==1.0 is not in"),
        ("no-such-thing==1\n", "no-such-thing==1 is not in"),
        ("torch==9\n", None),
    ],
)
def test_what_has_changed_is_said(kept, said):
    found = pins.faults(kept, MADE)
    assert [said in fault for fault in found] == ([True] if said else [])


def test_a_pin_without_a_hash_is_said():
    entry = "\nnumpy==2.4.6 \\\n    --hash=sha256:00\nidna==3.20\n"
    assert pins.faults("", entry) == ["idna==3.20 has no hash"]


def test_names_are_compared_in_their_normal_form():
    assert pins.pins("Jupyter_Client==8.6.3") == {"jupyter-client": {"8.6.3"}}
