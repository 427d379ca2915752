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


class Dropout(nn.Dropout):
    r"""Sets each element to zero with probability p, and scales the rest to make up.

    $$\mathrm{Dropout}(x) = x ⊙ m / (1 - p), \quad m_i ∼ \mathrm{Bernoulli}(1 - p)$$

    Args:
        p: The probability; on a CPU it is rounded to the nearest of 65,536 levels.

    Raises:
        InputError: p lies outside [0, 1).

    It is an `nn.Dropout` to whatever looks for those, and knows no ``inplace``.

    Paper: §5.4; Srivastava et al. (2014).
    """

    def __init__(self, p: float) -> None:
        check_rates(dropout=p)
        super().__init__(p)

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop in training; return the input itself in evaluation."""
        if not self.training or self.p == 0:
            return input
        if input.device.type != "cpu" or is_plain():
            return F.dropout(input, self.p)
        # At least one level keeps: 1 / (1 - p) has to stay finite.
        dropped = min(round(self.p * _LEVELS), _LEVELS - 1)
        count, device = input.numel(), input.device
        quads = torch.empty((count + 3) // 4, dtype=torch.int64, device=device)
        quads.random_(-(2**63), None)  # each holds four 16-bit integers
        draws = quads.view(torch.int16)[:count].view(input.shape)
        # Compared in place, they are 1 or 0 and still integers: torch turns booleans
        # into numbers ten times as slowly.
        keep = draws.ge_(dropped - _LEVELS // 2)
        scale = input.new_tensor(_LEVELS / (_LEVELS - dropped))
        if input.dtype == torch.bfloat16:  # 16 bits too: multiply the bit pattern
            return input * keep.mul_(scale.view(torch.int16)).view(input.dtype)
        return input * keep.to(input.dtype).mul_(scale)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"p={self.p}"
