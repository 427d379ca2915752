"""Products by oneDNN are torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn import fast
from aiayn.fast import linear as module
from aiayn.fast.linear import FastLinear, linear, product, weight_gradient

sizes = st.integers(1, 9)
pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available()
    or not hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    reason="this torch has no oneDNN",
)


@pytest.fixture(autouse=True)
def every_product_goes_to_onednn(monkeypatch):
    """However small it is, and whatever the processor."""
    monkeypatch.setattr(module, "MIN_SIZE", 0)
    monkeypatch.setattr(module, "_mkl_is_slow", lambda: True)


@given(
    lead=st.lists(sizes, min_size=1, max_size=3),
    widths=st.tuples(sizes, sizes),
    with_bias=st.booleans(),
    turned=st.booleans(),
    seed=st.integers(0, 999),
)
def test_value_and_gradients_are_torchs(lead, widths, with_bias, turned, seed):
    """Of any shape, of transposed views too. Each sum has at most 729 terms near 1."""
    torch.manual_seed(seed)
    inputs, outputs = widths
    x = torch.randn(*lead, inputs)
    if turned:
        x = x.movedim(0, -1).contiguous().movedim(-1, 0)
    weight = torch.randn(inputs, outputs).T if turned else torch.randn(outputs, inputs)
    given_tensors = [x, weight] + [torch.randn(outputs)] * with_bias
    grad_output = torch.randn(*lead, outputs)
    found = []
    for function in (linear, F.linear):
        leaves = [tensor.clone().requires_grad_() for tensor in given_tensors]
        result = function(*leaves)
        found.append((result, torch.autograd.grad(result, leaves, grad_output)))
    assert_close(*found, rtol=1e-5, atol=729 * torch.finfo(torch.float32).eps)


def test_of_two_transposed_factors_the_narrower_one_comes_first(monkeypatch):
    """It is the one that oneDNN copies."""
    firsts = []

    def product(x, weight):
        firsts.append(x.size(0))
        return F.linear(x, weight)

    monkeypatch.setattr(module, "product", product)
    for outputs, inputs in ((9, 4), (4, 9)):
        grad_output, x = torch.randn(5, outputs), torch.randn(5, inputs)
        assert_close(weight_gradient(grad_output, x), grad_output.T @ x)
    assert firsts == [4, 4]


def test_only_what_needs_a_gradient_gets_one():
    layer, x = (
        FastLinear(4, 3).requires_grad_(False),
        torch.randn(2, 4, requires_grad=True),
    )
    layer(x).sum().backward()
    assert_close(x.grad, layer.weight.sum(0).expand(2, 4))
    assert layer.weight.grad is None


def test_the_library_is_asked_for_32_bits_and_nothing_else(monkeypatch):
    """Not for 64 bits, not under autocast, not for one row, not in a plain layer."""
    sign = torch.full((2, 3), 77.0)
    monkeypatch.setattr(module._Linear, "apply", lambda *_: sign)
    x, weight = torch.randn(2, 4), torch.randn(3, 4)
    assert linear(x, weight) is sign
    assert_close(linear(x.double(), weight.double()).float(), F.linear(x, weight))
    assert_close(linear(x[0], weight), F.linear(x[0], weight))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    layer = FastLinear(4, 3)
    assert layer(x) is sign
    with fast.disabled(layer):
        assert_close(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("bias", [torch.randn(6, 4)[:, 1], torch.ones(1).expand(6)])
def test_a_bias_may_have_any_stride(bias):
    x, weight = torch.randn(3, 5), torch.randn(6, 5)
    assert_close(product(x, weight, bias), F.linear(x, weight, bias))
