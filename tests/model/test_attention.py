"""§3.2: attention and multi-head attention against torch, by hand and by their laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn import fast
from aiayn.errors import InputError
from aiayn.model import (
    MultiHeadAttention,
    Transformer,
    additive_attention,
    causal_mask,
    scaled_dot_product_attention,
)
from tests.model.samples import random, small_config
from tests.model.twins import assert_same_gradients, multi_head_twin, randomize

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not torch.cuda.is_available(), reason="torch finds no CUDA GPU here"
        ),
    ),
]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
sizes = st.integers(1, 6)


def additive(query, key, value, mask=None):
    """Additive attention, always summed up by the same weights."""
    score_weight = 1 + torch.arange(query.size(-1)).to(query)
    return additive_attention(query, key, value, score_weight, mask)


both_kinds = pytest.mark.parametrize(
    "attention", [scaled_dot_product_attention, additive]
)


def test_shapes_that_do_not_fit_are_noticed():
    """By the check that the tests put around every call, not by torch."""
    with pytest.raises(TypeCheckError, match="'key'"):
        scaled_dot_product_attention(random(3, 4), random(3, 5), random(3, 2))


def test_dot_product_attention_by_hand():
    """Two keys, d_k = 4. The query's dot products are 2·ln 3 and 0.

    Divided by √4 they are ln 3 and 0; the softmax of those is 3/4 and 1/4; and the mean
    of the values (4, 0) and (0, 8) with these weights is (3, 2).
    """
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    key = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    value = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    context, weights = scaled_dot_product_attention(query, key, value)
    assert_close(weights, torch.tensor([[0.75, 0.25]]))
    assert_close(context, torch.tensor([[3.0, 2.0]]))


def test_additive_attention_by_hand():
    """tanh is 0 at q + k = 0 and 3/5 at ln 2: five of the latter are 3, so e³ to 1."""
    query, key = torch.tensor([[1.0]]), torch.tensor([[-1.0], [math.log(2) - 1]])
    context, weights = additive_attention(
        query, key, torch.tensor([[0.0], [1.0]]), torch.tensor([5.0])
    )
    second = math.exp(3) / (1 + math.exp(3))
    assert_close(weights, torch.tensor([[1 - second, second]]))
    assert_close(context, torch.tensor([[second]]))


MASKS = {
    "none": None,
    "causal": torch.ones(5, 6, dtype=torch.bool).tril(),
    "padding": (torch.arange(6) < torch.tensor([[4], [6]]))[:, None, None],
    "one a head": torch.rand(1, 3, 5, 6, generator=torch.Generator().manual_seed(2))
    < 0.7,
    "one a query": torch.rand(2, 3, 5, 6, generator=torch.Generator().manual_seed(3))
    < 0.7,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_dot_product_attention_is_torchs(mask):
    """The same context as torch's, for every kind of mask."""
    query, key, value = random(2, 3, 5, 4), random(2, 3, 6, 4), random(2, 3, 6, 7)
    context, _ = scaled_dot_product_attention(query, key, value, mask)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert_close(context, expected)


@both_kinds
def test_leading_dimensions_broadcast(attention):
    query, key, value = random(5, 4), random(3, 6, 4), random(2, 1, 6, 7)
    mask = torch.rand(3, 1, 6) < 0.8
    context, weights = attention(query, key, value, mask)
    full = query.expand(2, 3, 5, 4), key.expand(2, 3, 6, 4), value.expand(2, 3, 6, 7)
    expected, expected_weights = attention(*full, mask[None])
    assert_close(context, expected)
    assert_close(weights.expand(2, 3, 5, 6), expected_weights)


@both_kinds
@given(queries=sizes, keys=sizes, d_k=sizes, d_v=sizes, seed=st.integers(0, 999))
def test_weights_are_a_distribution_and_context_a_mean(
    attention, queries, keys, d_k, d_v, seed
):
    torch.manual_seed(seed)
    query, key, value = random(queries, d_k), random(keys, d_k), random(keys, d_v)
    mask = torch.rand(queries, keys) < 0.7
    mask[:, 0] = True
    context, weights = attention(query, key, value, mask)
    assert_close(weights.sum(-1), torch.ones(queries, dtype=torch.float64))
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    # In every direction the mean lies between the extremes: it is inside the hull.
    directions = random(d_v, 20)
    spread = value @ directions
    inside = context @ directions
    rounding = 1e-12 * spread.abs().max()
    assert (inside <= spread.max(0).values + rounding).all()
    assert (inside >= spread.min(0).values - rounding).all()


