"""The door for speed: what is swapped, when, and that the results stay the same."""

import copy
from contextlib import nullcontext, suppress
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from aiayn import fast
from aiayn.data import Batch
from aiayn.errors import InputError
from aiayn.fast import linear as products
from aiayn.fast.attention import max_short
from aiayn.fast.linear import FastLinear
from aiayn.fast.loss import chunked_cross_entropy
from aiayn.fast.short_attention import short_attention
from aiayn.model import (
    EncoderLayer,
    MultiHeadAttention,
    RotaryAttention,
    Transformer,
    TransformerConfig,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from aiayn.training import Trainer, TrainingConfig
from aiayn.training.loss import Criterion
from tests.model.samples import random, small_config
from tests.model.twins import randomize

SHORT = max_short(torch.float32)

sizes = st.integers(1, 6)


@given(
    shape=st.tuples(sizes, sizes, sizes, st.integers(1, 20), sizes, sizes),
    kept=st.none() | st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 999),
)
def test_short_attention_is_equation_1(shape, kept, seed):
    """Value and gradients, under any mask, those that leave nothing to see included."""
    torch.manual_seed(seed)
    batch, heads, queries, keys, d_k, d_v = shape
    widths = [(queries, d_k), (keys, d_k), (keys, d_v)]
    tensors = [random(batch, heads, *w, requires_grad=True) for w in widths]
    mask = None if kept is None else torch.rand(batch, 1, queries, keys) < kept
    grad_output = random(batch, heads, queries, d_v)
    context = short_attention(*tensors, mask)
    expected, _ = scaled_dot_product_attention(*tensors, mask)
    assert_close(context, expected)
    assert_close(
        torch.autograd.grad(context, tensors, grad_output),
        torch.autograd.grad(expected, tensors, grad_output),
    )


def test_short_attention_has_the_gradient_of_finite_differences():
    tensors = [random(2, 1, *s, requires_grad=True) for s in [(3, 4), (5, 4), (5, 2)]]
    mask = torch.ones(3, 5, dtype=torch.bool).tril(1)
    assert torch.autograd.gradcheck(lambda *t: short_attention(*t, mask), tensors)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_narrow_attention_is_within_rounding_of_the_wide_one(dtype):
    """Rounded are, by half an eps at most, scores (of a size of 1), weights, context.

    In a gradient there come two more: of the weights' gradient and of the scores'.
    """
    torch.manual_seed(0)
    *tensors, grad_output = (torch.randn(2, 4, 20, 16).to(dtype) for _ in range(4))
    wide = [tensor.double().requires_grad_() for tensor in tensors]
    tensors = [tensor.requires_grad_() for tensor in tensors]
    context = short_attention(*tensors, causal_mask(20))
    expected, _ = scaled_dot_product_attention(*wide, causal_mask(20))
    found = [context, *torch.autograd.grad(context, tensors, grad_output)]
    exact = [expected, *torch.autograd.grad(expected, wide, grad_output.double())]
    for narrow, right, roundings in zip(found, exact, [3, 5, 5, 5], strict=True):
        assert narrow.dtype == dtype
        error = roundings * torch.finfo(dtype).eps / 2
        assert (narrow - right).norm() < error * right.norm()


def test_what_is_masked_gets_exactly_no_gradient():
    query, key = random(1, 1, 4, 3), random(1, 1, 4, 3, requires_grad=True)
    value = random(1, 1, 4, 2, requires_grad=True)
    context = short_attention(query, key, value, causal_mask(4))
    for gradient in torch.autograd.grad(context[0, 0, 1].square().sum(), [key, value]):
        assert gradient[0, 0, :2].any()
        assert not gradient[0, 0, 2:].any()


def test_accelerated_multi_head_attention_is_the_plain_one():
    attention = randomize(MultiHeadAttention(12, 3))
    query, memory = random(2, 5, 12), random(2, 6, 12)
    mask = padding_mask(torch.tensor([[3, 3, 3, 3, 0, 0], [3] * 6]), 0)
    expected, _ = attention(query, memory, memory, mask)
    fast.accelerate(attention)
    assert_close(attention(query, memory, memory, mask)[0], expected)


