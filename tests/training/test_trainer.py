"""§5.3: one step, against Adam written out as its paper has it; clipping; dropout."""

import copy
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from aiayn.data import Batch
from aiayn.errors import InputError
from aiayn.fast.compilation import gpu_options
from aiayn.model import Transformer, TransformerConfig
from aiayn.training import Criterion, Trainer, TrainingConfig, noam_rate
from aiayn.training.loss import non_pad_indices
from aiayn.training.muon import Muon, orthogonalized
from aiayn.training.processes import Processes
from aiayn.training.state import restore_training, training_state
from aiayn.training.trainer import to_device

# Not the defaults, which a step might have whatever is asked for.
CONFIG = TrainingConfig(
    model=TransformerConfig.tiny(vocab_size=20, d_model=16, d_ff=16, dropout=0.0),
    warmup_steps=2,
    betas=(0.8, 0.9),
    epsilon=1e-3,
    label_smoothing=0.2,
    device="cpu",
)
BATCH = Batch(
    torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]]), torch.tensor([[10, 11, 2], [12, 2, 0]])
)


@pytest.fixture
def model():
    return Transformer(CONFIG.model).double()


def test_steps_are_adams_at_the_rate_of_equation_3(model):
    """Kingma and Ba (2015), algorithm 1, with the configuration's β₁, β₂ and ε.

    Four steps, two of them behind the warm-up: β₂ does not show in the first, whose
    bias is corrected away, and the rate has risen and fallen.
    """
    twin = copy.deepcopy(model)
    trainer = Trainer(CONFIG, model, bos_id=1)
    criterion = Criterion(twin, CONFIG.label_smoothing, bos_id=1)
    parameters, (beta_1, beta_2) = list(twin.parameters()), CONFIG.betas
    means = [torch.zeros_like(parameter) for parameter in parameters]
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    for step in range(1, 5):
        trainer.step(step, [BATCH])
        loss, _ = criterion(BATCH.source, BATCH.target)
        gradients = torch.autograd.grad(loss / BATCH.target_tokens, parameters)
        rate = noam_rate(step, d_model=16, warmup_steps=2)
        with torch.no_grad():
            for i, (parameter, g) in enumerate(zip(parameters, gradients, strict=True)):
                means[i] = beta_1 * means[i] + (1 - beta_1) * g
                squares[i] = beta_2 * squares[i] + (1 - beta_2) * g**2
                mean = means[i] / (1 - beta_1**step)
                square = squares[i] / (1 - beta_2**step)
                parameter -= rate * mean / (square.sqrt() + CONFIG.epsilon)
    assert_close(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("tied", [True, False])
def test_muon_moves_the_linear_layers_and_adam_the_rest(tied):
    """The embeddings are no linear layers, not even where they end the model."""
    sizes = replace(CONFIG.model, tie_embeddings=tied, positions="learned")
    model = Transformer(sizes).double()
    twin = copy.deepcopy(model)
    config = replace(CONFIG, model=sizes, optimizer="muon")
    trainer = Trainer(config, model, bos_id=1)
    criterion = Criterion(twin, CONFIG.label_smoothing, bos_id=1)
    layers = re.compile(r".*\.(\w+_projection|inner|outer)\.weight")
    named = list(twin.named_parameters())
    linear = [weight for name, weight in named if layers.fullmatch(name)]
    others = [weight for name, weight in named if not layers.fullmatch(name)]
    assert len(linear) == 2 * (4 + 2) + 2 * (4 + 4 + 2)
    assert all(weight.dim() == 2 for weight in linear)
    adam = torch.optim.Adam(others, betas=CONFIG.betas, eps=CONFIG.epsilon)
    both = [Muon(linear), adam]
    for step in range(1, 5):
        trainer.step(step, [BATCH])
        loss, _ = criterion(BATCH.source, BATCH.target)
        twin.zero_grad()
        (loss / BATCH.target_tokens).backward()
        for optimizer in both:
            optimizer.param_groups[0]["lr"] = noam_rate(step, 16, warmup_steps=2)
            optimizer.step()
    assert_close(model.state_dict(), twin.state_dict())


def test_a_step_is_one_in_training_mode(model):
    """Also after a search, or whatever else left the model in evaluation."""
    Trainer(CONFIG, model.eval(), bos_id=1).step(1, [BATCH])
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_a_step_multiplies_in_the_precision_of_the_configuration(
    precision, dtype, monkeypatch
):
    """Each linear layer, and Muon."""
    model, layers, moved = Transformer(CONFIG.model), set(), set()
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda *call: layers.add(call[2].dtype))

    def note(matrices):
        moved.add(matrices.dtype)
        return orthogonalized(matrices)

    monkeypatch.setattr("aiayn.training.muon.orthogonalized", note)
    config = replace(CONFIG, optimizer="muon", precision=precision)
    Trainer(config, model, bos_id=1).step(1, [BATCH])
    assert layers == moved == {dtype}


