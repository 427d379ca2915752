"""What a worker measures on a device; here that is the CPU, and the model is small."""

from dataclasses import asdict

import pytest
import torch

from aiayn.model import TransformerConfig
from benchmarks import worker, workload

CONFIG = TransformerConfig.tiny(
    vocab_size=50, d_model=8, num_heads=2, d_ff=8, dropout=0.0
)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Two batches, one of them to warm up."""
    monkeypatch.setattr(workload, "WORK", tmp_path)
    warm, timed = ((torch.randint(4, 50, (3, 5)), torch.randint(4, 50, (3, 4))),) * 2
    timed[1][0, 2:] = 0
    content = {"config": asdict(CONFIG), "warm_up": [warm], "timed": [timed]}
    return workload.save(content, "gpu_sorted")


def measured(path, peer, form):
    case = {"form": form}
    return worker.gpu(
        {"peer": peer, "device": "cpu", "workload": str(path), "case": case}
    )


def test_all_forms_take_the_same_step(path):
    found = [measured(path, "ours", form) for form in ("eager", "plain")]
    theirs = measured(path, "torch_nn", "eager")
    for result in (*found, theirs):
        assert result["seconds"] > 0
        assert result["warm_up_seconds"] > 0
        assert result["target_tokens"] == 10
        assert result["flops"] == found[0]["flops"] > 0
    # The same weights, drawn with the same seed; bfloat16 has three digits.
    assert found[0]["loss"] == pytest.approx(found[1]["loss"], rel=1e-2)


def test_a_training_step_is_timed_when_its_shape_is_known(path, monkeypatch):
    monkeypatch.setattr(workload, "CONFIG", CONFIG)
    job = {"peer": "ours", "workload": str(path), "case": {"precision": "fp32"}}
    steps = []
    adapter = worker.import_module("benchmarks.peers.ours")
    real = adapter.training_step

    def counted(*words):
        step = real(*words)
        return lambda *batch: steps.append(batch) or step(*batch)

    monkeypatch.setattr(adapter, "training_step", counted)
    found = worker.training_step(job)
    # One to warm up, one whose shape is new, and the same again.
    assert len(steps) == 3
    assert all(map(torch.equal, steps[1], steps[2]))
    assert found["seconds"] > 0
    assert found["first_seconds"] > 0
