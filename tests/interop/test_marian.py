"""Our weights in Hugging Face's Marian: the same logits, before and after a file."""

import sys
import types

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from aiayn import InputError, greedy_search
from aiayn.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from aiayn.interop import copy_from_torch, export_onnx, to_marian, to_torch
from aiayn.model import RecurrentConfig, RecurrentTranslator

# Both keep their sinusoids in 32 bits, made from 64 by two formulas: the last bit of
# a number up to one, 6e-8, may differ, and passes through two layers.
ROUNDED = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture
def marian():
    """Hugging Face's module, where it is installed."""
    reason = "Hugging Face transformers is not installed: pip install 'aiayn[marian]'."
    return pytest.importorskip("transformers", reason=reason)


def logits_of(theirs, source, target):
    with torch.no_grad():
        return theirs(
            input_ids=source,
            attention_mask=source != PAD_ID,
            decoder_input_ids=target,
            use_cache=False,
        ).logits


@torch.no_grad()
def test_the_logits_are_ours(marian, make, batch):
    model = make().double()
    assert_close(logits_of(to_marian(model), *batch), model(*batch), **ROUNDED)


@torch.no_grad()
def test_a_saved_folder_is_an_ordinary_marian_model(marian, make, batch, tmp_path):
    """It makes its sinusoids anew, in its own order, and needs nothing of ours."""
    model = make()
    to_marian(model).save_pretrained(tmp_path)
    again = marian.MarianMTModel.from_pretrained(tmp_path).double().eval()
    assert_close(logits_of(again, *batch), model.double()(*batch), **ROUNDED)


def test_generate_writes_what_our_greedy_search_writes(marian, make, batch):
    source, _ = batch
    model = make()
    found = greedy_search(model, source, bos_id=BOS_ID, eos_id=EOS_ID, max_length=8)
    written = to_marian(model).generate(
        input_ids=source,
        attention_mask=source != PAD_ID,
        num_beams=1,
        do_sample=False,
        max_new_tokens=8,
        suppress_tokens=[PAD_ID, BOS_ID],
    )
    for row, one in zip(written.tolist(), found, strict=True):
        tokens = [token for token in row[1:] if token not in (PAD_ID, EOS_ID)]
        assert tokens[:7] == one.tokens  # ours counts the end as the eighth
    assert all(one.tokens for one in found)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"norm": "pre"}, "Marian has norm = 'post', and this model 'pre'"),
        ({"positions": "learned"}, "Marian has positions = "),
        ({"positions": "rotary"}, "Marian has positions = "),
        ({"tie_embeddings": False}, "Marian has tie_embeddings = True"),
        ({"d_k": 3}, "Marian has d_k = 4, and this model 3"),
        ({"d_v": 5}, "Marian has d_v = 4, and this model 5"),
        ({"d_model": 15, "num_heads": 3}, "d_model = 15 is odd"),
        # Whatever their own width: transformers says so only in words of its own.
        ({"num_heads": 3, "d_k": 5, "d_v": 5}, "3 does not divide d_model = 16"),
    ],
)
def test_what_marian_has_not_is_refused(make, changes, complaint, monkeypatch):
    """Before anything is made: transformers need not be there for that."""
    nothing = types.SimpleNamespace(MarianConfig=None, MarianMTModel=None)
    monkeypatch.setitem(sys.modules, "transformers", nothing)
    with pytest.raises(InputError, match=complaint):
        to_marian(make(**changes))


def test_a_recurrent_model_has_no_equal(unchecked_shapes, tmp_path):
    """In none of the libraries; and nothing is made of it."""
    model = RecurrentTranslator(RecurrentConfig(vocab_size=20, d_model=8))
    for refused in (
        lambda: to_marian(model),
        lambda: export_onnx(model, tmp_path / "onnx"),
        lambda: to_torch(model),
        lambda: copy_from_torch(nn.Transformer(8, 2, 1, 1, 8), model),
    ):
        with pytest.raises(InputError, match=r"is of .*RecurrentTranslator\. If one"):
            refused()
    assert not (tmp_path / "onnx").exists()
    swapped = nn.Transformer(8, 2, 1, 1, 8)  # torch's class has the name of ours
    with pytest.raises(InputError, match=r"is of torch\.nn\..*Transformer\. If one"):
        copy_from_torch(model, swapped)


def test_without_transformers_a_sentence_says_what_to_install(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"pip install 'aiayn\[marian\]'"):
        to_marian(make())


def test_a_transformers_that_lacks_something_says_what(make, monkeypatch):
    """Else one would install again what is there already."""
    monkeypatch.setitem(sys.modules, "transformers", types.ModuleType("transformers"))
    with pytest.raises(InputError, match="cannot import name 'MarianConfig'") as caught:
        to_marian(make())
    assert isinstance(caught.value.__cause__, ImportError)
