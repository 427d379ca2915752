"""The appendix *Packing*: its repairs, its padding and its runs."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from aiayn.data import pack_pairs
from aiayn_book.chapters import packing as chapter
from aiayn_book.chapters.data_and_batching import first_pairs, pairs
from tests.book.chapters.drawings import check_words, texts


@pytest.mark.parametrize(
    "drawing", [*chapter.rows_of_one_and_packed(), chapter.three_repairs()]
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_the_first_figure_keeps_every_token():
    """Figure D.1: 36 slots become 24, and none of the 24 is padding."""
    labels = [texts(one)[-1][3] for one in chapter.rows_of_one_and_packed()]
    assert sum(chapter.LENGTHS) == 24
    assert labels == ["36 slots, 12 padding", "24 slots, 0 padding"]
    ends = [
        sum(words == "⟨e⟩" for *_, words in texts(one))
        for one in chapter.rows_of_one_and_packed()
    ]
    assert ends == [6, 6]


def test_the_mask_has_a_triangle_for_each_sentence():
    batch, words = chapter.three_in_a_row()
    starts = [i for i, word in enumerate(words) if word == "⟨start⟩"]
    assert len(starts) == 3
    mask = batch.target_mask[0, 0]
    blocks = [
        torch.ones(end - begin, end - begin).tril()
        for begin, end in zip(starts, [*starts[1:], len(words)], strict=True)
    ]
    assert torch.equal(mask.float(), torch.block_diag(*blocks))
    assert [int(p) for p in batch.target_positions[0][starts]] == [0, 0, 0]


def test_with_all_repairs_the_loss_is_that_of_single_rows():
    torch.manual_seed(0)
    small = chapter.TransformerConfig.tiny(
        vocab_size=800, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0
    )
    model = chapter.Transformer(small).eval().double()
    few = first_pairs(24)
    packed = pack_pairs(few, row_length=64)
    alone = chapter.loss_of(model, few)
    assert chapter.loss_of(model, packed, **chapter.REPAIRS["all three"]) == (
        pytest.approx(alone, rel=1e-12)
    )
    for name, switches in chapter.REPAIRS.items():
        if name != "all three":
            loss = chapter.loss_of(model, packed, **switches)
            assert abs(loss - alone) > 1e-6, name


def test_each_packed_row_holds_what_it_may():
    found = chapter.ways_to_fill()
    assert found["a pair a row"].rows == len(pairs())
    rows = [kept.rows for kept in found.values()]
    assert rows == sorted(rows, reverse=True)
    scores = [kept.scores for kept in found.values()]
    assert scores == sorted(scores)
    for name in ("rows of 32", "rows of 64", "rows of 128"):
        assert found[name].scores <= int(name.split()[-1])


def test_padding_grows_with_the_batch_and_packed_rows_have_less():
    found = chapter.ways_to_fill()
    for kept in found.values():
        shares = list(kept.padding.values())
        assert shares == sorted(shares)
    for budget in chapter.BUDGETS:
        packed = found["rows of 64"].padding[budget]
        assert packed < found["a pair a row"].padding[budget] / 2


def test_eight_parts_a_step_mix_lengths_and_keep_every_pair():
    """Sorted batches hold one length; a step of eight parts holds several."""
    plan = [np.arange(16) + 16 * batch for batch in range(24)]
    mixed = chapter.eight_a_step(plan, seed=0)
    assert len(mixed) == len(plan)
    assert sorted(np.concatenate(mixed)) == list(range(16 * 24))
    assert all(len({row // 16 for row in step}) > 4 for step in mixed)


def test_recorded_runs():
    """What Figure D.7 and the text below it say."""
    found = chapter.recorded()
    assert (found.means["packed"] < found.means["sorted"]).all()
    assert found.reached < chapter.LAST
    ahead, checks = found.ahead
    assert checks / 2 < ahead <= checks
    assert found.steps == {"sorted": 11_000, "packed": 10_000}
    assert found.tokens["packed"] < 1.05 * found.tokens["sorted"]
    assert min(found.ends["sorted"]) < max(found.ends["packed"])
    assert min(found.ends["packed"]) < max(found.ends["sorted"])


def test_when_the_packed_runs_arrive():
    """Halfway between two checks, if the goal lies halfway between their losses."""
    rows = [
        {"rows": way, "seed": 1, "step": step, "nats": nats}
        for way, losses in (("sorted", (3.0, 2.0)), ("packed", (2.5, 1.5)))
        for step, nats in zip((4000, chapter.LAST), losses, strict=True)
    ]
    found = chapter.Recorded(pd.DataFrame(rows), {}, {}, {})
    assert found.reached == pytest.approx(4500)
    assert found.ahead == (2, 2)


def test_the_mask_stays_inside_its_drawing():
    """Cells end before the right edge."""
    markup = chapter.mask_drawing().markup
    cells = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', markup)
    assert max(float(x) + float(width) for x, width in cells) <= 358
