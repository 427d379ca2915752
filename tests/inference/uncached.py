"""§3.1: writing without a cache, the specification that the cached search is held to.

Every step reads source and output again from the start, through the very `forward` that
training uses. Obviously right, and slow: n steps cost as much as n full passes.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass
class UncachedState:
    """All that was read so far.

    Args:
        source: Token ids: (sentences, source_length).
        target: What each hypothesis has read: (hypotheses, written).
    """

    source: Int[Tensor, "sentences source_length"]
    target: Int[Tensor, "hypotheses written"]

    def reorder(
        self,
        hypotheses: Int[Tensor, " kept_hypotheses"],
        sentences: Int[Tensor, " kept_sentences"] | None = None,
    ) -> None:
        """Keep these hypotheses and sentences, as `DecoderCache.reorder` does."""
        self.target = self.target.index_select(0, hypotheses)
        if sentences is not None:
            self.source = self.source.index_select(0, sentences)


class Uncached(nn.Module):
    """A model that any search can use, with nothing kept between steps.

    Args:
        model: A `Transformer` or a `RecurrentTranslator`; the source goes where it is.

    Paper: §3.1, taken by its word.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, limits = torch.tensor([[5, 6, 2]]), {"bos_id": 1, "eos_id": 2}
    >>> [slow] = greedy_search(Uncached(model), source, max_length=6, **limits)
    >>> [fast] = greedy_search(model, source, max_length=6, **limits)
    >>> slow.tokens == fast.tokens
    True
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.config = model.config

    def init_decode(
        self, source: Int[Tensor, "sentences source_length"]
    ) -> UncachedState:
        """Get ready to write."""
        return UncachedState(source, source.new_empty(len(source), 0))

    def decode_step(
        self, tokens: Int[Tensor, " hypotheses"], state: UncachedState
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Read one token a hypothesis and score the next, by reading everything."""
        state.target = torch.cat([state.target, tokens[:, None]], dim=1)
        beams = len(state.target) // len(state.source)
        source = state.source.repeat_interleave(beams, dim=0)
        return self.model(source, state.target)[:, -1]
