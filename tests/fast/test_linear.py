"""Products by oneDNN are torch's own."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn import fast
from aiayn.errors import InputError
from aiayn.fast import linear as module
from aiayn.fast.autocast import _searches
from aiayn.fast.linear import FastLinear, linear, product, weight_gradient
from aiayn.model import Transformer, TransformerConfig

FP32 = torch.float32
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
    monkeypatch.setattr(module, "MIN_PACKED", 0)
    monkeypatch.setattr(module, "_mkl_is_slow", lambda _: True)


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


@pytest.mark.parametrize("by_onednn", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_gradient_is_added_to_a_sum(monkeypatch, dtype, by_onednn):
    """The sum keeps its 32 bits where the factors have 16."""
    monkeypatch.setattr(module, "_mkl_is_slow", lambda _: by_onednn)
    wide = torch.float32 if dtype == torch.bfloat16 else dtype
    grad_output, x = torch.randn(2, 9).to(dtype), torch.randn(2, 4).to(dtype)
    before = torch.randn(9, 4, dtype=wide)
    product = weight_gradient(grad_output, x)
    asked = []
    monkeypatch.setattr(
        module, "weight_gradient", lambda *given: asked.append(given) or product
    )
    total = before.clone()
    module.add_weight_gradient(total, grad_output, x)
    assert_close(total, before + product)
    added_while_multiplying = dtype == wide and not (by_onednn and dtype == FP32)
    assert bool(asked) != added_while_multiplying


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


@pytest.fixture
def model():
    torch.manual_seed(1)
    return fast.accelerate(Transformer(TransformerConfig.tiny(vocab_size=30)).eval())


SOURCE = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]])


def written(model, steps=3):
    """The logits of a few steps, and the cache."""
    with torch.inference_mode():
        cache, tokens = model.init_decode(SOURCE), torch.tensor([1, 1])
        found = [model.decode_step(tokens, cache) for _ in range(steps)]
    return found, cache


def test_a_search_packs_each_weight_of_the_decoder_once(model):
    with torch.inference_mode():
        cache, tokens = model.init_decode(SOURCE), torch.tensor([1, 1])
        model.decode_step(tokens, cache)
        first = dict(_searches[cache])
        model.decode_step(tokens, cache)
    again = _searches[cache]
    assert [id(blocks) for blocks in again.values()] == list(map(id, first.values()))
    matrices = [w for w in model.decoder.parameters() if w.dim() == 2]
    unused = [  # the memory was projected before the first step
        matrix
        for layer in model.decoder.layers
        for matrix in (
            layer.cross_attention.key_projection.weight,
            layer.cross_attention.value_projection.weight,
        )
    ]
    expected = {id(w) for w in [*matrices, model.output_weight]} - set(map(id, unused))
    assert set(map(id, again)) == expected


def test_a_search_with_packed_weights_computes_the_same(model):
    found, _ = written(model)
    with fast.disabled(model):
        expected, _ = written(model)
    assert_close(found, expected)


def test_the_next_search_sees_weights_that_have_changed(model):
    """Changed in a way, too, that torch does not count."""
    before, _ = written(model)
    for weight in model.parameters():
        weight.data.mul_(1.5)
    after, _ = written(model)
    with fast.disabled(model):
        expected, _ = written(model)
    assert not torch.allclose(before[0], after[0])
    assert_close(after, expected)


def test_a_copy_of_a_cache_goes_on_alone(model):
    _, cache = written(model)
    copied, tokens = copy.deepcopy(cache), torch.tensor([4, 5])
    with torch.inference_mode():
        assert_close(
            model.decode_step(tokens, copied), model.decode_step(tokens, cache)
        )


def refuse(*_):
    """A user's hook that stops a step."""
    raise InputError("Stop.")


def test_outside_of_a_search_nothing_is_packed(model):
    written(model, steps=1)
    assert module.packed.weights is None
    model.decoder.register_forward_pre_hook(refuse)
    with pytest.raises(InputError):
        written(model, steps=1)
    assert module.packed.weights is None


def test_a_weight_that_is_computed_at_every_step_is_not_kept(model):
    """It is another tensor each time, and the memory of a search would fill."""
    layer = model.decoder.layers[0].feed_forward.inner
    nn.utils.parametrizations.weight_norm(layer)
    _, cache = written(model)
    assert all(isinstance(weight, nn.Parameter) for weight in _searches[cache])
    with torch.inference_mode():
        expected = {id(w) for w in model.parameters()}
    assert set(map(id, _searches[cache])) <= expected


def test_smaller_products_are_taken_where_weights_are_packed(model, monkeypatch):
    monkeypatch.setattr(module, "MIN_SIZE", 10**9)
    x, weight = torch.randn(2, 4), torch.randn(3, 4)
    assert not module._goes_to_onednn(x, weight)
    _, cache = written(model)
    assert _searches[cache]
    assert not module._goes_to_onednn(x, weight)


def test_only_a_search_asks_for_what_only_a_search_is_faster_with(model, monkeypatch):
    """As on Zen 3: a step of a training stays with MKL, a search does not."""
    monkeypatch.setattr(module, "_mkl_is_slow", lambda searching: searching)
    assert not module._goes_to_onednn(torch.randn(2, 4), torch.randn(3, 4))
    _, cache = written(model)
    assert _searches[cache]
