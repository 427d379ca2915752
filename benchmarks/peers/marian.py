"""Hugging Face Marian: post-norm and sinusoids, so our weights fit into it.

Marian is the paper's model, but for two things. Its attention has biases, which are
zero here. And its sinusoids stand in halves, all sines before all cosines, as in
tensor2tensor, where the paper's take turns. A Transformer does not care in which order
its features stand, so every matrix is permuted to Marian's order, once.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.model import Transformer, TransformerConfig
from benchmarks.peers.hugging_face import marian_settings, searcher, training_step

__all__ = ["build", "searcher", "trained", "training_step", "with_weights_of"]


def build(config: TransformerConfig) -> MarianMTModel:
    """The model of that size."""
    return MarianMTModel(MarianConfig(**marian_settings(config)))


def trained(folder: Path, device: torch.device) -> MarianMTModel:
    """Our weights in Marian's layers."""
    return with_weights_of(load_translator(folder)[0]).to(device)


def with_weights_of(model: Transformer) -> MarianMTModel:
    """The same model as Marian, with copies of the weights, in the same mode.

    Whoever generates gives ``attention_mask`` and suppresses padding and the start
    token, as our searches do.
    """
    _check(model.config)
    theirs = build(model.config)
    theirs.to(model.output_weight.device, model.output_weight.dtype)
    order = _halves(model.config.d_model)
    with torch.no_grad():
        theirs.model.shared.weight.copy_(model.output_weight[:, order])
        theirs.final_logits_bias.zero_()
        for ours, its in _layers(model, theirs):
            _copy_layer(ours, its, order)
    theirs.tie_weights()
    return theirs.train(model.training)


def _check(config: TransformerConfig) -> None:
    """Marian has post-norm, sinusoids, one embedding, and heads of one width."""
    width = config.d_model // config.num_heads
    wanted = {
        "norm": "post",
        "positions": "sinusoidal",
        "tie_embeddings": True,
        "d_k": width,
        "d_v": width,
    }
    for name, value in wanted.items():
        has = getattr(config, name)
        if has != value and not (has is None and value == width):
            raise InputError(
                f"Marian has {name} = {value!r}, and this model {has!r}: it has no "
                "equal there."
            )


def _halves(d_model: int) -> Tensor:
    """Our features in Marian's order: those with a sine first, then the cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def _layers(model: Transformer, theirs: Any) -> Iterator[tuple[nn.Module, Any]]:
    yield from zip(model.encoder.layers, theirs.model.encoder.layers, strict=True)
    yield from zip(model.decoder.layers, theirs.model.decoder.layers, strict=True)


def _copy_layer(ours: Any, theirs: Any, order: Tensor) -> None:
    _copy_attention(ours.self_attention, theirs.self_attn, order)
    _copy_norm(ours.self_attention_residual, theirs.self_attn_layer_norm, order)
    if hasattr(ours, "cross_attention"):
        _copy_attention(ours.cross_attention, theirs.encoder_attn, order)
        _copy_norm(ours.cross_attention_residual, theirs.encoder_attn_layer_norm, order)
    inner, outer = ours.feed_forward.inner, ours.feed_forward.outer
    theirs.fc1.weight.copy_(inner.weight[:, order])
    theirs.fc1.bias.copy_(inner.bias)
    theirs.fc2.weight.copy_(outer.weight[order])
    theirs.fc2.bias.copy_(outer.bias[order])
    _copy_norm(ours.feed_forward_residual, theirs.final_layer_norm, order)


def _copy_attention(ours: Any, theirs: Any, order: Tensor) -> None:
    """What reads features is permuted in its columns, what writes them in its rows."""
    for mine, its in (
        (ours.query_projection, theirs.q_proj),
        (ours.key_projection, theirs.k_proj),
        (ours.value_projection, theirs.v_proj),
    ):
        its.weight.copy_(mine.weight[:, order])
        its.bias.zero_()
    theirs.out_proj.weight.copy_(ours.output_projection.weight[order])
    theirs.out_proj.bias.zero_()


def _copy_norm(ours: Any, theirs: nn.LayerNorm, order: Tensor) -> None:
    theirs.weight.copy_(ours.norm.weight[order])
    theirs.bias.copy_(ours.norm.bias[order])
