"""The mean of checkpoints, and what cannot be averaged."""

import pytest
import torch

from aiayn.errors import InputError
from aiayn.storage import save_tensors
from aiayn.training import average_checkpoints


def save(folder, step, **tensors):
    path = folder / f"step-{step}.safetensors"
    save_tensors(path, tensors, {"step": step})
    return path


def test_is_the_mean_of_every_weight(tmp_path):
    paths = [
        save(tmp_path, 1, a=torch.tensor([1.0, 2.0]), b=torch.tensor([[4.0]])),
        save(tmp_path, 2, a=torch.tensor([2.0, 4.0]), b=torch.tensor([[4.0]])),
        save(tmp_path, 3, a=torch.tensor([6.0, 0.0]), b=torch.tensor([[7.0]])),
    ]
    mean, info = average_checkpoints(paths)
    torch.testing.assert_close(mean["a"], torch.tensor([3.0, 2.0]), rtol=0, atol=0)
    torch.testing.assert_close(mean["b"], torch.tensor([[5.0]]), rtol=0, atol=0)
    assert info["step"] == 3


def test_is_summed_in_double_precision(tmp_path):
    paths = [
        save(tmp_path, step, a=torch.tensor([value]))
        for step, value in enumerate([2.0**24, 1.0, 1.0, 0.0])
    ]
    # In float32, 2²⁴ + 1 is 2²⁴: the ones would be lost.
    assert average_checkpoints(paths)[0]["a"].item() == (2**24 + 2) / 4


def test_a_sum_may_be_larger_than_the_weights_type_holds(tmp_path):
    paths = [save(tmp_path, step, a=torch.tensor([60_000.0]).half()) for step in (1, 2)]
    assert torch.finfo(torch.float16).max < 2 * 60_000
    assert average_checkpoints(paths)[0]["a"].item() == 60_000


def test_refuses_models_of_different_shapes(tmp_path):
    paths = [save(tmp_path, 1, a=torch.ones(2)), save(tmp_path, 2, a=torch.ones(3))]
    with pytest.raises(InputError, match=r"step-2.*another shape"):
        average_checkpoints(paths)


def test_takes_checkpoints_one_by_one(tmp_path, unchecked_shapes):
    """A glob is no list, and can be read but once."""
    paths = [save(tmp_path, step, a=torch.tensor([float(step)])) for step in (1, 2)]
    assert average_checkpoints(iter(paths))[0]["a"].item() == 1.5
    with pytest.raises(InputError, match="no checkpoint"):
        average_checkpoints(tmp_path.glob("none-*"))


def test_refuses_none():
    with pytest.raises(InputError, match="no checkpoint"):
        average_checkpoints([])
