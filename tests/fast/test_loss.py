"""The loss in chunks is the plain one: value, gradients, and under autocast."""

import pytest
import torch

from aiayn.fast import loss as chunked_loss
from aiayn.fast.loss import (
    BYTES_ON_A_CPU,
    BYTES_ON_A_GPU,
    CHUNK,
    _positions_at_a_time,
    chunked_cross_entropy,
)
from aiayn.training import label_smoothed_cross_entropy


def plain(states, weight, labels, smoothing):
    logits = states @ weight.T
    return label_smoothed_cross_entropy(
        logits, labels, smoothing, pad_id=-1, reduction="sum"
    )


@pytest.mark.parametrize("tokens", [1, CHUNK, CHUNK + 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_and_gradients_are_those_of_the_plain_form(
    monkeypatch, tokens, smoothing
):
    monkeypatch.setattr(chunked_loss, "BYTES_ON_A_CPU", 0)  # so that there are several
    torch.manual_seed(0)
    states = torch.randn(tokens, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(7, (tokens,))
    smoothed, unsmoothed = chunked_cross_entropy(states, weight, labels, smoothing)
    expected = plain(states, weight, labels, smoothing)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(unsmoothed, plain(states, weight, labels, 0.0).detach())
    fast = torch.autograd.grad(3 * smoothed, (states, weight))
    slow = torch.autograd.grad(3 * expected, (states, weight))
    torch.testing.assert_close(fast, slow)


@pytest.mark.parametrize("right", [0, 1])
def test_a_right_token_of_no_probability_has_a_loss_and_a_gradient(right):
    # exp(-2000) is 0 in every format, and its logarithm would be infinite.
    states, weight = torch.ones(1, 1), torch.tensor([[2000.0], [0.0]])
    states.requires_grad_(), weight.requires_grad_()
    smoothed, unsmoothed = chunked_cross_entropy(
        states, weight, torch.tensor([right]), 0.1
    )
    assert unsmoothed == 2000.0 * right
    torch.testing.assert_close(smoothed, torch.tensor(2000.0 * (0.9 * right + 0.1 / 2)))
    smoothed.backward()
    q = torch.tensor([[0.05], [0.05]])
    q[right] = 0.95
    torch.testing.assert_close(weight.grad, torch.tensor([[1.0], [0.0]]) - q)


@pytest.mark.parametrize("vocab_size", [8, 2500, 37_000, 2**20])
@pytest.mark.parametrize(
    ("device", "most"), [("cpu", BYTES_ON_A_CPU), ("meta", BYTES_ON_A_GPU)]
)
def test_a_chunk_is_large_and_its_logits_fit(device, most, vocab_size):
    rows = _positions_at_a_time(torch.empty(vocab_size, 4, device=device))
    assert rows >= CHUNK
    size = 4 * rows * vocab_size  # bytes of its logits
    assert rows == CHUNK or size <= most < 2 * size


def test_gradient_is_that_of_finite_differences():
    torch.manual_seed(0)
    states = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 4, 2])
    assert torch.autograd.gradcheck(
        lambda s, w: chunked_cross_entropy(s, w, labels, 0.1)[0], (states, weight)
    )


def test_autocast_computes_in_bfloat16_and_sums_in_float32(monkeypatch):
    factors, product = set(), chunked_loss.product

    def note(*two):
        factors.update(factor.dtype for factor in two)
        return product(*two)

    monkeypatch.setattr(chunked_loss, "product", note)
    torch.manual_seed(0)
    states = torch.randn(300, 64, requires_grad=True)
    weight = torch.randn(50, 64, requires_grad=True)
    labels = torch.randint(50, (300,))
    with torch.autocast("cpu", torch.bfloat16):
        smoothed, _ = chunked_cross_entropy(states, weight, labels, 0.1)
    assert factors == {torch.bfloat16}
    assert smoothed.dtype == torch.float32
    smoothed.backward()
    assert states.grad.dtype == weight.grad.dtype == torch.float32
    # bfloat16 keeps 8 bits: each logit, of a size of about 8, is off by up to 2⁻⁵,
    # and the mean loss by no more than twice that.
    expected = plain(states, weight, labels, 0.1)
    assert abs(smoothed - expected) / 300 < 2 * 2**-5


@pytest.mark.parametrize(
    ("dtype", "step"), [(torch.bfloat16, 2**-9), (torch.float16, 0.0)]
)
def test_narrow_numbers_score_a_token_to_half_a_step_of_its_probability(dtype, step):
    # Small integers are exact in both formats, so that the logits are too.
    torch.manual_seed(0)
    states = torch.eye(4).repeat(100, 1)
    weight = torch.randint(-8, 9, (30, 4)).float()
    for right in torch.randint(30, (20, 400)):
        with torch.autocast("cpu", dtype):
            _, unsmoothed = chunked_cross_entropy(states, weight, right, 0.1)
        expected = plain(states, weight, right, 0.0)
        assert abs(unsmoothed - expected) / 400 < step + 1e-5


@pytest.mark.parametrize("sure", [0, 8])  # right tokens' mean probability: 0.02, 0.88
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_gradients_are_the_plain_ones_but_for_rounding(dtype, sure):
    torch.manual_seed(0)
    weight = (torch.randn(50, 64) / 8).requires_grad_()
    labels = torch.randint(50, (CHUNK + 44,))
    states = torch.randn(CHUNK + 44, 64) + sure * weight.detach()[labels]
    states.requires_grad_()
    expected = torch.autograd.grad(plain(states, weight, labels, 0.1), (states, weight))
    with torch.autocast("cpu", dtype):
        smoothed, _ = chunked_cross_entropy(states, weight, labels, 0.1)
    for narrow, exact in zip(
        torch.autograd.grad(smoothed, (states, weight)), expected, strict=True
    ):
        # Three roundings meet in each number: of logits, of probabilities, of sums.
        rounding = torch.finfo(dtype).eps / 2
        assert (narrow - exact).norm() < 3 * rounding * exact.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_numbers_score_a_token_of_no_probability(dtype):
    states, weight = torch.ones(1, 1), torch.tensor([[2000.0], [0.0]])
    weight.requires_grad_()
    with torch.autocast("cpu", dtype):
        smoothed, unsmoothed = chunked_cross_entropy(
            states, weight, torch.tensor([1]), 0.0
        )
    assert 87 < unsmoothed <= 2000
    smoothed.backward()
    torch.testing.assert_close(weight.grad, torch.tensor([[1.0], [-1.0]]))


@pytest.mark.parametrize("learns", ["states", "weight", "nothing"])
def test_only_what_learns_gets_a_gradient(monkeypatch, learns):
    """Without a gradient its product is not computed; the loss stays the same."""
    computed = []
    for name in ("product", "add_weight_gradient"):
        original = getattr(chunked_loss, name)
        monkeypatch.setattr(
            chunked_loss,
            name,
            lambda *x, name=name, original=original: (
                computed.append(name) or original(*x)
            ),
        )
    states = torch.randn(9, 4, requires_grad=learns == "states")
    weight = torch.randn(7, 4, requires_grad=learns == "weight")
    labels = torch.randint(7, (9,))
    with torch.set_grad_enabled(learns != "nothing"):
        smoothed, _ = chunked_cross_entropy(states, weight, labels, 0.1)
    assert smoothed.requires_grad == (learns != "nothing")
    # One product for the logits, and one for the gradient of the states.
    assert computed.count("product") == 1 + (learns == "states")
    assert computed.count("add_weight_gradient") == (learns == "weight")
    torch.testing.assert_close(smoothed, plain(states, weight, labels, 0.1))
    if smoothed.requires_grad:
        smoothed.backward()
        assert (states.grad is None) == (learns != "states")
        assert (weight.grad is None) == (learns != "weight")
