"""What the course's tests share: the tools by plain names, the parsed chapters."""

import functools
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]

from course.assignments import make_assignment  # noqa: E402
from course.exercises import read_exercises  # noqa: E402
from project import NOTEBOOKS, repository, taught_paths  # noqa: E402


@functools.cache
def _chapter(name: str):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    return notebook, read_exercises(notebook)


@pytest.fixture
def chapter():
    """Gives a chapter's solved notebook and its exercises, by name."""
    return _chapter


@pytest.fixture
def assignment():
    """Gives a chapter's assignment, by name."""
    return lambda name: make_assignment(name, *_chapter(name), repository()[0])


def pytest_generate_tests(metafunc):
    """Run a test that asks for a ``name`` once for every chapter."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", [path.stem for path in taught_paths()])
