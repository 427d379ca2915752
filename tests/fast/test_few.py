"""With few numbers the fast classes are the plain ones, which make fewer calls."""

import pytest
import torch

from aiayn import fast
from aiayn.fast import attention as module
from aiayn.fast import conditions
from aiayn.fast.conditions import FEW
from aiayn.model import MultiHeadAttention, Transformer, TransformerConfig
from aiayn.training.loss import Criterion, non_pad_indices

BY_HAND = {"_ShortAttentionBackward", "_ChunkedLossBackward"}


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(conditions, "FEW", FEW)


def functions_of(loss):
    """The names of all that autograd would go back through."""
    found, waiting = set(), [loss.grad_fn]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.add(function)
            waiting += [before for before, _ in function.next_functions]
    return {function.name() for function in found}


def loss_of(tokens, accelerated, dropout=0.1):
    """As a trainer computes it on a CPU: with the indices of what is no padding."""
    torch.manual_seed(1)
    sizes = {"d_model": 256, "num_encoder_layers": 1, "num_decoder_layers": 1}
    config = TransformerConfig.tiny(vocab_size=20, dropout=dropout, **sizes)
    criterion = Criterion(Transformer(config), 0.1, bos_id=1)
    if accelerated:
        fast.accelerate(criterion)
    return criterion(tokens, tokens, non_pad_indices(tokens, 0))[0]


def test_a_step_on_64_tokens_of_width_256_is_the_plain_one():
    """With the same random numbers for dropout, so that the loss is the same too."""
    tokens = torch.randint(3, 20, (4, 16))
    found = loss_of(tokens, accelerated=True)
    assert torch.equal(found, loss_of(tokens, accelerated=False))
    assert not functions_of(found) & BY_HAND


def test_a_step_on_65_tokens_is_the_fast_one():
    tokens = torch.randint(3, 20, (5, 13))
    found = loss_of(tokens, accelerated=True)
    assert functions_of(found) >= BY_HAND
    assert not torch.equal(found, loss_of(tokens, accelerated=False))  # other draws


def test_padding_does_not_count_for_the_loss():
    """70 places with 60 tokens: attention is the fast one, the loss the plain one."""
    tokens = torch.randint(3, 20, (5, 14))
    tokens[:, 12:] = 0
    found = functions_of(loss_of(tokens, accelerated=True))
    assert found & BY_HAND == {"_ShortAttentionBackward"}


@pytest.mark.parametrize("kind", ["no gradient", "16 bits"])
def test_what_was_not_measured_slower_stays_fast(kind, monkeypatch):
    """A step of a search needs no gradient; in 16 bits the layers read 16 bits."""
    called, original = [], module.short_attention
    monkeypatch.setattr(
        module, "short_attention", lambda *given: called.append(1) or original(*given)
    )
    attention = fast.accelerate(MultiHeadAttention(8, 2))
    x = torch.randn(1, 3, 8)
    attention(x, x, x)
    assert not called
    narrow = kind == "16 bits"
    with torch.set_grad_enabled(narrow), torch.autocast("cpu", enabled=narrow):
        attention(x, x, x)
    assert called


def test_a_graph_for_all_sizes_does_not_ask_how_many_there_are(monkeypatch):
    """Else a compiler would make two graphs: one for few numbers, one for many."""
    monkeypatch.setattr(conditions, "is_transformed", lambda: True)
    monkeypatch.setattr(conditions, "FEW", "compared with nothing")
    assert conditions.steps_aside(torch.ones(2, requires_grad=True))
