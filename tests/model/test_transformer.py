"""§3, Figure 1: the whole model against nn.Transformer, and by its laws."""

from collections import Counter
from functools import partial

import pytest
import safetensors.torch
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from aiayn import fast
from aiayn.model import Transformer, causal_mask, shift_right
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator
from tests.model.samples import small_config
from tests.model.twins import assert_same_gradients, randomize, transformer_twin

SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
TARGET = torch.tensor([[1, 9, 10, 11, 12], [1, 13, 14, 0, 0]])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # a fast path, not taken
@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "post"},
        {"norm": "pre"},
        # Now each side has tables of its own, and one in the other's place is wrong.
        {"tie_embeddings": False, "positions": "learned", "max_length": 9},
    ],
    ids=["post", "pre", "tables of its own"],
)
def test_the_whole_model_is_torchs(changes):
    ours = randomize(Transformer(small_config(**changes))).eval()
    twin, pairs = transformer_twin(ours)
    twin.eval()
    logits = ours(SOURCE, TARGET)
    padding = SOURCE == 0
    states = twin(
        ours.source_positions(ours.embedding("source")(SOURCE)),
        ours.target_positions(ours.embedding("target")(TARGET)),
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    expected = ours.logits(states)
    assert_close(logits, expected)
    # Every gradient, that of the shared embeddings by all three ways into it included.
    weight = ours.embedding("output").weight
    (from_twin,) = torch.autograd.grad(
        expected.logsumexp(-1).sum(), [weight], retain_graph=True
    )
    expected.logsumexp(-1).sum().backward()
    ours.zero_grad()
    logits.logsumexp(-1).sum().backward()
    assert_same_gradients(pairs)
    assert_close(weight.grad, from_twin)


def test_shift_right_by_hand():
    """Whoever must write 7, 8, 9 reads the start, 7, 8."""
    target = torch.tensor([[7, 8, 9], [4, 5, 6]])
    assert shift_right(target, 1).tolist() == [[1, 7, 8], [1, 4, 5]]


@given(length=st.integers(0, 5))
def test_shift_right_keeps_the_shape(length):
    target = torch.full((2, length), 7, dtype=torch.int32)
    shifted = shift_right(target, 1)
    assert shifted.shape == target.shape
    assert shifted.dtype == target.dtype


def test_no_logit_depends_on_the_future():
    """No logit depends on a later position of what the decoder reads: exactly zero."""
    model = Transformer(small_config()).double()
    read = []
    model.target_positions.register_forward_hook(lambda *call: read.append(call[2]))
    logits = model(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8, 9]]))
    for position in range(4):
        picked = logits[0, position].square().sum()
        (gradient,) = torch.autograd.grad(picked, read[0], retain_graph=True)
        assert gradient[0, : position + 1].abs().sum(-1).all(), "the past is not read"
        assert not gradient[0, position + 1 :].any(), f"{position} sees its future"


def test_no_logit_depends_on_its_label():
    """A logit does not change with the token that it must predict: bit for bit."""
    model = Transformer(small_config()).eval()
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 9, 2]])
    logits = model(source, shift_right(target, 1))
    for position in range(4):
        other = target.clone()
        other[0, position:] = 20
        changed = model(source, shift_right(other, 1))
        assert changed[0, : position + 1].equal(logits[0, : position + 1])


def test_what_stands_on_padding_has_no_effect(need_weights):
    """To the bit: the weight of padding is zero, and adding zeros is exact."""
    model = Transformer(small_config()).eval()
    x, words = torch.randn(2, 4, 12), (SOURCE != 0)[:, None, None]
    other = x.clone()
    other[1, 2:] = 9.0
    before, _ = model.encoder(x, words, need_weights)
    after, _ = model.encoder(other, words, need_weights)
    assert after[SOURCE != 0].equal(before[SOURCE != 0])
    target = torch.randn(2, 3, 12)
    states, _, _ = model.decoder(target, before, None, words, need_weights)
    changed, _, _ = model.decoder(target, after, None, words, need_weights)
    assert changed.equal(states)


@given(extra=st.integers(1, 9))
def test_more_padding_changes_nothing(extra):
    """Other shapes take other sums through the hardware: equal up to rounding."""
    model = Transformer(small_config()).double().eval()
    padded_source = F.pad(SOURCE, (0, extra))
    padded_target = F.pad(TARGET, (0, extra))
    logits = model(padded_source, padded_target)[:, :5]
    assert_close(logits, model(SOURCE, TARGET))


def test_a_batch_is_its_sentences():
    model = Transformer(small_config()).double().eval()
    logits = model(SOURCE, TARGET)
    assert_close(logits[:1], model(SOURCE[:1], TARGET[:1]))
    assert_close(logits[1:, :3], model(SOURCE[1:, :2], TARGET[1:, :3]))


def test_encode_then_decode_is_forward():
    model = Transformer(small_config()).eval()
    logits = model.decode(TARGET, model.encode(SOURCE), SOURCE)
    assert logits.equal(model(SOURCE, TARGET))
    assert logits.equal(model.logits(model.decoder_hidden(SOURCE, TARGET)))


