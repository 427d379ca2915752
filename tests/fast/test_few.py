"""Few numbers are computed as the plain classes do: these make fewer calls."""

import pytest
import torch

from aiayn import fast
from aiayn.fast import attention as module
from aiayn.fast.conditions import FEW
from aiayn.model import MultiHeadAttention, Transformer, TransformerConfig
from aiayn.training.loss import Criterion


def functions_of(loss):
    """The names of all that autograd would go back through."""
    found, waiting = set(), [loss.grad_fn]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.add(function)
            waiting += [before for before, _ in function.next_functions]
    return {function.name() for function in found}


def loss_of_a_step(accelerated):
    """Of eight tokens of width 128 (`TransformerConfig.tiny`), with dropout."""
    torch.manual_seed(1)
    model = Transformer(TransformerConfig.tiny(vocab_size=20, dropout=0.1))
    criterion = Criterion(model, 0.1, bos_id=1)
    if accelerated:
        fast.accelerate(criterion)
    tokens = torch.randint(3, 20, (2, 4))
    return criterion(tokens, tokens)[0]


BY_HAND = {"_ShortAttentionBackward", "_ChunkedLossBackward"}


@pytest.mark.parametrize("few", [0, FEW])
def test_a_step_on_few_tokens_is_the_plain_one(few, monkeypatch):
    """With the same random numbers for dropout, so that the loss is the same too."""
    for name in ("attention", "dropout", "loss"):
        monkeypatch.setattr(f"aiayn.fast.{name}.FEW", few)
    plain, found = loss_of_a_step(False), loss_of_a_step(True)
    assert torch.equal(found, plain) is (few > 0)
    assert functions_of(found) & BY_HAND == (set() if few else BY_HAND)


def test_without_a_gradient_few_numbers_are_fast_too(monkeypatch):
    """Measured: a decoding step of one sentence takes less time so."""
    monkeypatch.setattr(module, "FEW", FEW)
    called, original = [], module.short_attention
    monkeypatch.setattr(
        module, "short_attention", lambda *given: called.append(1) or original(*given)
    )
    attention = fast.accelerate(MultiHeadAttention(8, 2))
    x = torch.randn(1, 3, 8)
    attention(x, x, x)
    assert not called
    with torch.no_grad():
        attention(x, x, x)
    assert called