@both_kinds
@given(length=sizes, seed=st.integers(0, 999))
def test_attention_does_not_see_order(attention, length, seed):
    torch.manual_seed(seed)
    query, key, value = random(length, 4), random(length, 4), random(length, 3)
    order = torch.randperm(length)
    context, weights = attention(query, key, value)
    moved, moved_weights = attention(query[order], key[order], value[order])
    assert_close(moved, context[order])
    assert_close(moved_weights, weights[order][:, order])


@both_kinds
def test_masks_combine(attention):
    """Masking keys is removing them, and two masks remove what either removes."""
    query, key, value = random(5, 4), random(6, 4), random(6, 3)
    first, second = torch.rand(6) < 0.8, torch.rand(6) < 0.8
    kept = first & second
    assert kept.any()
    assert not kept.all()
    context, _ = attention(query, key, value, first[None] & second[None])
    expected, _ = attention(query, key[kept], value[kept])
    assert_close(context, expected)


@both_kinds
def test_gradients_are_right(attention):
    tensors = [random(*shape, requires_grad=True) for shape in [(3, 4), (5, 4), (5, 2)]]
    mask = torch.ones(3, 5, dtype=torch.bool).tril(1)
    assert torch.autograd.gradcheck(lambda *given: attention(*given, mask), tensors)


@both_kinds
def test_what_is_masked_gets_exactly_no_gradient_and_has_no_effect(attention):
    query, value = random(4, 3), random(4, 2, requires_grad=True)
    key = random(4, 3, requires_grad=True)
    context, _ = attention(query, key, value, causal_mask(4))
    gradients = torch.autograd.grad(context[1].square().sum(), [key, value])
    for gradient in gradients:
        assert gradient[:2].any()
        assert not gradient[2:].any()
    with torch.no_grad():
        key[2:] += 1
        value[2:] += 1
        changed, _ = attention(query, key, value, causal_mask(4))
    # Equal to the bit: a masked weight is a true zero, and adding zeros is exact.
    assert changed[:2].equal(context[:2])
    assert not changed[2:].equal(context[2:])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@both_kinds
def test_who_may_see_nothing_gets_zeros(attention, dtype, device):
    tensors = [torch.randn(2, 3, 4).to(device, dtype).requires_grad_() for _ in "qkv"]
    mask = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    context, weights = attention(*tensors, mask.to(device))
    assert not context[:, 1].any()
    assert not weights[:, 1].any()
    assert context[:, [0, 2]].all()
    context.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in tensors)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_heads_that_may_see_nothing_give_zeros(form, need_weights, dtype, device):
    attention = form(MultiHeadAttention(8, 2).to(device, dtype))
    x = torch.randn(2, 3, 8).to(device, dtype).requires_grad_()
    mask = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    output, _ = attention(x, x, x, mask.to(device), need_weights)
    assert not output[:, 1].any()
    assert output[:, [0, 2]].any(-1).all()
    output.sum().backward()
    assert x.grad.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in attention.parameters())


@pytest.mark.parametrize("mask_name", ["none", "causal", "padding", "one a head"])
def test_multi_head_attention_is_torchs(form, mask_name, need_weights):
    ours = form(randomize(MultiHeadAttention(12, 3)))
    twin, pairs = multi_head_twin(ours)
    query, key, value = random(2, 5, 12), random(2, 6, 12), random(2, 6, 12)
    mask = MASKS[mask_name]
    output, weights = ours(query, key, value, mask, need_weights)
    refused = None if mask is None else ~mask.expand(2, 3, 5, 6).reshape(6, 5, 6)
    expected, expected_weights = twin(
        query, key, value, attn_mask=refused, average_attn_weights=False
    )
    assert_close(output, expected)
    if need_weights:
        assert_close(weights, expected_weights)
    else:
        assert weights is None
    output.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(pairs)


def test_the_fused_projections_are_the_papers_small_ones():
    """3h + 1 matrices, head by head, with d_k and d_v that do not add up to d_model."""
    d_model, heads, d_k, d_v = 10, 3, 4, 5
    attention = randomize(MultiHeadAttention(d_model, heads, d_k, d_v))
    x, memory = random(2, 5, d_model), random(2, 6, d_model)
    W_Q = attention.query_projection.weight.view(heads, d_k, d_model)
    W_K = attention.key_projection.weight.view(heads, d_k, d_model)
    W_V = attention.value_projection.weight.view(heads, d_v, d_model)
    contexts = [
        scaled_dot_product_attention(x @ W_Q[i].T, memory @ W_K[i].T, memory @ W_V[i].T)
        for i in range(heads)
    ]
    concatenated = torch.cat([context for context, _ in contexts], dim=-1)
    expected = concatenated @ attention.output_projection.weight.T
    output, weights = attention(x, memory, memory, need_weights=True)
    assert_close(output, expected)
    assert_close(weights, torch.stack([weights for _, weights in contexts], dim=1))


