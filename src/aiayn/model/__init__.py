"""§3 of the paper: the model."""

from aiayn.model.additive import additive_attention
from aiayn.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    softmax_over_keys,
    split_heads,
)
from aiayn.model.attention_weights import AttentionWeights
from aiayn.model.cache import DecoderCache, KVCache
from aiayn.model.config import TABLE_3_ROWS, TransformerConfig
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    PositionwiseFeedForward,
    ResidualNorm,
)
from aiayn.model.learned_positions import (
    LearnedPositionalEncoding,
    NoPositionalEncoding,
)
from aiayn.model.masks import causal_mask, padding_mask
from aiayn.model.positions import (
    SinusoidalPositionalEncoding,
    sinusoidal_positional_encoding,
)
from aiayn.model.rotary import RotaryAttention, rotate
from aiayn.model.transformer import Transformer, shift_right

__all__ = [
    "TABLE_3_ROWS",
    "AttentionWeights",
    "Decoder",
    "DecoderCache",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "KVCache",
    "LearnedPositionalEncoding",
    "MultiHeadAttention",
    "NoPositionalEncoding",
    "PositionwiseFeedForward",
    "ResidualNorm",
    "RotaryAttention",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "additive_attention",
    "causal_mask",
    "padding_mask",
    "rotate",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoidal_positional_encoding",
    "softmax_over_keys",
    "split_heads",
]
