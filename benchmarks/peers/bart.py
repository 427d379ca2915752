"""Hugging Face BART: as Marian, with learned positions and normalised embeddings."""

from transformers import BartConfig, BartForConditionalGeneration

from aiayn.model import TransformerConfig
from benchmarks.peers.hugging_face import marian_settings, training_step

__all__ = ["build", "training_step"]


def build(config: TransformerConfig) -> BartForConditionalGeneration:
    """The model of that size."""
    return BartForConditionalGeneration(BartConfig(**marian_settings(config)))
