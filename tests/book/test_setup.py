"""The set-up cell: seeds, one thread, and honest words on time."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from aiayn.errors import InputError
from aiayn_book import setup
from aiayn_book.setup import duration, expected_time


def draws():
    """A number from each source of randomness."""
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_every_source_of_randomness_is_seeded(capsys):
    """The same numbers after each set-up, others with another seed."""
    setup("03-attention")
    first = draws()
    setup("03-attention")
    assert draws() == first
    setup("03-attention", seed=1)
    assert all(a != b for a, b in zip(draws(), first, strict=True))


def test_a_chapter_runs_on_one_thread(capsys):
    """Whatever was set before."""
    torch.set_num_threads(2)
    try:
        setup("03-attention")
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def test_the_first_line_says_what_machine_this_is(capsys):
    """Machine and versions, then the chapter's time, on two short lines."""
    setup("03-attention")
    machine, time, factor = capsys.readouterr().out.splitlines()
    assert max(len(time), len(factor)) <= 79
    assert torch.__version__.partition("+")[0] in machine
    assert "+cpu" not in machine
    assert "03-attention" in time


def test_an_unknown_time_is_called_unknown(monkeypatch, tmp_path):
    """No guess stands in for a measurement; a known time names its machine."""
    table = {"machine": "a test", "seconds": {"04-scaling": 31.7}}
    (tmp_path / "run_times.json").write_text(json.dumps(table))
    monkeypatch.setattr(sys.modules["aiayn_book.setup"], "files", lambda _: tmp_path)
    assert "has not been measured yet" in expected_time("03-attention")
    assert "about 30 seconds on a test" in expected_time("04-scaling")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "5 seconds"), (23, "25 seconds"), (89, "90 seconds"), (200, "3 minutes")],
)
def test_durations_in_words(seconds, words):
    """No more digits than such a measurement bears."""
    assert duration(seconds) == words


def test_a_wrong_name_is_refused():
    """The name is the notebook's."""
    with pytest.raises(InputError, match="such as '03-attention'"):
        setup("03-attention.ipynb")


def test_the_package_alone_loads_nothing_of_the_book():
    """Nor any library for charts; the book itself waits with those for set-up."""
    code = (
        "import sys, aiayn; assert 'aiayn_book' not in sys.modules;"
        "import aiayn_book; from aiayn_book.checks import chapter_03;"
        "print([n for n in ('altair', 'matplotlib', 'pandas') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr
