"""Small training steps on a GPU, recorded once for each shape and then replayed.

A step of a small model is a thousand kernels of a few microseconds, and Python takes
longer to launch each of them than the GPU takes to compute it. A CUDA graph is a
recording of all launches, with the addresses that they read and write. Replaying it is
one call.

A recording must be the same every time: the shapes, and whatever Python decided. So
each shape of a batch has its own; no kernel may wait for a number; and what changes
from step to step, the batch and the learning rate, lies in tensors that stay where they
are. Dropout still draws new numbers, because torch sets the generator's seed before a
replay. If you change the model between two steps in another way than by its weights (a
hook, another rate of dropout), train without acceleration (``fast=False``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.config import TransformerConfig

MAX_TOKENS = 2**13
"""Token slots of a batch, padding included, up to which Python is the slower one."""
MAX_LOGITS = 2**27
"""Logits of a batch. A recorded step holds all of them at once, in 1 to 2 GB."""
MAX_GRAPHS = 256
"""Recordings; each takes a few megabytes of the GPU's memory."""


Step = Callable[[Tensor, Tensor], Tensor]
"""A training step, from source and target on the GPU to its sums, without waiting."""


class CUDAGraphRunner:
    """Runs a step by Python the first time that a shape occurs, then by a recording.

    Args:
        model: Whose weights and buffers the step reads and writes.
        pad_id: What fills short rows.
    """

    def __init__(self, model: nn.Module, pad_id: int) -> None:
        self.model, self.pad_id = model, pad_id
        self._weights = [*model.parameters()]  # collecting them takes time
        self.reset()

    def reset(self) -> None:
        """Drop all recordings: the optimizer's state has other addresses now."""
        self._seen: set[tuple] = set()
        self._graphs: dict[tuple, _Graph] = {}
        self._memory: dict[str, Any] = {}  # it is freed with the last recording

    def __call__(self, step: Step, source: Tensor, target: Tensor) -> Tensor:
        """Run the step, and return its sums.

        Args:
            step: The same at every call.
            source: Token ids on the GPU.
            target: Likewise.
        """
        source, target = (self._padded(side) for side in (source, target))
        key = source.shape, source.dtype, target.shape, target.dtype, self._addresses()
        if key in self._graphs:
            return self._graphs[key].replay(source, target)
        if key not in self._seen or len(self._graphs) == MAX_GRAPHS:
            self._seen.add(key)  # some shapes occur only once
            return step(source, target)
        self._graphs[key] = graph = self._capture(step, source, target)
        return graph.replay(source, target)  # capture runs nothing; replay does

    def takes(self, source: Tensor, target: Tensor, vocab_size: int) -> bool:
        """Whether a batch is so small that a recording pays, and its logits fit."""
        sizes = [len(side) * padded_length(side.size(1)) for side in (source, target)]
        return max(sizes) <= MAX_TOKENS and sizes[1] * vocab_size <= MAX_LOGITS

    def _padded(self, tokens: Tensor) -> Tensor:
        """Padded to a multiple of eight, so that fewer shapes occur."""
        length = padded_length(tokens.size(1))
        return F.pad(tokens, (0, length - tokens.size(1)), value=self.pad_id)

    def _addresses(self) -> tuple[tuple[int, bool], ...]:
        """The weights' addresses, and which of them learn: both may have changed."""
        return tuple((w.data_ptr(), w.requires_grad) for w in self._weights)

    def _capture(self, step: Step, source: Tensor, target: Tensor) -> "_Graph":
        if not self._memory:
            self._memory = {
                # Only one graph runs at a time, so all may use the same memory.
                "pool": torch.cuda.graph_pool_handle(),
                # cuBLAS keeps memory for each stream, which torch frees with the first
                # recording of that stream that ends. So each runner has its own.
                "stream": torch.cuda.Stream(source.device),
            }
        graph = torch.cuda.CUDAGraph()
        source, target = source.clone(), target.clone()
        with torch.cuda.graph(graph, **self._memory, capture_error_mode="thread_local"):
            sums = step(source, target)
        return _Graph(graph, source, target, sums, [*self.model.buffers()])


def can_record(config: Any, model: Any, processes: Any) -> bool:
    """Whether the steps of a training do the same every time, on one GPU.

    Processes that exchange gradients and compiled graphs have launches of their own;
    Muon's rate is a number in Python; a learned table of positions may have no rows for
    a longer batch; and torch's anomaly detection waits for numbers.

    Args:
        config: A `TrainingConfig`.
        model: The model's configuration.
        processes: Who takes part, and where.
    """
    return (
        processes.device.type == "cuda"
        and processes.world_size == 1
        and isinstance(model, TransformerConfig)
        and (model.positions != "learned" or model.max_length % 8 == 0)
        and config.optimizer == "adam"
        and not config.compile
        and not torch.is_anomaly_enabled()
    )


def padded_length(length: int) -> int:
    """The length of a row in a recorded batch: the next multiple of eight."""
    return length + -length % 8


@dataclass(frozen=True)
class _Graph:
    """A recording, and the tensors that it reads its batch from and writes sums to."""

    graph: torch.cuda.CUDAGraph
    source: Tensor
    target: Tensor
    sums: Tensor
    buffers: list[Tensor]
    """Kept alive: the model may replace them, as a table of positions that grows."""

    def replay(self, source: Tensor, target: Tensor) -> Tensor:
        self.source.copy_(source)
        self.target.copy_(target)
        self.graph.replay()
        return self.sums.clone()
