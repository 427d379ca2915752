r"""Rotary positions: queries and keys are rotated, each by its position's angles.

The paper adds an encoding to each embedding, once, below the first layer. Su et al.
(2021) instead rotate each pair of entries of a query and of a key by an angle that
grows with the position. Then a score depends on the distance of two positions only:

$$(R_m q) \cdot (R_n k) = q^\top R_{n - m} \, k$$

Chapter 21 derives it.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.attention import MultiHeadAttention
from aiayn.model.cache import KVCache
from aiayn.model.positions import SinusoidalPositionalEncoding
from aiayn.model.validation import check_rotary


def rotate(
    x: Float[Tensor, "*batch length d_k"], sinusoids: Float[Tensor, "length d_k"]
) -> Float[Tensor, "*batch length d_k"]:
    r"""Rotate pair i of every vector, $(x_i, x_{i + d_k / 2})$, by its angle.

    $$\begin{aligned}
    x_i & ↦ x_i \cos φ_i - x_{i + d_k / 2} \sin φ_i \\
    x_{i + d_k / 2} & ↦ x_i \sin φ_i + x_{i + d_k / 2} \cos φ_i
    \end{aligned}$$

    with $φ_i = pos / 10000^{2i / d_k}$, the angles of the paper's sinusoids.

    Args:
        x: Queries or keys, one a position.
        sinusoids: The rows of `sinusoidal_positional_encoding` for these positions, of
            width d_k.

    Not in the paper: Su et al. (2021). There neighbours form a pair; pairs across the
    two halves are faster, and a model can learn with either.

    >>> x = torch.randn(7, 4)
    >>> rotated = rotate(x, sinusoidal_positional_encoding(7, 4))
    >>> torch.allclose(rotated.norm(dim=-1), x.norm(dim=-1))  # lengths stay the same
    True
    """
    sin, cos = sinusoids[:, 0::2].to(x.dtype), sinusoids[:, 1::2].to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    swapped = torch.cat([second, first], dim=-1)  # (..., length, d_k)
    unmixed = x * torch.cat([cos, cos], dim=-1)
    return torch.addcmul(unmixed, swapped, torch.cat([-sin, sin], dim=-1))


class RotaryAttention(MultiHeadAttention):
    r"""Self-attention whose scores depend on the distance of two positions.

    $$\mathrm{head}_i = \mathrm{Attention}(R\, Q W^Q_i, R\, K W^K_i, V W^V_i)$$

    where R rotates each row by the angles of its position. Keys are cached after their
    rotation, so a decoding step rotates its own query and key only.

    Args:
        sizes: As of `MultiHeadAttention`: d_model, num_heads, d_k, d_v, dropout.
        options: The same by their names.

    Raises:
        InputError: As `MultiHeadAttention`; or d_k is odd; or, in a call, query and key
            differ in length.

    Not in the paper: Su et al. (2021).

    >>> attention = RotaryAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(1, 5, 8)
    >>> shifted = torch.cat([torch.zeros(1, 3, 8), x], dim=1)  # three positions later
    >>> visible = torch.arange(8) >= 3
    >>> later = attention(shifted, shifted, shifted, visible.expand(8, 8))[0]
    >>> torch.allclose(later[:, 3:], attention(x, x, x)[0], atol=1e-6)
    True
    """

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        check_rotary(self.d_k)
        self.positions = SinusoidalPositionalEncoding(self.d_k)

    def forward(self, query, key, value, *args, **options):
        """As `MultiHeadAttention.forward`, for a sequence that attends to itself."""
        if query.dim() == 3 == key.dim() and query.size(1) != key.size(1):
            raise InputError(
                "Rotary attention is for a sequence that attends to itself, but there "
                f"are {query.size(1)} queries and {key.size(1)} keys."
            )
        return super().forward(query, key, value, *args, **options)

    def project_query(self, query: Tensor, cache: KVCache | None = None) -> Tensor:
        """The queries of every head, rotated."""
        return self._rotate(super().project_query(query), cache)

    def project_kv(self, key, value, cache: KVCache | None = None) -> Any:
        """The keys of every head, rotated, and the values."""
        keys, values = super().project_kv(key, value)
        keys = self._rotate(keys, cache)
        return (keys, values) if cache is None else cache.append(keys, values)

    def _rotate(self, x: Tensor, cache: KVCache | None) -> Tensor:
        """Rotate rows that follow those in the cache."""
        start = 0 if cache is None else cache.length
        end = start + x.size(2)
        return rotate(x, self.positions.up_to(end, x)[start:end])
