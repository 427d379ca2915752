"""§3, §6.2: sizes. Table 3's column of parameters, and the closed form behind it."""

import dataclasses

import numpy as np
import pytest
import torch

from aiayn.errors import InputError
from aiayn.model import TABLE_3_ROWS, Transformer, TransformerConfig
from aiayn.model.validation import head_widths
from aiayn.training import TrainingConfig
from aiayn_book.recurrent import RecurrentConfig

# Table 3, last column, in millions, as printed. The other rows print nothing.
PRINTED = {
    "base": 65,
    "B d_k=16": 58,
    "B d_k=32": 60,
    "C N=2": 36,
    "C N=4": 50,
    "C N=8": 80,
    "C d_model=256": 28,
    "C d_model=1024": 168,
    "C d_ff=1024": 53,
    "C d_ff=4096": 90,
    "big": 213,
}


def count(config):
    """Parameters of a model that takes no memory."""
    with torch.device("meta"):
        model = Transformer(config)
    return sum(parameter.numel() for parameter in model.parameters())


def closed_form(config):
    """The same from the sizes alone."""
    d, h = config.d_model, config.num_heads
    d_k = config.d_k or d // h
    d_v = config.d_v or d // h
    attention = 2 * d * h * d_k + 2 * d * h * d_v
    feed_forward = 2 * d * config.d_ff + config.d_ff + d
    norm = 2 * d
    embeddings = (1 if config.tie_embeddings else 3) * config.vocab_size * d
    positions = 2 * config.max_length * d if config.positions == "learned" else 0
    final_norms = 2 * norm if config.norm == "pre" else 0
    return (
        config.num_encoder_layers * (attention + feed_forward + 2 * norm)
        + config.num_decoder_layers * (2 * attention + feed_forward + 3 * norm)
        + embeddings
        + positions
        + final_norms
    )


CONFIGS = {
    **{row: TransformerConfig.table3(row) for row in TABLE_3_ROWS},
    "tiny": TransformerConfig.tiny(),
    "pre-norm": TransformerConfig.tiny(norm="pre"),
    "rotary": TransformerConfig.tiny(positions="rotary"),
    "untied": TransformerConfig.tiny(tie_embeddings=False),
    "d_v alone": TransformerConfig.tiny(d_v=7),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_count_is_the_closed_form(config):
    assert count(config) == closed_form(config)


@pytest.mark.parametrize("row", [row for row in PRINTED if row != "big"])
def test_one_vocabulary_meets_the_papers_column(row):
    """It is not the 'about 37000' of §5.1, with which no row but big comes out."""
    assert (
        round(count(TransformerConfig.table3(row, vocab_size=41_100)) / 1e6)
        == (PRINTED[row])
    )
    assert round(count(TransformerConfig.table3(row)) / 1e6) != PRINTED[row]


def test_the_big_row_needs_another_vocabulary():
    def millions(vocab_size):
        return round(count(TransformerConfig.big(vocab_size=vocab_size)) / 1e6)

    assert millions(35_400) == millions(36_200) == PRINTED["big"]
    assert millions(37_000) == PRINTED["big"] + 1
    assert millions(41_100) == PRINTED["big"] + 5


def test_heads_cost_nothing():
    rows = [row for row in TABLE_3_ROWS if row.startswith("A ")]
    assert len(rows) == 4
    assert {count(TransformerConfig.table3(row)) for row in rows} == {
        count(TransformerConfig.base())
    }


def test_the_defaults_are_the_papers():
    base = TransformerConfig.base()
    assert base == TransformerConfig() == TransformerConfig.table3("base")
    assert TransformerConfig.big() == TransformerConfig.table3("big")
    assert (base.norm, base.positions) == ("post", "sinusoidal")
    assert base.tie_embeddings
    assert set(TABLE_3_ROWS) == set(SIZES)


# Table 3 as printed: (N, d_model, d_ff, h, d_k, d_v, P_drop), 'as in base' filled in.
SIZES = {
    "base": (6, 512, 2048, 8, 64, 64, 0.1),
    "A h=1": (6, 512, 2048, 1, 512, 512, 0.1),
    "A h=4": (6, 512, 2048, 4, 128, 128, 0.1),
    "A h=16": (6, 512, 2048, 16, 32, 32, 0.1),
    "A h=32": (6, 512, 2048, 32, 16, 16, 0.1),
    "B d_k=16": (6, 512, 2048, 8, 16, 64, 0.1),
    "B d_k=32": (6, 512, 2048, 8, 32, 64, 0.1),
    "C N=2": (2, 512, 2048, 8, 64, 64, 0.1),
    "C N=4": (4, 512, 2048, 8, 64, 64, 0.1),
    "C N=8": (8, 512, 2048, 8, 64, 64, 0.1),
    "C d_model=256": (6, 256, 2048, 8, 32, 32, 0.1),
    "C d_model=1024": (6, 1024, 2048, 8, 128, 128, 0.1),
    "C d_ff=1024": (6, 512, 1024, 8, 64, 64, 0.1),
    "C d_ff=4096": (6, 512, 4096, 8, 64, 64, 0.1),
    "D dropout=0.0": (6, 512, 2048, 8, 64, 64, 0.0),
    "D dropout=0.2": (6, 512, 2048, 8, 64, 64, 0.2),
    "D label_smoothing=0.0": (6, 512, 2048, 8, 64, 64, 0.1),
    "D label_smoothing=0.2": (6, 512, 2048, 8, 64, 64, 0.1),
    "E learned positions": (6, 512, 2048, 8, 64, 64, 0.1),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3),
}


