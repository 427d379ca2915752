"""The model in the page: one small translator, eight bits a weight, and its record.

`tools/records/live.py` quantises a trained model into one file of the records, and the
build turns the same file into the page's script. So the page, the tests and whoever
imports this module compute with the same weights. Not in the paper: it stores 32 bits.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from aiayn.data import Tokenizer
from aiayn.errors import InputError
from aiayn.model import NoPositionalEncoding, Transformer, TransformerConfig
from aiayn.model.attention import MultiHeadAttention
from aiayn.storage import describe_config, load_tensors, read_config, save_tensors

NAME = "live"
"""The model that chapters take apart: the grammar's."""
EVERYDAY = "everyday"
"""The model of the landing page: sentences of Tatoeba."""
EXTRA_LENGTH = 10
"""A translation in the page may have so many pieces more than its source: enough for
every sentence of the grammar, and short enough to read when the model is broken."""
SEARCH: dict[str, Any] = {
    "beam_size": 4,
    "length_penalty": 1.5,  # 1.0: 0.3 BLEU less on validation, p = 0.01
    "extra_length": EXTRA_LENGTH,
}
"""How the page searches with `EVERYDAY`: options of `aiayn.inference.translate`."""
LARGEST = 127
"""The largest whole number of eight bits that has a negative."""

_SCALES, _TOKENIZER = ".scales", "tokenizer"


@dataclass(frozen=True)
class QuantisedMatrix:
    """A matrix as whole numbers, each row with the factor that leads back."""

    numbers: Int8[Tensor, "rows columns"]
    scales: Float[Tensor, " rows"]

    @classmethod
    def of(cls, matrix: Float[Tensor, "rows columns"]) -> "QuantisedMatrix":
        """The nearest whole numbers when each row's largest entry becomes ±127.

        >>> QuantisedMatrix.of(torch.tensor([[0.5, -1.27], [0.0, 0.0]])).numbers
        tensor([[  50, -127],
                [   0,    0]], dtype=torch.int8)
        """
        scales = matrix.abs().amax(dim=1) / LARGEST  # (rows,)
        divisors = scales.where(scales > 0, 1.0)  # a row of zeros stays one
        return cls((matrix / divisors[:, None]).round().to(torch.int8), scales)

    def matrix(self) -> Float[Tensor, "rows columns"]:
        """What the model computes with."""
        return self.numbers * self.scales[:, None]


@dataclass(frozen=True)
class QuantisedModel:
    """A translator and its tokenizer as they are stored."""

    config: TransformerConfig
    matrices: dict[str, QuantisedMatrix]
    vectors: dict[str, Float[Tensor, " width"]]
    """Biases and LayerNorm's parameters: few, and kept as they are."""
    tokenizer: bytes
    """The sentencepiece model."""

    @classmethod
    def of(cls, model: Transformer, tokenizer: bytes) -> "QuantisedModel":
        """Quantise each matrix of a model."""
        weights = {name: w.detach().cpu() for name, w in model.state_dict().items()}
        matrices = {
            name: QuantisedMatrix.of(weight)
            for name, weight in weights.items()
            if weight.dim() == 2
        }
        vectors = {name: w for name, w in weights.items() if name not in matrices}
        return cls(model.config, matrices, vectors, tokenizer)

    @classmethod
    def load(cls, path: Path) -> "QuantisedModel":
        """Read what `save` wrote.

        Raises:
            InputError: It is missing, damaged, or not such a file.
        """
        tensors, info = load_tensors(path)
        config = read_config(info.get("model"))
        names = [n.removesuffix(_SCALES) for n in tensors if n.endswith(_SCALES)]
        needed = {_TOKENIZER, *names}
        if not isinstance(config, TransformerConfig) or needed - tensors.keys():
            raise InputError(f"{path} holds no quantised Transformer.")
        tokenizer = tensors.pop(_TOKENIZER).numpy().tobytes()
        matrices = {
            name: QuantisedMatrix(tensors.pop(name), tensors.pop(name + _SCALES))
            for name in names
        }
        return cls(config, matrices, tensors, tokenizer)

    def save(self, path: Path) -> None:
        """Write one safetensors file, the tokenizer in it."""
        tensors = dict(self.vectors)
        for name, matrix in self.matrices.items():
            tensors[name] = matrix.numbers
            tensors[name + _SCALES] = matrix.scales
        tensors[_TOKENIZER] = torch.frombuffer(
            bytearray(self.tokenizer), dtype=torch.uint8
        )
        save_tensors(path, tensors, {"model": describe_config(self.config)})

    def weights(self) -> dict[str, Tensor]:
        """Every parameter as the model computes with it."""
        matrices = {name: found.matrix() for name, found in self.matrices.items()}
        return matrices | self.vectors

    def model(self) -> Transformer:
        """A Transformer with these weights, in evaluation mode."""
        model = Transformer(self.config)
        model.load_state_dict(self.weights())
        return model.eval()


def load_quantised(name: str = NAME) -> QuantisedModel:
    """The record of a model in the page: `NAME`'s or `EVERYDAY`'s."""
    record = files("aiayn_book").joinpath("records", f"{name}.safetensors")
    with as_file(record) as path:
        return QuantisedModel.load(path)


def load_live_model(name: str = NAME) -> tuple[Transformer, Tokenizer]:
    """A model in the page, for Python: the same weights, the same tokenizer."""
    quantised = load_quantised(name)
    return quantised.model(), Tokenizer(quantised.tokenizer)


@contextmanager
def without_scale(model: Transformer) -> Iterator[None]:
    """Inside, no attention divides by √d_k (§3.2.1); afterwards the model is as before.

    Queries that are √d_k times as long do the same.
    """
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    kept = [attention.query_projection.weight.data for attention in attentions]
    try:
        for attention, weight in zip(attentions, kept, strict=True):
            scaled = weight * math.sqrt(attention.d_k)
            attention.query_projection.weight.data = scaled
        yield
    finally:
        for attention, weight in zip(attentions, kept, strict=True):
            attention.query_projection.weight.data = weight


@contextmanager
def without_positions(model: Transformer) -> Iterator[None]:
    """Inside, no position is added (§3.5); afterwards the model is as before."""
    kept = model.source_positions, model.target_positions
    try:
        model.source_positions = model.target_positions = NoPositionalEncoding()
        yield
    finally:
        model.source_positions, model.target_positions = kept
