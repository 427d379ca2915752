"""§3.1, §3.3, §3.4: embeddings, feed-forward, residuals, layers."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    PositionwiseFeedForward,
    ResidualNorm,
    TokenEmbedding,
    causal_mask,
)
from tests.model.samples import random, small_config
from tests.model.twins import assert_same_gradients, layer_twin, randomize

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])


def test_feed_forward_by_hand():
    """x = (2, -1): inner 2, -1, 1 plus bias 0, 0, 1; after ReLU 2, 0, 2."""
    layer = PositionwiseFeedForward(2, 3)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        layer.inner.bias.copy_(torch.tensor([0.0, 0.0, 1.0]))
        layer.outer.weight.copy_(torch.tensor([[1.0, 5.0, 0.0], [0.0, 5.0, -1.0]]))
        layer.outer.bias.copy_(torch.tensor([3.0, 0.0]))
    assert layer(torch.tensor([[2.0, -1.0]])).tolist() == [[5.0, -2.0]]


def test_feed_forward_is_two_convolutions_of_width_one():
    layer = randomize(PositionwiseFeedForward(4, 7))
    x = random(2, 5, 4)
    hidden = F.conv1d(x.mT, layer.inner.weight[..., None], layer.inner.bias).relu()
    expected = F.conv1d(hidden, layer.outer.weight[..., None], layer.outer.bias).mT
    assert_close(layer(x), expected)


def test_gradients_of_feed_forward_are_right():
    layer = randomize(PositionwiseFeedForward(3, 5))
    names = [name for name, _ in layer.named_parameters()]

    def run(x, *parameters):
        values = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, values, (x,))

    x = random(2, 3, requires_grad=True)
    assert torch.autograd.gradcheck(run, [x, *layer.parameters()])


def test_residual_and_norm_by_hand():
    """(1, 2) + (0, 3) = (1, 5): mean 3, variance 4 (over n, not n - 1), so (-1, 1)."""
    x, update = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 3.0]])
    post, pre = ResidualNorm(2, norm="post"), ResidualNorm(2, norm="pre")
    post.norm.eps = pre.norm.eps = 0.0
    read = []

    def sublayer(x):
        read.append(x.tolist())
        return update, "weights"

    assert post(x, sublayer)[0].tolist() == [[-1.0, 1.0]]
    assert pre(x, sublayer)[0].tolist() == [[1.0, 5.0]]
    assert read == [[[1.0, 2.0]], [[-1.0, 1.0]]]
    assert post(x, sublayer)[1] == "weights"


def test_dropout_falls_on_the_update_and_never_on_the_residual():
    residual = ResidualNorm(1000, dropout=0.5, norm="pre")
    x, update = torch.full((1, 1000), 10.0), torch.ones(1, 1000)
    total, _ = residual(x, lambda _: (update, None))
    assert set(total.flatten().tolist()) == {10.0, 12.0}
    total, _ = residual.eval()(x, lambda _: (update, None))
    assert total.eq(11).all()


def test_embedding_by_hand():
    """Width 4: a look-up is scaled by 2; an output is not."""
    embedding = TokenEmbedding(3, 4)
    with torch.no_grad():
        embedding.weight.copy_(torch.arange(12.0).view(3, 4))
    assert embedding(torch.tensor([[2, 0]])).tolist() == [
        [[16, 18, 20, 22], [0, 2, 4, 6]]
    ]
    assert embedding.logits(torch.tensor([1.0, 0.0, 0.0, 1.0])).tolist() == [3, 11, 19]


def test_embeddings_start_at_the_size_that_their_two_jobs_need():
    """Entries of variance one on the way in, logits of variance one on the way out."""
    embedding = TokenEmbedding(2000, 256)
    x = F.layer_norm(torch.randn(50, 256), [256])
    # Variances of half a million and of 100,000 numbers: 1 % and 2 % are five and
    # four standard errors (√(2/n)) of independent ones.
    read, scored = embedding(torch.arange(2000)[None]), embedding.logits(x)
    assert read.var().item() == pytest.approx(1, rel=0.01)
    assert scored.var().item() == pytest.approx(1, rel=0.02)


@both_norms
def test_encoder_layer_is_torchs(norm):
    """Outputs and gradients of nn.TransformerEncoderLayer with the same weights."""
    config = small_config(norm=norm)
    ours = randomize(EncoderLayer(config))
    twin, pairs = layer_twin(ours, config)
    x = random(2, 5, config.d_model)
    mask = causal_mask(5)
    output, _ = ours(x, mask)
    expected = twin(x, src_mask=~mask)  # torch's layers mean the opposite by a mask
    assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(pairs)


@both_norms
def test_decoder_layer_is_torchs(norm, need_weights):
    config = small_config(norm=norm)
    ours = randomize(DecoderLayer(config))
    twin, pairs = layer_twin(ours, config)
    x, memory = random(2, 5, 12), random(2, 4, 12)
    words = torch.tensor([[True] * 4, [True, True, False, False]])
    output, own, cross = ours(
        x, memory, causal_mask(5), words[:, None, None], need_weights
    )
    expected = twin(x, memory, tgt_mask=~causal_mask(5), memory_key_padding_mask=~words)
    assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(pairs)
    assert (own is not None) == (cross is not None) == need_weights


@both_norms
def test_a_stack_is_its_layers_one_after_another(norm):
    config = small_config(norm=norm, num_encoder_layers=3, num_decoder_layers=3)
    encoder, decoder = randomize(Encoder(config)), randomize(Decoder(config))
    source, target = random(2, 4, 12), random(2, 5, 12)
    memory, x = source, target
    for layer in encoder.layers:
        memory, _ = layer(memory)
    memory = encoder.norm(memory)
    for layer in decoder.layers:
        x, _, _ = layer(x, memory)
    assert_close(encoder(source)[0], memory)
    assert_close(decoder(target, memory)[0], decoder.norm(x))
    last = nn.LayerNorm if norm == "pre" else nn.Identity
    assert type(encoder.norm) is type(decoder.norm) is last


def test_layers_start_different():
    first, second = Encoder(small_config()).layers
    weights = zip(first.parameters(), second.parameters(), strict=True)
    drawn = [(one, other) for one, other in weights if one.dim() == 2]
    assert len(drawn) == 6
    assert not any(one.equal(other) for one, other in drawn)


def test_glorots_bounds():
    layer = DecoderLayer(small_config(d_model=60, d_ff=240, num_heads=3, d_k=30))
    matrices = [weight for weight in layer.parameters() if weight.dim() == 2]
    assert len(matrices) == 4 + 4 + 2
    for weight in matrices:
        # That none of 3,600 numbers is in the last 100th has a probability of e⁻³⁶.
        widest = weight.abs().max().item()
        assert widest == pytest.approx(math.sqrt(6 / sum(weight.shape)), rel=0.01)
    for linear in (layer.feed_forward.inner, layer.feed_forward.outer):
        assert not linear.bias.any()
