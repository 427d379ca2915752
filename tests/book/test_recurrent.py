"""§1, §2: the recurrent baseline, step by step, and called like the Transformer."""

import pytest
import torch
from torch.testing import assert_close

from aiayn.data import Batch
from aiayn.model import shift_right
from aiayn.training import Trainer, TrainingConfig
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator

SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
TARGET = torch.tensor([[1, 9, 10], [1, 13, 0]])
both = pytest.mark.parametrize("attention", [True, False])


def model(attention):
    return RecurrentTranslator(RecurrentConfig(30, 8, attention)).double().eval()


def test_annotations_read_from_either_end():
    """The forward half of an annotation knows the past, the backward half the rest."""
    translator = model(True)
    other = SOURCE.clone()
    other[0, 2] = 20
    before, after = translator.encode(SOURCE), translator.encode(other)
    unchanged = before.eq(after).view(2, 4, 2, 8).all(-1)
    assert unchanged[0, :, 0].tolist() == [True, True, False, False]
    assert unchanged[0, :, 1].tolist() == [False, False, False, True]
    assert unchanged[1].all()


def slow_sentence(translator, source, target):
    """Logits of one sentence without padding, by torch's cells, one word at a time."""
    embed = translator.embedding
    annotations, _ = translator.encoder(embed(source[None]))
    annotations = annotations[0]  # (source_length, 2·d_model)
    ends = torch.cat([annotations[-1, :8], annotations[0, 8:]])
    hidden = summary = torch.tanh(translator.initial(ends))
    logits = []
    for token in target:
        context = summary
        if translator.config.attention:
            query = translator.query_projection(hidden)
            keys = translator.key_projection(annotations)
            weights = (torch.tanh(query + keys) @ translator.score).softmax(0)
            context = weights @ annotations
        word = embed(token[None])[0]
        hidden = translator.cell(torch.cat([word, context])[None], hidden[None])[0]
        state = torch.tanh(translator.readout(torch.cat([hidden, word, context])))
        logits.append(embed.weight @ state)
    return torch.stack(logits)


@both
def test_it_computes_what_its_equations_say(attention):
    translator = model(attention)
    logits = translator(SOURCE, TARGET)
    assert_close(logits[0], slow_sentence(translator, SOURCE[0], TARGET[0]))
    assert_close(logits[1, :2], slow_sentence(translator, SOURCE[1, :2], TARGET[1, :2]))


@both
def test_no_logit_depends_on_its_label(attention):
    translator = model(attention)
    logits = translator(SOURCE, shift_right(TARGET, 1))
    for position in range(3):
        other = TARGET.clone()
        other[:, position:] = 20
        changed = translator(SOURCE, shift_right(other, 1))
        assert changed[:, : position + 1].equal(logits[:, : position + 1])


@both
def test_the_parts_make_the_whole(attention):
    translator = model(attention)
    logits = translator(SOURCE, TARGET)
    assert logits.equal(translator.decode(TARGET, translator.encode(SOURCE), SOURCE))
    assert logits.equal(translator.logits(translator.decoder_hidden(SOURCE, TARGET)))


def test_attention_weights_are_a_distribution_over_words():
    weights = model(True).attention_weights(SOURCE, TARGET)
    assert weights.shape == (2, 3, 4)
    assert_close(weights.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    assert not weights[1, :, 2:].any()


def test_dropouts_places():
    """The words of either side, and what is read out at every step."""
    translator, shapes = model(True).train(), []
    translator.dropout.register_forward_hook(lambda *call: shapes.append(call[2].shape))
    translator(SOURCE, TARGET)
    assert shapes == [(2, 4, 8), (2, 3, 8), (2, 8), (2, 8), (2, 8)]


@both
def test_a_row_of_padding_stays_finite(attention):
    translator = model(attention)
    logits = translator(torch.zeros_like(SOURCE), TARGET)
    logits.logsumexp(-1).sum().backward()
    assert logits.isfinite().all()
    for weight in translator.parameters():
        assert weight.grad.isfinite().all()


@both
def test_the_trainer_of_the_transformer_trains_it_too(attention):
    config = TrainingConfig(warmup_steps=20, label_smoothing=0.0, device="cpu")
    model = RecurrentTranslator(RecurrentConfig(30, 16, attention, dropout=0.0))
    trainer = Trainer(config, model, bos_id=1)
    batch = Batch(torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]]))
    losses = [trainer.step(step, [batch])[1].item() for step in range(1, 41)]
    assert losses[-1] < losses[0] / 2
