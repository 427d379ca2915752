"""The short form of ``make soak``: some kills, and one seed in two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.twice import fingerprint

pytestmark = pytest.mark.costly

ROOT = Path(__file__).parents[2]


def soak(*words, **variables):
    """Run ``python -m tests.soak`` as ``make soak`` does; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *words],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_killed_trainings_end_as_if_nothing_had_been(tmp_path):
    record = tmp_path / "soak.json"
    parts = ("kills", "kills_of_two", "disk")
    soak(*parts, "--minutes", "0.05", "--record", str(record))
    found = json.loads(record.read_text())
    for part in parts:
        assert found[part]["trainings"] >= 1
    assert found["kills"]["kills"] + found["kills_of_two"]["kills"] >= 1, found
    assert found["disk"]["by fault"], found


def test_one_seed_is_one_training_in_every_process(tmp_path):
    """This one checks shapes, and hashes its dictionaries by another salt."""
    elsewhere = soak("fingerprint", "--seed", "5", PYTHONHASHSEED="77").strip()
    (tmp_path / "other").mkdir()
    assert fingerprint(tmp_path, seed=5) == elsewhere
    assert fingerprint(tmp_path / "other", seed=6) != elsewhere
