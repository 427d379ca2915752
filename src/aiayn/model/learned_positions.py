"""Table 3, row (E): learned positions instead of sinusoids; and none at all."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aiayn.errors import InputError


class LearnedPositionalEncoding(nn.Module):
    r"""Adds a learned vector for each position, as Table 3's row (E) does.

    $$x_{pos} + P_{pos}, \quad P ∈ ℝ^{max\_length × d_\text{model}}$$

    Args:
        d_model: Width of the sequence.
        max_length: Rows of the table: the longest sequence that it can encode.

    Paper: §3.5, §6.2; Gehring et al. (2017).

    >>> positions = LearnedPositionalEncoding(d_model=4, max_length=10)
    >>> positions(torch.zeros(1, 3, 4)).shape  # an eleventh position has no vector
    torch.Size([1, 3, 4])
    """

    def __init__(self, d_model: int, max_length: int = 1024) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        # The paper does not say. As the embeddings, but without their √d_model, so that
        # words weigh more than positions at first.
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        start: int = 0,
        positions: Int[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the vectors of positions start, start + 1, … to x, or of those given.

        Raises:
            InputError: The sequence is longer than the table.
        """
        end = start + x.size(1)
        if end > self.table.size(0):
            raise InputError(
                f"A sequence of {end} positions does not fit in the learned table of "
                f"max_length = {self.table.size(0)}: shorten it, or train with a "
                "larger max_length or with sinusoidal positions."
            )
        table = self.table
        return x + (table[start:end] if positions is None else table[positions])


class NoPositionalEncoding(nn.Module):
    """Adds nothing, for models whose attention encodes the positions.

    Not in the paper: `RotaryAttention` needs it.

    >>> x = torch.randn(1, 3, 4)
    >>> NoPositionalEncoding()(x) is x
    True
    """

    def forward(self, x: Tensor, start: int = 0, positions: Any = None) -> Tensor:
        """Return x itself."""
        return x
