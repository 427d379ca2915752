"""Dropout with 16-bit integers, on a CPU.

Torch draws one float for every element, which takes a quarter of a training step of a
small model. Here one 64-bit integer decides about four elements.
"""

import torch
from torch import Tensor, nn

from aiayn.fast.conditions import FEW, is_transformed

_LEVELS = 2**16


class FastDropout(nn.Dropout):
    r"""`torch.nn.Dropout`; its p is rounded to the nearest of 65,536 levels.

    $$\mathrm{Dropout}(x) = x ⊙ m / (1 - p), \quad m_i ∼ \mathrm{Bernoulli}(1 - p)$$

    Paper: §5.4; Srivastava et al. (2014).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop in training; return the input itself in evaluation."""
        aside = self.inplace or self.p in (0, 1) or not input.is_cpu
        if not self.training or aside or input.numel() <= FEW or is_transformed():
            return super().forward(input)
        # Keep one level at least, because 1 / (1 - p) must stay finite.
        dropped = min(round(self.p * _LEVELS), _LEVELS - 1)
        count, device = input.numel(), input.device
        draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=device)
        draws.random_(-(2**63), None)  # each holds four 16-bit integers
        levels = draws.view(torch.int16)[:count].view(input.shape)
        # The comparison is in place, so that 1 and 0 are integers: torch converts
        # booleans to floats ten times as slowly.
        keep = levels.ge_(dropped - _LEVELS // 2)
        scale = input.new_tensor(_LEVELS / (_LEVELS - dropped))
        if input.dtype == torch.bfloat16:  # 16 bits as well: multiply the bit patterns
            return input * keep.mul_(scale.view(torch.int16)).view(input.dtype)
        return input * keep.to(input.dtype).mul_(scale)
