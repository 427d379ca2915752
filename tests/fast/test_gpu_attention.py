"""Attention by kernels of our own: equation (1) and its gradient, to 16 bits.

On a CPU it is the formula beside the kernels that is tested, and whatever stands around
both: autograd, a compiler. The kernels run on a GPU, or where Triton is installed in
its interpreter (`TRITON_INTERPRET=1`), which computes on a CPU what they would.
"""

import json
import math
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.fast import accelerate, attention
from aiayn.fast import gpu_attention as module
from aiayn.fast.gpu_attention import (
    _by_eights,
    disable_cudnn_sdpa,
    gpu_attention,
    has_kernels_for,
)
from aiayn.model import MultiHeadAttention, scaled_dot_product_attention

INTERPRETED = bool(os.environ.get("TRITON_INTERPRET")) and find_spec("triton")
WHERE = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not torch.cuda.is_available(), reason="torch finds no CUDA GPU here"
        ),
    ),
    pytest.param(
        "interpreter",
        marks=pytest.mark.skipif(
            not INTERPRETED, reason="TRITON_INTERPRET is not set, or there is no Triton"
        ),
    ),
]


@pytest.fixture(params=WHERE)
def device(request, monkeypatch):
    if request.param != "interpreter":
        return request.param
    monkeypatch.setattr(module, "_has_kernels", lambda device: True)
    return "cpu"


def padding(drawn, batch, queries, keys):
    lengths = torch.randint(1, keys + 1, (batch, 1), generator=drawn)
    return (torch.arange(keys) < lengths)[:, None, None]


def causal(drawn, batch, queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril()


def random(drawn, batch, queries, keys):
    """Some queries may see nothing."""
    seen = torch.rand(batch, 1, queries, keys, generator=drawn) < 0.3
    seen[0, :, 0] = False
    return seen


def each_head(drawn, batch, queries, keys):
    return torch.rand(batch, 2, queries, keys, generator=drawn) < 0.6


def nothing(drawn, batch, queries, keys):
    return None


SHAPES = [(1, 1), (7, 9), (32, 32), (33, 20), (20, 70), (130, 65)]
MASKS = [padding, causal, random, each_head, nothing]


def drawn_inputs(shape, dtype, device, mask, widths=(16, 32)):
    drawn = torch.Generator().manual_seed(1)
    queries, keys = shape
    sizes = ((queries, widths[0]), (keys, widths[0]), (keys, widths[1]))
    inputs = [
        # As `MultiHeadAttention` splits them: heads lie within positions.
        torch.randn(3, length, 2, width, generator=drawn)
        .to(device, dtype)
        .transpose(1, 2)
        .requires_grad_()
        for length, width in sizes
    ]
    seen = mask(drawn, 3, queries, keys)
    grad_output = torch.randn(3, 2, queries, widths[1], generator=drawn).to(
        device, dtype
    )
    return inputs, seen if seen is None else seen.to(device), grad_output


def relative(found, expected):
    found, expected = found.detach().double(), expected.detach()
    difference = (found - expected).norm()
    return float(difference / expected.norm().clamp(min=1e-30))


@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: mask.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float16, 2**-9), (torch.bfloat16, 2**-6)], ids=str
)
def test_it_is_equation_1_and_its_gradient(device, dtype, error, shape, mask):
    """Relative to float64, no further off than a few roundings of the type."""
    if INTERPRETED and dtype is torch.bfloat16:
        pytest.skip("NumPy, which Triton's interpreter computes with, has no bfloat16")
    inputs, seen, grad_output = drawn_inputs(shape, dtype, device, mask)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    expected, _ = scaled_dot_product_attention(*exact, seen)
    found = gpu_attention(*inputs, seen)
    assert relative(found, expected) < error
    gradients = torch.autograd.grad(found, inputs, grad_output)
    wanted = torch.autograd.grad(expected, exact, grad_output.double())
    if shape == (1, 1):  # one key has weight 1 whatever the score: all else is rounding
        gradients, wanted = gradients[2:], wanted[2:]
    for gradient, exactly in zip(gradients, wanted, strict=True):
        assert relative(gradient, exactly) < error


