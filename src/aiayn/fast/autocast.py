"""Autocast's types: layers read and write the narrow type, not only their products.

Autocast converts the factors of each product to bfloat16 and leaves all else in 32
bits. Then every sub-layer reads and writes 32-bit numbers and converts them for each of
its products. If a layer's input is narrow already, it stays narrow, but for the
statistics of LayerNorm. On a GPU each conversion would be a kernel of its own, so this
pays only where a compiler merges it with another.
"""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from aiayn.fast.conditions import is_transformed
from aiayn.fast.linear import packed
from aiayn.model.cache import DecoderCache
from aiayn.model.layers import ResidualNorm
from aiayn.model.transformer import Transformer


def cast_to_autocast(x: Tensor) -> Tensor:
    """x in autocast's narrow type, where autocast is on and the conversion pays."""
    kind = x.device.type
    compiling = torch.compiler.is_compiling()
    pays = compiling if kind == "cuda" else kind == "cpu" and not is_transformed()
    if not pays or not torch.is_autocast_enabled(kind):
        return x
    return x.to(torch.get_autocast_dtype(kind))


class FastResidualNorm(ResidualNorm):
    """`ResidualNorm`, whose output is as narrow as its input."""

    def forward(self, x: Tensor, sublayer: Any) -> tuple[Tensor, Any]:
        """LayerNorm(x + Dropout(Sublayer(x))), or the pre-norm form."""
        update, weights = sublayer(self._normalise(x) if self.pre else x)
        x = x + self.dropout(update)
        return x if self.pre else self._normalise(x), weights

    def _normalise(self, x: Tensor) -> Tensor:
        narrow = x.dtype == torch.get_autocast_dtype(x.device.type)
        return cast_to_autocast(self.norm(x)) if narrow else self.norm(x)


_searches: WeakKeyDictionary[DecoderCache, dict] = WeakKeyDictionary()
"""The packed weights of each search (`aiayn.fast.linear`)."""


class FastTransformer(Transformer):
    """`Transformer`: its first layer reads the narrow type; a search packs weights."""

    def decode_step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """As `Transformer.decode_step`, with weights packed once for each cache."""
        packed.weights = _searches.setdefault(cache, {})
        try:
            return super().decode_step(tokens, cache)
        finally:
            packed.weights = None

    def _embed(self, *args: Any, **where: Any) -> Tensor:
        return cast_to_autocast(super()._embed(*args, **where))
