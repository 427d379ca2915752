"""A loss or a weight that is no number any more: noticed before anything is saved.

The paper does not speak of it. Adam's warm-up (§5.3) is there to prevent it.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from aiayn.errors import InputError
from aiayn.run import RunFolder
from aiayn.training.distributed import Processes


class RunningLoss:
    """Sums of the loss since the log's last record, and how long they were finite.

    Args:
        nothing: Zeros of the type and on the device of a step's three sums.
        run: Named in the error.
        group: The processes, whose sums are added up.
        step: How many steps are done.
    """

    def __init__(
        self, nothing: Tensor, run: RunFolder, group: Processes, step: int = 0
    ) -> None:
        self.sums, self.run, self.group = nothing, run, group
        self.finite_steps = torch.zeros((), dtype=torch.int64, device=nothing.device)
        self.since = step

    def add(self, totals: Tensor) -> None:
        """Add a step's sums; they are not looked at, for a GPU would have to wait."""
        self.sums += totals
        self.finite_steps += self.sums[0].isfinite()

    def check(self) -> list[float]:
        """The sums over all processes, which must ask together.

        Raises:
            InputError: They are no numbers; the message says since which step.
        """
        sums = self.group.sum(self.sums).tolist()
        if not all(map(math.isfinite, sums)):
            step = self.since + 1 + self.group.lowest(self.finite_steps)
            raise InputError(
                f"The loss is {sums[0]} at step {step}: {advice(self.run)}"
            )
        return sums

    def resume(self, totals: list[float], step: int) -> None:
        """Take up the sums of every process, one after the other, after a step.

        Each process takes its own, so that they are added up in the same order as if
        nothing had happened. Other numbers of processes leave all to the first.
        """
        self.restart(step)
        each = self.sums.new_tensor(totals).view(-1, 3)
        if len(each) == self.group.world_size:
            self.sums += each[self.group.rank]
        elif self.group.is_main:
            self.sums += each.sum(0)

    def restart(self, step: int) -> None:
        """Begin again from zero after a step."""
        self.sums.zero_()
        self.finite_steps.zero_()
        self.since = step


def check_finite(tensors: Iterable[Tensor], run: RunFolder, step: int) -> None:
    """Refuse to save weights, or Adam's means of gradients, that are no numbers.

    Raises:
        InputError: One is not finite.
    """
    finite = [tensor.isfinite().all() for tensor in tensors]
    if not torch.stack(finite).all():
        raise InputError(
            f"The weights are no numbers any more after step {step}: {advice(run)}"
        )


def advice(run: RunFolder) -> str:
    """What to do about a training that has diverged."""
    return (
        "training has diverged. The last good state is kept. Set a smaller "
        "learning_rate_scale, more warmup_steps, clip_norm 1 or precision fp32 in "
        f"{run.config}, and go on with 'aiayn resume {run.path}'; or begin anew."
    )
