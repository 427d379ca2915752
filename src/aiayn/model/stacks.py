"""§3.1: the encoder and the decoder, each a stack of N layers.

With ``norm="pre"``, which the paper does not have, a last LayerNorm follows each stack,
since nothing in it has normalised the sum of all updates.
"""

from collections.abc import Iterable
from typing import cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from aiayn.model.cache import LayerCache
from aiayn.model.config import TransformerConfig
from aiayn.model.layers import DecoderLayer, EncoderLayer


class Encoder(nn.Module):
    r"""A stack of encoder layers.

    $$z = \mathrm{layer}_N(… \mathrm{layer}_2(\mathrm{layer}_1(x)) …)$$

    Args:
        config: Sizes, and the number of layers.

    Paper: §3.1.

    >>> config = TransformerConfig.tiny()
    >>> x = torch.randn(1, 5, config.d_model)  # embedded words, positions added
    >>> memory, _ = Encoder(config)(x)
    >>> memory.shape == x.shape
    True
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_encoder_layers)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch source_length d_model"],
        mask: Bool[Tensor, "*#batch_heads #source_length #source_length"] | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch source_length d_model"],
        tuple[Float[Tensor, "batch heads source_length source_length"], ...],
    ]:
        """Run the layers, whose arguments are explained in `EncoderLayer.forward`.

        Returns:
            The memory, and each layer's attention weights if they are wanted.
        """
        all_weights = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights)
            if need_weights:
                all_weights.append(weights)
        return self.norm(x), tuple(all_weights)


class Decoder(nn.Module):
    r"""A stack of decoder layers.

    $$s = \mathrm{layer}_N(… \mathrm{layer}_2(\mathrm{layer}_1(y, z), z) …, z)$$

    Args:
        config: Sizes, and the number of layers.

    Paper: §3.1.

    >>> config = TransformerConfig.tiny()
    >>> y, memory = torch.randn(1, 3, config.d_model), torch.randn(1, 5, config.d_model)
    >>> states, _, _ = Decoder(config)(y, memory, causal_mask(3))
    >>> states.shape == y.shape
    True
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_decoder_layers)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | list[LayerCache],
        target_mask: Bool[Tensor, "*#batch_heads #target_length #written"]
        | None = None,
        source_mask: Bool[Tensor, "#sentences 1 #target_length source_length"]
        | None = None,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch target_length d_model"],
        tuple[Float[Tensor, "batch heads target_length written"], ...],
        tuple[Float[Tensor, "batch heads target_length source_length"], ...],
    ]:
        """Run the layers, whose arguments are explained in `DecoderLayer.forward`.

        Returns:
            The states, and each layer's weights of self-attention and cross-attention
            if they are wanted.
        """
        caches = memory if isinstance(memory, list) else self._caches(memory)
        all_self, all_cross = [], []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, self_weights, cross_weights = layer(
                x, cache, target_mask, source_mask, need_weights
            )
            if need_weights:
                all_self.append(self_weights)
                all_cross.append(cross_weights)
        return self.norm(x), tuple(all_self), tuple(all_cross)

    def start(
        self, memory: Float[Tensor, "sentences source_length d_model"]
    ) -> list[LayerCache]:
        """One cache a layer, nothing written yet."""
        caches = self._caches(memory)
        for cache in caches:  # put in order once, for every step reads all of it
            cache.memory_keys = cache.memory_keys.contiguous()
            cache.memory_values = cache.memory_values.contiguous()
        return caches

    def _caches(self, memory: Tensor) -> list[LayerCache]:
        layers = cast(Iterable[DecoderLayer], self.layers)
        return [layer.start(memory) for layer in layers]


def _final_norm(config: TransformerConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
