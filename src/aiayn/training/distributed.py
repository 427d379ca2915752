"""Several processes, one training: started by ``torchrun``, or just the one.

Each process takes its share of the rows of every batch, and the gradients are those of
the whole batch. So without dropout the number of processes does not change what is
computed. With dropout it does: every process draws its own random numbers. The paper
used eight GPUs.
"""

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from aiayn.errors import InputError

# How long the others wait while the first one fetches a large corpus and learns its
# vocabulary; NCCL's ten minutes are too few. Who has died is noticed without a clock:
# torchrun ends the others.
PATIENCE = timedelta(hours=4)

# The present group, or the last one. A group's end waits for gloo's threads, and those
# may wait for Python's lock. Whoever lets go of it last must not hold that lock: this
# list does not, DistributedDataParallel, which may outlive its training, does.
_group: list[Any] = []


@atexit.register
def _let_go() -> None:
    """End the group while gloo's threads can still have Python's lock.

    A thread that asks for it when Python is being taken down is ended there and then,
    and the program with it (SIGABRT). What trainings have left behind goes first.
    """
    if _group:
        gc.collect()
        _group.clear()


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when every process has come this far."""
        if self.world_size > 1:
            distributed.barrier()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in at least one process; all must ask together.

        No GPU is asked, so none is waited for.
        """
        if self.world_size == 1:
            return flag
        flags = torch.tensor(int(flag))
        distributed.all_reduce(flags, op=distributed.ReduceOp.MAX)
        return bool(flags)

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of the values over all processes; all must ask together."""
        total = values.clone()
        if self.world_size > 1:
            distributed.all_reduce(total)
        return total

    def gather(self, values: torch.Tensor) -> list[float]:
        """Every process's values, one after the other; all must ask together."""
        parts = [values]
        if self.world_size > 1:
            parts = [torch.empty_like(values) for _ in range(self.world_size)]
            distributed.all_gather(parts, values)
        return torch.cat(parts).tolist()

    def lowest(self, value: torch.Tensor) -> int:
        """The smallest of the processes' values; all must ask together."""
        least = value.clone()
        if self.world_size > 1:
            distributed.all_reduce(least, op=distributed.ReduceOp.MIN)
        return int(least)


@contextmanager
def processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that ``torchrun`` started, if it did, and leave them again.

    Args:
        device: The kind of device; each process takes the GPU of its local rank.

    Raises:
        InputError: There are more processes than GPUs, or several on Apple's; or
            another process has ended, so that this one cannot go on; or this one
            belongs to a group already, or not all is set that torchrun sets.
    """
    if "LOCAL_RANK" not in os.environ or not distributed.is_available():
        yield Processes(device=device)
        return
    if distributed.is_initialized():
        raise InputError(
            "This process is in a group already (torch.distributed's), and a training "
            "makes its own: leave out init_process_group, or call "
            "destroy_process_group() before the training."
        )
    if device.type == "mps" and os.environ.get("WORLD_SIZE", "1") != "1":
        raise InputError(
            "Several processes cannot share Apple's GPU: torch has nothing that "
            "exchanges gradients there. Give --device cpu, or begin without torchrun."
        )
    if device.type == "cuda":
        device = _gpu_of(int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        distributed.init_process_group(backend, timeout=PATIENCE)
    except ValueError as error:
        raise InputError(
            "LOCAL_RANK is set, but what torchrun sets beside it is not "
            f"({str(error).splitlines()[0]:.200}): begin with torchrun, or unset "
            "LOCAL_RANK to train in this process alone."
        ) from error
    except RuntimeError as error:  # the others never came, or have gone again
        raise InputError(
            "The processes of this training did not come together "
            f"({str(error).splitlines()[0]:.200}): one has ended, and its message, or "
            "the system's log, says why. Begin them anew."
        ) from error
    _group[:] = [distributed.group.WORLD]
    try:
        yield Processes(distributed.get_rank(), distributed.get_world_size(), device)
    except RuntimeError as error:
        if not any(name in str(error).lower() for name in ("gloo", "nccl")):
            raise
        # What the libraries say when the other end of a connection has closed.
        raise InputError(
            "Another process of this training has ended, and this one cannot go on "
            "alone: its message, or the system's log, says why. Go on with "
            "'torchrun … -m aiayn resume'; what was saved is whole."
        ) from error
    finally:
        distributed.destroy_process_group()


def _gpu_of(local_rank: int) -> torch.device:
    """The GPU of a process, by its number on this machine."""
    number = torch.cuda.device_count()
    if local_rank >= number:
        raise InputError(
            "torchrun began more processes here than there are GPUs, and each takes "
            f"one of its own: give --nproc-per-node {number}."
        )
    return torch.device("cuda", local_rank)
