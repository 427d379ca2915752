"""A model's configuration as plain data, and back: what a checkpoint says of itself."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.config import TransformerConfig
from aiayn.model.transformer import Transformer

# Of a table of positions, which is computed and not saved: 256 MiB in float32.
MAX_TABLE_NUMBERS = 2**26

# More than anybody stacks. Each takes time to make, however small it is.
MAX_LAYERS = 10_000


def describe_config(config: TransformerConfig) -> dict[str, Any]:
    """The configuration as JSON can hold it; ``kind`` says which model it shapes."""
    return {"kind": "transformer", **asdict(config)}


def read_config(description: Any) -> TransformerConfig:
    """What `describe_config` described.

    Raises:
        InputError: The description is not one, or one of another version.
    """
    fields = dict(description) if isinstance(description, dict) else {}
    kind = fields.pop("kind", None)
    if kind == "recurrent":
        raise InputError(
            "This model is the recurrent baseline as the first edition saved it: load "
            "it with version 0.1 of aiayn."
        )
    if kind != "transformer":
        raise InputError(
            "A model's description says of which kind it is, transformer, and this "
            f"one {kind!r:.60}."
        )
    try:
        return TransformerConfig(**fields)
    except TypeError as error:
        raise InputError(f"This is no description of a model: {error}.") from None


def build_model(config: TransformerConfig) -> Transformer:
    """A new model of this shape, its weights drawn from torch's random numbers.

    Raises:
        InputError: It is larger than the memory, or than any number torch counts with.
    """
    if _layers(config) > MAX_LAYERS:
        raise InputError(
            f"A model of {_layers(config):,} layers cannot be made: the most are "
            f"{MAX_LAYERS:,}."
        )
    try:
        return Transformer(config)
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(
            "A model of these sizes cannot be made: it needs more memory than this "
            f"machine has ({str(error).splitlines()[0]:.200}). Choose smaller ones."
        ) from error


def restore_model(
    description: Any, weights: dict[str, Tensor], path: Path
) -> Transformer:
    """The model that a file describes, with the weights that it holds.

    Nothing of the size that the description claims is made before the weights have
    been found to be of that size: a file of a kilobyte cannot ask for a terabyte.

    Args:
        description: What `describe_config` gave.
        weights: By name.
        path: Where both were read.

    Raises:
        InputError: The description is none, or not that of the weights.
    """
    config = read_config(description)
    try:
        if _layers(config) > len(weights):
            raise RuntimeError(f"{_layers(config):,} layers")
        with torch.device("meta"):  # shapes without memory
            outline = build_model(config)
        expected = {name: part.shape for name, part in outline.state_dict().items()}
        found = {name: weight.shape for name, weight in weights.items()}
        if expected != found:
            name = min(set(expected.items()) ^ set(found.items()))[0]
            raise RuntimeError(
                f"{name} is {_shape(found.get(name))} and should be "
                f"{_shape(expected.get(name))}"
            )
        if sum(table.numel() for table in outline.buffers()) > MAX_TABLE_NUMBERS:
            raise RuntimeError(f"max_length = {config.max_length:,}")
    except (RuntimeError, InputError) as error:
        raise InputError(
            f"{path} holds the weights of another configuration than it says: {error}."
        ) from None
    model = build_model(config)
    load_weights(model, weights, path)
    return model


def _layers(config: TransformerConfig) -> int:
    return config.num_encoder_layers + config.num_decoder_layers


def _shape(shape: torch.Size | None) -> str:
    return "missing" if shape is None else str(tuple(shape))


def load_weights(model: Transformer, weights: dict[str, Tensor], path: Path) -> None:
    """Put weights that were read from path into the model.

    Raises:
        InputError: They are those of a model of another shape.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).split("\n")[1].strip()
        raise InputError(
            f"{path} holds the weights of another configuration: {first}"
        ) from None
