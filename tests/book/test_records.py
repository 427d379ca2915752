"""Recorded runs: complete, repeatable by one command, and found by name."""

from importlib.resources import files

import pytest

from aiayn.book.records import load_record
from aiayn.errors import InputError
from aiayn.training import TrainingConfig

NAMES = sorted(
    file.name.removesuffix(".json")
    for file in files("aiayn.book").joinpath("records").iterdir()
    if file.name.endswith(".json")
)
# What `aiayn train` wrote has its log; other records say what they hold instead.
TRAININGS = [name for name in NAMES if "log" in load_record(name)]


@pytest.mark.parametrize("name", TRAININGS)
def test_a_record_says_what_was_run_where_and_what_came_of_it(name):
    record = load_record(name)
    assert record["command"].startswith("aiayn ")
    assert len(record["commit"]) == 40
    begin, end = record["log"][0], record["log"][-1]
    assert begin["event"] == "begin"
    assert begin["machine"]["processor"]
    assert end["step"] == record["config"]["steps"]
    assert f"= {record['test']['bleu']:.2f} " in record["test"]["printed"]


@pytest.mark.parametrize("name", TRAININGS)
def test_a_record_s_configuration_can_still_be_read(name):
    config = TrainingConfig.from_dict(load_record(name)["config"])
    assert not config.output.is_absolute()


def test_the_searches_can_be_compared_and_repeated():
    """Chapter 17 draws any number of runs; each begins with the paper's setting."""
    record = load_record("search")
    assert record["command"].startswith("python tools/record_search.py runs/")
    assert record["trained_by"].startswith("aiayn train ")
    assert len(record["commit"]) == 40
    assert record["machine"]["processor"]
    for run in record["runs"]:
        TrainingConfig.from_dict(run["config"])
        paper, *others = run["settings"]
        knobs = {"averaged": 5, "beam": 4, "alpha": 0.6, "extra": 50, "part": False}
        assert knobs.items() <= paper.items()
        assert {1, 2, 8, 16, 32} <= {row["beam"] for row in others}
        assert len(run["counts"]["reference"].split()) == paper["sentences"]
        assert f"= {run['test']['bleu']:.2f} " in run["test"]["printed"]


def test_an_unknown_record_is_answered_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no record 'nothing'; there are .*multi30k"):
        load_record("nothing")
