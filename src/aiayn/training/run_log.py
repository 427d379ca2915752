"""§5: how far a training has come, and what it writes down about it."""

import math
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from aiayn.errors import InputError
from aiayn.storage import RunFolder, resuming
from aiayn.training.state import training_state
from aiayn.training.trainer import Trainer


@dataclass
class Progress:
    """How far a training has come; it is saved with the state."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    seconds: float = 0.0
    """Time spent so far, validation included."""
    best_loss: float = math.inf
    totals: list[float] = field(default_factory=list)
    """Sums since the log's last record: smoothed loss, plain loss, tokens."""
    timed_from: float = 0.0
    """When the tokens of `totals` began, in seconds; validation is subtracted."""


class RunLog:
    """A run's log, its progress, and the loss since the log's last record.

    Args:
        run: The folder to write to.
        trainer: What is trained.
        progress: How far it has come.
    """

    def __init__(self, run: RunFolder, trainer: Trainer, progress: Progress) -> None:
        self.run, self.trainer, self.progress = run, trainer, progress
        self.sums = trainer.zero_sums()
        if progress.totals and trainer.processes.is_main:
            # The first edition saved those of each process, one after the other.
            self.sums += self.sums.new_tensor(progress.totals).view(-1, 3).sum(0)
        self.clock = time.perf_counter() - progress.seconds

    def seconds(self) -> float:
        """The time that the training has taken so far."""
        return time.perf_counter() - self.clock

    def write(self, **record: Any) -> None:
        """Add a record to the log."""
        if self.trainer.processes.is_main:
            begin = {"step": self.progress.step, "seconds": round(self.seconds(), 2)}
            self.run.append_log(begin | record)

    def write_loss(self) -> str:
        """Log the loss since the last record; return what the progress bar shows."""
        smoothed, plain, tokens = self.finite_sums()
        progress, seconds = self.progress, self.seconds()  # a GPU has finished here
        speed = tokens / (seconds - progress.timed_from)
        self.sums.zero_()
        progress.timed_from = seconds
        self.write(
            event="train",
            epoch=progress.epoch,
            loss=smoothed / tokens,
            cross_entropy=plain / tokens,
            learning_rate=self.trainer.learning_rate(progress.step),
            tokens=round(tokens),
            tokens_per_second=round(speed),
        )
        return f"loss {smoothed / tokens:.3f}, tokens/s {speed:.0f}"

    def save_state(self) -> None:
        """Save all that a resumed run needs."""
        self.progress.totals = self.finite_sums()
        self.progress.seconds = self.seconds()
        if self.trainer.processes.is_main:
            tensors, adam_steps = training_state(self.trainer)
            info = {"progress": asdict(self.progress), "adam_steps": adam_steps}
            self.run.save_state(tensors, info)

    def finite_sums(self, *others: Tensor) -> list[float]:
        """The sums over all processes; exact, as float64 adds float32 numbers.

        Raises:
            InputError: They are not finite, or other tensors that are to be saved.
        """
        sums = self.trainer.processes.sum(self.sums)
        if not all(bool(tensor.isfinite().all()) for tensor in (sums, *others)):
            raise InputError(
                "Training has diverged: the loss, a weight or the optimizer's state is "
                f"not finite after step {self.progress.step}. The last good state is "
                f'kept. In {self.run.config}, set a smaller "learning_rate_scale", '
                'more "warmup_steps", "clip_norm": 1 or "precision": "fp32", and '
                f"continue with {resuming(self.run.path)}; or start a new run."
            )
        return sums.tolist()
