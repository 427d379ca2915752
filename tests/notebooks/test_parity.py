"""The chapters' own definitions are the library's."""

import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from parity import differences

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

LIBRARY = '''
def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


class Pair:
    """Two numbers."""

    left: int = 0

    def swap(self):
        """Exchange them."""
'''


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_inline_definitions_are_the_librarys(notebook):
    """Text and library cannot drift apart."""
    assert list(differences(notebook)) == []


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Checks a cell against the module above, under the name ``parity_example``."""
    (tmp_path / "parity_example.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "parity_example", raising=False)

    def run(source):
        cells = [nbformat.v4.new_code_cell(source)]
        path = tmp_path / "chapter.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return list(differences(path))

    return run


def test_comments_docstrings_and_annotations_may_differ(check):
    """They explain; they do not compute."""
    assert (
        check(
            "# parity: parity_example.mean\n"
            "%matplotlib inline\n"
            "def mean(values):\n"
            "    return sum(values) / len(values)  # all weigh the same\n"
        )
        == []
    )
    assert (
        check(
            "# parity: parity_example.Pair\n"
            "class Pair:\n    left = 0\n\n    def swap(self):\n        pass\n"
        )
        == []
    )


def test_a_guard_of_the_librarys_may_be_left_out(check, monkeypatch):
    """And nothing else of its line: what it guards must be there."""
    monkeypatch.setattr("parity.GUARDS", {"sum"})
    mark = "# parity: parity_example.mean\n"
    without = "def mean(values):\n    return values / len(values)\n"
    assert check(mark + without) == []
    assert check(mark + without.replace(" values ", " value "))


def test_other_code_is_reported(check):
    """A changed operator, a renamed argument and a missing definition are found."""
    mark = "# parity: parity_example.mean\n"
    changed = "def mean(values):\n    return sum(values) // len(values)\n"
    renamed = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
    assert "differs from parity_example.mean" in check(mark + changed)[0]
    assert "differs from parity_example.mean" in check(mark + renamed)[0]
    assert "does not define it" in check(mark + "x = 1\n")[0]
