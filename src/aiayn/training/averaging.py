"""§6.1: the average of the last checkpoints, as one model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
        InputError: The list is empty, or a single path; a file cannot be read; or two
            models differ in shape.

    Paper: §6.1.

    >>> paths = sorted(Path("runs/grammar").glob("step-*.safetensors"))
    >>> weights, info = average_checkpoints(paths[-5:])  # after a training
    """
    refuse_path(paths)
    paths = list(paths)  # a generator, such as a glob, can be read only once
    if not paths:
        raise InputError("There is no checkpoint to average.")
    first, info = load_tensors(paths[0])
    shapes = {name: tensor.shape for name, tensor in first.items()}
    total = {name: tensor.double() for name, tensor in first.items()}
    for path in paths[1:]:
        tensors, info = load_tensors(path)
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise InputError(
                f"{path} holds a model of another shape than {paths[0]}: average "
                "checkpoints of one run."
            )
        for name, tensor in tensors.items():
            total[name] += tensor.double()
    mean = {name: (t / len(paths)).to(first[name].dtype) for name, t in total.items()}
    return mean, info
