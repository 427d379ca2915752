"""§5.3: one optimizer step after another, and what it takes to go on with them later.

Differs from the paper in nothing that the paper states. Where it is silent: gradients
are those of the mean loss over all target tokens of a step, and dropout is seeded at
every step, so that a resumed run draws what the uninterrupted one would have drawn.
"""

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from aiayn.data import EOS_ID, Batch
from aiayn.errors import InputError
from aiayn.machine import attend_without_plans, resolve_device, resolve_precision
from aiayn.model import TransformerConfig
from aiayn.model.description import load_weights
from aiayn.model.forms import is_plain
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import Processes
from aiayn.training.loss import TrainingObjective, real_places
from aiayn.training.one_graph import compile_as_one, gpu_options
from aiayn.training.optimizers import Optimizers
from aiayn.training.recorded_step import LOGITS, PLACES, Recorder, rounded_up
from aiayn.training.schedule import noam_rate


class Trainer:
    r"""A model, its optimizer, and the step that moves both.

    $$θ ← θ - η \, \frac{\hat m}{\sqrt{\hat v} + ε}$$

    with the rate η of `noam_rate` and Adam's running means $\hat m$ of the gradient and
    $\hat v$ of its square; or, if the configuration says so, `Muon`'s step at the same
    rate for the weights of linear layers.

    Args:
        config: Every choice but the model's sizes, which the model itself knows.
        model: What learns, a `Transformer` or another with its methods `states` and
            `project`; it is moved to the processes' device.
        bos_id: What the decoder reads first.
        processes: Who takes part, and where; None: this one alone, on the device that
            the configuration names.

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
        model: nn.Module,
        bos_id: int,
        processes: Processes | None = None,
    ) -> None:
        self.config = config
        self.processes = processes or Processes(device=resolve_device(config.device))
        self.dtype = resolve_precision(config.precision, self.processes.device)
        self.model: Any = model.to(self.processes.device)
        # To look for them takes Python as long as a GPU takes for a layer.
        self._modules, self._weights = [*model.modules()], [*model.parameters()]
        self.optimizers = Optimizers(
            model, config, dtype=self.dtype if self._is_narrow() else None
        )
        self.objective: nn.Module = TrainingObjective(
            model,
            config.label_smoothing,
            bos_id,
            end_id=None if config.packed_length is None else EOS_ID,
        )
        if self.processes.count > 1:
            with warnings.catch_warnings():
                # Torch 2.13 has another name for it, which older ones do not know.
                warnings.filterwarnings("ignore", ".*broadcast_buffers")
                self.objective = DistributedDataParallel(
                    self.objective, broadcast_buffers=False
                )
        self.recorder = Recorder(model, self.model.config.pad_id)
        if config.compile:
            on_a_gpu = self.processes.device.type == "cuda"
            options = gpu_options(self._sums_over_places()) if on_a_gpu else None
            compile_as_one(self.objective, options=options)

    def learning_rate(self, step: int) -> float:
        """Equation (3), times the configuration's factor, and falling to 0 at the end.

        Without ``cooldown_steps`` it is equation (3) to the last step.

        Args:
            step: Counted from 1.

        Raises:
            InputError: The configuration has fewer steps.
        """
        config = self.config
        if step > config.steps:
            raise InputError(
                f"Step {step} comes after the last one: the configuration has steps = "
                f"{config.steps}."
            )
        rate = noam_rate(step, self.model.config.d_model, config.warmup_steps)
        falling = min(config.cooldown_steps, config.steps)
        left = (config.steps - step + 1) / (falling + 1)
        return config.learning_rate_scale * rate * min(1.0, left)

    def step(self, step: int, batches: Sequence[Batch]) -> Float[Tensor, "3"]:
        """Move the weights once, by the gradient over all the batches.

        Args:
            step: Which optimizer step this is, counted from 1.
            batches: The whole step's batches, the same in every process; each process
                takes every n-th row of them.

        Returns:
            This process's sums over its target tokens: the smoothed loss, the plain
            loss, and the number of tokens.

        Raises:
            InputError: The configuration has fewer steps.
        """
        device = self.processes.device
        if not all(module.training for module in self._modules):
            self.model.train()
        self.optimizers.set_rate(self.learning_rate(step))
        self._forget_gradients()  # what others have left there
        with attend_without_plans(device), torch.cuda.device_of(self._weights[0]):
            seed(device, self._dropout_seed(step))
            if self._is_recorded(batches):
                batch = batches[0]
                sides = moved(device, batch.source, batch.target)
                totals = self.recorder(self._move, *sides)
            else:
                totals = self._move_by_all(batches)
        self._forget_gradients()  # their memory is free until the next step
        return totals

    def no_totals(self) -> Float[Tensor, "3"]:
        """Zeros to add a step's sums to."""
        device = self.processes.device
        exact = torch.float32 if device.type == "mps" else torch.float64
        return torch.zeros(3, dtype=exact, device=device)

    def state(self) -> tuple[dict[str, Tensor], list[float]]:
        """All tensors that the next step depends on, and Adam's counts of its steps."""
        weights = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        means, counts = self.optimizers.state()
        return weights | means, counts

    def load_state(self, tensors: dict[str, Tensor], counts: Any, path: Path) -> None:
        """Take up what `state` returned and path held.

        Raises:
            InputError: It is the state of another model, or none at all.
        """
        self.recorder.forget()
        self.optimizers.load_state(tensors, counts, path)
        load_weights(self.model, _under("model.", tensors), path)

    def _sums_over_places(self) -> bool:
        """Whether a compiler gets attention's formula, or rows of several sentences."""
        model = self.model.config
        drops = isinstance(model, TransformerConfig) and model.attention_dropout > 0
        return is_plain() or drops or self.config.packed_length is not None

    def _is_recorded(self, batches: Sequence[Batch]) -> bool:
        """Whether Python would be slower than the GPU, and nothing differs each time.

        A process that exchanges gradients, a compiler and a loop over words have calls
        of their own; Muon's rate is a number in Python; and a learned table of
        positions may have no rows for longer batches.
        """
        if len(batches) != 1 or self.processes.device.type != "cuda":
            return False
        (batch,), config, model = batches, self.config, self.model.config
        sides = batch.source, batch.target
        places = [len(side) * rounded_up(side.size(1)) for side in sides]
        return (
            self.processes.count == 1
            and max(places) <= PLACES
            and places[1] * model.vocab_size <= LOGITS
            and isinstance(model, TransformerConfig)
            and (model.positions != "learned" or model.max_length % 8 == 0)
            and config.optimizer == "adam"
            and not config.compile
            and not is_plain()
            and not torch.is_anomaly_enabled()  # which asks a GPU for numbers
        )

    def _move(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Tensor:
        """A whole step of one batch that lies on the device; return its sums."""
        with torch.autocast(source.device.type, self.dtype, enabled=self._is_narrow()):
            smoothed, plain = self.objective(source, target)
        real = (target != self.model.config.pad_id).sum()
        self._differentiate(smoothed / real.clamp(min=1))
        self._apply_gradients()
        return torch.stack([smoothed.detach(), plain, real]).double()

    def _move_by_all(self, batches: Sequence[Batch]) -> Tensor:
        """A step of any number of batches and processes; return this one's sums."""
        pad_id = self.model.config.pad_id
        tokens = sum(int((batch.target != pad_id).sum()) for batch in batches)
        totals = self.no_totals()
        for number, batch in enumerate(batches, start=1):
            # Gradients are exchanged once, with the last batch.
            with self._alone() if number < len(batches) else nullcontext():
                totals += self._backward(batch, max(1, tokens))
        self._apply_gradients()
        return totals

    def _differentiate(self, loss: Tensor) -> None:
        """In the forward pass's types: a caller's autocast would narrow products."""
        with torch.autocast(loss.device.type, enabled=False):
            loss.backward()

    def _apply_gradients(self) -> None:
        with torch.autocast(self.processes.device.type, enabled=False):
            if self.config.clip_norm is not None:
                nn.utils.clip_grad_norm_(self._weights, self.config.clip_norm)
            self.optimizers.step()

    def _forget_gradients(self) -> None:
        for weight in self._weights:
            weight.grad = None

    def _backward(self, batch: Batch, tokens: int) -> Tensor:
        """Add the gradient of this process's share of a batch; return its sums."""
        device, count = self.processes.device, self.processes.count
        rows = slice(self.processes.rank, None, count)
        share = 1.0
        if len(batch) <= self.processes.rank:  # too few rows for every process
            rows, share = slice(1), 0.0
        # Every n-th row: only what lies in one piece is copied without a pause.
        sides = [side[rows].contiguous() for side in (batch.source, batch.target)]
        if not self.config.compile:
            sides.append(real_places(sides[1], self.model.config.pad_id))
        source, target, *places = moved(device, *sides)
        with torch.autocast(device.type, self.dtype, enabled=self._is_narrow()):
            smoothed, plain = self.objective(source, target, *places)
        # DistributedDataParallel takes the mean over processes; we want the sum.
        self._differentiate(smoothed * (share * count / tokens))
        real = (target != self.model.config.pad_id).sum()
        totals = torch.stack([smoothed.detach(), plain, real])
        return share * totals.to(self.no_totals())

    def _alone(self) -> Any:
        if isinstance(self.objective, DistributedDataParallel):
            return self.objective.no_sync()
        return nullcontext()

    def _is_narrow(self) -> bool:
        return self.dtype != torch.float32

    def _dropout_seed(self, step: int) -> int:
        text = f"{self.config.seed} {step} {self.processes.rank}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def seed(device: torch.device, number: int) -> None:
    """Have a step's random numbers drawn anew, on a CPU and on the current device.

    `torch.manual_seed` also tells accelerators that are not there, and each keeps a
    note of who asked, which takes longer than a small layer.
    """
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)


def moved(device: torch.device, *tensors: Tensor) -> tuple[Tensor, ...]:
    """All on the device; from a CPU to a GPU they travel while it still computes."""
    if device.type != "cuda":
        return tuple(tensor.to(device) for tensor in tensors)
    pinned = (t.pin_memory() if t.is_cpu else t for t in tensors)
    return tuple(tensor.to(device, non_blocking=True) for tensor in pinned)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)
    }
