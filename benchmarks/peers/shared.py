"""What several adapters share: the optimizer step of a model that returns its loss."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from aiayn.errors import InputError
from aiayn.model import TransformerConfig
from aiayn.training import noam_rate
from aiayn.training.trainer import to_device
from benchmarks.workload import LABEL_SMOOTHING

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2

Step = Callable[[Tensor, Tensor], Tensor]
Translate = Callable[[list[list[int]], int], list[list[int]]]


@dataclass(frozen=True)
class Schedule:
    """The paper's learning rate, equation (3), times a factor."""

    warmup_steps: int = 4000
    scale: float = 1.0

    def rate(self, number: int, width: int) -> float:
        """The rate of a step, counted from 1, for a model of that d_model."""
        return self.scale * noam_rate(number, width, self.warmup_steps)


def optimizer_step(
    loss_of: Step, model: nn.Module, width: int, narrow: bool, schedule: Schedule
) -> Step:
    """Forward, loss, backward and Adam's step, at the paper's learning rate.

    Every peer gets torch's fused Adam, whichever its own trainer takes, our way to the
    device, and on a CPU the faster of torch's attentions, so that the difference
    between two peers lies in model and loss.

    Args:
        loss_of: From source and target to the mean loss of a batch.
        model: What Adam moves, on the device that it computes on.
        width: The model's d_model, which the learning rate depends on.
        narrow: Compute in bfloat16 where autocast does.
        schedule: The learning rate.
    """
    device = next(model.parameters()).device
    adam = torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    number = 0

    def step(source: Tensor, target: Tensor) -> Tensor:
        nonlocal number
        number += 1
        model.train()  # a search may have come between two steps
        adam.param_groups[0]["lr"] = schedule.rate(number, width)
        source, target = to_device(device, source, target)
        with _faster_attention(device, narrow):
            with torch.autocast(device.type, torch.bfloat16, enabled=narrow):
                loss = loss_of(source, target)
            adam.zero_grad()
            loss.backward()
        adam.step()
        return loss.detach()

    return step


def _faster_attention(
    device: torch.device, narrow: bool
) -> AbstractContextManager[None]:
    """On a CPU, in 16 bits, torch's fused attention is slower than its plain one."""
    if device.type == "cpu" and narrow:
        return sdpa_kernel(SDPBackend.MATH)
    return nullcontext()


def check_sinusoids(config: TransformerConfig) -> None:
    """The peers that take our weights add sinusoids, and turn no queries.

    Raises:
        InputError: The weights would fit, and mean something else.
    """
    if config.positions != "sinusoidal":
        raise InputError(
            f"it adds sinusoids, and the model has positions = {config.positions!r}"
        )


def plain_loss(logits: Tensor, target: Tensor) -> Tensor:
    """torch's label-smoothed cross-entropy, over all positions but padding."""
    return F.cross_entropy(
        logits.flatten(0, 1),
        target.flatten(),
        ignore_index=PAD_ID,
        label_smoothing=LABEL_SMOOTHING,
    )


def shift_right(target: Tensor) -> Tensor:
    """What a decoder reads: BOS, then the target without its last token."""
    return torch.cat([torch.full_like(target[:, :1], BOS_ID), target[:, :-1]], dim=1)


def padded(rows: list[list[int]], model: nn.Module) -> Tensor:
    """Rows of ids as one tensor, where the model is."""
    rows_of_tensors = [torch.tensor(row) for row in rows]
    made = nn.utils.rnn.pad_sequence(
        rows_of_tensors, batch_first=True, padding_value=PAD_ID
    )
    return made.to(next(model.parameters()).device)


def before_the_end(output: list[int]) -> list[int]:
    """An output up to its first EOS, without BOS and padding."""
    if EOS_ID in output:
        output = output[: output.index(EOS_ID)]
    return [token for token in output if token not in (PAD_ID, BOS_ID)]
