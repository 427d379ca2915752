"""The Transformer of 'Attention Is All You Need' (Vaswani et al., 2017), tested.

The model stands in `aiayn.model`, its data in `aiayn.data`, its training in
`aiayn.training`, search and scores in `aiayn.inference`. What most people need can be
imported from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    """A public name or a part of the package, imported when it is first asked for.

    Torch takes seconds to import. So the command line is there before, to be stopped.
    """
    parts = ("version", "errors", "model", "data", "inference", "training")
    if name in (*parts, "fast", "parsing", "device", "storage", "cli"):
        return import_module(f"{__name__}.{name}")
    for part in parts if name in ("__version__", *__all__) else ():
        module = import_module(f"{__name__}.{part}")
        if hasattr(module, name):
            globals()[name] = getattr(module, name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
