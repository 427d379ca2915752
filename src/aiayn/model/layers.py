"""§3.1 and §3.3: the layers of encoder and decoder, and the two stacks.

The paper normalises after each residual connection ('post-norm'), the default here.
With ``norm="pre"``, as tensor2tensor did from October 2017 on, nothing normalises the
sum of all updates, so a last LayerNorm follows each stack.
"""

from collections.abc import Callable
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.attention import MultiHeadAttention
from aiayn.model.cache import KVCache
from aiayn.model.config import TransformerConfig
from aiayn.model.masks import Mask
from aiayn.model.rotary import RotaryAttention
from aiayn.model.validation import check_choice


class PositionwiseFeedForward(nn.Module):
    r"""The same two-layer network at every position.

    $$\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$$

    with $W_1 ∈ ℝ^{d_\text{model} × d_\text{ff}}$ and
    $W_2 ∈ ℝ^{d_\text{ff} × d_\text{model}}$.

    Args:
        d_model: Width of inputs and outputs.
        d_ff: Width of the hidden layer.
        dropout: Probability that a hidden unit is dropped (not in the paper).

    Paper: §3.3, equation (2).

    The output at one position does not depend on the others:

    >>> feed_forward = PositionwiseFeedForward(d_model=4, d_ff=16)
    >>> x = torch.randn(1, 3, 4)
    >>> torch.allclose(feed_forward(x)[:, 1], feed_forward(x[:, 1:2])[:, 0])
    True
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)  # the paper does not say how
            nn.init.zeros_(layer.bias)

    def forward(
        self, x: Float[Tensor, "... length d_model"]
    ) -> Float[Tensor, "... length d_model"]:
        """Equation (2), at every position."""
        hidden = self.dropout(F.relu(self.inner(x)))  # (..., length, d_ff)
        return self.outer(hidden)  # (..., length, d_model)


class ResidualNorm(nn.Module):
    r"""'Add & Norm': a residual connection around a sub-layer, and LayerNorm.

    $$\begin{aligned}
    \text{post: }& \mathrm{LayerNorm}(x + \mathrm{Dropout}(\mathrm{Sublayer}(x))) \\
    \text{pre: }& x + \mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))
    \end{aligned}$$

    Args:
        d_model: Width of its input and output.
        dropout: Probability that an entry of the sub-layer's output is dropped.
        norm: Whether LayerNorm comes after the addition or before the sub-layer.

    Raises:
        InputError: norm is neither "post" nor "pre".

    Paper: §3.1; dropout: §5.4; He et al. (2016), Ba et al. (2016).

    >>> add_and_norm, x = ResidualNorm(8), torch.randn(2, 8)
    >>> output, _ = add_and_norm(x, lambda x: (2 * x, None))
    >>> torch.equal(output, add_and_norm.norm(x + 2 * x))
    True
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, norm: Literal["post", "pre"] = "post"
    ) -> None:
        super().__init__()
        check_choice("norm", norm, "post", "pre")
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        sublayer: Callable[[Tensor], tuple[Tensor, Any]],
    ) -> tuple[Float[Tensor, "*batch d_model"], Any]:
        """The output, and what the sub-layer returned besides: weights, or None.

        Args:
            x: The sequence.
            sublayer: Returns its output, and attention weights or None.
        """
        update, weights = sublayer(self.norm(x) if self.pre else x)
        x = x + self.dropout(update)
        return x if self.pre else self.norm(x), weights


