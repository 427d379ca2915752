"""What the model's tests share."""

import pytest


@pytest.fixture(params=["explicit", "fused", "short"])
def need_weights(request, monkeypatch):
    """Attention's three ways: with weights; by torch's kernel; without either."""
    fused_above = 0 if request.param == "fused" else 1000
    monkeypatch.setattr("aiayn.model.attention.FUSED_ABOVE", fused_above)
    return request.param == "explicit"
