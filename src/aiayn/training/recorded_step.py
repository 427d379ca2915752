"""Small steps on a GPU, recorded once for each shape and then played back.

A step of a small model is a thousand kernels of a few microseconds, and Python needs
longer to ask for each of them than the GPU to compute it. A CUDA graph is a recording
of all that was asked for, with the places in memory that it reads and writes. Played
back it is one call.

What is recorded has to be the same every time: shapes, and whatever Python decided. So
each shape of a batch has a recording of its own, no kernel may wait for a number, and
what changes from step to step, the batch and the rate, lies in tensors that stay where
they are. Dropout draws anew all the same: torch sets the generator's seed beforehand.
Whoever changes a model between two steps in other ways than its weights, by a hook or
another rate of dropout, computes in the plain form (`aiayn.model.forms.plain_form`),
which is not recorded.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Places of a batch, padding included, up to which Python is the slower one.
PLACES = 2**13
# Logits are all held at once here, those of padding too: a gigabyte or two at most.
LOGITS = 2**27
# Each takes a few megabytes of the GPU's memory; later shapes are not recorded.
RECORDINGS = 256


Step = Callable[[Tensor, Tensor], Tensor]
"""A whole step, from source and target on the GPU to numbers about it, by kernels that
wait for nothing."""


@dataclass
class Recorder:
    """Does a step by Python the first time that a shape comes by, then by recording.

    Args:
        model: Whose weights and buffers a step's kernels read and write.
        pad_id: What fills short rows.
    """

    model: nn.Module
    pad_id: int
    _weights: list[nn.Parameter] = field(init=False)
    _seen: set[tuple] = field(default_factory=set)
    _recordings: dict[tuple, "_Recording"] = field(default_factory=dict)
    _place: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights = [*self.model.parameters()]  # to look for them takes a while

    def __call__(self, step: Step, source: Tensor, target: Tensor) -> Tensor:
        """The step's numbers, whichever way it was done.

        Args:
            step: The same at every call; it is not kept.
            source: Token ids on the GPU.
            target: Likewise.
        """
        source, target = (self._rounded_up(side) for side in (source, target))
        key = source.shape, source.dtype, target.shape, target.dtype, self._places()
        if key in self._recordings:
            return self._recordings[key].play(source, target)
        if key not in self._seen or len(self._recordings) == RECORDINGS:
            self._seen.add(key)  # some shapes never come again
            return step(source, target)
        self._recordings[key] = recording = self._record(step, source, target)
        return recording.play(source, target)  # to record is not to compute

    def forget(self) -> None:
        """Forget all recordings: the optimizer's means lie elsewhere now."""
        self._seen.clear()
        self._recordings.clear()
        self._place = {}  # the memory goes with the last of them

    def _rounded_up(self, tokens: Tensor) -> Tensor:
        """Padded, so that there are fewer shapes; up to `PLACES` it is no slower."""
        length = rounded_up(tokens.size(1))
        return F.pad(tokens, (0, length - tokens.size(1)), value=self.pad_id)

    def _places(self) -> tuple[tuple[int, bool], ...]:
        """Where weights lie, and which learn: both may have changed meanwhile."""
        return tuple((w.data_ptr(), w.requires_grad) for w in self._weights)

    def _record(self, step: Step, source: Tensor, target: Tensor) -> "_Recording":
        if not self._place:
            self._place = {
                # Never played at once, all may use the same memory.
                "pool": torch.cuda.graph_pool_handle(),
                # cuBLAS keeps memory for each stream, and torch frees it with the first
                # recording of that stream that ends: another Recorder has another.
                "stream": torch.cuda.Stream(source.device),
            }
        graph = torch.cuda.CUDAGraph()
        source, target = source.clone(), target.clone()
        with torch.cuda.graph(graph, **self._place, capture_error_mode="thread_local"):
            numbers = step(source, target)
        return _Recording(
            graph.replay, source, target, numbers, [*self.model.buffers()]
        )


def rounded_up(length: int) -> int:
    """The length that a row of a recorded batch is padded to: it divides by 8."""
    return length + -length % 8


@dataclass(frozen=True)
class _Recording:
    """A graph, and the tensors that it reads its batch from and writes numbers to."""

    replay: Callable[[], None]
    source: Tensor
    target: Tensor
    numbers: Tensor
    read: list[Tensor]
    """Buffers, which the model may exchange: a table of positions grows."""

    def play(self, source: Tensor, target: Tensor) -> Tensor:
        self.source.copy_(source)
        self.target.copy_(target)
        self.replay()
        return self.numbers.clone()