def _criterion():
    torch.manual_seed(0)
    config = TransformerConfig.tiny(vocab_size=50, dropout=0.0)
    source, target = torch.randint(3, 50, (2, 4, 7))
    source[1, 5:] = target[2, 3:] = 0
    model = Transformer(config)
    return fast.accelerate(Criterion(model, 0.1, bos_id=1)), source, target


def test_accelerated_loss_and_gradients_are_the_plain_ones():
    criterion, source, target = _criterion()
    criterion.double()
    found = []
    for plain in (False, True):
        with fast.disabled(criterion) if plain else nullcontext():
            smoothed, unsmoothed = criterion(source, target)
        gradients = torch.autograd.grad(smoothed, list(criterion.parameters()))
        found.append((smoothed, unsmoothed, gradients))
    assert_close(*found)


def test_under_autocast_the_layers_read_and_write_narrow():
    criterion, source, target = _criterion()
    seen = []
    for layer in [*criterion.model.encoder.layers, *criterion.model.decoder.layers]:
        layer.register_forward_hook(lambda _, x, y: seen.extend([x[0], y[0]]))
    with torch.autocast("cpu", torch.bfloat16):
        smoothed, _ = criterion(source, target)
    assert {x.dtype for x in seen} == {torch.bfloat16}
    assert smoothed.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16), fast.disabled(criterion):
        expected, _ = criterion(source, target)
    # The loss is some 4 nats a token; each of a dozen roundings moves it by 2⁻⁸ of that
    # at most, and as often up as down.
    assert abs(smoothed - expected) / expected < 12**0.5 * 2**-8


def test_inside_torch_func_everything_is_plain(monkeypatch):
    """Gradients written by hand cannot be transformed; the formulas can."""
    monkeypatch.setattr(products, "MIN_SIZE", 0)
    monkeypatch.setattr(products, "_mkl_is_slow", lambda _: True)
    attention = fast.accelerate(randomize(MultiHeadAttention(8, 2)).float())

    def size(x):
        return attention(x, x, x)[0].square().sum()

    x = torch.randn(3, 2, 5, 8, requires_grad=True)
    found = torch.func.vmap(torch.func.grad(size))(x)
    assert_close(found, torch.autograd.grad(sum(map(size, x)), x)[0])


def test_inside_torch_func_a_transformer_has_a_gradient_for_each_sentence():
    model = fast.accelerate(Transformer(small_config()))
    weights = dict(model.named_parameters())
    source, target = torch.randint(3, 30, (2, 3, 5))

    def size(weights, *pair):
        rows = tuple(tokens[None] for tokens in pair)
        return torch.func.functional_call(model, weights, rows).square().sum()

    each = torch.func.vmap(torch.func.grad(size), (None, 0, 0))
    found = each(weights, source, target)
    total = torch.autograd.grad(
        sum(map(partial(size, weights), source, target)), list(weights.values())
    )
    summed = [found[name].sum(0) for name in weights]
    assert_close(summed, list(total), rtol=1e-4, atol=1e-4)


HAND_WRITTEN = {
    "attention": lambda x: short_attention(x[None], x[None], x[None]).square().sum(),
    "product": lambda x: products.linear(x[0], x[1]).square().sum(),
    "loss": lambda x: chunked_cross_entropy(x[0], x[1], torch.arange(4))[0],
}


@pytest.fixture
def every_product_by_hand(monkeypatch):
    monkeypatch.setattr(products, "_goes_to_onednn", lambda *_: True)
    monkeypatch.setattr(products, "product", F.linear)


@pytest.mark.usefixtures("every_product_by_hand")
@pytest.mark.parametrize("scalar", HAND_WRITTEN.values(), ids=HAND_WRITTEN)
def test_second_derivatives_are_refused_where_they_would_be_wrong(scalar):
    """Even if the incoming gradient is a constant, when torch would let it pass."""
    x = torch.randn(2, 4, 4)
    for second in (torch.autograd.functional.hvp, torch.autograd.functional.vhp):
        with pytest.raises(InputError, match=r"fast.disabled\(model\)"):
            second(scalar, x, torch.ones_like(x))
    with pytest.raises(InputError, match=r"fast.disabled\(model\)"):
        torch.autograd.functional.hessian(scalar, x)


