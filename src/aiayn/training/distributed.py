"""Several processes that train one model, started by ``torchrun``.

Each process takes its share of the rows of every batch, and the gradients are those of
the whole batch. So without dropout the number of processes does not change what is
computed. With dropout it does: every process draws its own random numbers. The paper
used eight GPUs.
"""

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from aiayn.errors import InputError

# The others wait while the main process downloads a large corpus and trains its
# tokenizer. NCCL's default of ten minutes is too short for that.
TIMEOUT = timedelta(hours=4)

# The process group. Its destructor waits for gloo's threads, which may wait for
# Python's lock, so the last reference must not be one that is dropped with the lock
# held. This list's is not, that of a DistributedDataParallel is.
_group: list[Any] = []


@atexit.register
def _drop_group() -> None:
    """Drop the group before Python shuts down, which would abort gloo's threads."""
    if _group:
        gc.collect()  # a trainer that refers to it
        _group.clear()


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


@contextmanager
def processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that ``torchrun`` started, and leave them at the end.

    Without torchrun, this process is the only one.

    Args:
        device: The kind of device; each process takes the GPU of its local rank.

    Raises:
        InputError: There are more processes than GPUs, of which Apple's are one; or
            another process has ended, so that this one cannot continue.
    """
    started = {"RANK", "LOCAL_RANK", "WORLD_SIZE"} <= os.environ.keys()
    if not started or not distributed.is_available():
        yield Processes(device=device)
        return
    on_gpu, local_rank = device.type == "cuda", int(os.environ["LOCAL_RANK"])
    # torch cannot exchange gradients on Apple's GPU.
    usable = {"cuda": torch.cuda.device_count(), "mps": 1}.get(device.type)
    if usable is not None and local_rank >= usable:
        raise InputError(
            "torchrun started more processes than there are GPUs, and each needs one "
            f"of its own: give --nproc-per-node {usable}, or --device cpu."
        )
    if on_gpu:
        device = torch.device("cuda", local_rank)
    backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
    try:
        with torch.cuda.device(device) if on_gpu else nullcontext():
            distributed.init_process_group(backend, timeout=TIMEOUT)
            _group[:] = [distributed.group.WORLD]
            try:
                rank, world_size = distributed.get_rank(), distributed.get_world_size()
                yield Processes(rank, world_size, device)
            finally:
                distributed.destroy_process_group()
    except RuntimeError as error:
        # What torch and its libraries raise when another process closes a connection.
        words = f"{type(error).__name__} {error}".lower()
        if not any(name in words for name in ("dist", "gloo", "nccl")):
            raise
        raise InputError(
            "Another process of this training has ended, and this one cannot continue "
            "alone; the other's message says why. What was saved is whole: continue "
            "with 'torchrun … -m aiayn resume'."
        ) from error
