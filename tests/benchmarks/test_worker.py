"""What a worker measures on a device; here that is the CPU, and the model is small."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from aiayn.model import TransformerConfig
from benchmarks import gpu, worker, workload
from benchmarks.peers.shared import Schedule

CONFIG = TransformerConfig.tiny(
    vocab_size=50, d_model=8, num_heads=2, d_ff=8, dropout=0.0
)
APART = (
    torch.tensor([[5, 9, 14, 7, 2], [8, 6, 2, 0, 0]]),
    torch.tensor([[4, 11, 2, 0], [21, 13, 17, 2]]),
)
TOGETHER = tuple(side[side != 0][None] for side in APART)  # the same pairs in one row


@pytest.fixture
def real_corpora(monkeypatch):
    """AIAYN_DATA names their folder for the length of the test."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("AIAYN_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no folder with real corpora: set AIAYN_DATA to one")
    monkeypatch.setenv("AIAYN_DATA", str(folder))


def test_the_default_command_is_run_and_what_it_learns_is_scored(real_corpora):
    """Two steps of a small model; the process that trains has memory of its own."""
    sizes = ["--model.vocab-size", "600", "--model.d-model", "16"]
    less = ["--steps", "2", "--corpus-size", "300", "--validation-sentences", "2"]
    given = {"case": {"seed": 1}, "options": [*sizes, *less], "sentences": 2}
    found = worker.default_command(given)
    assert found["steps"] == 2
    assert 0 < found["training_seconds"] < found["seconds"]
    assert found["bleu"] == pytest.approx(0, abs=5)
    assert f"= {found['bleu']:.2f} " in found["printed"]
    assert found["peak_mb"] > 100


@pytest.fixture
def save(tmp_path, monkeypatch):
    """Writes a batch that is timed, after a number of times to warm up."""
    monkeypatch.setattr(workload, "WORK", tmp_path)

    def write(batch, warm_up):
        content = {"config": asdict(CONFIG), "warm_up": [batch] * warm_up}
        return workload.save(content | {"timed": [batch]}, "gpu_sorted")

    return write


def measured(path, peer, form):
    case = {"form": form}
    return worker.gpu(
        {"peer": peer, "device": "cpu", "workload": str(path), "case": case}
    )


def test_forms_without_a_compiler_take_the_same_steps(save, monkeypatch):
    """Fourteen of them, at a rate at which it shows; the loss is that of the last."""
    monkeypatch.setattr(worker, "Schedule", lambda: Schedule(warmup_steps=100))
    rounded = 1e-2  # bfloat16 has three digits
    losses = {}
    for peer, form, batch in (
        ("ours", "eager", APART),
        ("ours", "plain", APART),
        ("ours", "eager-packed", TOGETHER),
        ("torch_nn", "eager", APART),
    ):
        early, late = (measured(save(batch, n), peer, form) for n in (0, 10))
        assert 0 < min(late["passes"]) <= late["seconds"] <= max(late["passes"])
        assert late["warm_up_seconds"] > 0
        assert late["target_tokens"] == 7
        assert late["flops"] == workload.training_step_flops(CONFIG, APART)
        assert late["loss"] < (1 - 5 * rounded) * early["loss"]
        losses[peer, form] = late["loss"]
    # The same weights, drawn with the same seed.
    eager = pytest.approx(losses["ours", "eager"], rel=rounded)
    assert losses["ours", "plain"] == eager
    assert losses["ours", "eager-packed"] == eager


def test_a_form_takes_the_batches_that_its_name_ends_in():
    found = {form: gpu._kind(form) for form in gpu.FORMS}
    others = {
        "compiled-unsorted": "unsorted",
        "compiled-packed": "packed",
        "compiled-fused-packed": "packed",
    }
    assert found == dict.fromkeys(gpu.FORMS, "sorted") | others


def test_a_training_step_is_timed_when_its_shape_is_known(save, monkeypatch):
    monkeypatch.setattr(workload, "CONFIG", CONFIG)
    path = save(APART, 1)
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


def test_nobody_is_timed_before_all_are_ready_and_one_at_a_time(tmp_path):
    inside, seen, together = 0, [], []

    def measure(place):
        nonlocal inside
        time.sleep(0.1 * place)
        together.append(place)
        with worker.turn(str(tmp_path), place, places=3):
            inside += 1
            seen.append((inside, len(together)))
            inside -= 1

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(measure, range(3)))
    assert seen == [(1, 3)] * 3


def test_whoever_takes_several_turns_waits_each_time_for_all_that_are_left(tmp_path):
    """The third one fails after its first turn."""
    seen, gate = [], {"folder": str(tmp_path), "places": 3}

    def measure(place):
        for number in range(1 if place == 2 else 3):
            time.sleep(0.05 * place)
            with worker.turn(**gate, place=place, number=number):
                seen.append(number)
        if place == 2:
            (tmp_path / "2").touch()  # the driver does

    pool = ThreadPoolExecutor(3)
    for done in [pool.submit(measure, place) for place in range(3)]:
        done.result(timeout=20)
    assert seen == [0, 0, 0, 1, 1, 2, 2]


def test_one_alone_waits_for_nobody():
    with worker.turn():
        pass


def test_a_grid_has_a_time_for_each_size(monkeypatch):
    monkeypatch.setattr(workload, "CONFIG", CONFIG)
    monkeypatch.setattr(workload, "SECONDS_A_TURN", 0.0)
    monkeypatch.setattr(workload, "GRID", [[1, 8], [2, 5]])
    numbers = []
    monkeypatch.setattr(
        worker, "turn", lambda number: numbers.append(number) or nullcontext()
    )
    found = worker.grid({"peer": "ours", "case": {"precision": "fp32"}})
    assert numbers == list(range(2 * (1 + workload.TURNS)))
    assert [(one["rows"], one["length"]) for one in found["sizes"]] == [(1, 8), (2, 5)]
    for one in found["sizes"]:
        assert len(one["turns"]) == workload.TURNS
        assert 0 < min(one["turns"]) <= sum(one["turns"]) < found["seconds"]
