"""The choices of a model, as an editor knows them: by name and by type.

A recipe, such as `TransformerConfig.tiny`, takes any of them as keywords. With these
types, an editor and a type checker refuse a name that does not exist.
"""

from typing import Literal, TypedDict


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
