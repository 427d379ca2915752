"""CTranslate2: a C++ engine that only translates, given our weights in its layout."""

import tempfile
from pathlib import Path

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import TransformerSpec
from torch import nn

from aiayn.inference import load_translator
from aiayn.model import Transformer, sinusoidal_positional_encoding
from benchmarks.peers.shared import EOS_ID, Translate, check_sinusoids

SPECIAL = ("<blank>", "<s>", "</s>", "<unk>")
POSITIONS = 1024


def trained(
    folder: Path, device: torch.device, compute_type: str = "float32"
) -> ctranslate2.Translator:
    """Our weights in its layout.

    Args:
        folder: A run of ours.
        device: Where to compute.
        compute_type: How it multiplies: "float32", or "int8" with weights and inputs
            rounded to eight bits.
    """
    spec = specification(load_translator(folder)[0])
    with tempfile.TemporaryDirectory() as converted:
        spec.validate()
        spec.optimize()
        spec.save(converted)
        return ctranslate2.Translator(
            converted,
            device=device.type,
            compute_type=compute_type,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )


def searcher(model: ctranslate2.Translator) -> Translate:
    """`translate_batch`, whose length penalty is |Y|^0.6."""

    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        found = model.translate_batch(
            [[piece(token) for token in row] for row in rows],
            beam_size=beam_size,
            length_penalty=0.6 if beam_size > 1 else 0.0,
            max_decoding_length=max(map(len, rows)) + 50,
            max_input_length=0,
        )
        return [[token_id(word) for word in result.hypotheses[0]] for result in found]

    return translate


def piece(token: int) -> str:
    """A name for an id, since CTranslate2 reads words."""
    return SPECIAL[token] if token <= EOS_ID + 1 else str(token)


def token_id(word: str) -> int:
    """The id that `piece` named."""
    return SPECIAL.index(word) if word in SPECIAL else int(word)


def specification(ours: Transformer) -> TransformerSpec:
    """The same model: ReLU, sinusoids as the paper prints them, either norm."""
    config = ours.config
    check_sinusoids(config)
    layers = (config.num_encoder_layers, config.num_decoder_layers)
    pre = config.norm == "pre"
    spec = TransformerSpec.from_config(layers, config.num_heads, pre_norm=pre)
    if pre:
        _set_norm(spec.encoder.layer_norm, ours.encoder.norm)
        _set_norm(spec.decoder.layer_norm, ours.decoder.norm)
    table = sinusoidal_positional_encoding(POSITIONS, config.d_model).numpy()
    embedding = ours.output_weight.detach().numpy()
    for stack in (spec.encoder, spec.decoder):
        stack.position_encodings.encodings = table
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    for mine, its in zip(ours.encoder.layers, spec.encoder.layer, strict=True):
        _set_self_attention(its.self_attention, mine)
        _set_feed_forward(its.ffn, mine)
    for mine, its in zip(ours.decoder.layers, spec.decoder.layer, strict=True):
        _set_self_attention(its.self_attention, mine)
        cross, linear = mine.cross_attention, its.attention.linear
        linear[0].weight = _weights(cross.query_projection)
        linear[1].weight = _weights(cross.key_projection, cross.value_projection)
        linear[2].weight = _weights(cross.output_projection)
        _set_norm(its.attention.layer_norm, mine.cross_attention_residual.norm)
        _set_feed_forward(its.ffn, mine)
    pieces = [piece(token) for token in range(config.vocab_size)]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = False  # each row has its own
    return spec


def _weights(*linears: nn.Linear) -> np.ndarray:
    """Projections one below the other."""
    return torch.cat([linear.weight.detach() for linear in linears]).numpy()


def _set_self_attention(its, mine: nn.Module) -> None:
    heads = mine.self_attention
    its.linear[0].weight = _weights(
        heads.query_projection, heads.key_projection, heads.value_projection
    )
    its.linear[1].weight = _weights(heads.output_projection)
    _set_norm(its.layer_norm, mine.self_attention_residual.norm)


def _set_feed_forward(its, mine: nn.Module) -> None:
    network = mine.feed_forward
    for linear, layer in (
        (its.linear_0, network.inner),
        (its.linear_1, network.outer),
    ):
        linear.weight = _weights(layer)
        linear.bias = layer.bias.detach().numpy()
    _set_norm(its.layer_norm, mine.feed_forward_residual.norm)


def _set_norm(its, norm: nn.LayerNorm) -> None:
    its.gamma, its.beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()
