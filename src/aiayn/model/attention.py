"""§3.2: scaled dot-product attention, equation (1), and multi-head attention.

A query that may attend to no key gets zeros: the paper's formula has no value there.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.model.cache import KVCache
from aiayn.model.choices import AttentionCall
from aiayn.model.masks import Mask, check_mask
from aiayn.model.validation import check_attention, explain_sequences, head_widths


def scaled_dot_product_attention(
    query: Float[Tensor, "*#batch queries d_k"],
    key: Float[Tensor, "*#batch keys d_k"],
    value: Float[Tensor, "*#batch keys d_v"],
    mask: Bool[Tensor, "*#batch #queries #keys"] | None = None,
) -> tuple[Float[Tensor, "*#batch queries d_v"], Float[Tensor, "*#batch queries keys"]]:
    r"""The mean of the values, weighted by how well each key answers the query.

    $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}(Q K^\top / \sqrt{d_k})\, V$$

    Args:
        query: What each position looks for. Leading dimensions broadcast.
        key: What each position answers to.
        value: What each position has to give.
        mask: True where a query may attend to a key, of as many dimensions as the
            scores, or (queries, keys); None: everywhere.

    Raises:
        InputError: Their shapes do not fit together, or the mask is not boolean.

    Returns:
        The context, a weighted mean of values for each query, and the weights, which
        sum to one over the keys (to zero where a query may attend to nothing).

    Paper: §3.2.1, equation (1).

    Dot products of 2 ln 3 and 0, divided by √4, give weights of 3/4 and 1/4:

    >>> import math
    >>> query = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    >>> key = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    >>> value = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    >>> context, weights = scaled_dot_product_attention(query, key, value)
    >>> weights.round(decimals=4), context.round(decimals=4)
    (tensor([[0.7500, 0.2500]]), tensor([[3., 2.]]))
    """
    check_attention(query, key, value)
    d_k = query.size(-1)
    scores = query @ key.mT / math.sqrt(d_k)  # (..., queries, keys)
    weights = softmax_over_keys(scores, mask)  # (..., queries, keys)
    return weights @ value, weights  # (..., queries, d_v)


def softmax_over_keys(
    scores: Float[Tensor, "*batch queries keys"], mask: Mask | None = None
) -> Float[Tensor, "*batch queries keys"]:
    """Turn scores into weights that sum to one over the keys that a query may see.

    Args:
        scores: How well each key matches each query.
        mask: True where a query may attend to a key; None: everywhere.

    Returns:
        The weights. Where the mask is False they are exactly zero, and so is the whole
        row of a query that may attend to no key.

    Raises:
        InputError: The mask is not boolean, or its shape does not fit the scores.

    Paper: §3.2.1 and §3.2.3.
    """
    check_mask(mask, scores.shape)
    if scores.dtype == torch.float16:  # its largest number is 65,504; ∞ - ∞ is NaN
        largest = torch.finfo(torch.float16).max
        scores = scores.clamp(-largest, largest)
    if mask is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # a row of -∞ alone would be NaN


class MultiHeadAttention(nn.Module):
    r"""Several attentions in parallel, each in its own low-dimensional space.

    $$\begin{aligned}
    \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, …,
    \mathrm{head}_h)\, W^O \\
    \mathrm{head}_i &= \mathrm{Attention}(Q W^Q_i, K W^K_i, V W^V_i)
    \end{aligned}$$

    with $W^Q_i, W^K_i ∈ ℝ^{d_\text{model} × d_k}$, $W^V_i ∈ ℝ^{d_\text{model} × d_v}$
    and $W^O ∈ ℝ^{h d_v × d_\text{model}}$. The h matrices of a kind are stored as one,
    so that the 3h + 1 products of the paper become four. There are no biases.

    Args:
        d_model: Width of inputs and outputs.
        num_heads: The paper's h.
        d_k: Width of a head's queries and keys; None: d_model / num_heads.
        d_v: Width of a head's values; None: d_model / num_heads.
        dropout: Probability that a weight is dropped in training; not in §5.4.

    Raises:
        InputError: A size is not positive, or num_heads does not divide d_model
            although d_k or d_v is left out. In a call: the shapes of query, key, value
            or mask do not fit together, or the mask is not boolean.

    Paper: §3.2.2.

    >>> attention = MultiHeadAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(1, 5, 8)  # one sentence of five words
    >>> output, weights = attention(x, x, x, causal_mask(5), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([1, 5, 8]), torch.Size([1, 2, 5, 5]))
    """

    __call__: AttentionCall  # pyright: ignore[reportIncompatibleMethodOverride]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_k, self.d_v = head_widths(d_model, num_heads, d_k, d_v)
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.query_projection = nn.Linear(d_model, num_heads * self.d_k, bias=False)
        self.key_projection = nn.Linear(d_model, num_heads * self.d_k, bias=False)
        self.value_projection = nn.Linear(d_model, num_heads * self.d_v, bias=False)
        self.output_projection = nn.Linear(num_heads * self.d_v, d_model, bias=False)
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)  # the paper does not say how

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        key: Float[Tensor, "batch keys d_model"] | None,
        value: Float[Tensor, "batch keys d_model"] | None,
        mask: Mask | None = None,
        need_weights: bool = False,
        cache: KVCache | None = None,
    ) -> tuple[Float[Tensor, "batch queries d_model"], Tensor | None]:
        """Project, attend in every head, concatenate, project.

        Args:
            query: The sequence that attends.
            key: The sequence that is attended to. None: what the cache holds.
            value: What is averaged, nearly always the same tensor as key.
            mask: True where a query may attend to a key: (queries, keys), or four
                dimensions that broadcast to (batch, heads, queries, keys).
            need_weights: Return the attention weights as well.
            cache: Of earlier positions; those of this call are appended.

        Returns:
            The output, and the weights (batch, heads, queries, keys) or None.
        """
        _check_sequences(self.query_projection.in_features, query, key, value)
        queries = self.project_query(query, cache)  # (batch, heads, queries, d_k)
        keys, values = self.project_kv(key, value, cache)
        context, weights = self.attention(queries, keys, values, mask, need_weights)
        return self.output_projection(context.transpose(1, 2).flatten(2)), weights

    def project_query(self, query: Tensor, cache: KVCache | None = None) -> Tensor:
        """The queries of every head: (batch, heads, queries, d_k)."""
        return split_heads(self.query_projection(query), self.num_heads)

    def project_kv(self, key, value, cache: Any = None) -> Any:
        """Each head's keys (batch, heads, keys, d_k) and values, with those cached."""
        if key is None:
            return cache.keys, cache.values
        keys = split_heads(self.key_projection(key), self.num_heads)
        values = split_heads(self.value_projection(value), self.num_heads)
        return (keys, values) if cache is None else cache.append(keys, values)

    def attention(self, queries, keys, values, mask=None, need_weights=False):
        """Equation (1) in every head: the context (batch, heads, queries, d_v)."""
        weights = softmax_over_keys(queries @ keys.mT / math.sqrt(self.d_k), mask)
        return self.dropout(weights) @ values, weights if need_weights else None


def split_heads(
    x: Float[Tensor, "batch length heads_times_width"], num_heads: int
) -> Float[Tensor, "batch heads length width"]:
    """Cut each vector into one part a head, and put the heads before the positions.

    Args:
        x: What a projection gave, the parts of all heads side by side.
        num_heads: The paper's h.

    Paper: §3.2.2.

    >>> split_heads(torch.zeros(1, 5, 6), num_heads=2).shape
    torch.Size([1, 2, 5, 3])
    """
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _check_sequences(width: int, *tensors: Tensor | None) -> None:
    """Query, key and value of several heads: batches of the same sentences."""
    given = [x for x in tensors if x is not None]
    shapes = [x.shape for x in given]
    fits = all(len(s) == 3 and (s[0], s[2]) == (shapes[0][0], width) for s in shapes)
    if not fits or (shapes[1:] and shapes[1][1] != shapes[-1][1]):
        raise InputError(explain_sequences(width, *given))
