"""Dropout with 16-bit integers, on a CPU.

Torch draws one float for every element, which takes a quarter of a training step of a
small model. Here one 64-bit integer decides about four elements.
"""

import torch
from torch import Tensor, nn

from aiayn.fast.conditions import is_transformed

_LEVELS = 2**16


class FastDropout(nn.Dropout):
    r"""`torch.nn.Dropout`; its p is rounded to the nearest of 65,536 levels.

    $$\mathrm{Dropout}(x) = x ⊙ m / (1 - p), \quad m_i ∼ \mathrm{Bernoulli}(1 - p)$$

    Paper: §5.4; Srivastava et al. (2014).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop in training; return the input itself in evaluation."""
        if not self.training or self.p == 0:
            return input
        if self.inplace or self.p == 1 or not input.is_cpu or is_transformed():
            return super().forward(input)
        # Keep one level at least, because 1 / (1 - p) must stay finite.
        dropped = min(round(self.p * _LEVELS), _LEVELS - 1)
        draws = input.new_empty(-(-input.numel() // 4), dtype=torch.int64)
        draws = draws.random_(-(2**63), None).view(torch.int16)  # four for each of them
        # The comparison is in place, so that 1 and 0 are integers: torch converts
        # booleans to floats ten times as slowly.
        keep = draws[: input.numel()].view(input.shape).ge_(dropped - _LEVELS // 2)
        scale = input.new_tensor(_LEVELS / (_LEVELS - dropped))
        if input.dtype == torch.bfloat16:  # 16 bits as well: multiply the bit patterns
            return input * keep.mul_(scale.view(torch.int16)).view(input.dtype)
        return input * keep.to(input.dtype).mul_(scale)
