"""What chapter 24 measures: heads, sinks, and what each difference is worth."""

import pytest
import torch

from aiayn_book.head_scores import score_heads, uniform_baseline
from aiayn_book.published import assemble
from aiayn_book.published_measures import (
    RELATIONS,
    attention_of_rows,
    exchanged,
    head_table,
    left_out,
    mass,
    moved_sink,
    relations,
    sink_share,
)
from tests.book.test_published import small

ROWS = [[1, 5, 6, 5, 7, 2], [1, 8, 9, 8, 5, 3, 2]]
WORDS = {5, 6, 7, 8, 9}


@pytest.fixture(scope="module")
def encoder():
    return assemble(*small())


def test_relations_by_hand():
    found = relations(ROWS[:1], WORDS)
    assert found["previous token"] == [[(2, 1), (3, 2), (4, 3)]]
    assert found["next token"] == [[(1, 2), (2, 3), (3, 4)]]
    assert found["[SEP]"] == [[(1, 5), (2, 5), (3, 5), (4, 5)]]
    assert found["same word"] == [[(1, 3), (3, 1)]]
    assert set(found) == set(RELATIONS)


def test_the_fast_mass_is_that_of_chapter_20(encoder):
    weights = attention_of_rows(encoder, ROWS)
    for gold in relations(ROWS, WORDS).values():
        torch.testing.assert_close(mass(weights, gold), score_heads(weights, gold).mass)


def test_exchanged_pairs_keep_queries_and_keys():
    gold = [[(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]]
    (other,) = exchanged(gold)
    assert [q for q, _ in other] == [1, 2, 3, 4, 5]
    assert sorted(k for _, k in other) == [2, 3, 4, 5, 6]
    assert other != gold[0]


def test_uniform_weights_have_the_uniform_mass():
    weights = [torch.full((2, 3, len(row), len(row)), 1 / len(row)) for row in ROWS]
    for gold in relations(ROWS, WORDS).values():
        expected = uniform_baseline([len(row) for row in ROWS], gold)
        assert mass(weights, gold) == pytest.approx(expected)


def test_a_table_has_a_mass_for_each_head(encoder):
    table = head_table(encoder, ROWS, WORDS)
    assert torch.tensor(table["same word"]["mass"]).shape == (2, 4)
    assert table["same word"]["pairs"] == 4


def test_weights_on_the_sink_are_shares(encoder):
    moved, share = moved_sink(encoder, ROWS), sink_share(encoder, ROWS)
    assert len(moved["in front"]) == len(share["norm"]) == 2
    table = head_table(encoder, ROWS, WORDS)
    for number, row in enumerate(table["[CLS]"]["mass"]):  # mean of queries, of texts
        assert share["weight"][number] == pytest.approx(sum(row) / 4, abs=0.05)
    assert all(0 < value < 1 for values in share.values() for value in values)


def test_nothing_left_out_is_no_error(encoder):
    from aiayn_book.published import embed_rows

    right = embed_rows(encoder, ROWS)[-1]
    table = left_out(encoder, ROWS, right)
    assert table["nothing"]["largest"] == 0
    assert min(one["largest"] for name, one in table.items() if name != "nothing") > 0
