"""The chapters' own definitions are the library's."""

import sys
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.parity import differences

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

LIBRARY = '''
def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def weights(scores):
    """Without infinity."""
    if scores.dtype == torch.float16:
        scores = scores.clamp(-65504, 65504)
    return scores.softmax(-1)


def large(scores):
    """Its number in each type."""
    if scores.dtype == torch.float16:
        number = 65504
    else:
        number = 1e30
    return number


def half(x):
    """Or a sentence."""
    check_size(x, 2)
    if len(x) > 9:
        raise ValueError("Too many.")
    try:
        return halved(x)
    except IndexError:
        bad = x[0]
        raise ValueError(f"{bad} cannot be halved.") from None


def first(x):
    """Or nothing."""
    try:
        return x[0]
    except IndexError:
        return None


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


def test_what_is_done_for_float16_alone_may_be_left_out(check):
    """And nothing else: neither the line after it nor another condition."""
    mark = "# parity: parity_example.weights\n"
    without = "def weights(scores):\n    return scores.softmax(-1)\n"
    other = "    if scores.dtype == torch.float32:\n        scores = scores * 1\n"
    assert check(mark + without) == []
    assert check(mark + without.replace("softmax(-1)", "softmax(0)"))
    assert check(mark + without.replace("    return", f"{other}    return"))


def test_what_is_done_for_all_others_may_not_be_left_out(check):
    mark = "# parity: parity_example.large\n"
    always = "def large(scores):\n    number = 1e30\n    return number\n"
    assert check(mark + always) == []
    assert check(mark + always.replace("    number = 1e30\n", ""))


def test_what_only_refuses_a_bad_argument_may_be_left_out(check):
    """And not what returns something else."""
    mark = "# parity: parity_example.half\n"
    assert check(mark + "def half(x):\n    return halved(x)\n") == []
    assert check(mark + "def half(x):\n    return x\n")
    assert check("# parity: parity_example.first\ndef first(x):\n    return x[0]\n")


@pytest.mark.parametrize(
    "mark", ["#parity:", "# Parity:", "  # parity:", "# parity", "# parity :"]
)
def test_a_misspelt_mark_is_reported(check, mark):
    """Else nothing would be compared, and nobody would know."""
    source = f"if True:\n{mark} parity_example.mean\n  pass\n"
    assert "should read '# parity: module.name'" in check(source)[0]


def test_other_code_is_reported(check):
    """A changed operator, a renamed argument and a missing definition are found."""
    mark = "# parity: parity_example.mean\n"
    changed = "def mean(values):\n    return sum(values) // len(values)\n"
    renamed = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
    assert "differs from parity_example.mean" in check(mark + changed)[0]
    assert "differs from parity_example.mean" in check(mark + renamed)[0]
    assert "does not define it" in check(mark + "x = 1\n")[0]
