"""§5.4: dropout, and why a CPU gets its own.

What is dropped is drawn from 16-bit random integers there: torch draws a float for
every element, which is a quarter of a training step of a small model on a CPU.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.forms import is_plain
from aiayn.model.validation import check_rates

_LEVELS = 2**16


class Dropout(nn.Module):
    r"""Sets each element to zero with probability p, and scales the rest to make up.

    $$\mathrm{Dropout}(x) = x ⊙ m / (1 - p), \quad m_i ∼ \mathrm{Bernoulli}(1 - p)$$

    Args:
        p: The probability; on a CPU it is rounded to the nearest of 65,536 levels.

    Raises:
        InputError: p lies outside [0, 1).

    Paper: §5.4; Srivastava et al. (2014).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        check_rates(dropout=p)
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop in training; return x itself in evaluation."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu" or is_plain():
            return F.dropout(x, self.p)
        # At least one level keeps: 1 / (1 - p) has to stay finite.
        dropped = min(round(self.p * _LEVELS), _LEVELS - 1)
        quads = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(
            -(2**63), None
        )  # each holds four 16-bit integers
        draws = quads.view(torch.int16)[: x.numel()].view(x.shape)
        # Compared in place, they are 1 or 0 and still integers: torch turns booleans
        # into numbers ten times as slowly.
        keep = draws.ge_(dropped - _LEVELS // 2)
        scale = torch.tensor(_LEVELS / (_LEVELS - dropped), dtype=x.dtype)
        if x.dtype == torch.bfloat16:  # 16 bits too: multiply the scale's bit pattern
            return x * keep.mul_(scale.view(torch.int16)).view(x.dtype)
        return x * keep.to(x.dtype).mul_(scale)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"p={self.p}"
