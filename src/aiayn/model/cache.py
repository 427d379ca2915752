"""What the decoder keeps while it writes, so that no step repeats an earlier one.

The paper does not speak of it; every decoder since has it. Keys and values of positions
that were written never change (the causal mask sees to that), nor do those of the
encoder's output. A step therefore projects one new position and attends to the rest.

Rows are hypotheses, ordered by sentence and equally many for each. The encoder's keys
and values are kept once a *sentence*: for cross-attention, a sentence's hypotheses are
queries of one attention.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class LayerCache:
    """One decoder layer's keys and values.

    Args:
        memory_keys: Of the encoder's output: (sentences, heads, source_length, d_k).
        memory_values: Likewise: (sentences, heads, source_length, d_v).
        keys: Of the positions written so far: (hypotheses, heads, written, d_k).
        values: Likewise: (hypotheses, heads, written, d_v).
    """

    memory_keys: Float[Tensor, "sentences heads source_length d_k"]
    memory_values: Float[Tensor, "sentences heads source_length d_v"]
    keys: Float[Tensor, "hypotheses heads written d_k"] | None = None
    values: Float[Tensor, "hypotheses heads written d_v"] | None = None

    def extend(
        self,
        keys: Float[Tensor, "hypotheses heads new d_k"],
        values: Float[Tensor, "hypotheses heads new d_v"],
    ) -> tuple[
        Float[Tensor, "hypotheses heads written d_k"],
        Float[Tensor, "hypotheses heads written d_v"],
    ]:
        """Append the new positions and return all of them."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


@dataclass
class TransformerState:
    """Where a batch of hypotheses stands: made by `Transformer.start`.

    Args:
        layers: One cache a decoder layer.
        source_mask: Which source positions are words: (sentences, 1, 1, source_length).
        position: How many tokens each hypothesis has read.
    """

    layers: list[LayerCache]
    source_mask: Bool[Tensor, "sentences 1 1 source_length"]
    position: int = 0

    def select(
        self,
        hypotheses: Int[Tensor, " kept_hypotheses"],
        sentences: Int[Tensor, " kept_sentences"] | None = None,
    ) -> None:
        """Keep these hypotheses, in this order; a hypothesis may be kept several times.

        Args:
            hypotheses: Rows to keep, ordered by sentence, equally many for each.
            sentences: Sentences to keep; None: all, in the order they stand in.
        """
        for layer in self.layers:
            if layer.keys is not None and layer.values is not None:
                layer.keys = layer.keys.index_select(0, hypotheses)
                layer.values = layer.values.index_select(0, hypotheses)
            if sentences is not None:
                layer.memory_keys = layer.memory_keys.index_select(0, sentences)
                layer.memory_values = layer.memory_values.index_select(0, sentences)
        if sentences is not None:
            self.source_mask = self.source_mask.index_select(0, sentences)
