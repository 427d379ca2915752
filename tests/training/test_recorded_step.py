"""Steps by recording: what a CUDA graph must be given, and on a GPU the same losses."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aiayn.data import Batch
from aiayn.model import Transformer, TransformerConfig
from aiayn.training import Trainer, TrainingConfig
from aiayn.training.recorded_step import Recorder

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
    recorder = Recorder(sums, torch.nn.Linear(1, 1), pad_id=0)
    for token in range(1, 5):
        found = recorder(rows(5, token), rows(7, 10 * token))
        assert found.tolist() == [10 * token, 140 * token]
        assert len(graphs) == int(token > 1)


def test_numbers_that_were_returned_stay(graphs):
    recorder = Recorder(sums, torch.nn.Linear(1, 1), pad_id=0)
    found = [recorder(rows(5, token), rows(7, token)) for token in (1, 2, 3)]
    assert [int(numbers[0]) for numbers in found] == [10, 20, 30]


def test_lengths_that_round_up_to_the_same_share_a_recording(graphs):
    recorder = Recorder(sums, torch.nn.Linear(1, 1), pad_id=0)
    for length in (1, 5, 8):
        assert recorder(rows(length, 1), rows(8, 1)).tolist() == [2 * length, 16]
    assert len(graphs) == 1
    for length in (9, 16):
        recorder(rows(length, 1), rows(8, 1))
    assert len(graphs) == 2


def test_a_model_that_was_moved_is_recorded_anew(graphs):
    model = torch.nn.Linear(1, 1)
    recorder = Recorder(sums, model, pad_id=0)
    for _ in range(3):
        recorder(rows(8, 1), rows(8, 1))
    model.weight.data = model.weight.data.clone()
    for _ in range(2):
        recorder(rows(8, 1), rows(8, 1))
    assert len(graphs) == 2


def test_a_weight_that_learns_no_more_has_a_recording_of_its_own(graphs):
    model = torch.nn.Linear(1, 1)
    recorder = Recorder(sums, model, pad_id=0)
    for _ in range(3):
        recorder(rows(8, 1), rows(8, 1))
    model.weight.requires_grad_(False)
    for _ in range(2):
        recorder(rows(8, 1), rows(8, 1))
    assert len(graphs) == 2


def test_forgotten_recordings_are_made_anew(graphs):
    recorder = Recorder(sums, torch.nn.Linear(1, 1), pad_id=0)
    for _ in range(2):
        recorder(rows(8, 1), rows(8, 1))
    recorder.forget()
    recorder(rows(8, 1), rows(8, 1))
    assert len(graphs) == 1
    recorder(rows(8, 1), rows(8, 1))
    assert len(graphs) == 2


def test_there_is_an_end_to_recordings(graphs, monkeypatch):
    monkeypatch.setattr("aiayn.training.recorded_step.RECORDINGS", 1)
    recorder = Recorder(sums, torch.nn.Linear(1, 1), pad_id=0)
    for length in (8, 8, 16, 16, 16):
        assert recorder(rows(length, 1), rows(8, 1)).tolist() == [2 * length, 16]
    assert len(graphs) == 1


def test_a_cpu_records_nothing(graphs):
    config = replace(CONFIG, device="cpu")
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    for step in (1, 2, 3):
        trainer.step(step, [Batch(rows(3, 5), rows(3, 6))])
    assert not graphs


def gpu_losses(monkeypatch, config, places):
    """Of twelve steps over three batches of two shapes, and whether any was played."""
    monkeypatch.setattr("aiayn.training.trainer.PLACES", places)
    torch.manual_seed(1)
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    drawn = torch.Generator().manual_seed(1)
    batches = [
        Batch(*(torch.randint(4, 40, (4, 8), generator=drawn) for _ in range(2)))
        for _ in range(2)
    ]
    batches.append(Batch(rows(8, 5), rows(24, 6)))  # nothing is rounded up
    found = [trainer.step(step, [batches[step % 3]])[0] for step in range(1, 13)]
    return torch.stack(found).cpu(), len(trainer.recorder._recordings)


@on_a_gpu
@pytest.mark.parametrize("clip_norm", [None, 0.1])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_gpu_plays_what_it_would_compute(monkeypatch, clip_norm, positions):
    """Dropout too: the generator's seed is set before each step."""
    model = replace(CONFIG.model, positions=positions)
    config = replace(CONFIG, model=model, clip_norm=clip_norm)
    computed, none = gpu_losses(monkeypatch, config, places=0)
    played, some = gpu_losses(monkeypatch, config, places=2**13)
    assert (none, some) == (0, 2)
    # float32, sums of atomic additions in whichever order.
    torch.testing.assert_close(played, computed, rtol=1e-4, atol=0)


@on_a_gpu
def test_a_gpu_plays_no_recording_of_the_plain_form(monkeypatch):
    from aiayn.model.forms import plain_form

    with plain_form():
        _, recorded = gpu_losses(monkeypatch, CONFIG, places=2**13)
    assert recorded == 0


@on_a_gpu
def test_a_gpu_goes_on_with_a_state_that_was_loaded(monkeypatch):
    """The optimizer's means lie elsewhere then: no recording may write to old ones."""
    batch = Batch(rows(3, 5), rows(4, 6))
    torch.manual_seed(1)
    first = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    for step in range(1, 5):
        first.step(step, [batch])
    state, counts = first.state()
    state = {name: tensor.clone() for name, tensor in state.items()}
    second = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    for step in range(1, 4):
        second.step(step, [batch])
    second.load_state(state, counts, Path("state"))
    for step in range(5, 9):
        one, other = (trainer.step(step, [batch]) for trainer in (first, second))
        torch.testing.assert_close(one, other, rtol=1e-5, atol=0)
