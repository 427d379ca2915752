"""The Transformer of 'Attention Is All You Need' (Vaswani et al., 2017), tested.

The model stands in `aiayn.model`, its data in `aiayn.data`, its training in
`aiayn.training`, search and scores in `aiayn.inference`. What most people need can be
imported from here.
"""

from aiayn.data import Tokenizer, load_corpus
from aiayn.errors import InputError
from aiayn.inference import (
    beam_search,
    evaluate_bleu,
    greedy_search,
    load_translator,
    save_translator,
    translate,
)
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
from aiayn.training import (
    TrainingConfig,
    label_smoothed_cross_entropy,
    noam_rate,
    resume_training,
    train,
)
from aiayn.version import __version__ as __version__

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
    "Tokenizer",
    "TrainingConfig",
    "Transformer",
    "TransformerConfig",
    "additive_attention",
    "beam_search",
    "causal_mask",
    "evaluate_bleu",
    "greedy_search",
    "label_smoothed_cross_entropy",
    "load_corpus",
    "load_translator",
    "noam_rate",
    "padding_mask",
    "resume_training",
    "save_translator",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoidal_positional_encoding",
    "train",
    "translate",
]