def test_attention_weights_of_every_layer_and_head():
    config = small_config(num_encoder_layers=3, num_decoder_layers=2)
    weights = Transformer(config).double().eval().attention_weights(SOURCE, TARGET)
    assert [len(weights.encoder), len(weights.decoder), len(weights.cross)] == [3, 2, 2]
    for layer in weights.encoder + weights.cross:
        assert layer.shape[:2] == (2, 3)
        assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]))
        assert not layer.transpose(1, 3)[SOURCE == 0].any()
    for layer in weights.decoder:
        assert layer.shape == (2, 3, 5, 5)
        assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]))
        assert not layer.triu(1).any()


def test_attention_weights_are_those_that_the_model_used():
    """An accelerated model computes them differently, and ends in the same states."""
    model = fast.accelerate(Transformer(small_config()).double().eval())
    memory, _ = model._encode(SOURCE, need_weights=True)
    states, _, _ = model._decode(TARGET, memory, SOURCE, need_weights=True)
    assert_close(states, model.decoder_hidden(SOURCE, TARGET))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fast"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_stays_finite(dtype, norm, plain):
    model = Transformer(small_config(norm=norm)).to(dtype)
    if not plain:
        fast.accelerate(model)
    source = F.pad(SOURCE, (0, 0, 0, 1))  # a third sentence of nothing but padding
    logits = model(source, F.pad(TARGET, (0, 0, 0, 1)))
    assert logits.dtype == dtype
    logits.float().logsumexp(-1).mean().backward()
    assert logits.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


@given(
    widths=st.sampled_from([(15, 3), (7, 7), (1, 1), (9, 1), (12, 2)]),
    source_length=st.integers(1, 4),
    target_length=st.integers(1, 4),
    rows=st.integers(0, 3),  # none: a filter may leave none of a batch
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["sinusoidal", "learned", "rotary"]),
    tie_embeddings=st.booleans(),
)
def test_any_shape(
    widths, source_length, target_length, rows, norm, positions, tie_embeddings
):
    d_model, num_heads = widths
    assume(positions != "rotary" or d_model // num_heads % 2 == 0)
    config = small_config(
        d_model=d_model,
        num_heads=num_heads,
        norm=norm,
        positions=positions,
        tie_embeddings=tie_embeddings,
    )
    source = torch.randint(4, 30, (rows, source_length))
    target = torch.randint(4, 30, (rows, target_length))
    logits = Transformer(config)(source, target)
    assert logits.shape == (rows, target_length, 30)
    assert logits.isfinite().all()


def test_tied_embeddings_are_one_tensor_and_saved_once():
    tied = Transformer(small_config())
    assert tied.embedding("source") is tied.embedding("target")
    assert tied.embedding("source") is tied.embedding("output")
    names = [name for name in tied.state_dict() if "embedding" in name]
    assert names == ["embeddings.shared.weight"]
    untied = Transformer(small_config(tie_embeddings=False))
    weights = [untied.embedding(use).weight for use in ("source", "target", "output")]
    assert not weights[0].equal(weights[1])
    assert not weights[1].equal(weights[2])


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_weights_go_through_safetensors(tie_embeddings):
    """Which refuses tensors that share memory: state_dict holds each one once."""
    config = small_config(tie_embeddings=tie_embeddings)
    model, other = Transformer(config).eval(), Transformer(config).eval()
    other.load_state_dict(
        safetensors.torch.load(safetensors.torch.save(model.state_dict()))
    )
    assert other(SOURCE, TARGET).equal(model(SOURCE, TARGET))


def test_dropouts_places():
    """§5.4: every sub-layer's output, and the sums of embeddings and positions."""
    one_layer = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(
        small_config(
            **one_layer, dropout=0.1, attention_dropout=0.2, activation_dropout=0.3
        )
    )
    calls, sums = Counter(), []
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            record = partial(lambda name, p, *_: calls.update([(name, p)]), name)
            module.register_forward_hook(partial(record, module.p))
    for positions in (model.source_positions, model.target_positions):
        positions.register_forward_hook(lambda *call: sums.append(call[2]))
    dropped = []
    model.dropout.register_forward_hook(lambda *call: dropped.append(call[1][0]))
    model(SOURCE, TARGET)
    assert all(one is other for one, other in zip(dropped, sums, strict=True))
    sublayers = [
        "encoder.layers.0.self_attention",
        "encoder.layers.0.feed_forward",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
        "decoder.layers.0.feed_forward",
    ]
    assert calls == {
        ("dropout", 0.1): 2,
        **{(f"{name}_residual.dropout", 0.1): 1 for name in sublayers},
        **{(f"{name}.dropout", 0.2): 1 for name in sublayers if "attention" in name},
        **{(f"{name}.dropout", 0.3): 1 for name in sublayers if "forward" in name},
    }


@pytest.mark.parametrize(
    "model",
    [
        lambda: Transformer(small_config(d_model=24)),
        lambda: RecurrentTranslator(RecurrentConfig(30, 24, True, dropout=0.0)),
        lambda: RecurrentTranslator(RecurrentConfig(30, 24, False, dropout=0.0)),
    ],
    ids=["transformer", "recurrent with attention", "recurrent without"],
)
def test_one_batch_can_be_memorised(model):
    model = model()
    labels = torch.tensor([[9, 10, 11, 12, 2], [13, 14, 2, 0, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        logits = model(SOURCE, shift_right(labels, 1))
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05, "the right token's mean probability is above 95 %"
