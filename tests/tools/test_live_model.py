"""What the build makes of the record of the model in the page, and who made it."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from aiayn.data.grammar import generate
from aiayn.model import Transformer, TransformerConfig
from aiayn_book.live import QuantisedModel, load_quantised
from aiayn_book.records import load_record
from aiayn_site import live_model
from tools.records import live


@pytest.fixture(scope="module")
def quantised():
    return load_quantised()


def test_the_script_holds_the_very_numbers(quantised):
    """Read back as the page reads it, every matrix and vector is the record's."""
    script = live_model.record_script(quantised, load_record("live"))
    assert script.startswith("window.liveModel.record = ")
    content = json.loads(
        script.removeprefix("window.liveModel.record = ").rstrip(";\n")
    )
    whole = np.frombuffer(base64.b64decode(content["numbers"]), dtype=np.int8)
    exact = np.frombuffer(base64.b64decode(content["floats"]), dtype="<f4")
    weights = quantised.weights()
    for parameter in content["parameters"]:
        rows, *columns = parameter["shape"]
        values, exact = exact[:rows], exact[rows:]
        if columns:
            size = rows * columns[0]
            values = whole[:size].reshape(rows, -1) * values[:, None]
            whole = whole[size:]
        expected = weights.pop(parameter["name"])
        assert torch.equal(torch.tensor(values), expected)
    assert not weights
    assert len(whole) == len(exact) == 0
    assert len(content["pieces"]) == quantised.config.vocab_size


def test_the_script_has_no_way_out_of_itself(quantised):
    """It is a file of its own; still, nothing in it could end a script element."""
    assert "</script" not in live_model.record_script(quantised, load_record("live"))


@pytest.mark.parametrize(
    "change", [{"norm": "pre"}, {"positions": "learned"}, {"tie_embeddings": False}]
)
def test_a_model_that_the_page_does_not_compute_is_refused(quantised, change):
    other = replace(quantised, config=replace(quantised.config, **change))
    with pytest.raises(ValueError, match="post-norm, tied embeddings"):
        live_model.page_config(other)


def test_switches_are_named_in_words_the_worst_first():
    exact = {"all on": 0.9, "scale": 0.5, "cross/1/0": 0.25, "positions": 0.0}
    assert live_model.switch_rows(exact) == [
        ["the positions", "0.0%"],
        ["cross-attention, layer 2, head 1", "25.0%"],
        ["the division by √dₖ", "50.0%"],
        ["nothing", "90.0%"],
    ]


def test_followers_begin_after_the_empty_word():
    samples = generate(300, seed=1)
    found = live.followers(samples)
    firsts = {sample.source_tokens[0] for sample in samples}
    assert "The" in firsts
    assert "the" in found[""].split()
    assert "The" not in found
    assert found["."] == ""
    for words in found.values():
        assert len(words.split()) <= live.FOLLOWERS
        assert set(words.split()) <= set(found)


def test_examples_are_short_and_of_every_kind():
    samples = generate(300, seed=2, split="test")
    found = dict(live.examples(samples))
    kinds = {s.kind for s in samples if s.source in found}
    assert len(kinds) >= 8
    for source in found:
        assert len(source.split()) <= live.LONGEST_EXAMPLE


def test_every_switch_leaves_the_model_as_it_was():
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "d_model": 16, "d_ff": 24, "num_heads": 2}
    model = Transformer(TransformerConfig.tiny(**sizes)).eval()
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    with torch.no_grad():
        before = model(source, target)
        changed = []
        for name, switch in live.switches(model).items():
            with switch:
                changed.append(not torch.equal(model(source, target), before))
                assert changed[-1] == (name != "all on"), name
            assert torch.equal(model(source, target), before)
    assert len(changed) == 3 + 3 * 2 * 2


def test_a_quantised_model_computes_with_what_it_stores(quantised):
    again = QuantisedModel.of(quantised.model(), quantised.tokenizer)
    for name, matrix in quantised.matrices.items():
        assert torch.equal(again.matrices[name].numbers, matrix.numbers)
