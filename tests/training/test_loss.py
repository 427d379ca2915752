"""Label smoothing, against its definition as a loop and against closed forms."""

import math

import pytest
import torch
from torch.func import functional_call, grad, vmap

from aiayn.model import Transformer, TransformerConfig, shift_right
from aiayn.training import (
    Criterion,
    label_smoothed_cross_entropy,
)
from aiayn.training.loss import non_pad_indices
from aiayn_book.smoothing import smoothing_floor


def smoothed_by_hand(logits, target, smoothing, pad_id):
    """-Σ q log p, position by position, token by token."""
    vocab = logits.size(-1)
    total, count = 0.0, 0
    for scores, right in zip(logits.tolist(), target.tolist(), strict=True):
        if right == pad_id:
            continue
        log_z = math.log(sum(math.exp(score) for score in scores))
        for token, score in enumerate(scores):
            q = smoothing / vocab + (1 - smoothing) * (token == right)
            total -= q * (score - log_z)
        count += 1
    return total, count


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_is_the_definition(smoothing):
    torch.manual_seed(0)
    logits = torch.randn(6, 5, dtype=torch.float64)
    target = torch.tensor([1, 0, 4, 2, 0, 3])
    total, count = smoothed_by_hand(logits, target, smoothing, pad_id=0)
    mean = label_smoothed_cross_entropy(logits, target, smoothing)
    summed = label_smoothed_cross_entropy(logits, target, smoothing, reduction="sum")
    assert mean.item() == pytest.approx(total / count, rel=1e-12)
    assert summed.item() == pytest.approx(total, rel=1e-12)


def test_uniform_scores_cost_log_of_the_vocabulary():
    loss = label_smoothed_cross_entropy(torch.zeros(1, 3, 50), torch.ones(1, 3).long())
    assert loss.item() == pytest.approx(math.log(50), rel=1e-6)


def test_floor_is_reached_by_the_smoothed_target_itself():
    vocab, smoothing = 1000, 0.1
    q = torch.full((vocab,), smoothing / vocab, dtype=torch.float64)
    q[7] += 1 - smoothing
    loss = label_smoothed_cross_entropy(q.log()[None], torch.tensor([7]), smoothing)
    assert loss.item() == pytest.approx(smoothing_floor(vocab, smoothing), rel=1e-12)


def test_floor_for_the_papers_vocabulary():
    assert smoothing_floor(37_000, 0.1) == pytest.approx(1.377, abs=5e-4)
    assert smoothing_floor(37_000, 0.0) == 0.0


def test_criterion_is_that_loss_of_the_shifted_target():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.tiny(vocab_size=30, dropout=0.0)).double()
    source = torch.tensor([[5, 6, 2], [7, 2, 0]])
    target = torch.tensor([[8, 9, 10, 2], [11, 2, 0, 0]])
    smoothed, plain = Criterion(model, 0.1, bos_id=1)(source, target)
    logits = model(source, shift_right(target, 1))
    for got, smoothing in ((smoothed, 0.1), (plain, 0.0)):
        expected = label_smoothed_cross_entropy(
            logits, target, smoothing, reduction="sum"
        )
        torch.testing.assert_close(got, expected)


def test_labels_of_32_bits_are_good_labels():
    """As they are good tokens for the model."""
    model = Transformer(TransformerConfig.tiny(vocab_size=30, dropout=0.0))
    criterion = Criterion(model, 0.1, bos_id=1)
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[8, 2, 0]])
    narrow = source.int(), target.int()
    assert criterion(*narrow) == criterion(source, target)
    logits = model(source, target)
    expected = label_smoothed_cross_entropy(logits, target)
    assert label_smoothed_cross_entropy(logits, target.int()) == expected


def test_padding_changes_neither_loss_nor_gradient():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.tiny(vocab_size=30, dropout=0.0)).double()
    criterion = Criterion(model, 0.1, bos_id=1)
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[8, 9, 2]])

    def gradient(source, target):
        model.zero_grad()
        loss, _ = criterion(source, target)
        loss.backward()
        return loss.detach(), [p.grad.clone() for p in model.parameters()]

    loss, gradients = gradient(source, target)
    pad = torch.zeros(1, 4).long()
    padded = gradient(torch.cat([source, pad], 1), torch.cat([target, pad], 1))
    torch.testing.assert_close(padded[0], loss)
    torch.testing.assert_close(padded[1], gradients)


def test_indices_leave_out_padding_and_nothing_else():
    """Without the first of them, the loss lacks that token."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.tiny(vocab_size=30, dropout=0.0)).double()
    criterion = Criterion(model, 0.1, bos_id=1)
    source, target = (
        torch.tensor([[5, 6, 2], [7, 2, 0]]),
        torch.tensor([[8, 2], [2, 0]]),
    )
    indices = non_pad_indices(target, pad_id=0)
    assert indices.tolist() == [0, 1, 2]
    torch.testing.assert_close(
        criterion(source, target, indices), criterion(source, target)
    )
    assert criterion(source, target, indices[1:])[0] < criterion(source, target)[0]


def test_torch_func_finds_each_sentences_own_gradient():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.tiny(vocab_size=30, dropout=0.0)).double()
    criterion = Criterion(model, 0.1, bos_id=1)
    source = torch.tensor([[5, 6, 2], [7, 2, 0]])
    target = torch.tensor([[8, 9, 10, 2], [11, 2, 0, 0]])
    weights = {name: weight.detach() for name, weight in criterion.named_parameters()}

    def loss(weights, source, target):
        return functional_call(criterion, weights, (source, target))[0]

    of_each = vmap(grad(loss), (None, 0, 0))
    found = of_each(weights, source[:, None], target[:, None])
    criterion(source, target)[0].backward()
    for name, weight in criterion.named_parameters():
        torch.testing.assert_close(found[name].sum(0), weight.grad)