def test_second_derivatives_of_the_plain_classes():
    """As finite differences of the gradient; the fast classes refuse."""
    attention, x = randomize(MultiHeadAttention(4, 2)), random(1, 3, 4)
    fast.accelerate(attention)
    direction, step = random(1, 3, 4), 1e-6

    def size(x):
        return attention(x, x, x)[0].square().sum()

    with pytest.raises(InputError, match=r"fast.disabled\(model\)"):
        torch.autograd.functional.hvp(size, x, direction)
    with fast.disabled(attention):
        _, found = torch.autograd.functional.hvp(size, x, direction)
    ahead, behind = (
        torch.autograd.functional.vjp(size, x + sign * step * direction)[1]
        for sign in (1, -1)
    )
    assert_close(found, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("every_product_by_hand")
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("scalar", HAND_WRITTEN.values(), ids=HAND_WRITTEN)
def test_checkpointing_needs_first_derivatives_only(scalar, reentrant):
    x = torch.randn(2, 4, 4, requires_grad=True)
    kept = torch.autograd.grad(scalar(x), x)[0]
    checkpoint(scalar, x, use_reentrant=reentrant).backward()
    assert_close(x.grad, kept)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_that_is_given_wide_numbers_keeps_them_wide(norm):
    """Under autocast too, as a search under autocast gives it."""
    layer = fast.accelerate(EncoderLayer(TransformerConfig.tiny(norm=norm)))
    x = torch.randn(2, 5, 128)
    with torch.autocast("cpu", torch.bfloat16):
        wide, narrow = layer(x)[0], layer(x.bfloat16())[0]
    assert (wide.dtype, narrow.dtype) == (torch.float32, torch.bfloat16)


def test_forward_derivatives_are_those_of_the_plain_classes(monkeypatch):
    """Of what oneDNN computes too, which would leave them out in silence."""
    monkeypatch.setattr(products, "MIN_SIZE", 0)
    monkeypatch.setattr(products, "_mkl_is_slow", lambda _: True)
    config = small_config(dropout=0.0)
    layer = EncoderLayer(config)
    x, along = torch.randn(2, 3, 5, config.d_model)

    def encoded(x):
        return layer(x)[0]

    expected = torch.func.jvp(encoded, (x,), (along,))[1]
    fast.accelerate(layer)
    with forward_ad.dual_level(), torch.no_grad():
        found = forward_ad.unpack_dual(encoded(forward_ad.make_dual(x, along))).tangent
    assert_close(found, expected)
    assert_close(torch.func.linearize(encoded, x)[1](along), expected)


def test_only_exact_types_are_swapped():
    """A user's subclass has a forward pass of its own; so has a parametrized layer."""

    class Own(nn.Linear):
        pass

    model = nn.Sequential(Own(2, 2), nn.Linear(2, 2), weight_norm(nn.Linear(2, 2)))
    kinds = [type(layer) for layer in model]
    fast.accelerate(model)
    assert [type(layer) for layer in model] == [kinds[0], FastLinear, kinds[2]]


def test_a_swap_changes_neither_state_nor_hooks_nor_copies():
    model, calls = Transformer(small_config(positions="rotary")), []
    before = {
        name: id(weight) for name, weight in model.state_dict(keep_vars=True).items()
    }
    model.encoder.layers[0].self_attention.register_forward_hook(
        lambda *call: calls.append(call)
    )
    assert fast.accelerate(model) is model
    assert {n: id(w) for n, w in model.state_dict(keep_vars=True).items()} == before
    assert isinstance(model.encoder.layers[0].self_attention, RotaryAttention)
    twin = copy.deepcopy(model)
    tokens = torch.tensor([[5, 6, 2]])
    assert_close(twin(tokens, tokens), model(tokens, tokens))
    assert len(calls) == 2
    assert fast.accelerate(model) is model  # again: nothing happens


def test_disabled_restores_the_fast_classes_after_the_last_block():
    """Blocks are counted for each module, also where they overlap or fail."""
    model = fast.accelerate(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)))
    fast_kinds = [type(layer) for layer in model]
    outer, inner = fast.disabled(model), fast.disabled(model[0])
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert [type(layer) for layer in model] == [nn.Linear, fast_kinds[1]]
    inner.__exit__(None, None, None)
    assert [type(layer) for layer in model] == fast_kinds
    with suppress(KeyError), fast.disabled(model):
        assert [type(layer) for layer in model] == [nn.Linear, nn.Dropout]
        raise KeyError
    assert [type(layer) for layer in model] == fast_kinds


