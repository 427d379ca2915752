"""Hugging Face BART: as Marian, with learned positions and normalised embeddings."""

from transformers import BartConfig, BartForConditionalGeneration

from aiayn.model import TransformerConfig
from benchmarks.peers.hugging_face import training_step
from benchmarks.peers.shared import BOS_ID, EOS_ID, PAD_ID

__all__ = ["build", "training_step"]


def build(config: TransformerConfig) -> BartForConditionalGeneration:
    """The model of that size."""
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            dropout=config.dropout,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=PAD_ID,
            eos_token_id=EOS_ID,
            bos_token_id=BOS_ID,
            decoder_start_token_id=BOS_ID,
            forced_eos_token_id=None,
        )
    )
