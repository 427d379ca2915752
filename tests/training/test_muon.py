"""Muon, against torch's own and against a singular value decomposition."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.training.muon import Muon, orthogonalized

SHAPES = [(4, 4), (3, 7), (7, 3), (1, 5), (5, 1)]


def times_four(values):
    """What becomes of a singular value, in the numbers of torch's Muon."""
    for _ in range(4):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return values


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_vectors_stay_and_values_come_near_to_1(shape):
    matrices = torch.randn(6, *shape, dtype=torch.float64)
    found = orthogonalized(matrices)
    u, values, v = torch.linalg.svd(matrices, full_matrices=False)
    shares = values / values.norm(dim=1, keepdim=True)
    assert_close(found, u @ torch.diag_embed(times_four(shares)) @ v)


def test_what_is_said_of_the_singular_values():
    shares = torch.logspace(-6, 0, 3001, dtype=torch.float64)
    after = times_four(shares)
    above = after[shares >= 1 / 150]
    assert 0.68 < above.min() < 0.69
    assert 1.20 < above.max() < 1.21
    assert (after[shares < 1e-5] < 0.01).all()


def test_matrices_of_a_stack_do_not_meet():
    first, second = torch.randn(2, 3, 5, dtype=torch.float64)
    both = orthogonalized(torch.stack([first, 100 * second]))
    assert_close(both[0], orthogonalized(first[None])[0])
    assert_close(both[1], orthogonalized(second[None])[0])


def test_a_matrix_of_zeros_stays_what_it_is():
    """So is the gradient of a layer behind a ReLU that is off for every word."""
    for dtype in (torch.float32, torch.bfloat16):
        assert (orthogonalized(torch.zeros(2, 3, 3, dtype=dtype)) == 0).all()


def weights_and_gradients(steps):
    """Two matrices of one shape and one of another, and gradients for each step."""
    weights = [nn.Parameter(torch.randn(shape)) for shape in [(4, 6), (8, 3), (4, 6)]]
    gradients = [[torch.randn_like(w) for w in weights] for _ in range(steps)]
    return weights, gradients


def train(optimizer, weights, gradients):
    for step in gradients:
        for weight, gradient in zip(weights, step, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()


def test_steps_are_those_of_torch():
    """Torch's Muon multiplies in bfloat16, and no two orders of products round alike.

    It takes one matrix after another, and the size of a step is 0.2 of its rate.
    """
    weights, gradients = weights_and_gradients(steps=10)
    twins, wide, begun = (
        [nn.Parameter(weight.detach().clone()) for weight in weights] for _ in range(3)
    )
    train(Muon(weights, lr=0.1, dtype=torch.bfloat16), weights, gradients)
    train(Muon(wide, lr=0.1), wide, gradients)
    theirs = torch.optim.Muon(
        twins, lr=0.08, weight_decay=0.0, ns_steps=4, adjust_lr_fn="match_rms_adamw"
    )
    train(theirs, twins, gradients)
    # Each of the two takes a dozen products, rounded by 2⁻⁸ at most, as often up as
    # down.
    rounding = 24**0.5 * 2**-8
    for weight, twin, exact, start in zip(weights, twins, wide, begun, strict=True):
        way = (twin - start).norm()
        assert way > 0.1
        assert (weight - twin).norm() < rounding * way
        assert not weight.equal(exact)


def test_steps_are_the_formulas():
    """In float64, with the decomposition that the polynomial stands for."""
    weights, gradients = weights_and_gradients(steps=5)
    weights = [nn.Parameter(weight.detach().double()) for weight in weights]
    gradients = [[g.double() for g in step] for step in gradients]
    expected = [weight.detach().clone() for weight in weights]
    means = [torch.zeros_like(weight) for weight in expected]
    train(Muon(weights, lr=0.1, momentum=0.8), weights, gradients)
    for step in gradients:
        for i, g in enumerate(step):
            means[i] = 0.8 * means[i] + 0.2 * g
            u, s, v = torch.linalg.svd(0.8 * means[i] + 0.2 * g, full_matrices=False)
            direction = u @ torch.diag(times_four(s / s.norm())) @ v
            expected[i] -= 0.16 * 0.1 * max(g.shape) ** 0.5 * direction
    for weight, right in zip(weights, expected, strict=True):
        assert_close(weight.detach(), right)


def test_a_step_is_as_large_as_adams_whatever_the_shape():
    """Root mean square 0.16 times the rate, up to the polynomial's 0.68 to 1.21."""
    for shape in SHAPES:
        weight = nn.Parameter(torch.zeros(shape))
        train(Muon([weight], lr=1.0), [weight], [[torch.randn(shape)]])
        size = weight.detach().square().mean().sqrt().item()
        assert 0.16 * 0.68 < size < 0.16 * 1.21, shape


def test_what_is_no_matrix_is_refused():
    """A user may give it all of a model's parameters."""
    with pytest.raises(InputError, match=r"not a weight of shape \(3,\): give those"):
        Muon(nn.Linear(2, 3).parameters())


def test_what_has_no_gradient_stays():
    weights, gradients = weights_and_gradients(steps=1)
    before = weights[0].detach().clone()
    optimizer = Muon(weights, lr=0.1)
    weights[1].grad = gradients[0][1]
    optimizer.step()
    assert (weights[0] == before).all()
    assert (optimizer.mean(weights[0]) == 0).all()


def test_each_group_has_its_rate():
    """As torch has it; and nothing at all may be in one."""
    weights, gradients = weights_and_gradients(steps=1)
    groups = [{"params": [], "lr": 1.0}, {"params": weights, "lr": 0.0}]
    before = [weight.detach().clone() for weight in weights]
    train(Muon(groups), weights, gradients)
    assert all((w == b).all() for w, b in zip(weights, before, strict=True))


def test_each_group_may_multiply_in_its_own_type(monkeypatch):
    """And what lies in a group is copied with it, and stored."""
    kinds = []

    def note(matrices):
        kinds.append(matrices.dtype)
        return orthogonalized(matrices)

    monkeypatch.setattr("aiayn.training.muon.orthogonalized", note)
    one, other = (nn.Parameter(torch.randn(3, 3)) for _ in range(2))
    groups = [{"params": [one]}, {"params": [other], "dtype": torch.float64}]
    optimizer = Muon(groups, dtype=torch.bfloat16)
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        for group in copied.param_groups:
            group["params"][0].grad = torch.randn(3, 3)
        copied.step()
    assert kinds == [torch.bfloat16, torch.float64] * 2


def test_a_closure_computes_the_gradients_and_its_loss_is_returned():
    weight = nn.Parameter(torch.eye(3))
    optimizer = Muon([weight], lr=1.0)

    def closure():
        optimizer.zero_grad()
        loss = weight.sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure) == 3
    assert not weight.equal(torch.eye(3))
    assert optimizer.step() is None


def test_what_is_no_matrix_is_refused_later_too():
    optimizer = Muon([nn.Parameter(torch.eye(3))])
    optimizer.add_param_group({"params": iter([nn.Parameter(torch.eye(2))])})
    assert len(optimizer.param_groups) == 2
    with pytest.raises(InputError, match=r"not a weight of shape \(3,\): give those"):
        optimizer.add_param_group({"params": iter([nn.Parameter(torch.ones(3))])})