def test_what_is_accelerated_inside_of_a_disabled_block_stays_so():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))
    with fast.disabled(fast.accelerate(model)):
        fast.accelerate(model)
    fast_kinds = [type(layer) for layer in model]
    assert fast_kinds != [nn.Linear, nn.Dropout]
    with fast.disabled(model):
        assert [type(layer) for layer in model] == [nn.Linear, nn.Dropout]
    assert [type(layer) for layer in model] == fast_kinds


def test_disabled_leaves_a_plain_model_plain():
    model = nn.Sequential(nn.Linear(2, 2))
    with fast.disabled(model):
        pass
    assert type(model[0]) is nn.Linear


def test_a_model_that_nobody_accelerated_is_plain():
    model = Transformer(small_config(positions="rotary", dropout=0.1))
    modules = {type(part).__module__ for part in model.modules()}
    assert not any(name.startswith("aiayn.fast") for name in modules)


@pytest.mark.parametrize(
    ("capability", "dtype", "keys"),
    [
        ("AVX2", torch.float32, 64),
        ("AVX2", torch.bfloat16, 128),
        ("AVX512", torch.float32, 128),
    ],
)
def test_torchs_fused_kernel_begins_earlier_where_it_is_the_faster_one(
    monkeypatch, capability, dtype, keys
):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert max_short(dtype) == keys


@pytest.mark.parametrize("length", [1, SHORT, SHORT + 1])
def test_torchs_fused_kernel_computes_long_sentences_only(monkeypatch, length):
    lengths, fused = [], F.scaled_dot_product_attention

    def spy(query, key, *rest, **options):
        lengths.append(key.size(2))
        return fused(query, key, *rest, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    attention, x = fast.accelerate(MultiHeadAttention(4, 2)), torch.randn(1, length, 4)
    attention(x, x, x)
    attention(x, x, x, need_weights=True)
    assert lengths == ([length] if length > SHORT else [])


def test_steps_of_a_training_are_the_plain_ones():
    """Losses of six steps in float64, with every acceleration and with none."""
    losses = []
    for accelerated in (True, False):
        torch.manual_seed(0)
        config = small_config(norm="pre", positions="rotary")
        training = TrainingConfig(model=config, fast=accelerated, warmup_steps=2)
        trainer = Trainer(training, Transformer(config).double(), bos_id=1)
        batch = Batch(torch.randint(3, 30, (4, 7)), torch.randint(3, 30, (4, 6)))
        losses.append([trainer.step(step, [batch]) for step in range(1, 7)])
    assert_close(*losses)


@pytest.mark.parametrize("length", [4, SHORT + 1])
def test_flops_are_counted_as_those_of_the_plain_classes(length, unchecked_shapes):
    """On every processor, and wherever the products are large enough for oneDNN."""
    config = TransformerConfig.tiny(vocab_size=3000, dropout=0.1)
    source = torch.randint(4, 3000, (8, length))
    counted = []
    for criterion in (Criterion(Transformer(config), 0.1, 1) for _ in range(2)):
        if counted:
            fast.accelerate(criterion)
        with FlopCounterMode(display=False) as counter:
            criterion(source, source)[0].backward()
        counted.append(counter.get_total_flops())
    plain, accelerated = counted
    assert accelerated == plain > 0
