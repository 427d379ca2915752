"""Hugging Face Marian: post-norm and sinusoids, so our weights fit into it."""

from pathlib import Path

import torch
from torch import nn
from transformers import MarianConfig, MarianMTModel

from aiayn.inference import load_translator
from aiayn.model import Transformer, TransformerConfig, sinusoidal_positional_encoding
from benchmarks.peers.hugging_face import searcher, sizes_of, training_step

__all__ = ["build", "searcher", "trained", "training_step"]


def build(config: TransformerConfig) -> MarianMTModel:
    """The model of that size."""
    return MarianMTModel(MarianConfig(**sizes_of(config)))


def trained(folder: Path) -> MarianMTModel:
    """Our weights in Marian's layers."""
    return with_weights_of(load_translator(folder)[0])


def with_weights_of(ours: Transformer) -> MarianMTModel:
    """The same model as Marian; its biases in attention are zero."""
    model = build(ours.config)
    inner = model.model
    with torch.no_grad():
        inner.shared.weight.copy_(ours.output_weight)
        model.final_logits_bias.zero_()
        for stack in (inner.encoder, inner.decoder):
            weight = stack.embed_positions.weight
            weight.copy_(sinusoidal_positional_encoding(*weight.shape))
        for mine, its in zip(ours.encoder.layers, inner.encoder.layers, strict=True):
            _copy_attention(mine.self_attention, its.self_attn)
            _copy_rest(mine, its)
        for mine, its in zip(ours.decoder.layers, inner.decoder.layers, strict=True):
            _copy_attention(mine.self_attention, its.self_attn)
            _copy_attention(mine.cross_attention, its.encoder_attn)
            _copy_norm(mine.cross_attention_residual, its.encoder_attn_layer_norm)
            _copy_rest(mine, its)
    return model


def _copy_attention(mine: nn.Module, its: nn.Module) -> None:
    pairs = (
        (mine.query_projection, its.q_proj),
        (mine.key_projection, its.k_proj),
        (mine.value_projection, its.v_proj),
        (mine.output_projection, its.out_proj),
    )
    for my_linear, its_linear in pairs:
        its_linear.weight.copy_(my_linear.weight)
        its_linear.bias.zero_()


def _copy_norm(mine: nn.Module, its: nn.LayerNorm) -> None:
    its.load_state_dict(mine.norm.state_dict())


def _copy_rest(mine: nn.Module, its: nn.Module) -> None:
    its.fc1.load_state_dict(mine.feed_forward.inner.state_dict())
    its.fc2.load_state_dict(mine.feed_forward.outer.state_dict())
    _copy_norm(mine.self_attention_residual, its.self_attn_layer_norm)
    _copy_norm(mine.feed_forward_residual, its.final_layer_norm)
