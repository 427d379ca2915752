"""From a folder or file on disk to a model that translates, and back."""

import os
from pathlib import Path

import torch

from aiayn.data import Tokenizer
from aiayn.device import resolve_device
from aiayn.errors import InputError
from aiayn.fast import accelerate
from aiayn.inference.translation import check_vocabulary
from aiayn.model import Transformer
from aiayn.storage import (
    RunFolder,
    build_model,
    describe_config,
    expand,
    load_tensors,
    load_weights,
    read_config,
    save_tensors,
)


def load_translator(
    path: os.PathLike | str, device: torch.device | str = "cpu"
) -> tuple[Transformer, Tokenizer]:
    """Load a trained model and its tokenizer, ready to translate.

    Args:
        path: A run's folder (its averaged weights are taken, else the best, else the
            last), one of `save_translator`, or one .safetensors file of either.
        device: Where the model shall compute; "auto": on a GPU if there is one.

    Returns:
        The model, in evaluation mode, and the tokenizer.

    Raises:
        InputError: There is none, a file is damaged or of another configuration, the
            tokenizer is not the one that the model was trained with, or there is no
            such device.

    Not in the paper.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> model.config.vocab_size == tokenizer.vocab_size
    True
    """
    path, device = expand(path), resolve_device(str(device))
    file = RunFolder(path).weights() if os.path.isdir(path) else path
    weights, info = load_tensors(file)
    if info.get("model") is None:
        raise InputError(
            f"{file} holds no model: name the run's folder, or its best, average or "
            "step-….safetensors."
        )
    model = build_model(read_config(info["model"]))
    load_weights(model, weights, file)
    run = RunFolder(file.parent)
    tokenizer = Tokenizer.load(run.tokenizer)
    check_vocabulary(model, tokenizer, str(run.tokenizer))
    remedy = "Put back the one that was written with the model."
    run.require_same("tokenizer", tokenizer.digest, run.tokenizer, remedy)
    return accelerate(model.to(device).eval()), tokenizer


def save_translator(
    model: Transformer, tokenizer: Tokenizer, folder: Path | str
) -> None:
    """Save a model and its tokenizer, so that `load_translator` reads them.

    `train` does so by itself. This is for a model that was made in another way: with a
    `Trainer`, a loop of your own, or the weights that `average_checkpoints` gives.
    `aiayn translate` takes the folder; `evaluate` and `resume` need that of a run.

    Args:
        model: On any device. `load_translator` will load it in 32 bits.
        tokenizer: The one that it was trained with.
        folder: Made if it is missing. It gets best.safetensors and tokenizer.model; a
            model that was saved there before is replaced.

    Raises:
        InputError: The model is of another kind or inside a wrapper, the tokenizer is
            not its own, or the folder holds a training run or cannot be written.

    Not in the paper.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> save_translator(model, tokenizer, "my-model")
    >>> again, _ = load_translator("my-model")
    >>> torch.equal(again.output_weight, model.output_weight)
    True
    """
    if not isinstance(model, Transformer):
        raise InputError(
            f"A model of the type {type(model).__qualname__} cannot be saved: give an "
            "aiayn Transformer, without what is wrapped around it (of torch.compile it "
            "is _orig_mod)."
        )
    check_vocabulary(model, tokenizer)
    run = RunFolder(folder)
    run.require_free(run.config)
    # The larger file first: if the disk is full, the old model stays as it was.
    save_tensors(run.best, model.state_dict(), {"model": describe_config(model.config)})
    tokenizer.save(run.tokenizer)