def test_gradients_of_multi_head_attention_are_right():
    attention = randomize(MultiHeadAttention(4, 2))
    names = [name for name, _ in attention.named_parameters()]

    def run(query, memory, *parameters):
        values = dict(zip(names, parameters, strict=True))
        inputs = query, memory, memory, MASK, True
        return torch.func.functional_call(attention, values, inputs)

    MASK = torch.ones(2, 3, dtype=torch.bool).tril(1)
    inputs = [random(1, 2, 4, requires_grad=True), random(1, 3, 4, requires_grad=True)]
    assert torch.autograd.gradcheck(run, [*inputs, *attention.parameters()])


@pytest.mark.parametrize("d_k", [1, 3, 64, 1024])
def test_any_width_of_a_head(form, d_k, need_weights):
    attention = form(MultiHeadAttention(6, 2, d_k, d_v=1))
    x = torch.randn(2, 4, 6)
    output, _ = attention(x, x, x, None, need_weights)
    expected, weights = attention(x, x, x, need_weights=True)
    assert_close(output, expected)
    assert weights.isfinite().all()


def test_dropout_drops_weights_only_in_training(form, need_weights):
    """One head and one key: its value is read twice as large, or nothing at all is."""
    attention = form(MultiHeadAttention(16, 1, dropout=0.5))
    x = torch.randn(50, 1, 16)
    certain, _ = attention.eval()(x, x, x, need_weights=need_weights)
    assert_close(certain, attention.output_projection(attention.value_projection(x)))
    output, weights = attention.train()(x, x, x, need_weights=need_weights)
    dropped = output.eq(0).all(-1)
    assert 0 < dropped.sum() < 50
    assert_close(output[~dropped], 2 * certain[~dropped])
    assert weights is None or weights.eq(1).all()  # as they were before


@pytest.mark.parametrize("dropping", [False, True])
def test_dropout_goes_by_its_own_mode(form, need_weights, dropping):
    """As Monte Carlo dropout wants it: the module drops in a model that rests."""
    attention = form(MultiHeadAttention(16, 2, dropout=0.5))
    x = torch.randn(2, 40, 16)
    attention.train(not dropping).dropout.train(dropping)
    first, second = (attention(x, x, x, need_weights=need_weights)[0] for _ in "ab")
    assert first.equal(second) != dropping


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((10, 3), "d_model = 10 is not divisible by num_heads = 3"),
        ((10, 0), "num_heads must be a whole number, at least 1, not 0"),
        ((10, 2, 0), "d_k must be a whole number, at least 1, not 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, sentence):
    with pytest.raises(InputError, match=sentence):
        MultiHeadAttention(*sizes)


def test_with_dropout_the_mean_is_computed_once():
    """Of the weights that are left; the mean of all of them is never computed."""
    attention, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(2, 5, 8)
    attention.value_projection.register_forward_hook(
        lambda _, __, output: output.as_subclass(Counted)
    )
    Counted.products = 0
    attention(x, x, x)
    assert Counted.products == 1


class Counted(torch.Tensor):
    """Values that count the products that they are in."""

    products = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.products += function in (torch.Tensor.matmul, torch.Tensor.__matmul__)
        result = super().__torch_function__(function, types, args, kwargs)
        if function in (torch.Tensor.matmul, torch.Tensor.__matmul__):
            return result.as_subclass(torch.Tensor)
        return result


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("form", [nn.Module.train, fast.accelerate])
@pytest.mark.parametrize("training", [False, True])
def test_hooks_see_every_attention_of_the_model(form, positions, training):
    """Forward hooks and pre-hooks, in the encoder, the decoder, and while decoding."""
    model, seen = form(Transformer(small_config(positions=positions))), []
    model.train(training)
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            module.register_forward_pre_hook(lambda *_, n=name: seen.append(n))
            module.register_forward_hook(lambda *_, n=name: seen.append(n))
    tokens = torch.tensor([[5, 6, 2]])
    model(tokens, tokens)
    assert len(seen) == len(set(seen)) * 2 == (2 + 2 * 2) * 2
    for layer in range(2):
        for kind in ("self_attention", "cross_attention"):
            assert seen.count(f"decoder.layers.{layer}.{kind}") == 2
    seen.clear()
    model.decode_step(torch.tensor([1]), model.init_decode(tokens))
    assert len(seen) == len(set(seen)) * 2 == (2 + 2 * 2) * 2