@pytest.mark.parametrize("row", SIZES)
def test_a_row_has_the_printed_sizes(row):
    config = TransformerConfig.table3(row)
    widths = head_widths(config.d_model, config.num_heads, config.d_k, config.d_v)
    sizes = (config.d_model, config.d_ff, config.num_heads, *widths, config.dropout)
    assert (config.num_encoder_layers, *sizes) == SIZES[row]
    assert (config.num_decoder_layers, *sizes) == SIZES[row]
    assert (config.positions == "learned") == (row == "E learned positions")


def test_a_preset_takes_changes_and_stays_frozen():
    config = TransformerConfig.table3("A h=4", d_model=64, dropout=0.0)
    assert (config.num_heads, config.d_model, config.dropout) == (4, 64, 0.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 128


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocab_size": 0}, "vocab_size must be a whole number, at least 1, not 0."),
        ({"d_model": 2.5}, "d_model must be a whole number, at least 1, not 2.5."),
        ({"d_model": True}, "d_model must be a whole number, at least 1, not True."),
        ({"d_ff": -1}, "d_ff must be a whole number, at least 1, not -1."),
        ({"num_heads": 0}, "num_heads must be a whole number, at least 1, not 0."),
        ({"d_k": 0}, "d_k must be a whole number, at least 1, not 0."),
        ({"d_v": -4}, "d_v must be a whole number, at least 1, not -4."),
        ({"max_length": 0}, "max_length must be a whole number, at least 1, not 0."),
        (
            {"num_decoder_layers": -1},
            "num_decoder_layers must be a whole number, at least 0, not -1.",
        ),
        ({"dropout": 1.0}, "dropout is a probability in [0, 1), not 1.0."),
        (
            {"attention_dropout": float("nan")},
            "attention_dropout is a probability in [0, 1), not nan.",
        ),
        ({"norm": "middle"}, "norm must be 'post' or 'pre', not 'middle'."),
        (
            {"positions": "none"},
            "positions must be 'sinusoidal' or 'learned' or 'rotary', not 'none'.",
        ),
        (
            {"num_heads": 3, "d_k": 8},
            "d_model = 512 is not divisible by num_heads = 3: change one of them, or "
            "give d_k and d_v.",
        ),
        ({"pad_id": 37_000}, "pad_id = 37000 is no token: vocab_size = 37000 allows"),
        ({"pad_id": 0.5}, "pad_id must be a whole number, at least 0, not 0.5."),
        ({"pad_id": "0"}, "pad_id must be a whole number, at least 0, not '0'."),
        ({"tie_embeddings": "no"}, "tie_embeddings must be True or False, not 'no'."),
        ({"pad_id": -1}, "pad_id must be a whole number, at least 0, not -1."),
    ],
)
def test_a_bad_size_gets_a_sentence(changes, sentence, unchecked_shapes):
    with pytest.raises(InputError) as caught:
        TransformerConfig(**changes)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (TransformerConfig, {"d_model": 16, "num_heads": 4, "d_k": 2, "pad_id": 3}),
        (RecurrentConfig, {"vocab_size": 30, "d_model": 8}),
        (TrainingConfig, {"steps": 5, "seed": 2, "corpus_size": 100}),
    ],
)
def test_numpy_s_numbers_are_as_good_as_python_s(kind, sizes, unchecked_shapes):
    """And kept as Python's: JSON holds no other."""
    config = kind(**{name: np.int64(size) for name, size in sizes.items()})
    assert config == kind(**sizes)
    assert {type(getattr(config, name)) for name in sizes} == {int}
    tied = TransformerConfig(tie_embeddings=np.False_)
    assert tied.tie_embeddings is False
    clipped = TrainingConfig(clip_norm=np.float32(1))
    assert type(clipped.clip_norm) is float
    widths = head_widths(np.int64(16), np.int64(4), d_v=np.int64(3))
    assert [(type(width), width) for width in widths] == [(int, 4), (int, 3)]


def test_an_unknown_row_gets_the_list_of_rows():
    with pytest.raises(
        InputError, match=r"no row 'F'; its rows are base, A h=1, .*big"
    ):
        TransformerConfig.table3("F")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"d_model": 0}, "d_model must be a whole number, at least 1, not 0."),
        ({"dropout": -0.1}, "dropout is a probability in [0, 1), not -0.1."),
        ({"pad_id": 1000}, "pad_id = 1000 is no token"),
    ],
)
def test_a_bad_recurrent_size_gets_a_sentence(changes, sentence):
    with pytest.raises(InputError) as caught:
        RecurrentConfig(**changes)
    assert str(caught.value).startswith(sentence)
