r"""Rotary positions: queries and keys turned by where they stand, nothing added.

The paper adds a position to each word, once, below the first layer, and leaves it to
the layers to find distances in the sums. Su et al. (2021) turn each pair of numbers of
a query and of a key by an angle that grows with the place. A score is then

$$(R_m q) \cdot (R_n k) = q^\top R_{n - m} \, k$$

and knows the distance of two words only. So nothing has to know where in a row a
sentence begins: packed rows turn as they stand. Chapter 21 derives it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.attention import MultiHeadAttention
from aiayn.model.positional import SinusoidalPositionalEncoding
from aiayn.model.validation import check_rotary


def rotate(
    x: Float[Tensor, "*batch length d_k"],
    sinusoids: Float[Tensor, "length d_k"],
) -> Float[Tensor, "*batch length d_k"]:
    r"""Turn pair i of every vector, $(x_i, x_{i + d_k / 2})$, by its place's angle.

    $$\begin{aligned}
    x_i & ↦ x_i \cos φ_i - x_{i + d_k / 2} \sin φ_i \\
    x_{i + d_k / 2} & ↦ x_i \sin φ_i + x_{i + d_k / 2} \cos φ_i
    \end{aligned}$$

    with $φ_i = pos / 10000^{2i / d_k}$, the angles of the paper's sinusoids.

    Args:
        x: Queries or keys, one a place.
        sinusoids: The rows of `sinusoidal_positional_encoding` for those places, of
            width d_k.

    Not in the paper: Su et al. (2021), whose pairs are neighbours. Halves are faster,
    and a model that learns with either cannot tell.

    >>> x = torch.randn(7, 4)
    >>> turned = rotate(x, sinusoidal_positional_encoding(7, 4))
    >>> torch.allclose(turned.norm(dim=-1), x.norm(dim=-1))  # no vector grows
    True
    """
    sin, cos = sinusoids[:, 0::2].to(x.dtype), sinusoids[:, 1::2].to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    crossed = torch.cat([second, first], dim=-1)
    straight = x * torch.cat([cos, cos], dim=-1)
    return torch.addcmul(straight, crossed, torch.cat([-sin, sin], dim=-1))


class RotaryAttention(MultiHeadAttention):
    r"""Self-attention whose scores depend on the distance of two words.

    $$\mathrm{head}_i = \mathrm{Attention}(R\, Q W^Q_i, R\, K W^K_i, V W^V_i)$$

    with R turning each row by its place. The queries are the last of the keys' places,
    as they are when a decoder writes. Keys are kept as they were projected.

    Args:
        d_model: Width of inputs and outputs.
        num_heads: The paper's h.
        d_k: Width of a head's queries and keys; None: d_model / num_heads.
        d_v: Width of a head's values; None: d_model / num_heads.
        dropout: Probability that a weight is dropped in training.
        max_length: Positions computed beforehand; there is no limit.

    Raises:
        InputError: As `MultiHeadAttention`, and if d_k is odd or (in a call) there are
            more queries than keys.

    Not in the paper: Su et al. (2021).

    >>> attention = RotaryAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(1, 5, 8)
    >>> shifted = torch.cat([torch.zeros(1, 3, 8), x], dim=1)  # three places later
    >>> seen = torch.arange(8) >= 3
    >>> later = attention(shifted, shifted, shifted, seen[None])[0]
    >>> torch.allclose(later[:, 3:], attention(x, x, x)[0], atol=1e-6)
    True
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        max_length: int = 1024,
    ) -> None:
        super().__init__(d_model, num_heads, d_k, d_v, dropout)
        check_rotary(self.d_k)
        self.positions = SinusoidalPositionalEncoding(self.d_k, max_length)

    def mix(
        self,
        queries: Float[Tensor, "batch heads queries d_k"],
        keys: Float[Tensor, "batch heads keys d_k"],
        values: Float[Tensor, "batch heads keys d_v"],
        mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch heads queries d_v"],
        Float[Tensor, "batch heads queries keys"] | None,
    ]:
        """Turn queries and keys, then as `MultiHeadAttention.mix`."""
        end = keys.size(2)
        if queries.size(2) > end:
            raise InputError(
                f"{queries.size(2)} queries have no places among {end} keys: rotary "
                "attention is for a sequence that looks at itself."
            )
        sinusoids = self.positions.up_to(end, keys)[:end]
        queries = rotate(queries, sinusoids[end - queries.size(2) :])
        keys = rotate(keys, sinusoids)
        return super().mix(queries, keys, values, mask, need_weights)
