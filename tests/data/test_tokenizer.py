"""The tokenizer: any text in, the same text out, and no file that does harm."""

import io
import math
import re
import subprocess
import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest
import sentencepiece
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aiayn.data import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    encode_lines,
    normalise,
)
from aiayn.data.vocabulary import random_sample
from aiayn.errors import InputError

LINES = [
    "The cat sleeps under the old table.",
    "Die Katze schläft unter dem alten Tisch.",
    "The old cats sleep; the dog reads a book.",
    "Der Hund liest ein Buch, die alten Katzen schlafen.",
] * 5


@pytest.fixture(scope="module")
def tokenizer():
    """A small vocabulary of characters and merges."""
    return Tokenizer.train(LINES, 70)


@pytest.fixture(scope="module")
def with_bytes():
    """A vocabulary to which no text is unknown."""
    return Tokenizer.train(LINES, 320, byte_fallback=True)


def test_the_special_tokens_stand_first(tokenizer):
    assert (PAD_ID, BOS_ID, EOS_ID, UNK_ID) == (0, 1, 2, 3)
    assert tokenizer.pieces(range(4)) == ["<pad>", "<s>", "</s>", "<unk>"]
    assert (tokenizer.pad_id, tokenizer.bos_id) == (PAD_ID, BOS_ID)
    assert (tokenizer.eos_id, tokenizer.unk_id) == (EOS_ID, UNK_ID)
    assert tokenizer.vocab_size == 70


def test_one_text_is_no_list_of_sentences(tokenizer):
    """It is an iterable of characters, and each would be a sentence."""
    for use in (
        lambda: Tokenizer.train("The old dog sleeps. " * 50, vocab_size=20),
        lambda: tokenizer.encode_batch("ab"),
        lambda: encode_lines("ab", tokenizer),
    ):
        with pytest.raises(InputError, match=r"give \[text\]"):
            use()


def test_byte_pair_encoding_by_hand():
    # Of the neighbours in ▁ab ▁cab ▁b, only a and b meet twice in a line. There is
    # room for four special tokens, four characters and this one merge.
    tokenizer = Tokenizer.train(["ab cab b"] * 4, 9)
    assert tokenizer.pieces([4]) == ["ab"]
    assert set(tokenizer.pieces(range(5, 9))) == {"a", "b", "c", "▁"}
    pieces = tokenizer.pieces(tokenizer.encode("cab a b"))
    assert pieces == ["▁", "c", "ab", "▁", "a", "▁", "b"]


def test_known_text_comes_back(tokenizer):
    for line in LINES:
        assert tokenizer.decode(tokenizer.encode(line)) == line
    assert tokenizer.decode_batch(tokenizer.encode_batch(LINES)) == LINES


def test_encoding_adds_no_special_token(tokenizer):
    assert set(tokenizer.encode("The cat <pad> <s> </s> sleeps")).isdisjoint({0, 1, 2})


def test_special_tokens_are_not_written(tokenizer):
    ids = tokenizer.encode("The cat")
    assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, PAD_ID]) == "The cat"
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode_batch([[], ids]) == ["", "The cat"]


def test_ids_may_be_those_of_a_tensor(tokenizer, unchecked_shapes):
    ids = tokenizer.encode("The cat")
    for row in (torch.tensor(ids), np.array(ids, dtype=np.int32)):
        assert tokenizer.decode(row) == "The cat"
        assert tokenizer.decode_batch([row, row]) == ["The cat"] * 2
        assert tokenizer.pieces(row) == tokenizer.pieces(ids)


def test_unknown_characters_become_the_unknown_token(tokenizer):
    ids = tokenizer.encode("The 🙂 cat")
    assert ids.count(UNK_ID) == 1
    assert tokenizer.decode(ids) == "The ⁇ cat"


@settings(max_examples=200)
@given(st.text(st.characters()))
@example("")
@example(" \t\n")
@example("a\0b\x07c\x1b[31m")
@example("family 👩‍👩‍👧 flags 🇩🇪 skin 👍🏽")
@example("שלום עולם مرحبا \u202eevil\u202c")
@example("▁ ▁a ▅ ⁇ <unk> <0x41> </s>")
@example("m² ½ … ﬁ ａ \u00ad \ufeff \u200b")
@example("u\u0308ber A\u030angstrom \u1112\u1161\u11ab")
@example("lone \ud800 surrogate")
@example("a\u2028b\u0085c\xa0d\u3000e")
@example("漢字かな交じり文")
def test_any_text_comes_back_normalised(with_bytes, text):
    ids = with_bytes.encode(text)
    assert UNK_ID not in ids
    assert with_bytes.decode(ids) == normalise(text)
    assert with_bytes.encode_batch([text]) == [ids]


