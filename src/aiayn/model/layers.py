r"""§3.1: the layers of encoder and decoder, each sub-layer in a residual connection.

Faithful by default, 'post-norm':

$$\mathrm{LayerNorm}(x + \mathrm{Dropout}(\mathrm{Sublayer}(x)))$$

The option ``norm="pre"`` gives what tensor2tensor made its default four months after
the paper:

$$x + \mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))$$
"""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from aiayn.model.attention import MultiHeadAttention
from aiayn.model.cache import LayerCache
from aiayn.model.config import TransformerConfig
from aiayn.model.dropout import Dropout
from aiayn.model.feed_forward import PositionwiseFeedForward
from aiayn.model.forms import narrow
from aiayn.model.rotary import RotaryAttention
from aiayn.model.validation import check_norm


class ResidualNorm(nn.Module):
    r"""The 'Add & Norm' around a sub-layer: `enter` before it, `leave` after it.

    $$\mathrm{LayerNorm}(x + \mathrm{Dropout}(\mathrm{Sublayer}(x)))$$

    Args:
        d_model: Width of what passes through.
        dropout: Probability that an entry of the sub-layer's output is dropped.
        norm: Whether LayerNorm stands after the addition or before the sub-layer.

    Raises:
        InputError: norm is neither "post" nor "pre", or dropout lies outside [0, 1).

    Paper: §3.1; dropout: §5.4; He et al. (2016), Ba et al. (2016).

    >>> around = ResidualNorm(8)
    >>> x, update = torch.randn(2, 8), torch.randn(2, 8)  # of some sub-layer
    >>> torch.equal(around.leave(x, update), around.norm(x + update))
    True
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, norm: Literal["post", "pre"] = "post"
    ) -> None:
        super().__init__()
        check_norm(norm)
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def enter(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch d_model"]:
        """What the sub-layer reads."""
        return narrow(self.norm(x), x) if self.pre else x

    def leave(
        self,
        x: Float[Tensor, "*batch d_model"],
        update: Float[Tensor, "*batch d_model"],
    ) -> Float[Tensor, "*batch d_model"]:
        """What the next sub-layer gets: x with the sub-layer's output added."""
        total = x + self.dropout(update)
        return total if self.pre else narrow(self.norm(total), x)


def _residual(config: TransformerConfig) -> ResidualNorm:
    return ResidualNorm(config.d_model, config.dropout, config.norm)


def _attention(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.num_heads,
        config.d_k,
        config.d_v,
        config.attention_dropout,
    )


def _self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """Where positions are turned, they are here; two texts share no count of places."""
    if config.positions != "rotary":
        return _attention(config)
    return RotaryAttention(
        config.d_model,
        config.num_heads,
        config.d_k,
        config.d_v,
        config.attention_dropout,
        config.max_length,
    )


def _feed_forward(config: TransformerConfig) -> PositionwiseFeedForward:
    return PositionwiseFeedForward(
        config.d_model, config.d_ff, config.activation_dropout
    )


