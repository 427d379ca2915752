"""The appendix *Before the paper*: its dates, its forms, its measurements."""

import pytest
import torch

from aiayn_book import claims
from aiayn_book.chapters import before_the_paper as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words

FULL = torch.ones(6, 6, dtype=torch.bool)
LINKS = {
    "Cheng": FULL.tril(),
    "Parikh": FULL,
    "Lin": FULL[:3],
    "Paulus": FULL.tril(),
    "Vaswani": FULL,
}


@pytest.mark.parametrize(
    "drawing",
    [
        chapter.what_each_had(),
        chapter.link_maps(LINKS),
        chapter.questions_and_words(),
        chapter.parameters_drawing(),
    ],
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_the_months_follow_from_the_numbers_of_the_arxiv():
    months = [work.month for work in chapter.WORKS]
    assert months == sorted(months)
    assert (months[0], months[-1]) == ("2014-09", "2017-06")


def test_only_the_last_has_neither_recurrence_nor_convolution_and_writes():
    """What Figure A.1 says."""
    free = [w.name for w in chapter.WORKS if chapter.has(w)[:2] == [False] * 2]
    assert free == ["Memory networks", "Parikh et al.", "Transformer"]
    assert [w.name for w in chapter.WORKS if w.name in free and w.writes] == free[-1:]


def test_links_of_a_form_that_is_known():
    """Each result is the mean of the words before it, and the first has none."""
    mask = torch.ones(6, 6, dtype=torch.float64).tril(-1)
    assert torch.equal(chapter.linked(lambda h: mask @ h), mask.bool())


def test_a_self_attention_output_depends_on_far_words_and_not_on_order():
    found = chapter.reach(words=16, seeds=2)
    assert max(found.beyond["annotation"]) < min(found.beyond["self-attention"]) / 4
    assert found.even == pytest.approx(110 / 256)  # pairs more than five apart
    torch.manual_seed(0)
    assert chapter.largest_change(chapter.fresh_self_attention()) < 1e-12
    assert chapter.largest_change(chapter.fresh_annotations()) > 0.1


def test_equal_words_have_equal_vectors():
    x = chapter.embedded_sentence()
    the = [i for i, word in enumerate(chapter.SENTENCE) if word == "the"]
    assert len(the) == 3
    assert torch.equal(x[the[0]], x[the[2]])
    assert not torch.equal(x[0], x[1])


def test_the_key_s_matrix_can_move_to_the_query():
    """Rounding of float32, on logits of several units."""
    assert chapter.folded_away() < 1e-3


def test_untied_entries_have_keys_of_their_own():
    """Which have the matrix of a whole entry; a tied model has no use for one."""
    shapes = {
        kind: tuple(chapter.train_tie(kind, 4, 0, steps=1)[1][0][2].weight.shape)
        for kind in chapter.TIES
    }
    assert shapes == {"tied": (4, 4), "Bahdanau's": (4, 4), "untied": (4, 24)}


def test_the_first_width_that_is_enough():
    rows = [
        {"key and value": "tied", "width d": d, "seed": s, "share right": share}
        for d, share in ((2, 0.2), (4, 0.5), (6, 0.95), (8, 1.0))
        for s in chapter.SEEDS
    ]
    ties = chapter.Ties(rows)
    assert ties.enough("tied") == 6
    assert ties.shares("tied", 4) == [0.5] * 3


def test_most_parameters_are_no_attention():
    shares = chapter.shares_of_parameters()
    assert sum(shares.values()) == pytest.approx(1)
    # 4 d² an attention and 8 d² a feed-forward, biases aside: 6 × (12 + 16) d².
    assert shares["self-attention"] == pytest.approx(48 / 168, abs=2e-3)
    assert shares["cross-attention"] == pytest.approx(24 / 168, abs=2e-3)


def test_priority_is_reported_by_the_paper_only(monkeypatch):
    """No computation decides who was first, and the record says what was counted."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    chapter.settle_used_before(LINKS)
    chapter.settle_with_recurrence()
    chapter.settle_first()
    found = [
        record
        for one in shown
        for record in records_in_html(one._repr_html_(), "before-the-paper")
    ]
    assert {record.verdict for record in found} == {"reported by the paper only"}
    assert "4 papers from 2016-01 to 2017-05" in found[0].measured
    assert "of the 7 earlier ones" in found[1].measured
    assert "Memory networks, Parikh et al., ConvS2S;" in found[1].measured
    assert found[2].measured.startswith("none among")
