"""§6.1: the average of the last checkpoints, as one model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aiayn.errors import InputError
from aiayn.storage import load_tensors, refuse_path


def average_checkpoints(
    paths: Sequence[Path | str],
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    r"""The mean of every weight over several checkpoints of one run.

    $$\bar\theta = \frac{1}{n} \sum_{i=1}^{n} \theta_i$$

    Args:
        paths: Checkpoints of models of one shape; the paper averages the last 5 (base)
            or 20 (big).

    Returns:
        The averaged weights, summed in float64, and the last checkpoint's description.

    Raises:
        InputError: There is none, or not a list of them; one cannot be read, or two
            differ in shape.

    Paper: §6.1.

    >>> paths = sorted(Path("runs/grammar").glob("step-*.safetensors"))
    >>> weights, info = average_checkpoints(paths[-5:])  # after a training
    """
    refuse_path(paths)
    paths = list(paths)  # of a glob, say, which can be read but once
    if not paths:
        raise InputError("There is no checkpoint to average.")
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    info: dict[str, Any] = {}
    for path in paths:
        tensors, info = load_tensors(path)
        if total and _shapes(tensors) != _shapes(total):
            raise InputError(
                f"{path} holds a model of another shape than {paths[0]}: average "
                "checkpoints of one run."
            )
        dtypes = dtypes or {name: tensor.dtype for name, tensor in tensors.items()}
        for name, tensor in tensors.items():
            total[name] = total.get(name, tensor.new_zeros(())) + tensor.double()
    mean = {
        name: (tensor / len(paths)).to(dtypes[name]) for name, tensor in total.items()
    }
    return mean, info


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
