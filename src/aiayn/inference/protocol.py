"""§6.1: what a search needs of a model."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Model(Protocol):
    """What a search needs of a module; `Transformer` has it.

    Rows of tokens and of the cache are hypotheses, ordered by sentence, equally many
    for each.
    """

    @property
    def config(self) -> Any:
        """Holds vocab_size and pad_id."""

    def init_decode(self, source: Tensor) -> Any:
        """Read the source and return a cache for one hypothesis a sentence.

        Its method ``reorder(hypotheses, sentences)`` keeps some rows, in a new order.
        """

    def decode_step(self, tokens: Tensor, cache: Any) -> Any:
        """Read one token a hypothesis and return logits of the next: (rows, vocab)."""

    def eval(self) -> Any:
        """As of every module, like the next two."""

    def modules(self) -> Any: ...
    def parameters(self) -> Any: ...
