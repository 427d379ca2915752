"""Any text in, text out, or a sentence that says why not; soon, in little memory."""

import random
import time
import tracemalloc

import pytest
import torch

from aiayn.data.tokenizer import normalise
from aiayn.errors import InputError
from aiayn.inference import translate, translate_stream
from tests.inference.models import EOS, TableModel, random_transformer, table
from tests.soak.texts import HARD, LARGE, any_line

QUICK = {"extra_length": 3, "beam_size": 1}


@pytest.fixture(scope="module")
def model():
    return random_transformer(vocab_size=60, seed=2).float()


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_hard_text_has_one_line_for_an_answer(model, tokenizer, text):
    """The same alone and among others, and none of it ends the line."""
    [alone] = translate([text], model, tokenizer, **QUICK)
    assert len(alone.splitlines()) <= 1
    assert alone == normalise(alone)
    among = translate(["a dog", text, "the cat"], model, tokenizer, **QUICK)
    assert among[1] == alone


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_a_megabyte_in_one_line_is_answered_soon(model, tokenizer, text):
    """With a translation if it is next to nothing, else with a sentence."""
    began = time.process_time()
    tracemalloc.start()
    try:
        found = translate([text], model, tokenizer, **QUICK)
        assert len(found) == 1
    except InputError as error:
        assert "pieces, more than the 1,000" in str(error)  # noqa: PT017
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert time.process_time() - began < 60
    assert peak < 200 * 2**20


def test_random_lines_of_all_unicode(model, tokenizer):
    draw = random.Random(0)
    lines = [any_line(draw) for _ in range(300)]
    found = translate(lines, model, tokenizer, **QUICK)
    assert len(found) == len(lines)
    assert all(text == normalise(text) for text in found)
    assert any(found)


def test_normalising_twice_changes_nothing_however_many_marks():
    draw = random.Random(0)
    for text in [*HARD.values(), *(any_line(draw) for _ in range(300))]:
        once = normalise(text)
        assert normalise(once) == once


def test_ten_thousand_lines_stream_out_in_order(tokenizer, unchecked_shapes):
    """The model writes the first piece of each line, which says which line it was."""
    words = [piece for piece in range(4, 60) if tokenizer.decode([piece])]
    answers = torch.full((60, 60, 60), -torch.inf, dtype=torch.float64)
    for kind in range(60):
        answers[kind] = table(60, {1: {kind: 1.0}, kind: {EOS: 1.0}})
    model = TableModel(answers)
    model.register_parameter("weight", torch.nn.Parameter(torch.zeros(())))
    draw = random.Random(0)
    numbers = [draw.choice(words) for _ in range(10_000)]
    lines = [
        tokenizer.decode([n, *draw.choices(words, k=draw.randrange(5))])
        for n in numbers
    ]
    expected = [tokenizer.decode(tokenizer.encode(line)[:1]) for line in lines]
    read = 0

    def typed():
        nonlocal read
        for line in lines:
            read += 1
            yield line

    written = []
    for text in translate_stream(typed(), model, tokenizer, beam_size=1):
        written.append(text)
        assert read - len(written) < 1000  # it streams
    assert written == expected
    assert len(set(expected)) > 1, "all the same: no test of order"