class EncoderLayer(nn.Module):
    r"""Self-attention, then the feed-forward network.

    $$\begin{aligned}
    a &= \mathrm{LayerNorm}(x + \mathrm{MultiHead}(x, x, x)) \\
    \mathrm{layer}(x) &= \mathrm{LayerNorm}(a + \mathrm{FFN}(a))
    \end{aligned}$$

    Args:
        config: The sizes of the model.

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
        mask: Mask | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch length d_model"], Tensor | None]:
        """The output, and the weights (batch, heads, length, length) or None."""
        x, weights = self.self_attention_residual(
            x, lambda x: self.self_attention(x, x, x, mask, need_weights)
        )
        x, _ = self.feed_forward_residual(x, lambda x: (self.feed_forward(x), None))
        return x, weights


class DecoderLayer(nn.Module):
    r"""Masked self-attention, attention to the encoder's output, feed-forward network.

    $$\begin{aligned}
    a &= \mathrm{LayerNorm}(y + \mathrm{MultiHead}(y, y, y)) \\
    c &= \mathrm{LayerNorm}(a + \mathrm{MultiHead}(a, z, z)) \\
    \mathrm{layer}(y, z) &= \mathrm{LayerNorm}(c + \mathrm{FFN}(c))
    \end{aligned}$$

    Args:
        config: The sizes of the model.

    Paper: §3.1, 'Decoder'.

    >>> config = TransformerConfig.tiny()
    >>> y, memory = torch.randn(1, 3, config.d_model), torch.randn(1, 5, config.d_model)
    >>> layer, mask = DecoderLayer(config), causal_mask(3)
    >>> output, _, cross = layer(y, memory, mask, need_weights=True)
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

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | None,
        target_mask: Mask | None = None,
        memory_mask: Mask | None = None,
        need_weights: bool = False,
        cache: tuple[KVCache, KVCache] | None = None,
    ) -> tuple[Float[Tensor, "batch target_length d_model"], Any, Any]:
        """The output; the weights of self-attention and of cross-attention, or None.

        Args:
            x: The target; with a cache, the newest token of each hypothesis.
            memory: The encoder's output; with a cache, None.
            target_mask: True where a target position may attend to another.
            memory_mask: True where a target position may attend to the source.
            need_weights: Return the attention weights too.
            cache: What `DecoderCache` keeps for this layer.
        """
        written, kept = cache or (None, None)

        def attend_to_target(x: Tensor) -> tuple[Tensor, Any]:
            return self.self_attention(x, x, x, target_mask, need_weights, written)

        def attend_to_memory(x: Tensor) -> tuple[Tensor, Any]:
            queries = x
            if kept is not None and kept.keys is not None:
                # The hypotheses of a sentence are the queries of one attention.
                queries = x.reshape(len(kept.keys), -1, x.size(2))
            update, weights = self.cross_attention(
                queries, memory, memory, memory_mask, need_weights, kept
            )
            return update.view_as(x), weights

        x, self_weights = self.self_attention_residual(x, attend_to_target)
        x, cross_weights = self.cross_attention_residual(x, attend_to_memory)
        x, _ = self.feed_forward_residual(x, lambda x: (self.feed_forward(x), None))
        return x, self_weights, cross_weights


class Encoder(nn.Module):
    """A stack of encoder layers, each of which reads the output of the one before.

    Args:
        config: The sizes of the model.

    Paper: §3.1.

    >>> memory, _ = Encoder(TransformerConfig.tiny())(torch.randn(1, 5, 128))
    >>> memory.shape
    torch.Size([1, 5, 128])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_encoder_layers)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch source_length d_model"],
        mask: Mask | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch source_length d_model"], tuple[Tensor, ...]]:
        """The encoder's output, and each layer's attention weights if asked for."""
        all_weights = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights)
            all_weights.append(weights)
        return self.norm(x), tuple(all_weights) if need_weights else ()


class Decoder(nn.Module):
    """A stack of decoder layers. Every layer attends to the same memory.

    Args:
        config: The sizes of the model.

    Paper: §3.1.

    >>> decoder, y = Decoder(TransformerConfig.tiny()), torch.randn(1, 3, 128)
    >>> hidden_states, _, _ = decoder(y, torch.randn(1, 5, 128), causal_mask(3))
    >>> hidden_states.shape
    torch.Size([1, 3, 128])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_decoder_layers)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | None,
        target_mask: Mask | None = None,
        memory_mask: Mask | None = None,
        need_weights: bool = False,
        caches: list[tuple[KVCache, KVCache]] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The hidden states, and each layer's weights, if they are asked for."""
        all_self, all_cross = [], []
        given = memory, target_mask, memory_mask, need_weights
        for number, layer in enumerate(self.layers):
            x, own, cross = layer(x, *given, caches[number] if caches else None)
            all_self.append(own)
            all_cross.append(cross)
        if not need_weights:
            return self.norm(x), (), ()
        return self.norm(x), tuple(all_self), tuple(all_cross)


def _residual(config: TransformerConfig) -> ResidualNorm:
    return ResidualNorm(config.d_model, config.dropout, config.norm)


def _feed_forward(config: TransformerConfig) -> PositionwiseFeedForward:
    return PositionwiseFeedForward(
        config.d_model, config.d_ff, config.activation_dropout
    )


def _attention(
    config: TransformerConfig, kind: type[MultiHeadAttention] = MultiHeadAttention
) -> MultiHeadAttention:
    sizes = config.d_model, config.num_heads, config.d_k, config.d_v
    return kind(*sizes, config.attention_dropout)


def _self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """Only here may it be rotary: positions of two sequences are not comparable."""
    rotary = config.positions == "rotary"
    return _attention(config, RotaryAttention if rotary else MultiHeadAttention)


def _final_norm(config: TransformerConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
