"""A model's configuration as plain data, and back: what a checkpoint says of itself."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.config import TransformerConfig
from aiayn.model.recurrent import RecurrentConfig, RecurrentTranslator
from aiayn.model.transformer import Transformer

ModelConfig = TransformerConfig | RecurrentConfig
Translator = Transformer | RecurrentTranslator

_KINDS = {"transformer": TransformerConfig, "recurrent": RecurrentConfig}


def describe_config(config: ModelConfig) -> dict[str, Any]:
    """The configuration as JSON can hold it; ``kind`` says which model it shapes."""
    kind = "transformer" if isinstance(config, TransformerConfig) else "recurrent"
    return {"kind": kind, **asdict(config)}


def read_config(description: Any) -> ModelConfig:
    """What `describe_config` described.

    Raises:
        InputError: The description is not one, or one of another version.
    """
    fields = dict(description) if isinstance(description, dict) else {}
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise InputError(
            f"A model's description says which kind it is of, "
            f"{' or '.join(_KINDS)}, not {kind!r}."
        )
    try:
        return _KINDS[kind](**fields)
    except TypeError as error:
        raise InputError(f"This is no description of a {kind}: {error}.") from None


def build_model(config: ModelConfig) -> Translator:
    """A new model of this shape, its weights drawn from torch's random numbers."""
    if isinstance(config, TransformerConfig):
        return Transformer(config)
    return RecurrentTranslator(config)


def load_weights(model: Translator, weights: dict[str, Tensor], path: Path) -> None:
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
