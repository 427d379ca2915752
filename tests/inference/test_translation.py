"""Text in, text out: order, empty lines, streams, and what cannot be translated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiayn.errors import InputError
from aiayn.inference import beam_search, greedy_search, translate, translate_stream
from tests.inference.conftest import LINES
from tests.inference.models import random_recurrent, random_transformer

QUICK = {"extra_length": 3}


@pytest.fixture(scope="module")
def model():
    return random_transformer(vocab_size=60, seed=2)


@pytest.fixture(scope="module")
def one_by_one(model, tokenizer):
    found = {line: translate([line], model, tokenizer, **QUICK)[0] for line in LINES}
    assert len(set(found.values())) == len(LINES), "all the same: no test of order"
    return found | dict.fromkeys(["", "  ", "\t", "\x00\x07", "\u2028"], "")


@settings(max_examples=8)
@given(data=st.data())
def test_the_order_is_kept_and_empty_lines_stay_empty(
    model, tokenizer, one_by_one, data
):
    lines = data.draw(st.lists(st.sampled_from(list(one_by_one)), max_size=6))
    batch_tokens = data.draw(st.sampled_from([20, 40, 2048]))
    found = translate(lines, model, tokenizer, batch_tokens=batch_tokens, **QUICK)
    assert found == [one_by_one[line] for line in lines]


@pytest.mark.parametrize(
    ("search", "options"),
    [
        (beam_search, {"beam_size": 3, "length_penalty": 1.5, "extra_length": 2}),
        (greedy_search, {"extra_length": 2}),
    ],
)
def test_every_option_reaches_the_search(
    model, tokenizer, monkeypatch, search, options
):
    asked = []

    def spy(model, source, **options):
        asked.append(options)
        return search(model, source, **options)

    monkeypatch.setattr(f"aiayn.inference.translation.{search.__name__}", spy)
    translate(LINES[:1], model, tokenizer, **{"beam_size": 1} | options)
    ends = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    assert asked == [options | ends]


@pytest.mark.parametrize("chunk_lines", [2, 100])
def test_a_stream_gives_the_same(model, tokenizer, one_by_one, chunk_lines):
    lines = [*LINES, "", *LINES[:2]]
    stream = translate_stream(
        iter(lines), model, tokenizer, chunk_lines=chunk_lines, **QUICK
    )
    assert list(stream) == [one_by_one[line] for line in lines]


def test_a_stream_answers_before_it_reads_on(model, tokenizer):
    read = []

    def typed():
        for line in LINES:
            read.append(line)
            yield line

    stream = translate_stream(typed(), model, tokenizer, chunk_lines=2, **QUICK)
    next(stream)
    next(stream)
    assert read == LINES[:2]
    next(stream)
    assert read == LINES[:4]


def test_a_beam_of_one_and_the_recurrent_model(tokenizer):
    model = random_recurrent(vocab_size=60, seed=2)
    greedy = translate(LINES, model, tokenizer, beam_size=1, **QUICK)
    assert greedy != translate(LINES, model, tokenizer, beam_size=4, **QUICK)
    assert len(greedy) == len(LINES)


@pytest.mark.parametrize(
    "text",
    ["💡" * 30, "مرحبا", "日本語 mixed with ⁇", "\x1b[31mred", "\ud800", "a" * 200],
)
def test_any_text_has_an_answer(model, tokenizer, text):
    [found] = translate([text], model, tokenizer, beam_size=1, **QUICK)
    assert "\n" not in found


def test_a_line_that_is_too_long_is_named(model, tokenizer):
    lines = [LINES[0], LINES[1], "a" * 5000]
    with pytest.raises(InputError, match=r"Line 3 has 5,\d+ pieces.* 1,000"):
        translate(lines, model, tokenizer)
    with pytest.raises(InputError, match=r"Line 2 has .* more than the 3"):
        translate(["", *lines], model, tokenizer, max_pieces=3)


@pytest.mark.parametrize("name", ["max_pieces", "batch_tokens"])
@pytest.mark.parametrize("choice", [None, "9", 9.5])
def test_a_choice_must_be_a_whole_number(
    model, tokenizer, name, choice, unchecked_shapes
):
    with pytest.raises(InputError, match=rf"{name} .*whole number.* {choice}"):
        translate(LINES, model, tokenizer, **{name: choice})


def test_a_stream_counts_its_lines_and_keeps_what_it_has_done(model, tokenizer):
    lines = [*LINES[:3], "a" * 5000]
    stream = translate_stream(lines, model, tokenizer, chunk_lines=2, **QUICK)
    assert len([next(stream), next(stream)]) == 2
    with pytest.raises(InputError, match="Line 4 has"):
        next(stream)


def test_a_table_of_positions_that_is_too_short(tokenizer):
    model = random_transformer(vocab_size=60, positions="learned", max_length=20)
    pieces = 19 - len(tokenizer.encode("a"))
    longest = " ".join(["a"] * (pieces + 1))
    assert len(tokenizer.encode(longest)) == 19
    assert len(translate([longest], model, tokenizer)) == 1
    with pytest.raises(InputError, match=r"Line 2 has 20 pieces, more than the 19"):
        translate([longest, longest + " a"], model, tokenizer)


def test_another_tokenizer_is_refused(tokenizer):
    with pytest.raises(InputError, match="has 60 entries and the model 61"):
        translate(LINES, random_transformer(vocab_size=61), tokenizer)


def test_a_text_is_no_list_of_sentences(model, tokenizer):
    with pytest.raises(InputError, match=r"give \[text\]"):
        translate("a dog", model, tokenizer)
    with pytest.raises(InputError, match=r"give \[text\]"):
        next(translate_stream("a dog", model, tokenizer))


def test_a_stream_of_no_lines_at_a_time(model, tokenizer):
    with pytest.raises(InputError, match="chunk_lines"):
        next(translate_stream(LINES, model, tokenizer, chunk_lines=0))
