"""The model as two ONNX graphs, for whoever runs it without Python or torch.

``encoder.onnx`` reads a batch of sentences once. ``decoder_step.onnx`` reads one token
a sentence and scores the next; what it has to remember, keys and values of every layer,
goes in and comes out, and is empty at the first step. Together they do what
`Transformer.start` and `Transformer.step` do. Batch size and lengths are free, up to
``max_length`` tokens a row: the table of positions is written as it is, and no longer
grows.
"""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import Dim

from aiayn.errors import InputError
from aiayn.interop.requirement import require_transformer
from aiayn.model import Transformer, padding_mask
from aiayn.model.cache import LayerCache
from aiayn.model.forms import plain_form

ENCODER, DECODER_STEP = "encoder.onnx", "decoder_step.onnx"
NEEDED = ("onnx", "onnxscript")
OPSET = 18
# What the exporter traces with: it takes a size of 0 or 1 for one that never changes.
BATCH, LENGTH, WRITTEN = 2, 5, 3


def export_onnx(model: Transformer, folder: Path | str) -> list[Path]:
    """Write the two graphs, weights inside, into a folder.

    The encoder's input is ``source``, token ids of shape (batch, length). Its outputs,
    and the step's inputs, are ``source_mask`` and, for each layer i,
    ``memory_keys.i`` and ``memory_values.i``. The step reads ``tokens`` (batch,) and
    ``keys.i`` and ``values.i`` of shape (batch, heads, written, width) besides, and
    returns ``logits`` and ``new_keys.i`` and ``new_values.i``, which are the next
    step's ``keys.i`` and ``values.i``.

    Args:
        model: A Transformer of any kind; it is exported as in evaluation.
        folder: Made if it is not there.

    Returns:
        The two files.

    Raises:
        InputError: The model is no Transformer, has no decoder layer or a max_length
            of hardly any tokens, or onnx or onnxscript is not installed.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> [path.name for path in export_onnx(model, "my-model")]
    ['encoder.onnx', 'decoder_step.onnx']
    """
    require_transformer(model)
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(
            f"The export needs {' and '.join(missing)}: run  pip install 'aiayn[onnx]'."
        )
    if model.config.num_decoder_layers == 0 or model.config.max_length <= LENGTH:
        raise InputError(
            f"The export needs a decoder layer, and a max_length of more than {LENGTH}."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    training = [module for module in model.modules() if module.training]
    try:
        model.eval()
        # The plain form is made of torch's own operations, which the exporter knows.
        with plain_form(), torch.no_grad():
            return [
                _export_encoder(model, folder / ENCODER),
                _export_step(model, folder / DECODER_STEP),
            ]
    finally:
        for module in training:
            module.training = True


class _EncoderGraph(nn.Module):
    """`Transformer.start`, its state as plain tensors."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        model = self.model
        x = model.source_positions(model.embedding("source")(source))
        mask = padding_mask(source, model.config.pad_id)
        caches = model.decoder.start(model.encoder(x, mask)[0])
        memory = (t for c in caches for t in (c.memory_keys, c.memory_values))
        return mask, *memory


class _StepGraph(nn.Module):
    """`Transformer.step`: how many tokens were read, the keys' length says."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Tensor,
        source_mask: Tensor,
        memory: list[Tensor],
        written: list[Tensor],
    ) -> tuple[Tensor, ...]:
        model = self.model
        layers = [
            LayerCache(*memory[i : i + 2], *written[i : i + 2])
            for i in range(0, len(memory), 2)
        ]
        x = model.embedding("target")(tokens[:, None])  # (batch, 1, d_model)
        x = model.target_positions(x, start=written[0].size(2))
        states, _, _ = model.decoder(x, layers, None, source_mask)
        new = [t for layer in layers for t in (layer.keys, layer.values)]
        return model.logits(states[:, 0]), *cast(list[Tensor], new)


def _names(model: Transformer, keys: str, values: str) -> list[str]:
    layers = range(model.config.num_decoder_layers)
    return [f"{name}.{i}" for i in layers for name in (keys, values)]


def _memory_names(model: Transformer) -> list[str]:
    return ["source_mask", *_names(model, "memory_keys", "memory_values")]


def _export_encoder(model: Transformer, path: Path) -> Path:
    batch, length = Dim("batch"), Dim("length", max=model.config.max_length)
    return _write(
        _EncoderGraph(model),
        (_some_tokens(model),),
        ({0: batch, 1: length},),
        (["source"], _memory_names(model)),
        path,
    )


def _export_step(model: Transformer, path: Path) -> Path:
    batch, length = Dim("batch"), Dim("length", max=model.config.max_length)
    written = Dim("written", max=model.config.max_length - 1)
    source = _some_tokens(model)
    source_mask, *memory = _EncoderGraph(model)(source)
    before = [t[:, :, :WRITTEN].clone() for t in memory]  # of the shape that is wanted
    return _write(
        _StepGraph(model),
        (source[:, 0], source_mask, memory, before),
        (
            {0: batch},
            {0: batch, 3: length},
            [{0: batch, 2: length} for _ in memory],
            [{0: batch, 2: written} for _ in before],
        ),
        (
            ["tokens", *_memory_names(model), *_names(model, "keys", "values")],
            ["logits", *_names(model, "new_keys", "new_values")],
        ),
        path,
    )


def _some_tokens(model: Transformer) -> Tensor:
    device = model.output_weight.device
    return torch.zeros(BATCH, LENGTH, dtype=torch.int64, device=device)


def _write(
    graph: nn.Module,
    example: tuple[Any, ...],
    shapes: tuple[Any, ...],
    names: tuple[list[str], list[str]],
    path: Path,
) -> Path:
    """Trace a graph with example inputs and write it, weights in the same file."""
    inputs, outputs = names
    with _quietly():
        program = torch.onnx.export(
            graph.eval(),
            example,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=inputs,
            output_names=outputs,
            opset_version=OPSET,
            verbose=False,
        )
        assert program is not None  # it is None for the old exporter only
        program.save(str(path), external_data=False)
    return path


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporter warns of its own insides, and that torchvision is not there.

    Older releases of onnxscript print how often they rewrote something, too.
    """
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
