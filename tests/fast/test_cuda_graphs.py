"""Steps by recording: what a CUDA graph must be given, and on a GPU the same losses."""

import gc
import weakref
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aiayn.data import Batch
from aiayn.fast.cuda_graphs import CUDAGraphRunner
from aiayn.model import Transformer, TransformerConfig
from aiayn.training import Trainer, TrainingConfig
from aiayn.training.state import restore_training, training_state

CONFIG = TrainingConfig(
    model=TransformerConfig.tiny(vocab_size=40, dropout=0.1),
    warmup_steps=4,
    precision="fp32",
    device="cuda",
)
on_a_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA GPU here"
)


class Recording:
    """Stands for a CUDA graph on a CPU: it computes anew from the same tensors."""

    current = None

    def replay(self):
        self.write(self.compute())


@pytest.fixture
def graphs(monkeypatch):
    """Torch's CUDA graphs, faked; a step is noted and not done while one is made."""
    made = []

    @contextmanager
    def graph(recording, **options):
        made.append(recording)
        Recording.current = recording
        yield
        Recording.current = None

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Recording)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: object())
    return made


def sums(source, target):
    """A step that shows which batch it read."""
    if Recording.current is None:
        return torch.stack([source.sum(), target.sum()])
    numbers = torch.zeros(2, dtype=torch.int64)
    Recording.current.compute = lambda: sums(source, target)
    Recording.current.write = numbers.copy_
    return numbers


def rows(length, token):
    return torch.full((2, length), token)


def test_a_shape_is_done_by_python_then_recorded_then_played(graphs):
    runner = CUDAGraphRunner(torch.nn.Linear(1, 1), pad_id=0)
    for token in range(1, 5):
        found = runner(sums, rows(5, token), rows(7, 10 * token))
        assert found.tolist() == [10 * token, 140 * token]
        assert len(graphs) == int(token > 1)


def test_numbers_that_were_returned_stay(graphs):
    runner = CUDAGraphRunner(torch.nn.Linear(1, 1), pad_id=0)
    found = [runner(sums, rows(5, token), rows(7, token)) for token in (1, 2, 3)]
    assert [int(numbers[0]) for numbers in found] == [10, 20, 30]


def test_lengths_that_round_up_to_the_same_share_a_recording(graphs):
    runner = CUDAGraphRunner(torch.nn.Linear(1, 1), pad_id=0)
    for length in (1, 5, 8):
        assert runner(sums, rows(length, 1), rows(8, 1)).tolist() == [2 * length, 16]
    assert len(graphs) == 1
    for length in (9, 16):
        runner(sums, rows(length, 1), rows(8, 1))
    assert len(graphs) == 2


def moved(model):
    model.weight.data = model.weight.data.clone()


def frozen(model):
    model.weight.requires_grad_(False)


@pytest.mark.parametrize("change", [moved, frozen])
def test_a_model_that_was_moved_or_frozen_is_recorded_anew(graphs, change):
    model = torch.nn.Linear(1, 1)
    runner = CUDAGraphRunner(model, pad_id=0)
    for _ in range(3):
        runner(sums, rows(8, 1), rows(8, 1))
    change(model)
    for _ in range(2):
        runner(sums, rows(8, 1), rows(8, 1))
    assert len(graphs) == 2


def test_forgotten_recordings_are_made_anew(graphs):
    runner = CUDAGraphRunner(torch.nn.Linear(1, 1), pad_id=0)
    for _ in range(2):
        runner(sums, rows(8, 1), rows(8, 1))
    runner.reset()
    runner(sums, rows(8, 1), rows(8, 1))
    assert len(graphs) == 1
    runner(sums, rows(8, 1), rows(8, 1))
    assert len(graphs) == 2


def test_there_is_an_end_to_recordings(graphs, monkeypatch):
    monkeypatch.setattr("aiayn.fast.cuda_graphs.MAX_GRAPHS", 1)
    runner = CUDAGraphRunner(torch.nn.Linear(1, 1), pad_id=0)
    for length in (8, 8, 16, 16, 16):
        assert runner(sums, rows(length, 1), rows(8, 1)).tolist() == [2 * length, 16]
    assert len(graphs) == 1


def test_a_trainer_ends_when_nobody_holds_it():
    """Not when Python happens to look for circles: it holds a GPU's memory."""
    config = replace(CONFIG, device="cpu")
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    ended = weakref.ref(trainer)
    gc.disable()
    try:
        del trainer
        assert ended() is None
    finally:
        gc.enable()


