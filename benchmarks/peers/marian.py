"""Hugging Face Marian: post-norm and sinusoids, so our weights fit into it."""

from pathlib import Path

from transformers import MarianConfig, MarianMTModel

from aiayn.inference import load_translator
from aiayn.interop import to_marian
from aiayn.interop.marian import marian_settings
from aiayn.model import TransformerConfig
from benchmarks.peers.hugging_face import searcher, training_step

__all__ = ["build", "searcher", "trained", "training_step"]


def build(config: TransformerConfig) -> MarianMTModel:
    """The model of that size."""
    return MarianMTModel(MarianConfig(**marian_settings(config)))


def trained(folder: Path) -> MarianMTModel:
    """Our weights in Marian's layers."""
    return to_marian(load_translator(folder)[0])
