"""Hugging Face T5: pre-norm, relative positions, no biases."""

from transformers import T5Config, T5ForConditionalGeneration

from aiayn.model import TransformerConfig
from benchmarks.peers.hugging_face import training_step
from benchmarks.peers.shared import BOS_ID, EOS_ID, PAD_ID

__all__ = ["build", "training_step"]


def build(config: TransformerConfig) -> T5ForConditionalGeneration:
    """The model of that size."""
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            d_kv=config.d_model // config.num_heads,
            d_ff=config.d_ff,
            num_layers=config.num_encoder_layers,
            num_decoder_layers=config.num_decoder_layers,
            num_heads=config.num_heads,
            dropout_rate=config.dropout,
            pad_token_id=PAD_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=BOS_ID,
        )
    )