def test_composed_and_decomposed_letters_are_one(tokenizer):
    assert normalise("scha\u0308ft") == "sch\u00e4ft"
    assert tokenizer.encode("schla\u0308ft") == tokenizer.encode("schl\u00e4ft")


def test_lines_with_the_names_of_special_tokens_come_back_whole():
    """Texts whose rare words were replaced by <unk>, as in PTB and WikiText."""
    lines = ["the <unk> eats", "<s> a jumping dog </s>", "<pad><unk>", "< unk > <unk"]
    tokenizer = Tokenizer.train([f"{line} ." for line in lines for _ in range(5)], 45)
    for line in lines:
        ids = tokenizer.encode(line)
        assert set(ids).isdisjoint(range(4))
        assert tokenizer.decode(ids) == line


def test_a_line_with_the_trainers_own_mark_is_learned_from():
    tokenizer = Tokenizer.train([*LINES, "▅ ξ"], 70)
    assert UNK_ID not in tokenizer.encode("ξ")
    assert UNK_ID in tokenizer.encode("▅")


@settings(max_examples=100)
@given(st.text(st.characters()))
def test_normalisation_does_what_it_says_and_no_more(text):
    once = normalise(text)
    assert normalise(once) == once
    assert "\n" not in once
    assert "  " not in once
    assert once == once.strip()
    once.encode("utf-8")
    printable = [c for c in once if c != " "]
    replaced = re.sub("[\ud800-\udfff]", "\ufffd", text)
    kept = re.sub(
        r"[\s\x00-\x1f\x7f-\x9f▁]", "", unicodedata.normalize("NFC", replaced)
    )
    assert "".join(printable) == kept


@settings(max_examples=100)
@given(st.lists(st.integers(0, 319)))
def test_any_ids_give_one_line_of_text(with_bytes, ids):
    text = with_bytes.decode(ids)
    assert "\n" not in text
    assert text == normalise(text)


def test_a_line_of_a_megabyte(with_bytes):
    text = "The cat sleeps under " * 50_000 + "x" * 100_000
    assert with_bytes.decode(with_bytes.encode(text)) == text


def test_the_same_lines_give_the_same_vocabulary(tokenizer):
    again = Tokenizer.train(iter(LINES), 70)
    assert again.digest == tokenizer.digest
    assert Tokenizer.train(LINES[1:], 70).digest != tokenizer.digest


def test_a_sample_is_drawn_by_its_seed():
    lines = [f"{chr(97 + i % 26) * 3} {i}" for i in range(500)]
    first, again, other = (
        Tokenizer.train(lines, 45, max_lines=100, seed=seed) for seed in (1, 1, 2)
    )
    assert first.digest == again.digest
    assert first.digest != other.digest
    # With room for all, the seed is of no account.
    assert (
        Tokenizer.train(lines, 45, max_lines=500, seed=1).digest
        == Tokenizer.train(lines, 45, max_lines=500, seed=2).digest
    )


def test_every_line_has_the_same_chance_of_being_in_the_sample():
    """Two of five: 800 of 2,000 samples, within five standard errors."""
    drawn = Counter(
        line for seed in range(2000) for line in random_sample("abcde", 2, seed)
    )
    error = math.sqrt(2000 * 0.4 * 0.6)
    assert all(abs(drawn[line] - 800) < 5 * error for line in "abcde")


def test_the_largest_and_the_smallest_vocabulary_are_named():
    with pytest.raises(InputError, match=r"too large .* largest possible is") as caught:
        Tokenizer.train(LINES, 5000)
    largest = int(re.search(r"is (\d+)\.$", str(caught.value))[1])
    assert Tokenizer.train(LINES, largest).vocab_size == largest
    with pytest.raises(InputError, match=r"too small .* at least") as caught:
        Tokenizer.train(LINES, 10)
    smallest = int(re.search(r"least (\d+)\.$", str(caught.value))[1])
    assert Tokenizer.train(LINES, smallest).vocab_size == smallest


@pytest.mark.parametrize("vocab_size", [-1, 0, 2**31, 2**70])
def test_impossible_sizes_are_refused(vocab_size):
    with pytest.raises(InputError):
        Tokenizer.train(LINES, vocab_size)


