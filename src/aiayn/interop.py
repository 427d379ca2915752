"""Weights to and from `torch.nn.Transformer`.

torch's module is the two stacks alone: no embedding, no positions, no output layer. It
differs from the paper in two things. After each stack stands one more LayerNorm, which
a post-norm model has no use for; `to_torch` leaves it out there. And attention has
biases, which are zero on the way there and must be zero on the way back.

A checkpoint of ours needs nothing of this: it is a safetensors file whose names are
those of the model's ``state_dict``.

Not in the paper.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig

__all__ = ["copy_from_torch", "to_torch"]

# LayerNorm's, in all our layers: torch's default.
EPSILON = 1e-5

# The functions that are ReLU; a module of nn.ReLU is the third way to write it.
RELU = (nn.functional.relu, torch.relu)

# Parameters of ours, and torch's one that holds them all, stacked.
Pair = tuple[list[Tensor], Tensor]


def to_torch(model: Transformer) -> nn.Transformer:
    """The stacks of a model as torch's module, with copies of the weights.

    Args:
        model: Every head's width has to be d_model / num_heads: torch knows no other.

    Returns:
        A module of the same type, device and mode, ``batch_first``. It reads embedded
        tokens and returns states.

    Raises:
        InputError: The model is no Transformer, or has heads of another width, or
            rotary positions.

    Paper: §3.1.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20)).eval()
    >>> stacks = to_torch(model)
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8]])
    >>> read = model.source_positions(model.embedding("source")(source))
    >>> written = model.target_positions(model.embedding("target")(target))
    >>> hidden = stacks.generate_square_subsequent_mask(3)
    >>> states = stacks(read, written, tgt_mask=hidden)
    >>> torch.testing.assert_close(model.logits(states), model(source, target))
    """
    _require_transformer(model)
    _check_positions(model.config)
    stacks = _same_shape(model.config)
    if model.config.norm == "post":
        stacks.encoder.norm = stacks.decoder.norm = None
    weight = model.output_weight
    stacks.to(weight.device, weight.dtype)
    with torch.no_grad():
        for parameter in stacks.parameters():
            parameter.zero_()
        for ours, theirs in _pairs(model, stacks):
            theirs.copy_(torch.cat(ours))
    return stacks.train(model.training)


def copy_from_torch(stacks: nn.Transformer, model: Transformer) -> None:
    """Copy the weights of torch's module into a model of the same sizes.

    Args:
        stacks: ``bias=False`` will do: what it does not have counts as zero.
        model: Its embeddings stay as they are.

    Raises:
        InputError: The model is no Transformer of ours, or the weights cannot mean the
            same in it; the message says which. Nothing has been copied then.

    >>> config = TransformerConfig.tiny(vocab_size=20)
    >>> stacks = to_torch(Transformer(config))  # say it comes from somebody else
    >>> model = Transformer(config)
    >>> copy_from_torch(stacks, model)
    >>> ours, theirs = (m.encoder.layers[0] for m in (model, stacks))
    >>> torch.equal(ours.feed_forward.inner.weight, theirs.linear1.weight)
    True
    """
    _require_transformer(model)
    _check_positions(model.config)
    _check_stacks(stacks, model.config)
    pairs = list(_pairs(model, stacks))
    for ours, theirs in pairs:
        size = sum(part.size(0) for part in ours)
        if (size, *ours[0].shape[1:]) != tuple(theirs.shape):
            raise InputError(
                f"stacks has a weight of shape {tuple(theirs.shape)} where the model's "
                f"is {(size, *ours[0].shape[1:])}: give both the same sizes."
            )
    matched = {id(theirs) for _, theirs in pairs}
    for name, parameter in stacks.named_parameters():
        if id(parameter) not in matched and parameter.any():
            raise InputError(
                f"{name} of stacks is not zero, and the paper's attention has no bias: "
                "these weights have no equal in our model."
            )
    with torch.no_grad():
        for ours, theirs in pairs:
            parts = theirs.split([part.size(0) for part in ours])
            for part, values in zip(ours, parts, strict=True):
                part.copy_(values)


def _require_transformer(model: Any) -> None:
    if not isinstance(model, Transformer):
        kind = type(model)
        raise InputError(
            "Only a Transformer of aiayn's has an equal in torch.nn, and this is of "
            f"{kind.__module__}.{kind.__qualname__}. If one is wrapped in it, give "
            "that one (of torch.compile it is _orig_mod)."
        )


def _check_positions(config: TransformerConfig) -> None:
    if config.positions == "rotary":
        raise InputError(
            "torch.nn.Transformer does not turn queries and keys, and this model has "
            "positions = 'rotary': it would compute something else."
        )


def _same_shape(config: TransformerConfig) -> nn.Transformer:
    if 0 in (config.num_encoder_layers, config.num_decoder_layers):
        raise InputError(
            "torch.nn.Transformer cannot be called without layers, and this model has "
            f"num_encoder_layers = {config.num_encoder_layers} and num_decoder_layers "
            f"= {config.num_decoder_layers}."
        )
    width, rest = divmod(config.d_model, config.num_heads)
    if rest or {config.d_k or width, config.d_v or width} != {width}:
        raise InputError(
            f"torch.nn.Transformer knows only heads of width d_model / num_heads, and "
            f"this model has d_k = {config.d_k} and d_v = {config.d_v}."
        )
    stacks = nn.Transformer(
        config.d_model,
        config.num_heads,
        config.num_encoder_layers,
        config.num_decoder_layers,
        config.d_ff,
        config.dropout,
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    for module in stacks.modules():  # torch drops at one rate everywhere, we do not
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = config.attention_dropout
        elif isinstance(
            module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
        ):
            module.dropout.p = config.activation_dropout
    return stacks


def _check_stacks(stacks: nn.Transformer, config: TransformerConfig) -> None:
    """What shapes do not show: depth, norms, activation."""
    for module in stacks.modules():
        if isinstance(module, nn.LayerNorm) and module.eps != EPSILON:
            raise InputError(
                f"stacks has a LayerNorm of eps = {module.eps}, but the model's have "
                f"{EPSILON}: they compute something else."
            )
    for name in ("encoder", "decoder"):
        stack, layers = getattr(stacks, name), getattr(config, f"num_{name}_layers")
        if len(stack.layers) != layers:
            raise InputError(
                f"The {name} of stacks has {len(stack.layers)} layers and the model's "
                f"{layers}: give both the same sizes."
            )
        if (stack.norm is None) != (config.norm == "post"):
            raise InputError(
                f"A model with norm={config.norm!r} has "
                f"{'no' if config.norm == 'post' else 'a'} LayerNorm after its "
                f"{name}, unlike stacks, which computes something else."
            )
        for layer in stack.layers:
            if layer.norm_first != (config.norm == "pre"):
                raise InputError(
                    f"stacks has norm_first={layer.norm_first}, but the model "
                    f"norm={config.norm!r}: LayerNorm stands elsewhere."
                )
            if layer.self_attn.num_heads != config.num_heads:
                raise InputError(
                    f"stacks has {layer.self_attn.num_heads} heads a layer and the "
                    f"model {config.num_heads}: give both the same sizes."
                )
            if layer.activation not in RELU and not isinstance(
                layer.activation, nn.ReLU
            ):
                raise InputError(
                    "stacks has another activation than ReLU, which the paper's "
                    "feed-forward network has."
                )


def _pairs(model: Transformer, stacks: nn.Transformer) -> Iterator[Pair]:
    """Every parameter of our stacks, with what holds it in torch's."""
    both: Any = ((model.encoder, stacks.encoder), (model.decoder, stacks.decoder))
    for mine, its in both:
        for ours, theirs in zip(mine.layers, its.layers, strict=True):
            yield from _layer_pairs(ours, theirs)
        if its.norm is not None:
            yield from _affine(mine.norm, its.norm)


def _layer_pairs(ours: Any, theirs: Any) -> Iterator[Pair]:
    yield from _attention(ours.self_attention, theirs.self_attn)
    norms = [ours.self_attention_residual.norm]
    if hasattr(ours, "cross_attention"):
        yield from _attention(ours.cross_attention, theirs.multihead_attn)
        norms.append(ours.cross_attention_residual.norm)
    norms.append(ours.feed_forward_residual.norm)
    for number, norm in enumerate(norms, start=1):
        yield from _affine(norm, getattr(theirs, f"norm{number}"))
    yield from _affine(ours.feed_forward.inner, theirs.linear1)
    yield from _affine(ours.feed_forward.outer, theirs.linear2)


def _attention(ours: Any, theirs: Any) -> Iterator[Pair]:
    three = (ours.query_projection, ours.key_projection, ours.value_projection)
    yield [projection.weight for projection in three], theirs.in_proj_weight
    yield [ours.output_projection.weight], theirs.out_proj.weight


def _affine(ours: Any, theirs: Any) -> Iterator[Pair]:
    yield [ours.weight], theirs.weight
    bias = torch.zeros_like(ours.bias) if theirs.bias is None else theirs.bias
    yield [ours.bias], bias
