"""Batches for decoding: every sentence once, none too many at a time."""

from itertools import pairwise

import pytest

from benchmarks.workload import SENTENCES_PER_BATCH, TOKENS_PER_BATCH, cut

ROWS = [[3 + i % 7] * (1 + i * 37 % 90) + [2] for i in range(200)]


@pytest.mark.parametrize("name", ["batches", "mixed", "file"])
def test_every_sentence_comes_once(name):
    found = [row for batch in cut(name, ROWS) for row in batch]
    assert sorted(found) == sorted(ROWS)


def test_sentences_of_like_length_stand_together_or_stay_in_order():
    assert [row for batch in cut("mixed", ROWS) for row in batch] == ROWS
    for name in ("batches", "file"):
        lengths = [len(row) for batch in cut(name, ROWS) for row in batch]
        assert lengths == sorted(lengths, reverse=True)


def test_batches_are_as_full_as_they_may_be():
    for name in ("batches", "mixed"):
        sizes = [len(batch) for batch in cut(name, ROWS)]
        assert set(sizes[:-1]) == {SENTENCES_PER_BATCH}
    batches = cut("file", ROWS)
    for batch, _ in pairwise(batches):
        assert len(batch) * len(batch[0]) <= TOKENS_PER_BATCH
        assert (len(batch) + 1) * len(batch[0]) > TOKENS_PER_BATCH