def test_a_step_returns_its_sums(model):
    """Smoothed loss, plain loss and real tokens, in this order."""
    criterion = Criterion(model, CONFIG.label_smoothing, bos_id=1)
    smoothed, plain = criterion(BATCH.source, BATCH.target)
    totals = Trainer(CONFIG, model, bos_id=1).step(1, [BATCH])
    assert totals.tolist() == pytest.approx([smoothed.item(), plain.item(), 5])


def test_packed_rows_are_trained_on_as_their_sentences(model):
    source, target = torch.tensor([[5, 6, 7, 2, 8, 9, 2]]), [[10, 11, 2, 12, 2]]
    packed = Batch(source, torch.tensor(target))
    twin = copy.deepcopy(model)
    expected = Trainer(CONFIG, twin, bos_id=1).step(1, [BATCH])
    config = replace(CONFIG, packed_length=7)
    assert_close(Trainer(config, model, bos_id=1).step(1, [packed]), expected)


def test_gradients_are_clipped_where_the_configuration_says_so(model):
    """Adam's first mean is a fifth of the gradient that it was given: 1 - β₁."""

    def size(clip_norm):
        config = replace(CONFIG, clip_norm=clip_norm)
        trainer = Trainer(config, copy.deepcopy(model), bos_id=1)
        trainer.step(1, [BATCH])
        tensors, _ = training_state(trainer)
        means = [t.flatten() for name, t in tensors.items() if name.startswith("mean.")]
        return torch.cat(means).norm().item() / 0.2

    whole = size(None)
    assert whole > 0.1
    # torch adds 1e-6 to the norm that it divides by.
    assert size(0.01) == pytest.approx(0.01, rel=2e-6 / whole)
    assert size(2 * whole) == pytest.approx(whole, rel=1e-12)


def test_every_step_seed_and_process_draws_its_own_dropout(model):
    """Or the same units would be missing each time: nothing else would show it."""
    model.dropout.p, dropped = 0.5, []
    model.dropout.register_forward_hook(lambda *call: dropped.append(call[2] == 0))

    def drawn(trainer, step):
        """What is dropped of the first row's first words, which every process has."""
        dropped.clear()
        trainer.step(step, [Batch(BATCH.source[:1], BATCH.target[:1])])
        return tuple(dropped[0].flatten().tolist())

    found = []
    for seed, rank in ((1, 0), (2, 0), (1, 1)):
        trainer = Trainer(replace(CONFIG, seed=seed), model, 1, Processes(rank))
        found += [drawn(trainer, step) for step in (1, 2)]
    assert len(set(found)) == 6
    assert drawn(trainer, 2) == found[-1]


