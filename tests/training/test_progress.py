"""What a training says while it runs, and how many threads it takes."""

from dataclasses import replace

import torch

from aiayn import TrainingConfig, train
from aiayn.training import Trainer


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
