"""Batches: every sentence once, none too many at a time."""

import json
from itertools import pairwise

import pytest

from benchmarks.driver import RECORDS
from benchmarks.workload import (
    GPU_VOCABULARY,
    SENTENCES_PER_BATCH,
    TOKENS_PER_BATCH,
    cut,
    drawn_batches,
    grown,
    kept_bytes,
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
    """Sorted by length they hold more than twice as many tokens in as many places."""
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


def test_of_two_processes_each_has_all_parameters_and_half_of_the_rows():
    """By hand: four numbers a parameter stay, what is kept of the rows is halved."""
    config, batch = grown("processes", 2, seed=1)
    nothing = tuple(side[:0] for side in batch)
    parameters = kept_bytes(config, nothing)
    rows = kept_bytes(config, batch) - parameters
    assert kept_bytes(config, batch, processes=2) == parameters + rows / 2
    # 8,000 rows of the embedding, three layers of a kind and their products, no norms.
    encoder, decoder = 4 * 256**2 + 2 * 256 * 1024, 8 * 256**2 + 2 * 256 * 1024
    assert parameters == 4 * 4 * (8000 * 256 + 3 * (encoder + decoder))


def test_the_records_predictions_are_those_of_today():
    """They are no measurements: what predicts them may be mended, and they with it."""
    path = RECORDS / "growth.json"
    for m in json.loads(path.read_text(encoding="utf-8"))["measurements"]:
        config, batch = grown(m["axis"], m["value"], seed=1)
        processes = m["value"] if m["axis"] == "processes" else 1
        assert m["kept_mb"] == kept_bytes(config, batch, processes) / 2**20
