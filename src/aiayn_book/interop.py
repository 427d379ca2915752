"""Weights to and from `torch.nn.Transformer`.

torch's module consists of the two stacks: it has no embedding, no positions and no
output layer. It differs from the paper in two points. Each stack ends with one more
LayerNorm, which only a pre-norm model needs; `to_torch` leaves it out of a post-norm
one. And attention has biases, which are zero here.

A checkpoint of this package needs none of this to be read: it is a safetensors file
whose names are those of the model's ``state_dict``.

Not in the paper.
"""

import re
from typing import Any

import torch
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig

__all__ = ["copy_from_torch", "to_torch"]

# How our names of parameters become torch's, which stacks three projections.
_RENAMED = {
    r"self_attention\.(query|key|value)_projection\.": "self_attn.in_proj_",
    r"self_attention\.output_projection": "self_attn.out_proj",
    r"cross_attention\.(query|key|value)_projection\.": "multihead_attn.in_proj_",
    r"cross_attention\.output_projection": "multihead_attn.out_proj",
    r"feed_forward\.inner": "linear1",
    r"feed_forward\.outer": "linear2",
    r"self_attention_residual\.norm": "norm1",
    r"cross_attention_residual\.norm": "norm2",
    r"^(encoder.*)feed_forward_residual\.norm": r"\1norm2",
    r"^(decoder.*)feed_forward_residual\.norm": r"\1norm3",
}


def _names(model: Transformer) -> dict[str, list[str]]:
    """Each parameter of torch's stacks, with the parameters of ours that it stacks."""
    names: dict[str, list[str]] = {}
    for ours in model.state_dict():
        if ours.startswith(("encoder.", "decoder.")):
            theirs = ours
            for pattern, replacement in _RENAMED.items():
                theirs = re.sub(pattern, replacement, theirs)
            names.setdefault(theirs, []).append(ours)
    return names


def to_torch(model: Transformer) -> nn.Transformer:
    """The stacks of a model as torch's module, with copies of the weights.

    Args:
        model: Every head's width has to be d_model / num_heads, as torch has it.

    Returns:
        A module of the same type, device and mode, ``batch_first``. It reads embedded
        tokens and returns hidden states.

    Raises:
        InputError: The model has heads of another width, rotary positions, or a stack
            without layers.

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
    config, ours = model.config, model.state_dict()
    _check_config(config)
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
    if config.norm == "post":
        stacks.encoder.norm = stacks.decoder.norm = None
    module: Any
    for module in stacks.modules():  # torch has one rate of dropout for all
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = config.attention_dropout
        elif hasattr(module, "linear1"):
            module.dropout.p = config.activation_dropout
    weights = {n: w.zero_() for n, w in stacks.state_dict().items() if "_proj" in n}
    for name, parts in _names(model).items():
        weights[name] = torch.cat([ours[part] for part in parts])
    stacks.to(model.output_weight.device, model.output_weight.dtype)
    stacks.load_state_dict(weights)
    return stacks.train(model.training)


def copy_from_torch(stacks: nn.Transformer, model: Transformer) -> None:
    """Copy the weights of torch's module into a model of the same sizes.

    Args:
        stacks: With biases or without; a missing bias counts as zero.
        model: Its embeddings stay as they are.

    Raises:
        InputError: The weights would compute something else in the model; the message
            says why. Nothing has been copied then.

    >>> config = TransformerConfig.tiny(vocab_size=20)
    >>> stacks = to_torch(Transformer(config))  # say it comes from somebody else
    >>> model = Transformer(config)
    >>> copy_from_torch(stacks, model)
    >>> ours, theirs = (m.encoder.layers[0] for m in (model, stacks))
    >>> torch.equal(ours.feed_forward.inner.weight, theirs.linear1.weight)
    True
    """
    _check_config(model.config)
    _check_stacks(stacks, model.config)
    ours, theirs, names = model.state_dict(), stacks.state_dict(), _names(model)
    new: dict[str, Tensor] = {}
    for name, parts in names.items():
        rows = [ours[part].size(0) for part in parts]
        shape = (sum(rows), *ours[parts[0]].shape[1:])
        if name not in theirs and name.endswith("bias"):
            theirs[name] = torch.zeros(shape)
        if name not in theirs or theirs[name].shape != shape:
            found = tuple(theirs[name].shape) if name in theirs else "missing"
            raise InputError(f"{name} of stacks must be of shape {shape}, not {found}.")
        new |= zip(parts, theirs[name].split(rows), strict=True)
    for name in theirs:
        if name not in names and theirs[name].any():
            raise InputError(f"The model has no equal of {name} in stacks.")
    model.load_state_dict(ours | new)


def _check_config(config: TransformerConfig) -> None:
    """Refuse a model that torch's module cannot compute."""
    layers = (config.num_encoder_layers, config.num_decoder_layers)
    width = config.d_model // config.num_heads
    refused = {
        "rotary positions": config.positions == "rotary",
        "heads of another width": {config.d_k, config.d_v} - {None, width},
        "a stack without layers": 0 in layers,
    }
    for name, found in refused.items():
        if found:
            raise InputError(f"torch.nn.Transformer knows no model with {name}.")


def _check_stacks(stacks: nn.Transformer, config: TransformerConfig) -> None:
    """Refuse what the shapes of weights do not show."""
    layers: list[Any] = [*stacks.encoder.layers, *stacks.decoder.layers]
    norms = [module for module in stacks.modules() if isinstance(module, nn.LayerNorm)]
    relu = (nn.functional.relu, torch.relu)
    is_relu = {x.activation in relu or type(x.activation) is nn.ReLU for x in layers}
    for name, found, wanted in (
        ("norm_first", {x.norm_first for x in layers}, config.norm == "pre"),
        ("heads", {x.self_attn.num_heads for x in layers}, config.num_heads),
        ("eps of LayerNorm", {norm.eps for norm in norms}, 1e-5),
        ("activation of ReLU", is_relu, True),
    ):
        if found != {wanted}:
            raise InputError(
                f"stacks has {name} = {', '.join(map(str, found))}, and the model "
                f"{wanted}: it would compute something else."
            )