@pytest.mark.parametrize("width", module.WIDTHS)
def test_every_width_of_a_head_is_served(device, width):
    inputs, seen, grad_output = drawn_inputs(
        (20, 24), torch.float16, device, padding, (width, width)
    )
    exact = [x.detach().double().requires_grad_() for x in inputs]
    found, (expected, _) = (
        gpu_attention(*inputs, seen),
        scaled_dot_product_attention(*exact, seen),
    )
    assert relative(found, expected) < 2**-9
    for gradient, exactly in zip(
        torch.autograd.grad(found, inputs, grad_output),
        torch.autograd.grad(expected, exact, grad_output.double()),
        strict=True,
    ):
        assert relative(gradient, exactly) < 2**-9


def test_scores_that_are_large_do_not_overflow(device):
    inputs, seen, _ = drawn_inputs((8, 8), torch.float16, device, causal)
    inputs[:2] = (150 * x for x in inputs[:2])  # a float16 ends at 65,504
    exact = [x.double() for x in inputs]
    found, (expected, _) = (
        gpu_attention(*inputs, seen),
        scaled_dot_product_attention(*exact, seen),
    )
    assert found.isfinite().all()
    assert relative(found, expected) < 2**-7


def test_what_heads_found_is_concatenated_without_a_copy(device):
    inputs, seen, _ = drawn_inputs((7, 9), torch.float16, device, padding)
    found = gpu_attention(*inputs, seen).transpose(1, 2)
    assert found.is_contiguous()


def test_numbers_of_a_head_need_not_lie_side_by_side(device):
    inputs, seen, grad_output = drawn_inputs((7, 9), torch.float16, device, padding)
    other = [x.detach().mT.contiguous().mT.requires_grad_() for x in inputs]
    assert all(x.stride(3) != 1 for x in other)
    found, again = gpu_attention(*inputs, seen), gpu_attention(*other, seen)
    assert_close(found, again, rtol=0, atol=0)
    for gradient, other_gradient in zip(
        torch.autograd.grad(found, inputs, grad_output),
        torch.autograd.grad(again, other, grad_output.mT.contiguous().mT),
        strict=True,
    ):
        assert_close(gradient, other_gradient, rtol=0, atol=0)


def test_a_second_derivative_is_refused(device):
    inputs, seen, _ = drawn_inputs((7, 9), torch.float16, device, padding)
    total = gpu_attention(*inputs, seen).sum()
    with pytest.raises(InputError, match="first derivatives only"):
        torch.autograd.grad(total, inputs, create_graph=True)


