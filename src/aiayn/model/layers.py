"""§3.1: the layers of encoder and decoder, each sub-layer in a residual connection.

Faithful by default: $\\mathrm{LayerNorm}(x + \\mathrm{Dropout}(\\mathrm{Sublayer}(x)))$,
'post-norm'. The option ``norm="pre"`` gives
$x + \\mathrm{Dropout}(\\mathrm{Sublayer}(\\mathrm{LayerNorm}(x)))$, which tensor2tensor
made its default four months after the paper.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from aiayn.model.attention import MultiHeadAttention
from aiayn.model.cache import LayerCache
from aiayn.model.config import TransformerConfig
from aiayn.model.feed_forward import PositionwiseFeedForward


class ResidualNorm(nn.Module):
    """The 'Add & Norm' around a sub-layer: `enter` before it, `leave` after it.

    Args:
        config: Gives d_model, dropout, and whether LayerNorm stands before or after.

    Paper: §3.1; dropout: §5.4; He et al. (2016), Ba et al. (2016).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def enter(
        self, x: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """What the sub-layer reads."""
        return self.norm(x) if self.pre else x

    def leave(
        self,
        x: Float[Tensor, "batch length d_model"],
        update: Float[Tensor, "batch length d_model"],
    ) -> Float[Tensor, "batch length d_model"]:
        """What the next sub-layer gets: x with the sub-layer's output added."""
        total = x + self.dropout(update)
        return total if self.pre else self.norm(total)


def _attention(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.num_heads,
        config.d_k,
        config.d_v,
        config.attention_dropout,
    )


def _feed_forward(config: TransformerConfig) -> PositionwiseFeedForward:
    return PositionwiseFeedForward(
        config.d_model, config.d_ff, config.activation_dropout
    )


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network.

    Paper: §3.1, 'Encoder'.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_attention_residual = ResidualNorm(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = ResidualNorm(config)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch length d_model"],
        Float[Tensor, "batch heads length length"] | None,
    ]:
        """Return the layer's output, and its attention weights if they are wanted."""
        read = self.self_attention_residual.enter(x)
        update, weights = self.self_attention(read, read, read, mask, need_weights)
        x = self.self_attention_residual.leave(x, update)
        update = self.feed_forward(self.feed_forward_residual.enter(x))
        return self.feed_forward_residual.leave(x, update), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward network.

    Paper: §3.1, 'Decoder'.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_attention_residual = ResidualNorm(config)
        self.cross_attention = _attention(config)
        self.cross_attention_residual = ResidualNorm(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = ResidualNorm(config)

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | None,
        target_mask: Bool[Tensor, "..."] | None = None,
        source_mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
        cache: LayerCache | None = None,
    ) -> tuple[
        Float[Tensor, "batch target_length d_model"],
        Float[Tensor, "batch heads queries keys"] | None,
        Float[Tensor, "batch2 heads queries2 source_length"] | None,
    ]:
        """Run the three sub-layers.

        Args:
            x: The target so far, or only its newest position where there is a cache.
            memory: The encoder's output; not needed where there is a cache.
            target_mask: Who may look at whom in the target.
            source_mask: Which source positions may be looked at.
            need_weights: Return attention weights too.
            cache: Earlier positions; it grows by those of x.

        Returns:
            The output, the self-attention's weights and the cross-attention's.
        """
        read = self.self_attention_residual.enter(x)
        keys, values = self.self_attention.keys_and_values(read, read)
        if cache is not None:
            keys, values = cache.extend(keys, values)
        update, self_weights = self.self_attention.attend(
            read, keys, values, target_mask, need_weights
        )
        x = self.self_attention_residual.leave(x, update)

        read = self.cross_attention_residual.enter(x)
        if cache is not None:
            keys, values = cache.memory_keys, cache.memory_values
            # A sentence's hypotheses become queries of one attention.
            read = read.reshape(keys.size(0), -1, x.size(2))
        else:
            keys, values = self.cross_attention.keys_and_values(memory, memory)
        update, cross_weights = self.cross_attention.attend(
            read, keys, values, source_mask, need_weights
        )
        x = self.cross_attention_residual.leave(x, update.view_as(x))

        update = self.feed_forward(self.feed_forward_residual.enter(x))
        return self.feed_forward_residual.leave(x, update), self_weights, cross_weights
