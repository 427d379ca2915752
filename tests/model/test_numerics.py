"""Where numbers end: the largest, the smallest, none at all. Nothing becomes NaN."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn import fast
from aiayn.fast.short_attention import short_attention
from aiayn.model import (
    Transformer,
    additive_attention,
    causal_mask,
    scaled_dot_product_attention,
    sinusoidal_positional_encoding,
)
from tests.model.samples import small_config

FORMS = {
    "plain": lambda *given: scaled_dot_product_attention(*given)[0],
    "short": short_attention,
}
ALL_FORMS = FORMS | {"fused": F.scaled_dot_product_attention}
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def signs(*shape):
    """Numbers of size 1 with random signs."""
    return torch.randint(0, 2, shape).mul(2).sub(1).float()


def sizes(dtype, d_k):
    """Entries so large that a product still fits the type, and so small they vanish."""
    numbers = torch.finfo(dtype)
    return {
        "products at the end of the type": 0.9 * math.sqrt(numbers.max / d_k),
        "ordinary": 1.0,
        "smallest": numbers.smallest_normal,
        "nothing": 0.0,
    }


@every_form
@every_dtype
@pytest.mark.parametrize("d_k", [1, 2, 7, 64, 1024])
def test_no_size_of_entries_gives_nan(form, dtype, d_k):
    """Neither the value nor a gradient, with one row that may see nothing."""
    mask = torch.tensor([[True] * 5, [False] * 5, [False, True] + [False] * 3])
    for size in sizes(dtype, d_k).values():
        query, key = (
            (signs(1, 2, n, d_k) * size).to(dtype).requires_grad_() for n in (3, 5)
        )
        value = torch.randn(1, 2, 5, 4).to(dtype).requires_grad_()
        context = form(query, key, value, mask)
        assert context.isfinite().all()
        # A mean of values lies among them; the blind row has none.
        assert context.abs().max() <= value.abs().max()
        assert not context[:, :, 1].any()
        assert_close(context[:, :, 2], value[:, :, 1])
        found = torch.autograd.grad(context.float().sum(), (query, key, value))
        assert not any(gradient.isnan().any() for gradient in found)
        assert not found[0][:, :, 1].any()


@pytest.mark.parametrize("form", ALL_FORMS.values(), ids=ALL_FORMS)
@pytest.mark.parametrize("d_k", [1, 2, 7, 64, 1024])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.01])
def test_in_float16_even_products_beyond_its_end_give_weights(form, d_k, share):
    """Entries up to the largest number itself, of both signs: scores of ±∞ and 0.

    Two of the keys are equal, so they share the weight; the blind row has none.
    """
    size = torch.finfo(torch.float16).max * share
    query = (signs(1, 2, 3, d_k) * size).half().requires_grad_()
    key = torch.cat([query[:, :, :1], query[:, :, :1], -query[:, :, :1]], dim=2)
    value = torch.tensor([[1.0], [3.0], [77.0]]).half().expand(1, 2, 3, 1)
    mask = torch.tensor([[True] * 3, [False] * 3, [False, True, True]])
    context = form(query, key, value, mask)
    assert_close(context[:, :, 0], value.new_full((1, 2, 1), 2.0))
    assert not context[:, :, 1].any()
    assert ((value.min() <= context[:, :, 2]) & (context[:, :, 2] <= 77)).all()
    (gradient,) = torch.autograd.grad(context.float().sum(), query)
    assert not gradient.isnan().any()


@every_form
def test_in_float16_a_row_of_scores_below_its_end_is_shared_alike(form):
    """Every score is -∞, and yet no key is masked: the context is their mean."""
    query = torch.full((1, 1, 1, 4), torch.finfo(torch.float16).max).half()
    key, value = -query.expand(1, 1, 2, 4), torch.tensor([[[[1.0], [3.0]]]]).half()
    assert form(query, key, value, None).item() == 2.0


@pytest.mark.parametrize("d_k", [1, 64, 1024])
def test_in_float16_additive_scores_beyond_its_end_give_weights(d_k):
    """The sum of d_k hidden units, each weighted by the largest number."""
    largest = torch.finfo(torch.float16).max
    key = signs(5, 1).expand(5, d_k).half() * 20  # tanh of it is 1 or -1
    query, value = torch.zeros(2, d_k).half(), torch.randn(5, 3).half()
    score_weight = torch.full((d_k,), largest, dtype=torch.float16)
    context, weights = additive_attention(query, key, value, score_weight)
    best = (key[:, 0] == key[:, 0].max()).half()
    assert_close(weights, (best / best.sum()).expand(2, 5))
    assert_close(context, weights @ value)


@every_form
@every_dtype
def test_a_long_row_of_weights_sums_to_one(form, dtype):
    """20,000 equal keys: each weight is below float16's smallest normal number."""
    length = 20_000
    query, key = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, length, 2)
    value = torch.ones(1, 1, length, 1)
    context = form(query.to(dtype), key.to(dtype), value.to(dtype), None)
    assert torch.finfo(torch.float16).smallest_normal > 1 / length
    # 1/20,000 is rounded once (float16 holds it as a multiple of 2⁻²⁴ only), then
    # 20,000 float32 sums are, and then the result.
    weight = length * 2**-25 if dtype == torch.float16 else torch.finfo(dtype).eps
    sums = length * torch.finfo(torch.float32).eps
    assert abs(context.item() - 1) <= weight + sums + torch.finfo(dtype).eps