class EncoderLayer(nn.Module):
    r"""Self-attention, then the feed-forward network.

    $$\begin{aligned}
    a &= \mathrm{LayerNorm}(x + \mathrm{MultiHead}(x, x, x)) \\
    \mathrm{layer}(x) &= \mathrm{LayerNorm}(a + \mathrm{FFN}(a))
    \end{aligned}$$

    Args:
        config: The sizes of the model that the layer is part of.

    Paper: §3.1, 'Encoder'.

    >>> config = TransformerConfig.tiny()
    >>> x = torch.randn(1, 5, config.d_model)
    >>> output, weights = EncoderLayer(config)(x, need_weights=True)
    >>> output.shape == x.shape, weights.shape
    (True, torch.Size([1, 4, 5, 5]))
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _self_attention(config)
        self.self_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = _residual(config)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "*#batch_heads #length #length"] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch length d_model"],
        Float[Tensor, "batch heads length length"] | None,
    ]:
        """Run both sub-layers.

        Args:
            x: The sequence.
            mask: Who may attend to whom.
            need_weights: Return the attention weights too.

        Returns:
            The layer's output, and the weights or None.
        """
        read = self.self_attention_residual.enter(x)
        update, weights = self.self_attention(read, read, read, mask, need_weights)
        x = self.self_attention_residual.leave(x, update)
        update = self.feed_forward(self.feed_forward_residual.enter(x))
        return self.feed_forward_residual.leave(x, update), weights


class DecoderLayer(nn.Module):
    r"""Masked self-attention, attention to the encoder's output, feed-forward network.

    $$\begin{aligned}
    a &= \mathrm{LayerNorm}(y + \mathrm{MultiHead}(y, y, y)) \\
    c &= \mathrm{LayerNorm}(a + \mathrm{MultiHead}(a, z, z)) \\
    \mathrm{layer}(y, z) &= \mathrm{LayerNorm}(c + \mathrm{FFN}(c))
    \end{aligned}$$

    Args:
        config: The sizes of the model that the layer is part of.

    Paper: §3.1, 'Decoder'.

    >>> config = TransformerConfig.tiny()
    >>> y, memory = torch.randn(1, 3, config.d_model), torch.randn(1, 5, config.d_model)
    >>> output, _, cross = DecoderLayer(config)(
    ...     y, memory, causal_mask(3), need_weights=True
    ... )
    >>> output.shape == y.shape, cross.shape  # 4 heads, 3 queries, 5 keys
    (True, torch.Size([1, 4, 3, 5]))
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _self_attention(config)
        self.self_attention_residual = _residual(config)
        self.cross_attention = _attention(config)
        self.cross_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = _residual(config)

    def start(
        self, memory: Float[Tensor, "sentences source_length d_model"]
    ) -> LayerCache:
        """Project memory once for all that will be written."""
        return LayerCache(*self.cross_attention.keys_and_values(memory, memory))

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | LayerCache,
        target_mask: Bool[Tensor, "*#batch_heads #target_length #written"]
        | None = None,
        source_mask: Bool[Tensor, "#sentences 1 #target_length source_length"]
        | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch target_length d_model"],
        Float[Tensor, "batch heads target_length written"] | None,
        Float[Tensor, "batch heads target_length source_length"] | None,
    ]:
        """Run the three sub-layers.

        Args:
            x: The target; with a cache, only its newest positions.
            memory: The encoder's output, or the cache that `start` made of it. A cache
                remembers the positions of x. It may hold fewer sentences than x has
                rows: then every sentence has equally many rows, its hypotheses.
            target_mask: Who may look at whom in the target.
            source_mask: Which source positions may be looked at.
            need_weights: Return the attention weights too.

        Returns:
            The output, and the weights of self-attention and cross-attention or None.
        """
        cache = memory if isinstance(memory, LayerCache) else self.start(memory)
        read = self.self_attention_residual.enter(x)
        keys, values = cache.extend(*self.self_attention.keys_and_values(read, read))
        update, self_weights = self.self_attention.attend(
            read, keys, values, target_mask, need_weights
        )
        x = self.self_attention_residual.leave(x, update)

        read = self.cross_attention_residual.enter(x)
        update, weights = self._attend_memory(read, cache, source_mask, need_weights)
        x = self.cross_attention_residual.leave(x, update)

        update = self.feed_forward(self.feed_forward_residual.enter(x))
        return self.feed_forward_residual.leave(x, update), self_weights, weights

    def _attend_memory(
        self, x: Tensor, cache: LayerCache, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Cross-attention: a sentence's hypotheses are queries of one attention."""
        keys, values = cache.memory_keys, cache.memory_values
        sentences, (rows, length, width) = keys.size(0), x.shape
        hypotheses = rows // sentences if sentences else 0  # of each sentence
        queries = x.reshape(sentences, hypotheses * length, width)
        update, weights = self.cross_attention.attend(
            queries, keys, values, mask, need_weights
        )
        if weights is not None:  # (sentences, heads, queries, source_length)
            weights = weights.unflatten(2, (hypotheses, length))
            weights = weights.transpose(1, 2).flatten(0, 1)  # one row a hypothesis
        return update.view_as(x), weights
