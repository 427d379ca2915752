"""How the processes that ``torchrun`` started find one another."""

import atexit
import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from aiayn.device import resolve_device
from aiayn.errors import InputError
from aiayn.training.processes import Processes

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


@contextmanager
def processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that ``torchrun`` started, and leave them at the end.

    Without torchrun, this process is the only one.

    Args:
        device: The kind of device; each process takes the GPU of its local rank.

    Raises:
        InputError: There are more processes than GPUs, of which Apple's are one; they
            cannot find one another; or another process has ended, so that this one
            cannot continue.
    """
    started = {"RANK", "LOCAL_RANK", "WORLD_SIZE"} <= os.environ.keys()
    if not started or not distributed.is_available():
        yield Processes(device=device)
        return
    on_gpu = device.type == "cuda"
    if device.type != "cpu":  # each process needs a GPU of its own; a Mac has one
        device = resolve_device(f"{device.type}:{os.environ['LOCAL_RANK']}")
    backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
    try:
        with torch.cuda.device(device) if on_gpu else nullcontext():
            try:
                distributed.init_process_group(backend, timeout=TIMEOUT)
            except (RuntimeError, ValueError) as error:
                raise InputError(f"The processes cannot join: {error}") from error
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


def distribute(criterion: nn.Module, processes: Processes) -> nn.Module:
    """The criterion, in DistributedDataParallel if there are several processes."""
    if processes.world_size == 1:
        return criterion
    with warnings.catch_warnings():
        # torch 2.13 renamed the argument; older versions know this name only.
        warnings.filterwarnings("ignore", ".*broadcast_buffers")
        return DistributedDataParallel(criterion, broadcast_buffers=False)
