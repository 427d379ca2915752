"""What the model's tests share."""

import pytest
import torch

from aiayn import fast


@pytest.fixture(params=[True, False], ids=["with weights", "without"])
def need_weights(request):
    """Whether attention is to return its weights."""
    return request.param


@pytest.fixture(params=["plain", "fused", "short"])
def form(request, monkeypatch):
    """What computes attention: a function that prepares a module for it."""
    max_short = 0 if request.param == "fused" else 1000
    monkeypatch.setattr("aiayn.fast.attention.max_short", lambda _: max_short)
    return (lambda module: module) if request.param == "plain" else fast.accelerate


@pytest.fixture
def float64():
    """New tensors have 64 bits until the test ends."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
