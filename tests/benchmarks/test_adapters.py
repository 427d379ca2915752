"""Peers compute what we compute: the same weights, the same outputs, the same loss.

`torch.nn` is always there. Marian and fairseq are installed by the benchmark, in
environments of their own: run this file with the interpreter of such an environment.
The other peers have layers that no weights make equal to ours; `book/benchmarks.md`
says which.
"""

import copy
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig, shift_right
from benchmarks import workload
from benchmarks.peers import PEERS, ours, shared, torch_nn

CONFIG = TransformerConfig.tiny(vocab_size=23, d_model=16, d_ff=24, dropout=0.0)
SOURCE = torch.tensor([[5, 9, 14, 7, 2], [8, 6, 2, 0, 0]])
TARGET = torch.tensor([[4, 11, 2, 0], [21, 13, 17, 2]])


@pytest.fixture(params=["post", "pre"])
def model(request):
    """A model of ours with every weight random, the norms' and the biases' too."""
    made = Transformer(replace(CONFIG, norm=request.param))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made


def test_the_weights_make_the_same_model_of_torchs_layers(model):
    model = model.double().eval()
    theirs = torch_nn.with_weights_of(model).double().eval()
    # Both tables hold float32 sinusoids, so they agree to the last bit.
    written = shift_right(TARGET, shared.BOS_ID)
    assert_close(theirs(SOURCE, written), model(SOURCE, written))


def test_the_weights_make_the_same_model_of_marian():
    reason = "Hugging Face transformers is not installed: the benchmark installs it."
    pytest.importorskip("transformers", reason=reason)
    from benchmarks.peers import marian

    model = Transformer(replace(CONFIG, norm="post")).double().eval()
    written = shift_right(TARGET, shared.BOS_ID)
    found = marian.with_weights_of(model)(
        input_ids=SOURCE,
        attention_mask=SOURCE != shared.PAD_ID,
        decoder_input_ids=written,
        use_cache=False,
    )
    # Both keep float32 sinusoids, made by two formulas: the last bit may differ.
    assert_close(found.logits, model(SOURCE, written), rtol=1e-6, atol=1e-6)
    with pytest.raises(InputError, match="Marian has norm = 'post'"):
        marian.with_weights_of(Transformer(replace(CONFIG, norm="pre")))


def test_the_weights_make_the_same_model_of_fairseq(model):
    if find_spec("fairseq") is None:  # it imports only as the adapter imports it
        pytest.skip("fairseq is not installed: the benchmark installs it.")
    from benchmarks.peers import fairseq

    model = model.double().eval()
    written = shift_right(TARGET, shared.BOS_ID)
    theirs = fairseq.with_weights_of(model).double().eval()
    logits, _ = theirs(SOURCE, (SOURCE != shared.PAD_ID).sum(1), written)
    # Both keep float32 sinusoids.
    assert_close(logits, model(SOURCE, written), rtol=1e-6, atol=1e-6)


def test_weights_that_would_mean_something_else_are_refused():
    """They would fit: a rotary model's have the shapes of one that adds sinusoids."""
    config = replace(CONFIG, positions="rotary")
    with pytest.raises(InputError, match="the model has positions = 'rotary'"):
        shared.check_sinusoids(config)
    with pytest.raises(InputError, match="no model with rotary positions"):
        torch_nn.with_weights_of(Transformer(config))


def test_greedy_searches_agree(model):
    """On a model that has learnt two sentences by heart, so that its outputs end."""
    step = ours.training_step(model, False, shared.Schedule(50))
    for _ in range(150):
        step(SOURCE, TARGET)
    rows = [[5, 9, 14, 7, 2], [8, 6, 2]]
    theirs = torch_nn.searcher(torch_nn.with_weights_of(model))(rows, 1)
    assert theirs == ours.searcher(model)(rows, 1) == [[4, 11], [21, 13, 17]]


def test_training_steps_take_the_same_loss_and_move_alike(model):
    """Adam's first step sees only the gradients' signs; the later ones their sizes."""
    theirs, schedule = torch_nn.with_weights_of(model), shared.Schedule(100)
    for name, parameter in theirs.named_parameters():
        if "attn" in name and name.endswith("bias"):  # ours has none to move
            parameter.requires_grad_(False)
    our_step = ours.training_step(copy.deepcopy(model), False, schedule)
    their_step = torch_nn.training_step(theirs, False, schedule)
    our_losses, their_losses = (
        torch.stack([step(SOURCE, TARGET).float() for _ in range(5)])
        for step in (our_step, their_step)
    )
    # float32 rounds at 6e-8, and either side may do so at each of a hundred additions.
    assert_close(our_losses, their_losses, rtol=1e-5, atol=0)
    assert (our_losses.diff() < 0).all()


def test_operations_are_counted_as_torch_counts_them(model):
    """Without padding nothing is left out: torch's counter sees the same products."""
    batch = SOURCE[:1], TARGET[1:]
    with FlopCounterMode(display=False) as counter:
        logits = model(batch[0], shift_right(batch[1], shared.BOS_ID))
        logits.sum().backward()
    assert workload.training_step_flops(CONFIG, batch) == counter.get_total_flops()


def test_padding_is_no_operation():
    padded = [torch.nn.functional.pad(side, (0, 3)) for side in (SOURCE, TARGET)]
    assert workload.training_step_flops(
        CONFIG, (SOURCE, TARGET)
    ) == workload.training_step_flops(CONFIG, tuple(padded))


def test_sentences_that_share_a_row_cost_what_they_cost_alone():
    alone = torch.tensor([[5, 6, 7, 2], [7, 2, 0, 0]]), TARGET
    together = torch.tensor([[5, 6, 7, 2, 7, 2]]), TARGET[TARGET != 0][None]
    assert workload.training_step_flops(
        CONFIG, together
    ) == workload.training_step_flops(CONFIG, alone)


def test_an_output_ends_at_its_end_token():
    assert shared.before_the_end([1, 7, 8, 2, 9, 0]) == [7, 8]
    assert shared.before_the_end([7, 8, 0]) == [7, 8]


def test_every_peer_has_an_adapter_and_pins_what_it_is():
    folder = workload.WORK.parent / "peers"
    for name, peer in PEERS.items():
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        assert not peer.trains or "training_step" in text
        assert not peer.translates or "def trained" in text
        installed = (*peer.requirements, *peer.bare)
        assert all("==" in requirement for requirement in installed)
