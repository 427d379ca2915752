"""Checks that are given what they check.

The tests give them the package's own functions and classes; `test_mutations` gives them
mutants, and expects each to be caught.
"""

import math

import torch
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn.model import TransformerConfig, causal_mask
from tests.model.twins import assert_same_gradients, layer_twin, randomize

SMALL = {"d_model": 12, "d_ff": 20, "num_heads": 3, "vocab_size": 30, "dropout": 0.0}


def small_config(**changes):
    """A Transformer of two layers that is quick in float64."""
    return TransformerConfig.tiny(**(SMALL | changes))


def random(*shape, requires_grad=False):
    """Random numbers in float64."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=requires_grad)


def check_attention_by_hand(attention):
    """Two keys, d_k = 4. The query's dot products are 2·ln 3 and 0.

    Divided by √4 they are ln 3 and 0; the softmax of those is 3/4 and 1/4; and the mean
    of the values (4, 0) and (0, 8) with these weights is (3, 2).
    """
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    key = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    value = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    context, weights = attention(query, key, value)
    assert_close(weights, torch.tensor([[0.75, 0.25]]))
    assert_close(context, torch.tensor([[3.0, 2.0]]))


def check_attention_matches_torch(attention, mask):
    """The same context as torch's, whatever the leading dimensions of the mask."""
    query, key, value = random(2, 3, 5, 4), random(2, 3, 6, 4), random(2, 3, 6, 7)
    context, _ = attention(query, key, value, mask)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert_close(context, expected)


def check_future_has_no_gradient(transformer):
    """No logit depends on a later position of what the decoder reads: exactly zero."""
    model = transformer(small_config()).double()
    read = []
    model.target_positions.register_forward_hook(lambda *call: read.append(call[2]))
    logits = model(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8, 9]]))
    for position in range(4):
        picked = logits[0, position].square().sum()
        (gradient,) = torch.autograd.grad(picked, read[0], retain_graph=True)
        assert gradient[0, : position + 1].abs().sum(-1).all(), "the past is not read"
        assert not gradient[0, position + 1 :].any(), f"{position} sees its future"


def check_shift_by_hand(shift_right):
    """Whoever must write 7, 8, 9 reads the start, 7, 8."""
    target = torch.tensor([[7, 8, 9], [4, 5, 6]])
    assert shift_right(target, 1).tolist() == [[1, 7, 8], [1, 4, 5]]


def check_label_is_not_read(transformer, shift_right):
    """A logit does not change with the token that it must predict: bit for bit."""
    model = transformer(small_config()).eval()
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 9, 2]])
    logits = model(source, shift_right(target, 1))
    for position in range(4):
        other = target.clone()
        other[0, position:] = 20
        changed = model(source, shift_right(other, 1))
        assert changed[0, : position + 1].equal(logits[0, : position + 1])


def check_encoder_layer_matches_torch(encoder_layer, norm):
    """Outputs and gradients of nn.TransformerEncoderLayer with the same weights."""
    config = small_config(norm=norm)
    ours = randomize(encoder_layer(config))
    twin, pairs = layer_twin(ours, config)
    x = random(2, 5, config.d_model)
    mask = causal_mask(5)
    output, _ = ours(x, mask)
    expected = twin(x, src_mask=~mask)  # torch's layers mean the opposite by a mask
    assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(pairs)
