"""What a training says while it runs, and when it is far too slow."""

import importlib
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from aiayn import TrainingConfig, train
from aiayn.training import Trainer

LOOP = importlib.import_module("aiayn.training.loop")


def test_without_a_terminal_there_is_a_line_a_record(config, capsys):
    log = train(replace(config, progress=True)).log
    records = [record for record in log if record["event"] == "train"]
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == len(records) > 3
    for line, record in zip(lines, records, strict=True):
        assert line.startswith(
            f"step {record['step']} of 24: loss {record['loss']:.3f}"
        )
        assert line.endswith(f"tokens/s {record['tokens_per_second']}")
    assert printed.out == ""


def test_a_training_that_is_to_be_silent_is(config, capsys):
    train(replace(config, progress=False))
    assert capsys.readouterr() == ("", "")


def slowed(monkeypatch, seconds):
    """Steps that take so long, by a clock of their own."""
    clock, step = SimpleNamespace(now=0.0), Trainer.step
    durations = iter(seconds)

    def timed(self, number, batches):
        clock.now += next(durations)
        return step(self, number, batches)

    monkeypatch.setattr(Trainer, "step", timed)
    clock.perf_counter = lambda: clock.now
    monkeypatch.setattr(LOOP, "time", clock)


def test_a_training_that_is_far_too_slow_says_so_once(config, monkeypatch):
    slowed(monkeypatch, [3.0] * 24)
    sentence = "give threads=1, also to resume_training"
    with pytest.warns(UserWarning, match=sentence) as caught:
        train(config)
    assert len(caught) == 1


@pytest.mark.parametrize("seconds", [[0.01] * 24, [9.0] * 9 + [0.1] * 15], ids=str)
def test_another_says_nothing(config, monkeypatch, seconds):
    """A first step that compiles, or a short disturbance, is not slow for good."""
    slowed(monkeypatch, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(config)


def test_the_recipe_of_one_core_takes_one_thread_and_gives_the_others_back(
    config, monkeypatch
):
    assert TrainingConfig.grammar().threads == 1
    used, step = [], Trainer.step

    def note(self, number, batches):
        used.append(torch.get_num_threads())
        return step(self, number, batches)

    monkeypatch.setattr(Trainer, "step", note)
    torch.set_num_threads(2)
    try:
        train(replace(config, threads=TrainingConfig.grammar().threads, steps=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert set(used) == {1}
