"""From a folder or file on disk to a model that translates, and back."""

import os
from pathlib import Path

import torch

from aiayn.checkpoint import load_tensors, save_tensors
from aiayn.data import Tokenizer
from aiayn.errors import InputError
from aiayn.fast import accelerate
from aiayn.inference.translation import check_vocabulary
from aiayn.machine import resolve_device
from aiayn.model import Transformer
from aiayn.model.description import describe_config, restore_model
from aiayn.run import RunFolder


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
            tokenizer has more or fewer entries than the model's vocabulary, or there is
            no such device.

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
    if info.get("model") is None:
        raise InputError(
            f"{file} holds no model (a run's state is for a training to go on with): "
            "name the run's folder, or its best, its average or a step."
        )
    model = restore_model(info.get("model"), weights, file)
    vocabulary = RunFolder(file.parent).tokenizer
    tokenizer = Tokenizer.load(vocabulary)
    check_vocabulary(model, tokenizer, str(vocabulary))
    return accelerate(model.to(device).eval()), tokenizer


def save_translator(
    model: Transformer, tokenizer: Tokenizer, folder: Path | str
) -> None:
    """Save a model and its tokenizer, so that `load_translator` reads them.

    `train` does so by itself. This is for a model that was made otherwise: with a
    `Trainer`, a loop of your own, or the weights that `average_checkpoints` gives.
    `aiayn translate` takes the folder; to evaluate, resume or average takes a run's.

    Args:
        model: On any device. It is loaded in 32 bits, whatever it was saved in.
        tokenizer: The one that it was trained with.
        folder: Made if it is not there. It gets best.safetensors and tokenizer.model;
            a model that was saved there before is replaced.

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
        kind = type(model)
        raise InputError(
            f"What is of {kind.__module__}.{kind.__qualname__} cannot be saved as a "
            "translator: give an aiayn Transformer, out of what is wrapped around it "
            "(of torch.compile it is _orig_mod), and of several models each alone."
        )
    check_vocabulary(model, tokenizer)
    run = RunFolder(folder)
    run.require_no_run()
    # The larger one first: if the disk is full, what was there stays as it was.
    save_tensors(run.best, model.state_dict(), {"model": describe_config(model.config)})
    tokenizer.save(run.tokenizer)