@pytest.mark.parametrize("lines", [[], ["", " \t"], ["\0"]])
def test_training_needs_text(lines):
    with pytest.raises(InputError, match="needs text"):
        Tokenizer.train(lines, 70)
    with pytest.raises(InputError, match="cannot learn a vocabulary"):
        Tokenizer.train(["x" * 70_000], 70)


def test_training_is_silent(capfd):
    Tokenizer.train(LINES, 70)
    with pytest.raises(InputError):
        Tokenizer.train(LINES, 5000)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("outside", [-1, 70, 2**40])
def test_ids_outside_the_vocabulary_are_named(tokenizer, outside):
    for use in (tokenizer.decode, tokenizer.pieces):
        with pytest.raises(InputError, match=f"id {outside} is not in .* of 70"):
            use([5, outside])


def test_a_saved_tokenizer_does_the_same(tokenizer, tmp_path):
    path = tmp_path / "run" / "tokenizer.model"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.digest == tokenizer.digest
    assert loaded.encode_batch(LINES) == tokenizer.encode_batch(LINES)
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_file_or_a_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no tokenizer .*nowhere"):
        Tokenizer.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"^\S+ cannot be read: Is a directory"):
        Tokenizer.load(tmp_path)


def foreign(**options):
    """A sentencepiece model that somebody else has trained."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 5),
        model_writer=model,
        vocab_size=70,
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return model.getvalue()


def with_other_bytes(tokenizer, old, new):
    """A file in which one piece was written over; both are equally long."""
    assert len(old) == len(new)
    assert old in tokenizer._model
    return tokenizer._model.replace(old, new, 1)


# Each with the reason that is given.
HOSTILE = {
    "empty file": (lambda _: b"", "damaged or no sentencepiece model"),
    "text": (lambda _: b"This is no tokenizer.", "damaged or no sentencepiece model"),
    "zeros": (lambda _: bytes(500), "damaged or no sentencepiece model"),
    "cut short": (lambda t: t._model[:-1], "damaged or no sentencepiece model"),
    "half": (lambda t: t._model[: len(t._model) // 2], "damaged or no sentencepiece"),
    "a number without end": (lambda _: b"\xff" * 20, "damaged or no sentencepiece"),
    "a length beyond the file": (lambda _: b"\x0a\xff\xff\xff\x7f", "damaged or no"),
    "no unknown token": (
        lambda t: with_other_bytes(t, b"<unk>\x15\x00\x00\x00\x00\x18\x02", b"x" * 12),
        "damaged or no sentencepiece model",
    ),
    "piece that is not UTF-8": (
        lambda t: with_other_bytes(t, "▁".encode(), b"\xff\xff\xff"),
        "can't decode byte 0xff",
    ),
    "another trainer's": (
        lambda _: foreign(model_type="bpe"),
        r"of another kind: .* are \[-1, 1, 2, 0\]",
    ),
    "other order": (
        lambda _: foreign(pad_id=1, bos_id=0, eos_id=2, unk_id=3),
        r"of another kind: .* are \[1, 0, 2, 3\]",
    ),
}


@pytest.mark.parametrize(("make", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_or_broken_file_gets_a_sentence(tokenizer, tmp_path, make, reason):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(make(tokenizer))
    with pytest.raises(
        InputError, match=rf"tokenizer\.model cannot be used: .*{reason}"
    ):
        Tokenizer.load(path)


def test_an_enormous_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("aiayn.data.tokenizer.MAX_MODEL_BYTES", 1000)
    path = tmp_path / "tokenizer.model"
    path.write_bytes(bytes(5000))
    with pytest.raises(InputError, match="larger than 1,000 bytes"):
        Tokenizer.load(path)


@settings(max_examples=300)
@given(st.data())
def test_changed_bytes_give_a_sentence_or_a_tokenizer(with_bytes, data):
    content = bytearray(with_bytes._model)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    try:
        tokenizer = Tokenizer(bytes(content))
    except InputError:
        return
    # Whatever the pieces are now, they can be used without harm.
    ids = tokenizer.encode("The cat 🙂 schläft")
    assert all(0 <= i < tokenizer.vocab_size for i in ids)
    assert isinstance(tokenizer.decode(range(tokenizer.vocab_size)), str)


def test_importing_data_does_not_load_sentencepiece():
    code = "import sys, aiayn.data; print('sentencepiece' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
