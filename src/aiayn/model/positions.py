"""§3.5: sinusoidal positional encoding.

The paper's formula divides the exponent by d_model, so the longest wavelength stays
short of the '10000 · 2π' that the text gives; tensor2tensor divides by d_model/2 - 1
and concatenates sines and cosines. Here: the formula as printed.
"""

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

    Computed in float64 and returned in torch's default type.

    Args:
        length: Number of positions.
        d_model: Width; an odd one ends with a sine.
        start: The first position.

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

    >>> SinusoidalPositionalEncoding(d_model=4)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, d_model: int, max_length: int = 1024) -> None:
        super().__init__()
        default = torch.get_default_device()
        # On 'meta' the table stays empty until the first sequence with numbers arrives.
        length = 0 if default.type == "meta" else max_length
        with torch.device("cpu"):  # Apple's GPU has no float64
            table = sinusoidal_positional_encoding(length, d_model)
        self.register_buffer("table", table.to(default), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        start: int = 0,
        positions: Int[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the encodings of positions start, start + 1, … to x, or of those given.

        Args:
            positions: The position of each token; none may exceed the length of x.
        """
        end = start + x.size(1)
        table = self.up_to(end, x)
        return x + (table[start:end] if positions is None else table[positions])

    def up_to(self, end: int, x: Tensor) -> Float[Tensor, "length d_model"]:
        """The table on x's device, which grows where ``end`` positions are too many."""
        table = self.table  # a local variable, because another thread may replace it
        if end > table.size(0):
            # Not an inference tensor, even if a search is first to need it: those
            # cannot take part in training.
            with torch.inference_mode(False), torch.device("cpu"):
                longer = sinusoidal_positional_encoding(2 * end, table.size(1))
                table = longer.to(x.device, table.dtype)
            if not x.is_meta:
                self.table = table
        return table
