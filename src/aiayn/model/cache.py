"""The decoder's cache: keys and values of the positions that were written before.

They never change, because the causal mask hides all later positions from them; nor do
those of the encoder's output. So a decoding step projects one new position and attends
to the cached ones. The paper does not mention it, and every implementation has one.

Hypotheses are ordered by sentence, equally many for each.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class KVCache:
    """The keys and values that one attention has computed so far.

    Args:
        keys: Of all positions so far; None: there are none yet.
        values: Likewise.

    Not in the paper.
    """

    keys: Float[Tensor, "rows heads length d_k"] | None = None
    values: Float[Tensor, "rows heads length d_v"] | None = None

    @property
    def length(self) -> int:
        """How many positions it holds."""
        return 0 if self.keys is None else self.keys.size(2)

    def append(
        self,
        keys: Float[Tensor, "rows heads new d_k"],
        values: Float[Tensor, "rows heads new d_v"],
    ) -> tuple[Tensor, Tensor]:
        """Append the new positions and return all of them."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def reorder(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may be kept several times."""
        if self.keys is not None and self.values is not None:
            self.keys = self.keys.index_select(0, rows)
            self.values = self.values.index_select(0, rows)


@dataclass(eq=False)
class DecoderCache:
    """What the decoder keeps between two steps; `Transformer.init_decode` makes it.

    Args:
        layers: The caches of each decoder layer: of its self-attention, one row a
            hypothesis, and of the encoder's output, one row a sentence.
        memory_mask: False where the source is padding: (sentences, 1, 1, source).
        length: How many tokens each hypothesis has read.

    Not in the paper.
    """

    layers: list[tuple[KVCache, KVCache]]
    memory_mask: Bool[Tensor, "sentences 1 1 source_length"]
    length: int = 0

    def reorder(
        self,
        hypotheses: Int[Tensor, " kept_hypotheses"],
        sentences: Int[Tensor, " kept_sentences"] | None = None,
    ) -> None:
        """Keep these hypotheses, in this order, and these sentences; None: all.

        A hypothesis may be kept several times, and equally many are kept of each.
        """
        for written, memory in self.layers:
            written.reorder(hypotheses)
            if sentences is not None:
                memory.reorder(sentences)
        if sentences is not None:
            self.memory_mask = self.memory_mask.index_select(0, sentences)