@every_form
@pytest.mark.parametrize(
    "shape", [(0, 2, 3, 4), (1, 2, 0, 4), (1, 2, 3, 0), (1, 1, 1, 1)]
)
def test_lengths_of_nothing_and_one(form, shape):
    """(batch, heads, queries, keys); without a key the context is zero."""
    batch, heads, queries, keys = shape
    query = torch.randn(batch, heads, queries, 2, requires_grad=True)
    key, value = (torch.randn(batch, heads, keys, width) for width in (2, 3))
    context = form(query, key, value, None)
    assert context.shape == (batch, heads, queries, 3)
    assert_close(context, value if keys == 1 else torch.zeros_like(context))
    context.sum().backward()
    assert not query.grad.any()


def test_positions_far_away_are_still_numbers():
    """A float32 counts to 2²⁴ only; the angles are taken in float64."""
    start = 10**9
    table = sinusoidal_positional_encoding(2, 8, start=start)
    assert_close(table[0, 0].item(), math.sin(start), rtol=0, atol=1e-6)
    assert table.abs().max() <= 1


MODES = {
    "plain": (True, False),
    "fast": (False, False),
    "plain, dropping": (True, True),
    "fast, dropping": (False, True),
}


@pytest.mark.parametrize("fused_above", [0, 1000], ids=["kernel", "short"])
@pytest.mark.parametrize("narrow", [False, True], ids=["fp32", "autocast"])
@pytest.mark.parametrize(("plain", "training"), MODES.values(), ids=MODES)
def test_no_mode_leaks_through_a_mask(
    plain, training, narrow, fused_above, monkeypatch
):
    """The gradient with respect to the future and to padding is exactly zero.

    And where a weight is not hidden, there is one: the test would see a leak.
    """
    monkeypatch.setattr("aiayn.fast.attention.max_short", lambda _: fused_above)
    config = small_config(
        dropout=0.1, attention_dropout=0.1 if training else 0.0, d_model=16, num_heads=2
    )
    model = Transformer(config).train(training)
    if not plain:
        fast.accelerate(model)
    x, memory = (torch.randn(2, 6, 16, requires_grad=True) for _ in "xm")
    padding = (torch.arange(6) < 4)[None, None, None].expand(2, 1, 1, 6)
    autocast = torch.autocast("cpu", torch.bfloat16) if narrow else nullcontext()
    with autocast:
        states, _, _ = model.decoder(x, memory, causal_mask(6), padding)
    # Of a random direction: the sum of what LayerNorm gives is always zero.
    seen = states[:, 2].float() @ torch.randn(16)
    seen_x, seen_memory = torch.autograd.grad(seen.sum(), (x, memory))
    assert not seen_x[:, 3:].any()
    assert not seen_memory[:, 4:].any()
    assert seen_x[:, :3].any()
    assert seen_memory[:, :4].any()


def test_the_fused_kernel_agrees_that_the_blind_see_nothing():
    """What torch computes for long sentences holds to the same rule."""
    mask = torch.zeros(3, 5, dtype=torch.bool)
    tensors = [torch.randn(1, 1, n, 4, requires_grad=True) for n in (3, 5, 5)]
    context = F.scaled_dot_product_attention(*tensors, attn_mask=mask)
    assert not context.any()
    for gradient in torch.autograd.grad(context.sum(), tensors):
        assert not gradient.any()
