"""What the model's tests share."""

import pytest
import torch


@pytest.fixture(params=["explicit", "fused", "short"])
def need_weights(request, monkeypatch):
    """Attention's three ways: with weights; by torch's kernel; without either."""
    fused_above = 0 if request.param == "fused" else 1000
    monkeypatch.setattr("aiayn.model.attention.FUSED_ABOVE", fused_above)
    return request.param == "explicit"


@pytest.fixture
def float64():
    """New tensors have 64 bits until the test ends."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
