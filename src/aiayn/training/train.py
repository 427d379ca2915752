"""§5: one training, from its first step to averaged weights, and how it is resumed.

`train` and `resume_training` both call `_run`. It prepares the data and the model, runs
the loop (`aiayn.training.loop`), and takes the average of the last checkpoints (§6.1).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from aiayn.data import Tokenizer
from aiayn.data.corpora import corpus_place
from aiayn.device import describe_machine, resolve_device, resolve_precision
from aiayn.errors import InputError
from aiayn.model import Transformer
from aiayn.storage import (
    RunFolder,
    build_model,
    hold,
    load_tensors,
    load_weights,
    read_json,
    save_tensors,
)
from aiayn.training.averaging import average_checkpoints
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import processes
from aiayn.training.loop import train_steps
from aiayn.training.preparation import (
    TrainingData,
    find_corpus,
    prepare_data,
    prepare_folder,
    write_config,
)
from aiayn.training.run_log import Progress, RunLog
from aiayn.training.state import restore_training
from aiayn.training.trainer import Trainer
from aiayn.training.validation import validation_scores


@dataclass(frozen=True)
class TrainingResult:
    """What a training leaves in memory; the folder holds the same on disk.

    Paper: §5.
    """

    run: RunFolder
    """The run's folder, and the paths of its files."""
    model: Transformer
    """The model, averaged over the last checkpoints (§6.1), in evaluation mode."""
    tokenizer: Tokenizer
    """The tokenizer that the model was trained with."""
    log: list[dict[str, Any]]
    """One dictionary for each line of the run's log; the first describes the run."""


def train(config: TrainingConfig) -> TrainingResult:
    """Train a translator, from raw text to averaged weights.

    Nothing of the process is different afterwards: the number of threads, torch's
    random numbers (but for those of a Mac's GPU) and the handling of signals are
    restored.

    Args:
        config: Every choice.

    Returns:
        The model, averaged over the last checkpoints, with its tokenizer and log.

    Raises:
        InputError: Something in the configuration, the corpus or the folder cannot be
            used, another training writes to the folder, or the training diverged.
        KeyboardInterrupt: It was stopped; what was done is saved and can be resumed.

    Paper: §5.

    Two steps of a tiny model; `TrainingConfig.grammar()` alone is a real training:

    >>> model = TransformerConfig.tiny(vocab_size=400, d_model=16)
    >>> result = train(
    ...     TrainingConfig.grammar(
    ...         model=model, corpus_size=500, steps=2, output=Path("runs/try")
    ...     )
    ... )
    >>> result.log[-1]["step"]
    2
    """
    if not isinstance(config, TrainingConfig):
        raise InputError(
            f"train takes a TrainingConfig, not {config!r:.60}: for instance, "
            "train(TrainingConfig.grammar())."
        )
    return _run(replace(config, corpus=corpus_place(config.corpus)), resume=False)


def resume_training(
    path: Path | str,
    *,
    steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    corpus: Path | str | None = None,
) -> TrainingResult:
    """Continue a training that was stopped, as if it had not been.

    A training that was stopped before its first checkpoint starts again from step 1.

    Args:
        path: The run's folder.
        steps: A new total number of steps, at least as many as are done; None: as
            before.
        device: The device to train on; None: as before.
        threads: Threads of the CPU; None: as before.
        corpus: Where the corpus lies now, if it has moved; None: as before.

    Returns:
        As `train`.

    Raises:
        InputError: The folder holds no run, or a damaged one; the corpus or the
            tokenizer has changed since the run began; else as `train`.
        KeyboardInterrupt: As `train`.

    Not in the paper.

    >>> result = resume_training("runs/grammar")  # a run that Ctrl-C had stopped
    """
    run = RunFolder(path)
    changes = {"steps": steps, "device": device, "threads": threads, "corpus": corpus}
    changes = {name: value for name, value in changes.items() if value is not None}
    config = TrainingConfig.from_dict(read_json(run.config), run.config)
    config = replace(config, output=run.path, **changes)
    return _run(replace(config, corpus=find_corpus(config, run)), resume=True)


def _run(config: TrainingConfig, resume: bool) -> TrainingResult:
    run = RunFolder(config.output)
    with (
        processes(resolve_device(config.device)) as group,
        hold(run.path, make_folder=not resume) if group.is_main else nullcontext(),
        _restored_globals(config.threads, group.device),
    ):
        dtype = resolve_precision(config.precision, group.device)  # which a run keeps
        config = replace(
            config, precision="bf16" if dtype == torch.bfloat16 else "fp32"
        )
        if not resume:
            prepare_folder(config, run, group)
        saved = resume and run.has_state(min(config.validate_every, config.steps))
        data = prepare_data(config, run, group)
        torch.default_generator.manual_seed(config.seed)
        model = build_model(config.model)
        trainer = Trainer(config, model, data.tokenizer.bos_id, group)
        progress = _load_progress(trainer, run) if saved else Progress()
        log = RunLog(run, trainer, progress)
        if group.is_main:
            run.tidy(progress.step if saved else -1)
            write_config(config, run, data.digests)
        if not saved:
            log.write(
                event="begin",
                parameters=sum(weight.numel() for weight in model.parameters()),
                processes=group.world_size,
                precision=str(trainer.dtype).removeprefix("torch."),
                data=data.description,
                machine=describe_machine(group.device),
            )
        with _stop_request() as stop:
            train_steps(trainer, data, log, stop)
            _average(trainer, data, log)
        return TrainingResult(run, model.eval(), data.tokenizer, run.read_log())


def _load_progress(trainer: Trainer, run: RunFolder) -> Progress:
    """Restore the state that was saved last."""
    tensors, info = load_tensors(run.state)
    restore_training(trainer, tensors, info["adam_steps"], run.state)
    progress = Progress(**info["progress"])
    if progress.step > trainer.config.steps:
        raise InputError(
            f"{run.path} has done {progress.step} steps already and cannot stop at "
            f"{trainer.config.steps}: give more steps, or leave the number out."
        )
    return progress


def _average(trainer: Trainer, data: TrainingData, log: RunLog) -> None:
    """Average the last checkpoints, load the average into the model, and score it."""
    with trainer.processes.main_first():
        if trainer.processes.is_main:
            weights, info = average_checkpoints(log.run.checkpoints())
            save_tensors(log.run.average, weights, info, make_folder=False)
        weights, _ = load_tensors(log.run.average)
        load_weights(trainer.model, weights, log.run.average)
        if trainer.processes.is_main:
            log.write(event="average", **validation_scores(trainer, data))


@contextmanager
def _restored_globals(threads: int | None, device: torch.device) -> Iterator[None]:
    """Set the number of threads; restore it and torch's random state at the end."""
    before = torch.get_num_threads()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            torch.set_num_threads(threads or before)
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def _stop_request() -> Iterator[threading.Event]:
    """Note the first Ctrl-C or SIGTERM, and raise KeyboardInterrupt at the second."""
    stop, before = threading.Event(), {}

    def note(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    # Python sets handlers in the main thread only.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
