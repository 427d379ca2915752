"""The Transformer of 'Attention Is All You Need' (Vaswani et al., 2017), tested.

The model stands in `aiayn.model`, its data in `aiayn.data`, its training in
`aiayn.training`, search and scores in `aiayn.inference`. What most people need can be
imported from here.
"""

from aiayn.errors import InputError
from aiayn.model import (
    AttentionWeights,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LearnedPositionalEncoding,
    MultiHeadAttention,
    PositionwiseFeedForward,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    additive_attention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    shift_right,
    sinusoidal_positional_encoding,
)

__all__ = [
    "AttentionWeights",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "InputError",
    "LearnedPositionalEncoding",
    "MultiHeadAttention",
    "PositionwiseFeedForward",
    "SinusoidalPositionalEncoding",
    "Transformer",
    "TransformerConfig",
    "additive_attention",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoidal_positional_encoding",
]
