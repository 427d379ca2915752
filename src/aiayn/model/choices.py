"""What an editor and a type checker know of a model: its choices, and its calls.

A recipe, such as `TransformerConfig.tiny`, takes any of the choices as keywords, and a
name that does not exist is refused. `torch.nn.Module` itself takes and gives anything.
"""

from typing import Literal, Protocol, TypedDict

from torch import Tensor

from aiayn.model.cache import KVCache


class ModelChoices(TypedDict, total=False):
    """The fields of `TransformerConfig`. Not in the paper."""

    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    d_k: int | None
    d_v: int | None
    num_encoder_layers: int
    num_decoder_layers: int
    dropout: float
    attention_dropout: float
    activation_dropout: float
    norm: Literal["post", "pre"]
    positions: Literal["sinusoidal", "learned", "rotary"]
    max_length: int
    tie_embeddings: bool
    pad_id: int


class AttentionCall(Protocol):
    """How `MultiHeadAttention` is called. Not in the paper."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        mask: Tensor | None = None,
        need_weights: bool = False,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]: ...


class TransformerCall(Protocol):
    """How `Transformer` is called. Not in the paper."""

    def __call__(
        self, source: Tensor, target: Tensor, **masks_and_positions: Tensor | None
    ) -> Tensor: ...