def test_gradients_that_a_model_brings_along_are_not_the_steps(model):
    """A reader may have called backward before."""
    twin, trainer = copy.deepcopy(model), Trainer(CONFIG, model, bos_id=1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    trainer.step(1, [BATCH])
    Trainer(CONFIG, twin, bos_id=1).step(1, [BATCH])
    assert_close(model.state_dict(), twin.state_dict())


def test_without_processes_the_configuration_names_the_device(model):
    assert Trainer(CONFIG, model, bos_id=1).processes.device == torch.device("cpu")
    with pytest.raises(InputError, match="device is one of auto, cpu, cuda"):
        Trainer(replace(CONFIG, device="gpu"), model, bos_id=1)


class Waits(TorchDispatchMode):
    """Notes what has a shape that follows from values.

    On a GPU it waits until all that was asked for before is computed. What looks at
    numbers is not noted: on a CPU some of what runs does, and on a GPU does not run.
    """

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        by_numbers = func is torch.ops.aten.index.Tensor and not any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if torch.Tag.dynamic_output_shape in func.tags and not by_numbers:
            self.found.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("packed", [None, 4])
def test_a_gpu_is_not_waited_for_between_batch_and_gradient(
    model, packed, fast, monkeypatch
):
    """What follows from the batch's values is found before it is copied."""
    with ExitStack() as stack:
        waits = Waits()

        def noting(*arguments):
            stack.enter_context(waits)
            return to_device(*arguments)

        monkeypatch.setattr("aiayn.training.trainer.to_device", noting)
        config = replace(CONFIG, packed_length=packed, fast=fast)
        trainer = Trainer(config, model, bos_id=1)
        monkeypatch.setattr(trainer, "update", lambda: None)
        trainer.train_step([BATCH])
    assert waits.found == []
    with waits:  # it would have been seen
        non_pad_indices(BATCH.target, 0)
    assert waits.found != []


@pytest.mark.parametrize("compiled", [False, True])
def test_each_process_gets_contiguous_rows_and_the_indices_of_their_tokens(
    model, compiled, monkeypatch
):
    """A compiler has no use for indices, whose number would be one more that varies."""
    told = []

    def compile_dynamic(criterion, **options):
        told.append(options)
        return criterion

    monkeypatch.setattr("aiayn.training.trainer.compile_dynamic", compile_dynamic)
    trainer = Trainer(replace(CONFIG, compile=compiled), model, bos_id=1)
    trainer.processes = Processes(rank=1, world_size=2)
    handed = []
    trainer.criterion.register_forward_pre_hook(lambda _, given: handed.extend(given))
    rows = [torch.cat([side, side.flip(0)]) for side in (BATCH.source, BATCH.target)]
    trainer.train_step([Batch(*rows)])
    assert all(tensor.is_contiguous() for tensor in handed)
    source, target, *indices = (tensor.tolist() for tensor in handed)
    assert (source, target) == tuple(side[1::2].tolist() for side in rows)
    assert indices == ([] if compiled else [[0, 1, 3, 4, 5]])
    assert told == ([{}] if compiled else [])  # options are for a GPU


@pytest.mark.parametrize(
    ("changes", "sums_over_keys"),
    [
        ({}, False),
        ({"fast": False}, True),
        ({"packed_length": 64}, True),
        ({"model": replace(CONFIG.model, attention_dropout=0.1)}, True),
    ],
    ids=["padded", "plain", "packed", "dropped weights"],
)
def test_a_gpus_compiler_is_told_of_sums_over_keys(changes, sums_over_keys):
    config = replace(CONFIG, **changes)
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    trainer.processes = Processes(device=torch.device("cuda"))
    assert trainer._compiler_options() == {"options": gpu_options(sums_over_keys)}


def test_a_part_that_was_left_in_evaluation_drops_again(model):
    """As does all of a model whose owner has translated with it between two steps."""
    trainer = Trainer(CONFIG, model, bos_id=1)
    list(model.modules())[-1].eval()
    trainer.step(1, [BATCH])
    assert all(module.training for module in model.modules())


def test_there_is_no_step_after_the_last(model):
    """Its rate, which has fallen to 0 there, would be negative."""
    trainer = Trainer(replace(CONFIG, steps=3), model, bos_id=1)
    assert trainer.learning_rate(3) > 0
    with pytest.raises(InputError, match="steps = 3"):
        trainer.step(4, [BATCH])


class Runs:
    """Stands for recorded steps: runs the step that it is given."""

    def takes(self, *given):
        return True

    def __call__(self, step, *sides):
        return step(*sides)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_batch_of_padding_alone_moves_nothing(model, recorded, monkeypatch):
    trainer = Trainer(CONFIG, model, bos_id=1)
    if recorded:
        monkeypatch.setattr(trainer, "graphs", Runs())
    before = [weight.detach().clone() for weight in model.parameters()]
    nothing = Batch(BATCH.source, torch.zeros_like(BATCH.target))
    assert trainer.step(1, [nothing]).tolist() == [0, 0, 0]
    assert_close([*model.parameters()], before, rtol=0, atol=0)


def test_tokens_are_counted_by_the_models_padding():
    """A batch that says nothing of its padding stands beside a model that does."""
    sizes = replace(CONFIG.model, pad_id=5)
    source, target = torch.tensor([[9, 2, 5, 5]]), torch.tensor([[8, 2, 5, 5]])
    moved = []
    for batch in (Batch(source, target), Batch(source, target, 5)):
        torch.manual_seed(0)
        model = Transformer(sizes).double()
        Trainer(replace(CONFIG, model=sizes), model, bos_id=1).step(1, [batch])
        moved.append([*model.parameters()])
    assert_close(*moved, rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_callers_autocast_changes_no_step(optimizer):
    config = replace(CONFIG, optimizer=optimizer, precision="fp32")
    moved = []
    for narrow in (False, True):
        torch.manual_seed(0)
        model = Transformer(config.model)
        trainer = Trainer(config, model, bos_id=1)
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            trainer.step(1, [BATCH])
        moved.append([*model.parameters()])
    assert_close(*moved, rtol=0, atol=0)


def test_a_matrix_that_two_layers_share_is_moved_once():
    """As far as one that is nobody else's, and its state comes back."""
    config = replace(
        CONFIG,
        optimizer="muon",
        model=replace(CONFIG.model, num_encoder_layers=2, num_decoder_layers=2),
    )
    model = Transformer(config.model).double()
    for layer in model.encoder.layers:
        layer.feed_forward.inner.weight = model.encoder.layers[
            0
        ].feed_forward.inner.weight
    trainer = Trainer(config, model, bos_id=1)
    [group] = trainer.optimizers.muon.param_groups
    assert len({id(weight) for weight in group["params"]}) == len(group["params"])
    trainer.step(1, [BATCH])
    restore_training(trainer, *training_state(trainer), Path("state"))


def test_packed_rows_need_a_configuration_that_knows_it():
    """Each row would be trained on as one sentence."""
    trainer = Trainer(CONFIG, Transformer(CONFIG.model), bos_id=1)
    row = torch.tensor([[5, 2, 6, 2]])
    with pytest.raises(InputError, match="rows are packed: give packed_length"):
        trainer.step(1, [Batch(row, row, packed=True)])
