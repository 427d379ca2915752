"""§5: the training loop."""

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Event

import torch
from tqdm import tqdm

from aiayn.data import Batch
from aiayn.storage import resuming
from aiayn.training.config import TrainingConfig
from aiayn.training.preparation import TrainingData
from aiayn.training.run_log import Progress, RunLog
from aiayn.training.state import training_state
from aiayn.training.trainer import Trainer
from aiayn.training.validation import validate

FIRST_STEPS = 10
"""Steps after which a training says whether it is far too slow. Not in the paper."""


def train_steps(trainer: Trainer, data: TrainingData, log: RunLog, stop: Event) -> None:
    """The training loop, to the last step or to a request to stop."""
    config, group, progress = trainer.config, trainer.processes, log.progress
    hidden = None if config.progress and group.is_main else True
    progress_bar = tqdm(
        total=config.steps, initial=progress.step, unit="step", disable=hidden
    )
    told = config.progress and group.is_main and progress_bar.disable
    pace = _Pace(trainer, log)
    with progress_bar as bar:
        for batches in _remaining_batches(config, data, progress):
            began = time.perf_counter()
            log.sums += trainer.step(progress.step + 1, batches)
            progress.step += 1
            pace.note(time.perf_counter() - began, batches)
            progress.batch += len(batches)
            last = progress.step == config.steps
            if progress.step % config.log_every == 0 or last:
                shown = log.write_loss()
                bar.set_postfix(shown)
                if told:  # a notebook, a pipe or a file has no place for a bar
                    _print_record(f"{progress.step:,} of {config.steps:,}", shown)
            is_due = progress.step % config.validate_every == 0 or last
            stopped = group.any(stop.is_set()) and not last
            if is_due or stopped:
                tensors, _ = training_state(trainer)
                log.finite_sums(*tensors.values())  # before it is saved
                if is_due:
                    validate(trainer, data, log)
                log.save_state()
            bar.update()
            if stopped:
                raise KeyboardInterrupt(
                    f"Stopped after step {progress.step} of {config.steps}: "
                    f"continue with {resuming(log.run.path)}."
                )


def _print_record(step: str, shown: dict[str, str]) -> None:
    words = ", ".join(f"{name} {value}" for name, value in shown.items())
    print(f"step {step}: {words}", file=sys.stderr, flush=True)


class _Pace:
    """Warns, after the first steps, if each took far longer than its arithmetic."""

    def __init__(self, trainer: Trainer, log: RunLog) -> None:
        weights = sum(weight.numel() for weight in trainer.model.parameters())
        # A slow core: ten thousand million operations a second. Each token meets half
        # of the weights, those of its side, in six operations.
        self.seconds_per_token = 3 * weights / 1e10
        self.on_cpu, self.run = trainer.processes.device.type == "cpu", log.run
        self.slow: list[bool] = []

    def note(self, seconds: float, batches: Sequence[Batch]) -> None:
        """Take note of how long a step took."""
        if not self.on_cpu or len(self.slow) == FIRST_STEPS:
            return
        tokens = sum(batch.source.numel() + batch.target.numel() for batch in batches)
        self.slow.append(seconds > 0.2 + 3 * self.seconds_per_token * tokens)
        if len(self.slow) < FIRST_STEPS or not all(self.slow):
            return
        threads = torch.get_num_threads()
        cause = "another program uses the same core: wait for it, or stop one of them."
        if threads > 1:
            cause = (
                f"torch's {threads} threads wait for one another when other programs "
                "use the processor. Stop it, and give threads=1, also to "
                f"{resuming(self.run.path)}."
            )
        warnings.warn(
            f"Each of the first {FIRST_STEPS} steps took several times as long as its "
            f"arithmetic does on a slow core; probably {cause}",
            stacklevel=3,
        )


def _remaining_batches(
    config: TrainingConfig, data: TrainingData, progress: Progress
) -> Iterator[list[Batch]]:
    """The batches of each step that is not done yet."""
    while progress.step < config.steps:
        epoch = data.training.epoch(progress.epoch, first=progress.batch)
        while batches := list(islice(epoch, config.accumulate)):
            yield batches
            if progress.step == config.steps:
                return
        progress.epoch, progress.batch = progress.epoch + 1, 0
