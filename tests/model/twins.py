"""torch's own modules with our weights in them, to be held against ours.

Each function returns the twin and the pairs of parameters that must agree: a list of
ours, which torch keeps stacked in one, and torch's. torch's attention has biases, the
paper's has none: the twin's are zero.
"""

import torch
from torch import nn


def randomize(module):
    """Give every parameter a random value, so that none is a trivial one or zero."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


def _attention_pairs(ours, theirs):
    projections = [ours.query_projection, ours.key_projection, ours.value_projection]
    return [
        ([projection.weight for projection in projections], theirs.in_proj_weight),
        ([ours.output_projection.weight], theirs.out_proj.weight),
    ]


def _layer_pairs(ours, theirs):
    pairs = _attention_pairs(ours.self_attention, theirs.self_attn)
    norms = [ours.self_attention_residual.norm]
    if hasattr(ours, "cross_attention"):
        pairs += _attention_pairs(ours.cross_attention, theirs.multihead_attn)
        norms.append(ours.cross_attention_residual.norm)
    norms.append(ours.feed_forward_residual.norm)
    modules = [
        (ours.feed_forward.inner, theirs.linear1),
        (ours.feed_forward.outer, theirs.linear2),
        *((norm, getattr(theirs, f"norm{i}")) for i, norm in enumerate(norms, 1)),
    ]
    return pairs + [pair for two in modules for pair in _module_pairs(*two)]


def _module_pairs(ours, theirs):
    return [([ours.weight], theirs.weight), ([ours.bias], theirs.bias)]


def _with_our_weights(twin, pairs):
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
        for ours, theirs in pairs:
            theirs.copy_(torch.cat(ours))
    return twin, pairs


def multi_head_twin(ours):
    """The twin of a MultiHeadAttention."""
    width = ours.output_projection.out_features
    twin = nn.MultiheadAttention(width, ours.num_heads, bias=False, batch_first=True)
    return _with_our_weights(twin.double(), _attention_pairs(ours, twin))


def layer_twin(ours, config):
    """The twin of an EncoderLayer or a DecoderLayer."""
    decoder = hasattr(ours, "cross_attention")
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    twin = kind(
        config.d_model,
        config.num_heads,
        config.d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=config.norm == "pre",
    ).double()
    return _with_our_weights(twin, _layer_pairs(ours, twin))


def transformer_twin(ours):
    """The twin of a Transformer's stacks: nn.Transformer, its final norms removed."""
    config = ours.config
    twin = nn.Transformer(
        config.d_model,
        config.num_heads,
        config.num_encoder_layers,
        config.num_decoder_layers,
        config.d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=config.norm == "pre",
    ).double()
    pairs = []
    for our_stack, stack in [
        (ours.encoder, twin.encoder),
        (ours.decoder, twin.decoder),
    ]:
        for our_layer, layer in zip(our_stack.layers, stack.layers, strict=True):
            pairs += _layer_pairs(our_layer, layer)
        if config.norm == "pre":
            pairs += _module_pairs(our_stack.norm, stack.norm)
        else:
            stack.norm = None
    return _with_our_weights(twin, pairs)


def assert_same_gradients(pairs):
    """After both have run backward: every pair's gradients agree."""
    for ours, theirs in pairs:
        torch.testing.assert_close(torch.cat([p.grad for p in ours]), theirs.grad)
