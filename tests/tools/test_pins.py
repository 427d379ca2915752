"""Pins with hashes: they are those of requirements.txt, and free of any address."""

import re

from tools.project import ROOT

PIN = re.compile(r"^([A-Za-z0-9._-]+==[^\s;]+)", re.MULTILINE)
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def pins(text):
    """Names in their normal form, with their versions."""
    return {re.sub(r"[-_]+", "-", pin).lower() for pin in PIN.findall(text)}


def test_the_lock_follows_from_the_pins():
    """pip has its versions from the lock: a pin that is not there does nothing."""
    kept = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    (torch,) = {pin for pin in pins(kept) if pin.startswith("torch==")}
    assert pins(kept) - pins(LOCK) == {torch}, "run 'make pins'"


def test_no_address_is_in_the_lock():
    """Which index a machine uses is its own affair."""
    assert not re.search(r"://|--index|--find-links", LOCK)
