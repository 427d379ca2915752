"""Several processes that train one model: which of them this is.

Each process takes its share of the rows of every batch, and the gradients are those of
the whole batch. So without dropout the number of processes does not change what is
computed. With dropout it does: every process draws its own random numbers. The paper
used eight GPUs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import distributed


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is, and its device.

    All processes must call `wait`, `any` and `sum` together.
    """

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until every process has come this far."""
        if self.world_size > 1:
            distributed.barrier()

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Run a block in the main process, and then in all others."""
        if not self.is_main:
            self.wait()
        yield
        if self.is_main:
            self.wait()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in at least one process; this waits for no GPU."""
        return bool(self.sum(torch.tensor(int(flag))))

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of the values over all processes."""
        total = values.clone()
        if self.world_size > 1:
            distributed.all_reduce(total)
        return total
