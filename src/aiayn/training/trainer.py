"""§5.3: one optimizer step after another.

Nothing differs from what the paper states. Where it states nothing: the gradient is
that of the mean loss over all target tokens of a step; and dropout is seeded at every
step, so that a resumed run draws what the uninterrupted one would have drawn.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from aiayn.data import Batch
from aiayn.device import resolve_device, resolve_precision
from aiayn.errors import InputError
from aiayn.fast import accelerate
from aiayn.fast.compilation import compile_dynamic, gpu_options
from aiayn.fast.cuda_graphs import CUDAGraphRunner, can_record
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import distribute
from aiayn.training.loss import Criterion, non_pad_indices
from aiayn.training.optimizers import Optimizers
from aiayn.training.processes import Processes
from aiayn.training.schedule import noam_rate


class Trainer:
    r"""A model, its criterion and its optimizer, and the step that trains it.

    $$θ ← θ - η \, \frac{\hat m}{\sqrt{\hat v} + ε}$$

    with the rate η of `noam_rate` and Adam's running means $\hat m$ of the gradient and
    $\hat v$ of its square; or, if the configuration says so, `Muon`'s step at the same
    rate for the weights of linear layers.

    Unless the configuration has ``fast=False``, the model is accelerated
    (`aiayn.fast.accelerate`), and stays so afterwards.

    Args:
        config: Every choice but the model's sizes, which the model itself knows.
        model: A `Transformer`, or one with the same methods. It is moved to the device.
        bos_id: What the decoder reads first.
        processes: Who takes part, and where; None: this process alone, on the device
            that the configuration names.

    Raises:
        InputError: The configuration's device is not there.

    Paper: §5.3.

    >>> from aiayn.data import Batch
    >>> config = TrainingConfig.grammar(model=TransformerConfig.tiny(vocab_size=20))
    >>> trainer = Trainer(config, Transformer(config.model), bos_id=1)
    >>> batch = Batch(torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 9, 2]]))
    >>> smoothed, plain, tokens = trainer.step(1, [batch])
    >>> int(tokens)
    4
    """

    def __init__(
        self,
        config: TrainingConfig,
        model: Any,
        bos_id: int,
        processes: Processes | None = None,
    ) -> None:
        self.config = config
        self.processes = processes or Processes(device=resolve_device(config.device))
        self.dtype = resolve_precision(config.precision, self.processes.device)
        self.model = model.to(self.processes.device)
        packed = config.packed_length is not None
        self.criterion = Criterion(model, config.label_smoothing, bos_id, packed)
        if config.fast:
            accelerate(self.criterion)
        mixed = self.dtype != torch.float32
        self.optimizers = Optimizers(model, config, self.dtype if mixed else None)
        # Collecting them takes Python as long as a GPU takes for a layer.
        self._modules, self._weights = [*model.modules()], [*model.parameters()]
        self._parallel: Any = distribute(self.criterion, self.processes)
        self._loss: Callable[..., Any] = self._parallel
        if config.compile:
            self._loss = compile_dynamic(self._parallel, **self._compiler_options())
        self.graphs = None
        if config.fast and can_record(config, model.config, self.processes):
            self.graphs = CUDAGraphRunner(model, self.criterion.pad_id)

    def step(self, step: int, batches: Sequence[Batch]) -> Float[Tensor, "3"]:
        """Update the weights once, by the gradient over all the batches.

        Args:
            step: Which optimizer step this is, counted from 1.
            batches: The same in every process, which takes every n-th row of them.

        Returns:
            This process's sums over its target tokens: the smoothed loss, the plain
            loss, and the number of tokens.

        Raises:
            InputError: The configuration has fewer steps, or rows are packed and the
                configuration has no packed_length.
        """
        if not self.criterion.packed and any(batch.packed for batch in batches):
            raise InputError("These rows are packed: give packed_length to the config.")
        if not all(module.training for module in self._modules):
            self.model.train()
        self.optimizers.set_rate(self.learning_rate(step))
        with torch.cuda.device_of(self._weights[0]):
            seed(self.processes.device, self._dropout_seed(step))
            if self.graphs is not None and len(batches) == 1:
                source, target = batches[0].source, batches[0].target
                if self.graphs.takes(source, target, self.model.config.vocab_size):
                    sides = to_device(self.processes.device, source, target)
                    return self.graphs(self._train_on, *sides)
            return self.train_step(batches)

    def train_step(self, batches: Sequence[Batch]) -> Float[Tensor, "3"]:
        """Forward pass, backward pass and update, at the rate that `step` has set."""
        self.zero_grad()
        totals = self.zero_sums()
        pad_id = self.criterion.pad_id
        tokens: Any = sum((batch.target != pad_id).sum() for batch in batches)
        for number, batch in enumerate(batches, start=1):
            source, target, indices, share = self._own_rows(batch)
            alone = self._parallel is self.criterion
            last = alone or number == len(batches)  # gradients are exchanged once
            with nullcontext() if last else self._parallel.no_sync():
                with self.autocast():
                    smoothed, plain = self._loss(source, target, *indices)
                # DistributedDataParallel averages over the processes; we want the sum.
                scale = share * self.processes.world_size
                self.backward(smoothed * scale / tokens.clamp(min=1))
            sums = [smoothed.detach(), plain, (target != pad_id).sum()]
            totals += share * torch.stack(sums).to(totals)
        self.update()
        return totals

    def zero_grad(self) -> None:
        """Drop all gradients, also those that others have left."""
        for weight in self._weights:
            weight.grad = None

    def autocast(self) -> torch.autocast:
        """Products in the configuration's precision, weights and sums in fp32."""
        device = self.processes.device.type
        return torch.autocast(device, self.dtype, enabled=self.dtype != torch.float32)

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a loss, in the types of the forward pass."""
        with torch.autocast(loss.device.type, enabled=False):  # the caller's, if any
            loss.backward()

    def update(self) -> None:
        """Clip the gradients if that is configured, and update the weights."""
        with torch.autocast(self.processes.device.type, enabled=False):
            if self.config.clip_norm is not None:
                nn.utils.clip_grad_norm_(self._weights, self.config.clip_norm)
            self.optimizers.step()

    def learning_rate(self, step: int) -> float:
        """Equation (3), times the configuration's factor, and its linear cooldown."""
        config = self.config
        if step > config.steps:
            raise InputError(
                f"Step {step} comes after the last one: the configuration has steps = "
                f"{config.steps}."
            )
        rate = noam_rate(step, self.model.config.d_model, config.warmup_steps)
        cooldown = min(config.cooldown_steps, config.steps)
        left = (config.steps - step + 1) / (cooldown + 1)
        return config.learning_rate_scale * rate * min(1.0, left)

    def zero_sums(self) -> Float[Tensor, "3"]:
        """Zeros to which the sums of steps can be added."""
        device = self.processes.device
        exact = torch.float32 if device.type == "mps" else torch.float64
        return torch.zeros(3, dtype=exact, device=device)

    def _train_on(self, source: Tensor, target: Tensor) -> Tensor:
        """A step on one batch that is on the device already."""
        return self.train_step([Batch(source, target, self.criterion.pad_id)])

    def _own_rows(self, batch: Batch) -> tuple[Tensor, Tensor, list[Tensor], float]:
        """This process's rows, and their share, which is 0 if there are too few."""
        rank, world_size = self.processes.rank, self.processes.world_size
        enough = len(batch) > rank
        rows = slice(rank, None, world_size) if enough else slice(1)
        # Contiguous, because other rows are not copied asynchronously.
        sides = [side[rows].contiguous() for side in (batch.source, batch.target)]
        if sides[1].is_cpu and not self.config.compile:
            sides.append(non_pad_indices(sides[1], self.criterion.pad_id))
        source, target, *indices = to_device(self.processes.device, *sides)
        return source, target, indices, float(enough)

    def _compiler_options(self) -> dict[str, Any]:
        if self.processes.device.type != "cuda":
            return {}
        drops = self.model.config.attention_dropout > 0
        sums = drops or not self.config.fast or self.config.packed_length is not None
        return {"options": gpu_options(sums)}

    def _dropout_seed(self, step: int) -> int:
        text = f"{self.config.seed} {step} {self.processes.rank}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def seed(device: torch.device, number: int) -> None:
    """Seed the random numbers of the CPU and of the current device.

    `torch.manual_seed` also notifies accelerators that are not there, each with a stack
    trace, which takes longer than a small layer.
    """
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)


def to_device(device: torch.device, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Copy tensors to the device; to a GPU, while it still computes."""
    if device.type != "cuda":
        return tuple(tensor.to(device) for tensor in tensors)
    pinned = (t.pin_memory() if t.is_cpu else t for t in tensors)
    return tuple(tensor.to(device, non_blocking=True) for tensor in pinned)
