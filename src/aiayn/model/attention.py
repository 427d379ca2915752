"""§3.2: scaled dot-product attention, equation (1), and multi-head attention.

Beside them stands additive attention (Bahdanau et al., 2015), against which §3.2.1
compares. Nothing here differs from the paper, except that a query which may attend to
nothing gets zeros (the paper's formula has no value there).
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.dropout import Dropout
from aiayn.model.forms import is_plain
from aiayn.model.gpu_attention import goes_to_kernels, gpu_attention
from aiayn.model.products import Linear
from aiayn.model.short_attention import short_attention
from aiayn.model.validation import check_mask, check_rates, head_widths

# With more keys torch's fused kernel pays on a CPU: its backward is slow below.
FUSED_ABOVE = 128


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
        mask: True where a query may attend to a key; None: everywhere.

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
    d_k = query.size(-1)
    scores = query @ key.mT / math.sqrt(d_k)  # (..., queries, keys)
    weights = _softmax_over_keys(scores, mask)  # (..., queries, keys)
    return weights @ value, weights  # (..., queries, d_v)


def additive_attention(
    query: Float[Tensor, "*#batch queries d_k"],
    key: Float[Tensor, "*#batch keys d_k"],
    value: Float[Tensor, "*#batch keys d_v"],
    score_weight: Float[Tensor, " d_k"],
    mask: Bool[Tensor, "*#batch #queries #keys"] | None = None,
) -> tuple[Float[Tensor, "*#batch queries d_v"], Float[Tensor, "*#batch queries keys"]]:
    r"""Attention whose scores come from a network with one hidden layer.

    $$\mathrm{score}(q, k) = v^\top \tanh(q + k)$$

    As in equation (1), query and key come projected: in Bahdanau et al. they are
    $W_a s$ and $U_a h$, of a decoder state s and an annotation h. The second does not
    change while the decoder writes, so whoever calls can keep it.

    Args:
        query: What each position looks for.
        key: What each position answers to.
        value: What each position has to give: the annotation itself.
        score_weight: v, which sums the hidden units up.
        mask: True where a query may attend to a key; None: everywhere.

    Returns:
        Context and weights, as from `scaled_dot_product_attention`.

    Paper: §3.2.1; Bahdanau et al. (2015), appendix A.1.2.

    A query and two keys of one hidden unit; tanh(0) is 0, and tanh of much is 1:

    >>> query, key = torch.tensor([[0.0]]), torch.tensor([[0.0], [20.0]])
    >>> value = torch.tensor([[1.0], [2.0]])
    >>> _, weights = additive_attention(query, key, value, torch.ones(1))
    >>> weights.round(decimals=4)  # the softmax of 0 and 1
    tensor([[0.2689, 0.7311]])
    """
    hidden = torch.tanh(query[..., :, None, :] + key[..., None, :, :])
    # (..., queries, keys, d_k)
    scores = hidden @ score_weight  # (..., queries, keys)
    weights = _softmax_over_keys(scores, mask)  # (..., queries, keys)
    return weights @ value, weights  # (..., queries, d_v)


def _softmax_over_keys(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Weights that sum to one over the keys that the mask lets through."""
    if scores.dtype == torch.float16:  # ends at 65,504: no infinity, since ∞ - ∞ is NaN
        largest = torch.finfo(torch.float16).max
        scores = scores.clamp(-largest, largest)
    if mask is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    # A row of nothing but -inf has no softmax (NaN): who may see nothing gets nothing.
    return weights.masked_fill(~mask, 0.0)


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each in a small space of its own.

    $$\begin{aligned}
    \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, …,
    \mathrm{head}_h)\, W^O \\
    \mathrm{head}_i &= \mathrm{Attention}(Q W^Q_i, K W^K_i, V W^V_i)
    \end{aligned}$$

    with $W^Q_i, W^K_i ∈ ℝ^{d_\text{model} × d_k}$, $W^V_i ∈ ℝ^{d_\text{model} × d_v}$
    and $W^O ∈ ℝ^{h d_v × d_\text{model}}$. The h matrices of a kind are stored as one,
    so the 3h + 1 products of the paper become four. Without biases, as in the paper.

    Args:
        d_model: Width of inputs and outputs.
        num_heads: The paper's h.
        d_k: Width of a head's queries and keys; None: d_model / num_heads.
        d_v: Width of a head's values; None: d_model / num_heads.
        dropout: Probability that a weight is dropped in training (not in §5.4).

    Raises:
        InputError: A size is not positive, dropout lies outside [0, 1), num_heads does
            not divide d_model although d_k or d_v is left to follow from it, or (in a
            call) the mask is not of True and False.

    Paper: §3.2.2.

    >>> attention = MultiHeadAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(1, 5, 8)  # one sentence of five words
    >>> output, weights = attention(x, x, x, causal_mask(5), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([1, 5, 8]), torch.Size([1, 2, 5, 5]))
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        self.d_k, self.d_v = head_widths(d_model, num_heads, d_k, d_v)
        self.num_heads = num_heads
        self.dropout = Dropout(dropout)
        self.query_projection = Linear(d_model, num_heads * self.d_k, bias=False)
        self.key_projection = Linear(d_model, num_heads * self.d_k, bias=False)
        self.value_projection = Linear(d_model, num_heads * self.d_v, bias=False)
        self.output_projection = Linear(num_heads * self.d_v, d_model, bias=False)
        for weight in self.parameters():
            # The paper is silent. Glorot keeps the variance of what passes through.
            nn.init.xavier_uniform_(weight)

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        key: Float[Tensor, "batch keys d_model"],
        value: Float[Tensor, "batch keys d_model"],
        mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch queries d_model"],
        Float[Tensor, "batch heads queries keys"] | None,
    ]:
        """Project, attend in every head, concatenate, project.

        Args:
            query: The sequence that looks.
            key: The sequence that is looked at.
            value: What is fetched from it; nearly always the same tensor as key.
            mask: Broadcasts against ``(batch, heads, queries, keys)``.
            need_weights: Return the weights too. Then attention is computed step by
                step; otherwise torch's fused kernel may compute the same in one.

        Returns:
            The output, and the weights (as they are before dropout) or None.
        """
        keys, values = self.keys_and_values(key, value)
        return self.attend(query, keys, values, mask, need_weights)

    def keys_and_values(
        self,
        key: Float[Tensor, "batch keys d_model"],
        value: Float[Tensor, "batch keys d_model"],
    ) -> tuple[
        Float[Tensor, "batch heads keys d_k"], Float[Tensor, "batch heads keys d_v"]
    ]:
        """Project and split into heads: what a decoder keeps from step to step."""
        keys = self._split(self.key_projection(key), self.d_k)
        values = self._split(self.value_projection(value), self.d_v)
        return keys, values

    def attend(
        self,
        query: Float[Tensor, "batch queries d_model"],
        keys: Float[Tensor, "batch heads keys d_k"],
        values: Float[Tensor, "batch heads keys d_v"],
        mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch queries d_model"],
        Float[Tensor, "batch heads queries keys"] | None,
    ]:
        """Attend to keys and values that `keys_and_values` made."""
        check_mask(mask)
        queries = self._split(self.query_projection(query), self.d_k)
        context, weights = self.mix(queries, keys, values, mask, need_weights)
        concatenated = context.transpose(1, 2).flatten(2)  # (batch, queries, heads·d_v)
        return self.output_projection(concatenated), weights

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
        """Equation (1) in every head, between the projections."""
        weights = None
        dropping = self.dropout.training and self.dropout.p > 0
        # For short sentences a CPU is faster without the fused kernel's blocks.
        short = keys.device.type == "cpu" and keys.size(2) <= FUSED_ABOVE
        ours = not (need_weights or dropping)
        if ours and goes_to_kernels(queries, keys, values):
            context = gpu_attention(queries, keys, values, mask)
        elif need_weights or is_plain() or (short and dropping):
            context, weights = scaled_dot_product_attention(queries, keys, values, mask)
            if dropping:
                context = self.dropout(weights) @ values
        elif short:
            context = short_attention(queries, keys, values, mask)
        else:
            context = F.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=mask,
                dropout_p=self.dropout.p if dropping else 0.0,
            )  # (batch, heads, queries, d_v)
        return context, weights if need_weights else None

    def _split(self, projected: Tensor, width: int) -> Tensor:
        """(batch, length, heads·width) -> (batch, heads, length, width)."""
        return projected.unflatten(-1, (self.num_heads, width)).transpose(1, 2)
