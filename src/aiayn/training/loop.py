"""§5: the training loop."""

import sys
from collections.abc import Iterator
from itertools import islice
from threading import Event

from tqdm import tqdm

from aiayn.data import Batch
from aiayn.storage import resuming
from aiayn.training.config import TrainingConfig
from aiayn.training.preparation import TrainingData
from aiayn.training.run_log import Progress, RunLog
from aiayn.training.state import training_state
from aiayn.training.trainer import Trainer
from aiayn.training.validation import validate


def train_steps(trainer: Trainer, data: TrainingData, log: RunLog, stop: Event) -> None:
    """The training loop, to the last step or to a request to stop."""
    config, group, progress = trainer.config, trainer.processes, log.progress
    hidden = None if config.progress and group.is_main else True
    progress_bar = tqdm(
        total=config.steps, initial=progress.step, unit="step", disable=hidden
    )
    told = config.progress and group.is_main and progress_bar.disable
    ended = log.run.path / f"step-{progress.step:06d}.safetensors"
    if group.any(progress.step == config.steps and not ended.exists()):
        # It was stopped after the step that is now the last one.
        validate(trainer, data, log)
        log.save_state()
    with progress_bar as bar:
        for batches in _remaining_batches(config, data, progress):
            log.sums += trainer.step(progress.step + 1, batches)
            progress.step += 1
            progress.batch += len(batches)
            last = progress.step == config.steps
            if progress.step % config.log_every == 0 or last:
                shown = log.write_loss()
                bar.set_postfix_str(shown)
                if told:  # a notebook, a pipe or a file has no place for a bar
                    step = f"step {progress.step:,} of {config.steps:,}"
                    print(f"{step}: {shown}", file=sys.stderr, flush=True)
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