def test_a_cpu_records_nothing(graphs):
    config = replace(CONFIG, device="cpu")
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    for step in (1, 2, 3):
        trainer.step(step, [Batch(rows(3, 5), rows(3, 6))])
    assert not graphs


def gpu_losses(monkeypatch, config, recordings=256):
    """Of twelve steps over three batches of two shapes, and how many were recorded."""
    monkeypatch.setattr("aiayn.fast.cuda_graphs.MAX_GRAPHS", recordings)
    torch.manual_seed(1)
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    drawn = torch.Generator().manual_seed(1)
    batches = [
        Batch(*(torch.randint(4, 40, (4, 8), generator=drawn) for _ in range(2)))
        for _ in range(2)
    ]
    batches.append(Batch(rows(8, 5), rows(24, 6)))  # nothing is rounded up
    found = [trainer.step(step, [batches[step % 3]])[0] for step in range(1, 13)]
    return torch.stack(found).cpu(), len(trainer.graphs._graphs)


@on_a_gpu
@pytest.mark.parametrize("clip_norm", [None, 0.1])
@pytest.mark.parametrize("packed_length", [None, 32])
@pytest.mark.parametrize(
    ("positions", "norm"),
    [("sinusoidal", "post"), ("rotary", "pre"), ("learned", "pre")],
)
@pytest.mark.parametrize(("precision", "rounded"), [("fp32", 1e-4), ("bf16", 1e-2)])
def test_a_gpu_plays_what_it_would_compute(
    monkeypatch, clip_norm, packed_length, positions, norm, precision, rounded
):
    """Dropout too: the generator's seed is set before each step."""
    config = replace(
        CONFIG,
        model=replace(CONFIG.model, positions=positions, norm=norm),
        clip_norm=clip_norm,
        packed_length=packed_length,
        precision=precision,
    )
    computed, none = gpu_losses(monkeypatch, config, recordings=0)
    played, some = gpu_losses(monkeypatch, config)
    assert (none, some) == (0, 2)
    # Atomic additions, in whichever order, and the type's own rounding.
    torch.testing.assert_close(played, computed, rtol=rounded, atol=0)


def test_a_training_without_acceleration_records_nothing():
    config = replace(CONFIG, device="cpu", fast=False)
    assert Trainer(config, Transformer(config.model), bos_id=1).graphs is None


@on_a_gpu
def test_a_gpu_trains_two_models_in_turn(monkeypatch):
    """One of them ends before the other: what they share would end with it."""
    batch = Batch(rows(8, 5), rows(8, 6))

    def losses(trainers):
        found = []
        for step in range(1, 9):
            found += [trainer.step(step, [batch])[0] for trainer in trainers]
            if step == 4:
                del trainers[1:]
        return torch.stack(found)

    def fresh():
        torch.manual_seed(1)
        return Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)

    alone, together = losses([fresh()]), losses([fresh(), fresh()])
    torch.testing.assert_close(together[:8:2], alone[:4], rtol=1e-4, atol=0)
    torch.testing.assert_close(together[8:], alone[4:], rtol=1e-4, atol=0)


@on_a_gpu
def test_a_gpu_records_anew_what_was_loaded_into_itself():
    batch = Batch(rows(8, 5), rows(8, 6))
    trainer = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    for step in range(1, 4):
        trainer.step(step, [batch])
    state, counts = training_state(trainer)
    state = {name: tensor.clone() for name, tensor in state.items()}
    restore_training(trainer, state, counts, Path("state"))
    for step in range(4, 8):
        assert trainer.step(step, [batch]).isfinite().all()
    assert len(trainer.graphs._graphs) == 1


@on_a_gpu
def test_a_gpu_goes_on_with_a_state_that_was_loaded(monkeypatch):
    """The optimizer's means lie elsewhere then: no recording may write to old ones."""
    batch = Batch(rows(3, 5), rows(4, 6))
    torch.manual_seed(1)
    first = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    for step in range(1, 5):
        first.step(step, [batch])
    state, counts = training_state(first)
    state = {name: tensor.clone() for name, tensor in state.items()}
    second = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    for step in range(1, 4):
        second.step(step, [batch])
    restore_training(second, state, counts, Path("state"))
    for step in range(5, 9):
        one, other = (trainer.step(step, [batch]) for trainer in (first, second))
        torch.testing.assert_close(one, other, rtol=1e-5, atol=0)
