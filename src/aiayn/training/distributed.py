"""Several processes, one training: started by ``torchrun``, or just the one.

The number of processes changes who computes, not what: each takes its share of the rows
of every batch, and gradients are those of the whole batch. The paper used eight GPUs.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import distributed


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is."""

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when every process has come this far."""
        if self.count > 1:
            distributed.barrier()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in at least one process; all must ask together."""
        if self.count == 1:
            return flag
        flags = torch.tensor(int(flag), device=self.device)
        distributed.all_reduce(flags, op=distributed.ReduceOp.MAX)
        return bool(flags)

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of the values over all processes; all must ask together."""
        total = values.clone()
        if self.count > 1:
            distributed.all_reduce(total)
        return total


@contextmanager
def processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that ``torchrun`` started, if it did, and leave them again.

    Args:
        device: The kind of device; each process takes the GPU of its local rank.
    """
    if "LOCAL_RANK" not in os.environ or not distributed.is_available():
        yield Processes(device=device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(distributed.get_rank(), distributed.get_world_size(), device)
    finally:
        distributed.destroy_process_group()
