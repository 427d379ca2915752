"""Recorded runs: complete, repeatable by one command, and found by name."""

from importlib.resources import files

import pytest

from aiayn.book.records import load_record
from aiayn.book.records.parsing import SEEDS, SIZES
from aiayn.errors import InputError
from aiayn.training import TrainingConfig

ALL = sorted(
    file.name.removesuffix(".json")
    for file in files("aiayn.book").joinpath("records").iterdir()
    if file.name.endswith(".json")
)
# A record of one training holds its log, one of several holds a list of runs.
NAMES = [name for name in ALL if "log" in load_record(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_was_run_where_and_what_came_of_it(name):
    record = load_record(name)
    assert record["command"].startswith("aiayn ")
    assert len(record["commit"]) == 40
    begin, end = record["log"][0], record["log"][-1]
    assert begin["event"] == "begin"
    assert begin["machine"]["processor"]
    assert end["step"] == record["config"]["steps"]
    assert f"= {record['test']['bleu']:.2f} " in record["test"]["printed"]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_s_configuration_can_still_be_read(name):
    config = TrainingConfig.from_dict(load_record(name)["config"])
    assert not config.output.is_absolute()


def test_an_unknown_record_is_answered_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no record 'nothing'; there are .*multi30k"):
        load_record("nothing")


def test_parsers_on_more_and_more_trees():
    record = load_record("parsing")
    assert record["command"].startswith("python -m aiayn.book.records.parsing ")
    assert len(record["commit"]) == 40
    for run in record["runs"]:
        config = TrainingConfig.from_dict(run["config"])
        assert not config.output.is_absolute()
        assert config.model.num_encoder_layers == config.model.num_decoder_layers == 4
        assert run["machine"]["processor"]
        for scores in run["scores"].values():
            assert 0 <= scores["f1_unrepaired"] <= scores["f1"] <= 1
    grammar = [run for run in record["runs"] if run["corpus"] == "grammar"]
    done = [(run["sentences"], run["seed"]) for run in grammar]
    assert len(set(done)) == len(done)  # none twice
    assert {seed for _, seed in done} <= set(SEEDS)
    assert len({size for size, _ in done}) <= len(SIZES)
