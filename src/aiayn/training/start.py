"""§5: begin a training, from raw text to averaged weights, or go on with one."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from aiayn.checkpoint import read_json, write_json
from aiayn.data import Tokenizer
from aiayn.files import hold
from aiayn.machine import resolve_device
from aiayn.model import Transformer
from aiayn.model.description import build_model
from aiayn.run import RunFolder
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import processes
from aiayn.training.interrupt import stop_request
from aiayn.training.loop import Session
from aiayn.training.preparation import check_model, prepare_data, prepare_folder
from aiayn.training.trainer import Trainer


@dataclass(frozen=True)
class TrainingResult:
    """What a training leaves in memory; the folder holds the same on disk.

    Paper: §5.
    """

    run: RunFolder
    """The folder, and where each file lies in it."""
    model: Transformer
    """The model, averaged over the last checkpoints (§6.1), in evaluation mode."""
    tokenizer: Tokenizer
    """The one that the model was trained with."""
    log: list[dict[str, Any]]
    """One dictionary a line of the run's log; the first names the machine."""


def train(config: TrainingConfig) -> TrainingResult:
    """Train a translator, from raw text to averaged weights.

    Torch's random generators are seeded with the configuration's seed.

    Args:
        config: Every choice.

    Returns:
        The model, averaged over the last checkpoints, with its tokenizer and log.

    Raises:
        InputError: Something in the configuration, the corpus or the folder cannot be
            used, another training writes to it, or the loss is no number any more.
        KeyboardInterrupt: It was stopped; what was done is saved and can be resumed.

    Paper: §5.

    Two steps of a tiny model; `TrainingConfig.grammar()` alone is a real one:

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
    """Go on with a training that was stopped, as if it never had been.

    One that was stopped before it saved anything begins from its first step.

    Args:
        path: The run's folder.
        steps: A new number of steps in all, no less than are done; None: as begun.
        device: Where to compute; None: as it was begun.
        threads: Threads of a CPU; None: as it was begun.

    Returns:
        As `train`.

    Raises:
        InputError: The folder holds no run, or a damaged one; else as `train`.
        KeyboardInterrupt: As `train`.

    Not in the paper.

    >>> result = resume_training("runs/grammar")  # where Ctrl-C had stopped it
    """
    config = TrainingConfig.from_dict(read_json(RunFolder(path).config))
    changes = {"steps": steps, "device": device, "threads": threads}
    changes = {name: value for name, value in changes.items() if value is not None}
    return _run(replace(config, output=Path(path), **changes), resume=True)


def _run(config: TrainingConfig, resume: bool) -> TrainingResult:
    check_model(config)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    device = resolve_device(config.device)
    run = RunFolder(config.output)
    with (
        processes(device) as group,
        # One that was moved away in between is not made anew.
        hold(run.path, make=not resume) if group.is_main else nullcontext(),
    ):
        if not resume:
            prepare_folder(config, run, group)
        saved = resume and run.has_state(config.first_validation)
        data = prepare_data(config, run, group)
        torch.manual_seed(config.seed)
        model = build_model(config.model)
        trainer = Trainer(config, model, data.tokenizer.bos_id, group)
        session = Session(config, run, data, trainer)
        session.resume() if saved else session.begin()
        if resume and group.is_main:
            run.require()
            write_json(run.config, config.as_dict(), make_folder=False)
        with stop_request() as stop:
            session.train(stop)
        session.finish()
        trainer.model.eval()
        return TrainingResult(run, trainer.model, data.tokenizer, run.read_log())
