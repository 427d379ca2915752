"""From a folder or file on disk to a model that translates."""

import os
from pathlib import Path

import torch

from aiayn.checkpoint import load_tensors
from aiayn.data import Tokenizer
from aiayn.machine import resolve_device
from aiayn.model.description import Translator, restore_model
from aiayn.run import RunFolder


def load_translator(
    path: Path | str, device: torch.device | str = "cpu"
) -> tuple[Translator, Tokenizer]:
    """Load a trained model and its tokenizer, ready to translate.

    Args:
        path: A run's folder (its averaged weights are taken, else the best, else the
            last), or one .safetensors file of a run.
        device: Where the model shall compute; "auto": on a GPU if there is one.

    Returns:
        The model, in evaluation mode, and the tokenizer.

    Raises:
        InputError: There is none, or a file is damaged or of another configuration, or
            there is no such device.

    Not in the paper.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> model.config.vocab_size == tokenizer.vocab_size
    True
    """
    if isinstance(device, str):
        device = resolve_device(device)
    path = Path(path)
    file = RunFolder(path).weights() if os.path.isdir(path) else path
    weights, info = load_tensors(file)
    model = restore_model(info.get("model"), weights, file)
    tokenizer = Tokenizer.load(RunFolder(file.parent).tokenizer)
    return model.to(device).eval(), tokenizer
