"""Where the tests of data find corpora, and where they must not look."""

import os
from pathlib import Path

import pytest

# Read before the fixture below hides it.
_DATA = os.environ.get("AIAYN_DATA")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    """No test reads or fills the user's cache, or asks a proxy for a local address."""
    monkeypatch.delenv("AIAYN_DATA", raising=False)
    monkeypatch.setenv("AIAYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def data_folder(monkeypatch) -> Path:
    """A folder with the real corpora, in AIAYN_DATA for the length of the test."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(_DATA) if _DATA else beside
    if not folder.is_dir():
        pytest.skip("no folder with real corpora: set AIAYN_DATA to one")
    monkeypatch.setenv("AIAYN_DATA", str(folder))
    return folder
