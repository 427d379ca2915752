"""The quantised record of the model in the page, and its switches."""

from importlib.resources import files

import numpy as np
import pytest
import torch
from safetensors.numpy import load
from torch.testing import assert_close

from aiayn.data.grammar import generate
from aiayn.errors import InputError
from aiayn.inference import translate
from aiayn.model import Transformer, TransformerConfig
from aiayn.storage import load_tensors, save_tensors
from aiayn.training import TrainingConfig
from aiayn_book.live import (
    LARGEST,
    QuantisedMatrix,
    QuantisedModel,
    load_live_model,
    load_quantised,
    without_positions,
    without_scale,
)
from aiayn_book.records import load_record

LARGEST_FILE = 400 * 1024  # bytes


@pytest.fixture
def small():
    """A model that is as quickly made as thrown away."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "d_model": 16, "d_ff": 24, "num_heads": 2}
    return Transformer(TransformerConfig.tiny(**sizes)).eval()


def test_a_row_is_off_by_half_a_step_at_most():
    torch.manual_seed(0)
    matrix = torch.randn(20, 33) * torch.logspace(-3, 3, 20)[:, None]
    found = QuantisedMatrix.of(matrix)
    steps = matrix.abs().amax(dim=1) / LARGEST
    off = (found.matrix() - matrix).abs().amax(dim=1)
    assert (off <= steps * 0.5001).all()
    assert (found.numbers.abs().amax(dim=1) == LARGEST).all()


def test_a_row_of_zeros_stays_one():
    found = QuantisedMatrix.of(torch.zeros(2, 3))
    assert (found.matrix() == 0).all()


def test_a_model_comes_back_from_its_file(small, tmp_path):
    """The same numbers, the same tokenizer; the vectors as they were."""
    quantised = QuantisedModel.of(small, b"a tokenizer")
    quantised.save(tmp_path / "model.safetensors")
    again = QuantisedModel.load(tmp_path / "model.safetensors")
    assert again.tokenizer == b"a tokenizer"
    assert again.config == small.config
    found, expected = again.weights(), quantised.weights()
    assert found.keys() == small.state_dict().keys() == expected.keys()
    for name, weight in expected.items():
        assert torch.equal(found[name], weight)
    for name, weight in quantised.vectors.items():
        assert torch.equal(weight, small.state_dict()[name])


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"x": torch.zeros(1)}, {"model": {"kind": "nothing"}})
    with pytest.raises(InputError, match="its kind is 'nothing'"):
        QuantisedModel.load(path)


def test_scales_without_their_numbers_are_refused(small, tmp_path):
    path = tmp_path / "model.safetensors"
    QuantisedModel.of(small, b"a tokenizer").save(path)
    tensors, info = load_tensors(path)
    del tensors[next(n for n in tensors if n + ".scales" in tensors)]
    save_tensors(path, tensors, info)
    with pytest.raises(InputError, match="holds no quantised Transformer"):
        QuantisedModel.load(path)


def test_the_record_is_small_and_ours():
    """One command made it, and its configuration is the run's."""
    path = files("aiayn_book").joinpath("records", "live.safetensors")
    assert len(path.read_bytes()) < LARGEST_FILE
    record = load_record("live")
    assert record["command"].startswith("aiayn train grammar ")
    assert record["quantised_by"].startswith("python tools/record_live.py runs/")
    config = TrainingConfig.from_dict(record["config"])
    assert load_quantised().config == config.model


def test_the_logits_are_those_of_the_stored_integers():
    """The record is read anew, without this package, and multiplied out by numpy."""
    path = files("aiayn_book").joinpath("records", "live.safetensors")
    stored = load(path.read_bytes())
    weights = {}
    for name, values in stored.items():
        if name == "tokenizer" or name.endswith(".scales"):
            continue
        if values.ndim == 2:
            assert values.dtype == np.int8
            values = values * stored[f"{name}.scales"][:, None]
        weights[name] = torch.tensor(values)
    model, tokenizer = load_live_model()
    other = Transformer(model.config).eval()
    other.load_state_dict(weights)
    source = torch.tensor([[*tokenizer.encode("The dog sleeps."), tokenizer.eos_id]])
    target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode("Der Hund schläft.")]])
    with torch.no_grad():
        assert_close(model(source, target), other(source, target))


def test_the_share_on_record_is_met_by_other_sentences():
    """Sentences of another seed, scored anew: within three deviations of the share."""
    model, tokenizer = load_live_model()
    samples = generate(100, seed=31, split="test")
    found = translate([s.source for s in samples], model, tokenizer, beam_size=1)
    share = np.mean([text == s.target for text, s in zip(found, samples, strict=True)])
    expected = load_record("live")["exact"]["test"]
    spread = np.sqrt(expected * (1 - expected) / len(samples))
    assert abs(share - expected) <= 3 * spread


def test_every_head_and_switch_was_scored():
    record = load_record("live")
    exact = record["switched_off"]["exact"]
    model = load_quantised().config
    layers = {"encoder": model.num_encoder_layers, "decoder": model.num_decoder_layers}
    layers["cross"] = model.num_decoder_layers
    heads = {
        f"{use}/{layer}/{head}"
        for use, count in layers.items()
        for layer in range(count)
        for head in range(model.num_heads)
    }
    assert set(exact) == {"all on", "scale", "positions", *heads}
    assert all(0 <= share <= 1 for share in exact.values())


def test_the_words_on_record_are_those_of_the_grammar():
    """No word of a sentence that the grammar makes is called unknown in the page."""
    known = set(load_record("live")["followers"])
    for sample in generate(150, seed=32, split="test"):
        first, *others = sample.source_tokens
        assert {first, first[0].lower() + first[1:]} & known
        assert set(others) <= known


def test_without_the_scale_scores_are_not_divided(small):
    attention = small.encoder.layers[0].self_attention
    x = torch.randn(1, 5, 16)
    queries = attention.query_projection(x).unflatten(-1, (2, 8)).transpose(1, 2)
    keys, _ = attention.project_kv(x, x)
    expected = (queries @ keys.mT).softmax(dim=-1)
    before = attention(x, x, x, need_weights=True)[1]
    with without_scale(small):
        _, found = attention(x, x, x, need_weights=True)
    assert_close(found, expected)
    assert torch.equal(attention(x, x, x, need_weights=True)[1], before)


def test_without_positions_order_does_not_matter(small):
    source = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        before = small.encode(source)
        with without_positions(small):
            there = small.encode(source)
            back = small.encode(source.flip(1)).flip(1)
        assert_close(there, back)
        assert not torch.allclose(there, before)
        assert torch.equal(small.encode(source), before)


def test_without_its_first_head_the_model_forgets_the_nouns_gender():
    """What the page says of cross-attention's head 2 in layer 2."""
    model, tokenizer = load_live_model()
    attention = model.decoder.layers[1].cross_attention
    block = attention.output_projection.weight.data[:, attention.d_v :]
    block[:, : attention.d_v] = 0.0  # the second head's
    texts = ["The dog chases the cat.", "The old woman gives the child a red apple."]
    assert translate(texts, model, tokenizer) == [
        "Die Hund jagt die Katze.",
        "Die alte Frau gibt dem Kind eine roten Apfel.",
    ]
