"""Batches: every sentence once, none too many at a time."""

from itertools import pairwise

import pytest

from benchmarks.workload import (
    GPU_VOCABULARY,
    SENTENCES_PER_BATCH,
    TOKENS_PER_BATCH,
    cut,
    drawn_batches,
)

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


def test_drawn_batches_are_padded_rows_of_a_like_mean_length():
    """Sorted by length they hold four times as many tokens in as many places."""
    padding, lengths = {}, {}
    for kind in ("sorted", "unsorted", "packed"):
        batches = drawn_batches(kind, 3000, 12)
        assert len(batches.timed) == 12
        for source, target in batches.warm_up + batches.timed:
            assert len(source) == len(target)
            for side in (source, target):
                assert side.numel() <= 3000
                assert (side[:, 0] != 0).all()  # no sentence is empty
                assert side.max() < GPU_VOCABULARY
        rows = sum(len(source) for source, _ in batches.timed)
        lengths[kind] = batches.target_tokens / rows
        padding[kind] = batches.padding_share
    assert padding["packed"] < padding["sorted"] < 0.2 < 0.6 < padding["unsorted"]
    # e^(3.1 + 0.6²/2) = 26.6; the standard error of 300 lengths is 1.
    assert 22 < lengths["unsorted"] < 32
