"""Five mistakes that everyone makes once: each must be caught by the tests.

A mutant is a module of the package with one expression changed. The checks are those
that the ordinary tests run, so what is shown here is that they can fail.
"""

import importlib
import inspect
import types

import pytest
import torch
from torch import nn

from aiayn.model import Transformer, shift_right
from tests.model import checks


class UnbiasedLayerNorm(nn.LayerNorm):
    """LayerNorm with torch's default standard deviation, and eps outside the root."""

    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


def mutant(name, old, new, **names):
    """The module of that name, with old replaced by new in its source."""
    source = inspect.getsource(importlib.import_module(name))
    assert old in source, f"{old!r} is no longer in {name}: mend this test"
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(compile(source.replace(old, new), f"mutant of {name}", "exec"), vars(module))
    return module


def drop_the_scale():
    attention = mutant("aiayn.model.attention", " / math.sqrt(d_k)", "")
    checks.check_attention_by_hand(attention.scaled_dot_product_attention)


def softmax_over_queries():
    attention = mutant("aiayn.model.attention", "softmax(dim=-1)", "softmax(dim=-2)")
    checks.check_attention_by_hand(attention.scaled_dot_product_attention)


def no_causal_mask():
    call = "causal_mask(target.size(1), target.device)"
    transformer = mutant("aiayn.model.transformer", call, "None")
    checks.check_future_has_no_gradient(transformer.Transformer)


def unshifted_labels():
    shifted = "torch.cat([start, target], dim=1)[:, :-1]"
    transformer = mutant("aiayn.model.transformer", shifted, "target")
    checks.check_label_is_not_read(Transformer, transformer.shift_right)


def unbiased_layer_norm():
    layers = mutant(
        "aiayn.model.layers",
        "nn.LayerNorm(",
        "UnbiasedLayerNorm(",
        UnbiasedLayerNorm=UnbiasedLayerNorm,
    )
    checks.check_encoder_layer_matches_torch(layers.EncoderLayer, "post")


MUTATIONS = [
    drop_the_scale,
    softmax_over_queries,
    no_causal_mask,
    unshifted_labels,
    unbiased_layer_norm,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_mutation_is_caught(mutation):
    with pytest.raises(AssertionError) as caught:
        mutation()
    assert "mend this test" not in str(caught.value)


def test_the_unmutated_modules_pass():
    attention = mutant("aiayn.model.attention", "softmax", "softmax")
    layers = mutant("aiayn.model.layers", "LayerNorm", "LayerNorm")
    transformer = mutant("aiayn.model.transformer", "causal_mask", "causal_mask")
    checks.check_attention_by_hand(attention.scaled_dot_product_attention)
    checks.check_future_has_no_gradient(transformer.Transformer)
    checks.check_label_is_not_read(transformer.Transformer, shift_right)
    torch.manual_seed(0)
    checks.check_encoder_layer_matches_torch(layers.EncoderLayer, "post")
