"""Our weights in torch.nn.Transformer, and torch's in ours: the same outputs.

And a checkpoint is a safetensors file that anybody can open: no code of ours needed.
"""

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.testing import assert_close

from aiayn import InputError, Transformer, TransformerConfig, causal_mask
from aiayn.storage import RunFolder, describe_config
from aiayn_book.interop import copy_from_torch, to_torch

SOURCE = torch.tensor([[5, 9, 14, 7, 2], [8, 6, 2, 0, 0]])
TARGET = torch.tensor([[1, 11, 12], [1, 13, 17]])
SIZES = {"d_model": 16, "nhead": 4, "dim_feedforward": 24, "batch_first": True}


@pytest.fixture
def make():
    """Makes a small model in evaluation, every parameter of it random."""

    def build(**changes):
        sizes = {"vocab_size": 23, "d_model": 16, "d_ff": 24, "max_length": 64}
        model = Transformer(TransformerConfig.tiny(**(sizes | changes)))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        return model.eval()

    return build


@pytest.fixture
def batch():
    """Source and target of two sentences, the second padded."""
    return SOURCE, TARGET


def outputs_of(stacks, model, source, target):
    """Logits of torch's stacks between the embeddings of a model of ours."""
    padding = source == model.config.pad_id
    states = stacks(
        model.source_positions(model.embedding("source")(source)),
        model.target_positions(model.embedding("target")(target)),
        tgt_mask=~causal_mask(target.size(1)),  # torch: True is hidden
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    return model.logits(states)


def small(**changes):
    """torch's module with two layers a stack and random weights."""
    made = nn.Transformer(**{**SIZES, **changes}, dropout=0.0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    for name, parameter in made.named_parameters():
        if "attn" in name and name.endswith("bias"):
            nn.init.zeros_(parameter)
    return made.double().eval()


def layers(number):
    return {"num_encoder_layers": number, "num_decoder_layers": number}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("number", [1, 2])
def test_our_weights_give_our_outputs(make, batch, norm, number):
    model = make(norm=norm, **layers(number)).double()
    assert_close(outputs_of(to_torch(model), model, *batch), model(*batch))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_torchs_weights_give_torchs_outputs(make, batch, norm, bias):
    stacks = small(norm_first=norm == "pre", bias=bias, **layers(2))
    if norm == "post":
        stacks.encoder.norm = stacks.decoder.norm = None
    model = make(norm=norm).double()
    copy_from_torch(stacks, model)
    assert_close(model(*batch), outputs_of(stacks, model, *batch))


@pytest.mark.parametrize("relu", [nn.functional.relu, torch.relu, nn.ReLU()])
def test_relu_may_be_written_in_three_ways(make, batch, relu):
    stacks, model = small(activation=relu, **layers(2)), make().double()
    stacks.encoder.norm = stacks.decoder.norm = None
    copy_from_torch(stacks, model)
    assert_close(model(*batch), outputs_of(stacks, model, *batch))


def test_there_and_back_nothing_is_lost(make):
    model, other = make(), make()
    embeddings = other.output_weight.clone()
    copy_from_torch(to_torch(model), other)
    for name, value in model.state_dict().items():
        if not name.startswith("embeddings"):
            assert_close(other.state_dict()[name], value, rtol=0, atol=0)
    assert_close(other.output_weight, embeddings, rtol=0, atol=0)


def test_the_copies_are_the_receivers_own(make):
    """Training one must not move the other."""
    model = make()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for parameter in to_torch(model).parameters():
            parameter.add_(1)
    assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_mode_type_and_rates_go_along(make):
    """torch drops inside attention and after the ReLU too, where the paper does not."""
    rates = {"dropout": 0.25, "attention_dropout": 0.1, "activation_dropout": 0.2}
    stacks = to_torch(make(**rates).double().train())
    assert stacks.training
    encoder, decoder = stacks.encoder.layers[1], stacks.decoder.layers[1]
    for layer in (encoder, decoder):
        assert layer.linear1.weight.dtype == torch.float64
        assert layer.dropout1.p == layer.dropout2.p == 0.25
        assert (layer.dropout.p, layer.self_attn.dropout) == (0.2, 0.1)
    assert (decoder.dropout3.p, decoder.multihead_attn.dropout) == (0.25, 0.1)


def test_rotary_positions_are_refused(make):
    """The weights would fit, and nobody would see that they mean something else."""
    model = make(positions="rotary").double()
    with pytest.raises(InputError, match="knows no model with rotary"):
        to_torch(model)
    stacks = small(**layers(2))
    stacks.encoder.norm = stacks.decoder.norm = None
    with pytest.raises(InputError, match="knows no model with rotary"):
        copy_from_torch(stacks, model)


def test_heads_of_another_width_are_refused(make):
    with pytest.raises(InputError, match="heads of another width"):
        to_torch(make(d_k=3))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_stack_without_layers_is_refused(make, stack):
    """Torch would make it, and fail when it is called."""
    with pytest.raises(InputError, match="a stack without layers"):
        to_torch(make(**{f"num_{stack}_layers": 0}))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_decoder_layers": 3}, r"no equal of decoder\.layers\.2\."),
        ({"norm_first": True}, "norm_first = True"),
        ({"nhead": 2}, "heads = 2, and the model 4"),
        ({"activation": "gelu"}, "ReLU = False"),
        ({"activation": nn.ReLU6()}, "ReLU = False"),
        ({"layer_norm_eps": 1e-6}, "eps of LayerNorm = 1e-06, and the model 1e-05"),
        ({"dim_feedforward": 8}, r"linear1.weight .* shape \(24, 16\), not \(8, 16\)"),
        ({"d_model": 24}, r"in_proj_weight .* shape \(48, 16\), not \(72, 24\)"),
    ],
)
def test_what_means_something_else_is_refused(make, changes, complaint):
    """And nothing has been copied by then."""
    stacks = small(**{**layers(2), **changes})
    stacks.encoder.norm = stacks.decoder.norm = None
    model = make().double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InputError, match=complaint):
        copy_from_torch(stacks, model)
    assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_a_last_norm_and_biases_in_attention_are_refused(make):
    """A post-norm model has neither; both would be lost without a word."""
    stacks, model = small(**layers(2)), make().double()
    with pytest.raises(InputError, match=r"no equal of encoder\.norm\."):
        copy_from_torch(stacks, model)
    stacks.encoder.norm = stacks.decoder.norm = None
    nn.init.ones_(stacks.decoder.layers[1].multihead_attn.in_proj_bias)
    with pytest.raises(InputError, match=r"decoder\.layers\.1\.multihead_attn\.in_"):
        copy_from_torch(stacks, model)


def test_a_checkpoint_is_the_models_state_dict(make, batch, tmp_path):
    """Loaded by safetensors alone, strictly, it gives the same model."""
    model = make()
    info = {"step": 1, "model": describe_config(model.config)}
    run = RunFolder(tmp_path)
    run.config.write_text("{}")  # without it, it would be no run's folder
    path = run.save_checkpoint(model.state_dict(), info, keep=1)
    again = Transformer(model.config).eval()
    again.load_state_dict(load_file(path))
    assert_close(again(*batch), model(*batch), rtol=0, atol=0)
