"""§5: one training, from its first step to averaged weights, and how it is resumed.

`train` and `resume_training` both call `_run`, which prepares the data and the model,
runs the loop of `_train_steps`, and takes the average of the last checkpoints (§6.1).
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from aiayn.data import Batch, Tokenizer, normalise
from aiayn.device import describe_machine, resolve_device, resolve_precision
from aiayn.errors import InputError
from aiayn.inference import evaluate_bleu, perplexity, translate
from aiayn.model import Transformer
from aiayn.storage import (
    RunFolder,
    build_model,
    describe_config,
    hold,
    load_tensors,
    load_weights,
    read_json,
    save_tensors,
    write_json,
)
from aiayn.training.averaging import average_checkpoints
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import processes
from aiayn.training.preparation import TrainingData, prepare_data, prepare_folder
from aiayn.training.trainer import Trainer


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


def train(config: TrainingConfig) -> TrainingResult:
    """Train a translator, from raw text to averaged weights.

    Nothing of the process is different afterwards: the number of threads, torch's
    random numbers and the handling of signals are restored.

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
    return _run(config, resume=False)


def resume_training(
    path: Path | str,
    *,
    steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> TrainingResult:
    """Continue a training that was stopped, as if it had not been.

    A training that was stopped before its first checkpoint starts again from step 1.

    Args:
        path: The run's folder.
        steps: A new total number of steps, at least as many as are done; None: as
            before.
        device: The device to train on; None: as before.
        threads: Threads of the CPU; None: as before.

    Returns:
        As `train`.

    Raises:
        InputError: The folder holds no run, or a damaged one; else as `train`.
        KeyboardInterrupt: As `train`.

    Not in the paper.

    >>> result = resume_training("runs/grammar")  # a run that Ctrl-C had stopped
    """
    config = TrainingConfig.from_dict(read_json(RunFolder(path).config))
    changes = {"steps": steps, "device": device, "threads": threads}
    changes = {name: value for name, value in changes.items() if value is not None}
    return _run(replace(config, output=Path(path), **changes), resume=True)


def _run(config: TrainingConfig, resume: bool) -> TrainingResult:
    run = RunFolder(config.output)
    with (
        processes(resolve_device(config.device)) as group,
        hold(run.path, make=not resume) if group.is_main else nullcontext(),
        _restored_globals(config.threads, group.device),
    ):
        begun = run.read_log() if resume else []
        config = replace(config, precision=_precision(config, group.device, begun))
        if not resume:
            prepare_folder(config, run, group)
        saved = resume and run.has_state(config.first_validation)
        data = prepare_data(config, run, group)
        torch.manual_seed(config.seed)
        model = build_model(config.model)
        trainer = Trainer(config, model, data.tokenizer.bos_id, group)
        progress = _load_progress(trainer, run) if saved else Progress()
        log = RunLog(run, trainer, progress)
        if group.is_main:
            run.tidy(progress.step if saved else -1)
            write_json(run.config, config.as_dict(), make_folder=False)
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
            _train_steps(trainer, data, log, stop)
        _average(trainer, data, log)
        return TrainingResult(run, model.eval(), data.tokenizer, run.read_log())


def _precision(config: TrainingConfig, device: torch.device, log: list[dict]) -> str:
    """The precision that a run keeps; 'auto' is resolved when it begins.

    The first edition stored 'auto', and what it meant in the log's first record.
    """
    if config.precision != "auto":
        return config.precision
    dtypes = [record["precision"] for record in log if "precision" in record]
    dtypes += [str(resolve_precision("auto", device))]
    return "bf16" if dtypes[0].endswith("bfloat16") else "fp32"


def _load_progress(trainer: Trainer, run: RunFolder) -> Progress:
    """Restore the state that was saved last."""
    tensors, info = run.load_state()
    trainer.load_state(tensors, info["adam_steps"], run.state)
    values = info["progress"]
    progress = Progress(**{"timed_from": values["seconds"]} | values)
    if progress.step > trainer.config.steps:
        raise InputError(
            f"{run.path} has done {progress.step} steps already and cannot stop at "
            f"{trainer.config.steps}: give more steps, or leave the number out."
        )
    return progress


def _train_steps(
    trainer: Trainer, data: TrainingData, log: "RunLog", stop: threading.Event
) -> None:
    """The training loop, to the last step or to a request to stop."""
    config, group, progress = trainer.config, trainer.processes, log.progress
    bar = tqdm(
        total=config.steps,
        initial=progress.step,
        unit="step",
        disable=None if config.progress and group.is_main else True,
    )
    with bar:
        for batches in _remaining_batches(config, data, progress):
            log.sums += trainer.step(progress.step + 1, batches)
            progress.step += 1
            progress.batch += len(batches)
            last = progress.step == config.steps
            if progress.step % config.log_every == 0 or last:
                bar.set_postfix(log.write_loss())
            validate = progress.step % config.validate_every == 0 or last
            stopped = group.any(stop.is_set()) and not last
            if validate or stopped:
                log.finite_sums(*trainer.state()[0].values())  # before it is saved
                if validate:
                    _validate(trainer, data, log)
                log.save_state()
            bar.update()
            if stopped:
                raise KeyboardInterrupt(
                    f"Stopped after step {progress.step} of {config.steps}: "
                    f"continue with 'aiayn resume {log.run.path}'."
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


def _validate(trainer: Trainer, data: TrainingData, log: "RunLog") -> None:
    """Score the model, save its weights, and copy them if they are the best so far."""
    run, progress = log.run, log.progress
    if trainer.processes.is_main:
        began = log.seconds()
        scores = _scores(trainer, data)
        log.write(event="validation", **scores)
        info = {"step": progress.step, "model": describe_config(trainer.config.model)}
        weights = trainer.model.state_dict()
        checkpoint = run.save_checkpoint(weights, info, trainer.config.keep)
        if scores["loss"] < progress.best_loss:
            progress.best_loss = scores["loss"]
            run.mark_best(checkpoint)
        progress.timed_from += log.seconds() - began
    trainer.processes.wait()


def _scores(trainer: Trainer, data: TrainingData) -> dict[str, float]:
    """Loss and BLEU on the validation split, in the training's precision.

    BLEU is that of greedy search, which is faster than a beam.
    """
    model, tokenizer, text = trainer.model, data.tokenizer, data.to_translate
    options = {"beam_size": 1, "max_pieces": trainer.config.max_length}
    if trainer.processes.device.type == "cuda":
        options["batch_tokens"] = 8192
    with trainer.autocast():
        batches = data.validation.epoch(0)
        result = perplexity(model, batches, bos_id=tokenizer.bos_id)
        hypotheses = translate(text.source, model, tokenizer, **options)
    scores = {"loss": result.loss, "perplexity": result.perplexity}
    if len(text):
        references = [normalise(line) for line in text.target]
        scores["bleu"] = evaluate_bleu(hypotheses, references).score
    return scores


def _average(trainer: Trainer, data: TrainingData, log: "RunLog") -> None:
    """Average the last checkpoints, load the average into the model, and score it."""
    run, step = log.run, log.progress.step
    with trainer.processes.main_first():
        if trainer.processes.is_main:
            weights, info = average_checkpoints(run.checkpoints(until=step))
            save_tensors(run.average, weights, info, make_folder=False)
            run.drop_later(step)
        weights, _ = load_tensors(run.average)
        load_weights(trainer.model, weights, run.average)
        if trainer.processes.is_main:
            log.write(event="average", **_scores(trainer, data))


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

    def write_loss(self) -> dict[str, str]:
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
        return {"loss": f"{smoothed / tokens:.3f}", "tokens/s": f"{speed:.0f}"}

    def save_state(self) -> None:
        """Save all that a resumed run needs."""
        self.progress.totals = self.finite_sums()
        self.progress.seconds = self.seconds()
        if self.trainer.processes.is_main:
            tensors, adam_steps = self.trainer.state()
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
                "kept. Set a smaller learning_rate_scale, more warmup_steps, clip_norm "
                f"1 or precision fp32 in {self.run.config}, and continue with 'aiayn "
                f"resume {self.run.path}'; or start a new run."
            )
        return sums.tolist()


@contextmanager
def _restored_globals(threads: int | None, device: torch.device) -> Iterator[None]:
    """Set the number of threads; restore it and torch's random state at the end."""
    before = torch.get_num_threads()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            if threads is not None:
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
