"""§3.5: sinusoidal positional encoding.

The paper's formula divides the exponent by d_model, so the longest wavelength stays
short of the '10000 · 2π' that the text gives; tensor2tensor divides by d_model/2 - 1
and concatenates sines and cosines. Here: the formula as printed.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoidal_positional_encoding(
    length: int, d_model: int, start: int = 0
) -> Float[Tensor, "length d_model"]:
    r"""Sines and cosines of geometrically growing wavelengths, interleaved.

    $$\begin{aligned}
    PE_{(pos, 2i)} &= \sin(pos / 10000^{2i / d_\text{model}}) \\
    PE_{(pos, 2i + 1)} &= \cos(pos / 10000^{2i / d_\text{model}})
    \end{aligned}$$

    Args:
        length: Number of positions.
        d_model: Width; an odd one ends with a sine.
        start: The first position.

    Returns:
        The table, computed in float64 and returned in torch's default type.

    Paper: §3.5.

    The first two positions; sin 1 and cos 1 change fast, the other pair slowly:

    >>> sinusoidal_positional_encoding(2, d_model=4).round(decimals=4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 1.0000]])
    """
    position = torch.arange(start, start + length, dtype=torch.float64)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = position[:, None] / 10000.0**exponent  # (length, ceil(d_model / 2))
    table = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (length, …, 2)
    table = table.flatten(1)[:, :d_model]  # (length, d_model), sin and cos in turn
    return table.to(torch.get_default_dtype())


class SinusoidalPositionalEncoding(nn.Module):
    r"""Adds the sinusoids to a sequence. Nothing is learned, and any length works.

    $$x_{pos} + PE_{pos}$$

    Args:
        d_model: Width of the sequence.
        max_length: Positions computed beforehand; the table grows when more are needed.

    Paper: §3.5.

    >>> positions = SinusoidalPositionalEncoding(d_model=4)
    >>> positions(torch.zeros(1, 3, 4)).equal(
    ...     sinusoidal_positional_encoding(3, 4)[None]
    ... )
    True
    """

    def __init__(self, d_model: int, max_length: int = 1024) -> None:
        super().__init__()
        default = torch.get_default_device()
        # On the CPU, since Apple's GPU has no float64; on 'meta' nothing is computed.
        with torch.device("meta" if default.type == "meta" else "cpu"):
            table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table.to(default), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        start: int = 0,
        positions: Int[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the encodings of positions start, start + 1, … to x, or of those given.

        Args:
            x: The embedded sequence.
            start: Its first position.
            positions: The position of each token; none may exceed the length of x.
        """
        end = start + x.size(1)
        table = self.up_to(end, x)
        return x + (table[start:end] if positions is None else table[positions])

    def up_to(self, end: int, x: Tensor) -> Float[Tensor, "length d_model"]:
        """The table on x's device, with at least ``end`` positions.

        It grows where necessary. A model that was made on 'meta' has no numbers in its
        table until the first sequence arrives.
        """
        table = self.table  # a local variable, because another thread may replace it
        if end > table.size(0) or (table.is_meta and not x.is_meta):
            length = max(2 * end, table.size(0))
            # Not an inference tensor, even if a search is first to need it: those
            # cannot take part in training. On the CPU, because MPS has no float64.
            with torch.inference_mode(False), torch.device("cpu"):
                longer = sinusoidal_positional_encoding(length, table.size(1))
                self.table = table = longer.to(x.device, table.dtype)
        return table

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """As in every module; but fill the table that `to_empty` leaves empty."""
        was_on_meta = self.table.is_meta
        super()._apply(fn, recurse)
        if was_on_meta and not self.table.is_meta:
            with torch.device("cpu"):
                self.table.copy_(sinusoidal_positional_encoding(*self.table.shape))
        return self