def test_torch_finds_its_description_right():
    """Shapes and strides that a compiler counts on, and that nothing is written to."""
    module.register_operations()
    for shape in ((7, 9), (40, 33)):
        inputs, seen, _ = drawn_inputs(shape, torch.float32, "cpu", padding)
        checks = ("test_schema", "test_faketensor", "test_autograd_registration")
        torch.library.opcheck(
            torch.ops.aiayn.attend.default, (*inputs, seen), test_utils=checks
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
def test_a_compilers_graph_has_the_kernels_for_all_lengths():
    """In a process without beartype: at each of its checks a compiler would stop."""
    script = Path(__file__).with_name("compiled_attention.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["graphs"] == [["aiayn.attend.default"]] * len(found["errors"])
    for mask, errors in found["errors"].items():
        assert len(errors) == 10 * 4, mask  # of lengths, and of context and gradients
        few_roundings = 2**-6  # of bfloat16
        assert all(error < few_roundings for error in errors), mask


def test_one_size_of_a_block_is_launched_for_each_length():
    kernels = pytest.importorskip("aiayn.fast.attention_kernels", exc_type=ImportError)
    for longest in range(1, 400):
        fits = [kernels._fits(longest, *lengths) for _, *lengths in kernels._BLOCKS]
        assert sorted(fits) == [0, 0, 0, 1]
        block = kernels._BLOCKS[fits.index(1)][0]
        assert block == next((b for b in (16, 32) if longest <= b), 64)


def on_a_gpu(length, dtype=torch.bfloat16, width=64):
    """What is asked of a tensor there, of one that may stand for it here."""
    tensor = torch.empty(2, 3, length, width, dtype=dtype, device="meta")
    return SimpleNamespace(
        is_cuda=True,
        dtype=tensor.dtype,
        shape=tensor.shape,
        size=tensor.size,
        device=torch.device("cuda"),
    )


@pytest.mark.parametrize(
    ("queries", "keys", "expected"),
    [
        (on_a_gpu(32), on_a_gpu(32), True),
        (on_a_gpu(33), on_a_gpu(5), False),
        (on_a_gpu(5), on_a_gpu(33), False),
        (on_a_gpu(5, dtype=torch.float32), on_a_gpu(5, dtype=torch.float32), False),
        (on_a_gpu(5, width=24), on_a_gpu(5, width=24), False),
        (torch.empty(2, 3, 5, 64), torch.empty(2, 3, 5, 64), False),
    ],
    ids=["short", "long source", "long target", "wide numbers", "odd heads", "a CPU"],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_short_sentences_go_to_the_kernels(monkeypatch, queries, keys, expected):
    monkeypatch.setattr(module, "_has_kernels", lambda device: True)
    assert has_kernels_for(queries, keys, keys) == expected
    monkeypatch.setattr(module, "_has_kernels", lambda device: False)
    assert not has_kernels_for(queries, keys, keys)


@pytest.mark.parametrize("keys", [1, 7, 8, 9, 16])
def test_rows_of_a_compilers_mask_begin_at_every_eighth_place(keys):
    mask = torch.rand(2, 1, 5, keys) < 0.5
    added = _by_eights(mask, torch.bfloat16)
    assert added.dtype == torch.bfloat16
    assert added.stride(-2) % 8 == 0
    assert torch.equal(added == 0, mask)
    assert torch.equal(added == -math.inf, ~mask)


def test_a_compiler_asks_no_length_of_keys_whether_it_divides_by_8():
    """As torch's fused kernel asks, and as it asks whether rows are packed."""
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=keep, dynamic=True)
    def asked(mask):
        added = _by_eights(mask, torch.float32)
        aligned = added.stride(-2) % 8 == 0
        return added + 1 if aligned and not added.is_contiguous() else added

    for keys in (7, 8, 9, 16, 30):
        mask = torch.rand(2, 1, 5, keys) < 0.5
        assert (asked(mask) == 1)[mask].all()
    assert len(graphs) == 1


@pytest.fixture(params=[True, False])
def cudnn(request):
    """Whether cuDNN may compute attention; afterwards the setting is as it was."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(request.param)
    yield request.param
    torch.backends.cuda.enable_cudnn_sdp(before)


def test_a_gpu_makes_no_plan_for_each_shape_of_an_attention(cudnn):
    """Until the block ends, also by an exception."""
    with disable_cudnn_sdpa(torch.device("cpu")):
        assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn
    with suppress(InputError), disable_cudnn_sdpa(torch.device("cuda")):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        raise InputError
    assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn


def test_long_sentences_are_attended_to_without_plans(cudnn, monkeypatch):
    """As if the model were on a GPU."""
    torchs, seen = attention.F.scaled_dot_product_attention, []

    def watched(*inputs, **options):
        seen.append(torch.backends.cuda.cudnn_sdp_enabled())
        return torchs(*inputs, **options)

    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", watched)
    on_a_gpu = disable_cudnn_sdpa(torch.device("cuda"))
    monkeypatch.setattr(attention, "disable_cudnn_sdpa", lambda device: on_a_gpu)
    x = torch.randn(1, 129, 8)
    accelerate(MultiHeadAttention(8, 2))(x, x, x)
    assert seen == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn
