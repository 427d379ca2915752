"""A training that is far slower than its arithmetic says so after its first steps."""

import warnings
from collections.abc import Sequence

from aiayn.data import Batch
from aiayn.storage import RunFolder, resuming
from aiayn.training.trainer import Trainer

FIRST_STEPS = 10
"""Steps after which a training says whether it is far too slow. Not in the paper."""


def warn_if_slow(
    trainer: Trainer, run: RunFolder, steps: Sequence[tuple[float, Sequence[Batch]]]
) -> None:
    """Warn if each of the first steps took far longer than its arithmetic.

    Args:
        trainer: What is trained; nothing is known about the speed of a GPU.
        run: Its folder, for the message.
        steps: The seconds and the batches of each step so far.
    """
    if len(steps) < FIRST_STEPS or trainer.processes.device.type != "cpu":
        return
    weights = sum(weight.numel() for weight in trainer.model.parameters())
    # A slow core: ten thousand million operations a second. Each token meets half of
    # the weights, those of its side, in six operations.
    seconds_per_token = 3 * weights / 1e10
    for seconds, batches in steps:
        tokens = sum(batch.source.numel() + batch.target.numel() for batch in batches)
        if seconds <= 0.2 + 3 * seconds_per_token * tokens:
            return
    warnings.warn(
        f"Each of the first {FIRST_STEPS} steps took several times as long as its "
        "arithmetic does on a slow core; probably other programs use the processor. "
        "Wait for them; or stop this training and give threads=1, also to "
        f"{resuming(run.path)}, because several threads wait for one another.",
        stacklevel=3,
    )
