"""What the course's tests share: the parsed chapters."""

import functools

import nbformat
import pytest

from tools.course.assignments import make_assignment
from tools.course.exercises import read_exercises
from tools.project import NOTEBOOKS, repository, taught_paths


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
