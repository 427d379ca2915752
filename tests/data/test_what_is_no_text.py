"""What people hand over as text: columns, generators, missing cells, lists of words.

A column is as good as a list; what is no text is named by its line.
"""

import io

import numpy as np
import pandas as pd
import pytest

from aiayn import Tokenizer, evaluate_bleu, translate
from aiayn.data import (
    EncodedPairs,
    ParallelText,
    encode_lines,
    encode_pairs,
    normalise,
)
from aiayn.errors import InputError
from aiayn.inference import cross_attention_map, exact_match_rate, translate_stream
from aiayn.parsing import parse
from tests.inference.models import random_transformer

pytestmark = pytest.mark.usefixtures("unchecked_shapes")

LINES = [
    "the dog sleeps here now",
    "a cat runs over the moon",
    "a bird sings to us all",
]
TOKENIZER = Tokenizer.train(LINES, 30)
MODEL = random_transformer(vocab_size=30, seed=2).float()
QUICK = {"beam_size": 1, "extra_length": 2}

CALLS = {
    "Tokenizer.train": lambda lines, _: Tokenizer.train(lines, 30).digest,
    "Tokenizer.encode_batch": lambda lines, _: TOKENIZER.encode_batch(lines),
    "encode_lines": lambda lines, _: encode_lines(lines, TOKENIZER).tokens.tolist(),
    "translate": lambda lines, _: translate(lines, MODEL, TOKENIZER, **QUICK),
    "translate_stream": lambda lines, _: list(
        translate_stream(lines, MODEL, TOKENIZER, chunk_lines=1, **QUICK)
    ),
    "parse": lambda lines, _: parse(lines, MODEL, TOKENIZER, **QUICK),
    "hypotheses": lambda lines, _: evaluate_bleu(lines, LINES),
    "references": lambda lines, _: evaluate_bleu(LINES, lines),
    "exact_match_rate": lambda lines, _: exact_match_rate(LINES, lines),
    "source": lambda lines, _: list(ParallelText(lines, LINES)),
    "target": lambda lines, _: list(ParallelText(LINES, lines)),
}
GOOD = {
    "a tuple": lambda: tuple(LINES),
    "a generator": lambda: (line for line in LINES),
    "a column": lambda: pd.Series(LINES),
    "a column whose rows are numbered otherwise": lambda: pd.Series(LINES, [7, 8, 1]),
    "a column of categories": lambda: pd.Series(LINES, dtype="category"),
    "a column of strings": lambda: pd.Series(LINES, dtype="string"),
    "an array": lambda: np.array(LINES),
    "an array of objects": lambda: np.array(LINES, dtype=object),
    "the keys of a dictionary": lambda: dict.fromkeys(LINES).keys(),
}
WANTED = " and no text: give one string a line, not a list of its words, and leave out"
BAD = {
    "None": (None, "None"),
    "NaN": (float("nan"), "nan"),
    "NumPy's NaN": (np.float64("nan"), "nan"),
    "pandas' NA": (pd.NA, "something of the type NAType"),
    "a number": (7, "7"),
    "bytes": (b"a dog", "something of the type bytes"),
    "words": (["a", "dog"], "something of the type list"),
    "an array of words": (np.array(["a", "dog"]), "something of the type ndarray"),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize("made", GOOD.values(), ids=GOOD)
def test_whatever_gives_one_text_after_the_other_is_as_good_as_a_list(
    call, made, tmp_path
):
    assert call(made(), tmp_path) == call(LINES, tmp_path)


@every_call
@pytest.mark.parametrize(("value", "named"), BAD.values(), ids=BAD)
def test_what_is_no_text_is_named_by_its_line(call, value, named, tmp_path):
    with pytest.raises(InputError, match=f"{named}.*{WANTED}") as caught:
        call([LINES[0], value, LINES[2]], tmp_path)
    assert "Line 2 of " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@every_call
@pytest.mark.parametrize(
    "lines",
    [
        LINES[0],
        None,
        7,
        b"a dog",
        pd.DataFrame({"en": LINES}),
        np.array([LINES]),
        dict.fromkeys(LINES, "x"),
        set(LINES),
    ],
    ids=lambda lines: type(lines).__name__,
)
def test_what_are_no_lines_is_refused_as_a_whole(call, lines, tmp_path):
    """A string would give letters, a table its headings, a set any order."""
    with pytest.raises(InputError, match="must be a list of sentences"):
        call(lines, tmp_path)


def test_a_table_read_by_pandas_is_named_by_its_line_and_side():
    table = pd.read_csv(io.StringIO("en,de\na dog,ein Hund\n,eine Katze\n"))
    with pytest.raises(InputError, match="Line 2 of source is nan"):
        encode_pairs(ParallelText(table["en"], table["de"]), TOKENIZER)
    whole = table.dropna()
    pairs, _ = encode_pairs(ParallelText(whole["en"], whole["de"]), TOKENIZER)
    assert isinstance(pairs, EncodedPairs)
    assert len(pairs) == 1


@pytest.mark.parametrize("text", [None, float("nan"), 7, b"a", ["a", "dog"]], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        normalise,
        TOKENIZER.encode,
        lambda text: cross_attention_map(text, MODEL, TOKENIZER),
        lambda text: translate([text], MODEL, TOKENIZER, first_line=5),
    ],
    ids=["normalise", "encode", "cross_attention_map", "translate"],
)
def test_one_text_must_be_a_text(call, text):
    with pytest.raises(InputError, match="and no text"):
        call(text)


def test_a_line_of_a_stream_keeps_its_number():
    with pytest.raises(InputError, match="Line 1002 of lines is None"):
        list(translate_stream(["a"] * 1001 + [None], MODEL, TOKENIZER, **QUICK))


# Not ▅, by which sentencepiece marks what it does not know: no piece can hold it.
NAMES = (
    "<unk>",
    "<s>",
    "</s>",
    "<pad>",
    "⁇",
    "<0x41>",
    "<UNK>",
    "<mask>",
    "▁",
    "<<s>>",
)


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_training_line_comes_back_whole(name, byte_fallback):
    """Even if it holds the name of a special token, as many prepared corpora do."""
    forms = ("the {} q", "{}", "x{}y", "{0} {0}", "{0}{0}k", "z {} j.", "k{0}")
    lines = [*LINES, *(form.format(name) for form in forms)]
    size = 310 if byte_fallback else 50
    tokenizer = Tokenizer.train(lines, size, byte_fallback=byte_fallback)
    for line in lines:
        ids = tokenizer.encode(line)
        assert tokenizer.decode(ids) == normalise(line)
        assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & {*ids}
        assert tokenizer.unk_id not in ids
