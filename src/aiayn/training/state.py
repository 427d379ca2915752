"""What a training needs in order to resume: weights and the optimizers' running means.

Not in the paper.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aiayn.errors import InputError
from aiayn.training.trainer import Trainer


def training_state(trainer: Trainer) -> tuple[dict[str, Tensor], list[float]]:
    """All tensors that the next step depends on, and Adam's counts of its steps.

    The names begin with ``model.``, ``mean.`` or ``variance.``, followed by the name of
    the weight.
    """
    adam, muon = trainer.optimizers.adam, trainer.optimizers.muon
    tensors = {f"model.{n}": t for n, t in trainer.model.state_dict().items()}
    for name, weight in trainer.optimizers.matrices.items():
        tensors[f"mean.{name}"] = muon.mean(weight)
    counts = []
    for name, weight in trainer.optimizers.others.items():
        state = adam.state[weight]
        if not state:  # before the first step, or if it never has a gradient
            zeros = torch.zeros_like(weight)
            state = {"exp_avg": zeros, "exp_avg_sq": zeros.clone(), "step": 0}
        tensors[f"mean.{name}"] = state["exp_avg"]
        tensors[f"variance.{name}"] = state["exp_avg_sq"]
        counts.append(float(state["step"]))
    return tensors, counts


def restore_training(
    trainer: Trainer, tensors: dict[str, Tensor], counts: Any, path: Path
) -> None:
    """Restore what `training_state` returned.

    Args:
        trainer: Of the same model and configuration.
        tensors: The tensors.
        counts: Adam's counts.
        path: Where both were read, for messages.

    Raises:
        InputError: It is the state of another model or optimizer.
    """
    optimizers = trainer.optimizers
    if trainer.graphs is not None:
        trainer.graphs.reset()
    own, own_counts = training_state(trainer)
    model = trainer.model.state_dict()
    expected = {name: (t.shape, t.dtype) for name, t in own.items()}
    found = {name: (t.shape, t.dtype) for name, t in tensors.items()}
    if not expected.items() <= found.items() or len(counts) != len(own_counts):
        raise InputError(
            f"{path} is not the state of this training: it is that of another "
            "model or optimizer. Start a new run."
        )
    # Copies, because what was read may still be mapped from the file, which the next
    # save replaces.
    means = own.keys() - {f"model.{name}" for name in model}
    copies = {name: tensors[name].to(optimizers.device, copy=True) for name in means}
    # torch itself counts in the weights' memory if one kernel updates all of them.
    counting = optimizers.device if optimizers.adam.defaults["fused"] else "cpu"
    for (name, weight), count in zip(optimizers.others.items(), counts, strict=True):
        optimizers.adam.state[weight] = {
            "step": torch.tensor(count, device=counting),
            "exp_avg": copies[f"mean.{name}"],
            "exp_avg_sq": copies[f"variance.{name}"],
        }
    for name, weight in optimizers.matrices.items():
        optimizers.muon.state[weight] = {"mean": copies[f"mean.{name}"]}
    trainer.model.load_state_dict({name: tensors[f"model.{name}"] for name in model})
