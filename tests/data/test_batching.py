"""Encoded text and batches: every pair once, no side too large, any resumption."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data import (
    EOS_ID,
    PAD_ID,
    Batch,
    EncodedPairs,
    ParallelText,
    RaggedTokens,
    TokenBatches,
    Tokenizer,
    encode_lines,
    encode_pairs,
    load_corpus,
    map_batches,
)
from aiayn.errors import InputError

# Pairs as lists of ids, all real tokens, so that padding can be told from them.
ROWS = st.lists(st.integers(4, 99), min_size=1, max_size=12)
PAIRS = st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=60)


def content(batch):
    """The pairs of a batch, without padding."""
    return [
        tuple([i for i in row.tolist() if i != PAD_ID] for row in rows)
        for rows in zip(batch.source, batch.target, strict=True)
    ]


def numbered(count, length=3):
    """Pairs that can be told apart, alike in length."""
    return EncodedPairs.from_lists(
        ([10 + i] * length, [10 + i] * length) for i in range(count)
    )


# Rows


@given(st.lists(st.lists(st.integers(0, 36_999))), st.data())
def test_rows_are_lists_in_one_array(lists, data):
    rows = RaggedTokens.from_lists(lists)
    assert [rows[i] for i in range(len(rows))] == lists
    assert rows.lengths.tolist() == [len(row) for row in lists]
    wanted = data.draw(
        st.lists(st.booleans(), min_size=len(lists), max_size=len(lists))
    )
    if lists:
        last = rows.padded(np.array([-1]), pad_id=0)
        assert last.tolist() == [lists[-1]]
    kept = rows.keep(np.array(wanted, dtype=bool))
    assert [kept[i] for i in range(len(kept))] == list(
        itertools.compress(lists, wanted)
    )


def test_a_row_is_found_from_both_ends_and_not_beyond():
    rows = RaggedTokens.from_lists([[1], [2, 3]])
    assert rows[-1] == [2, 3]
    with pytest.raises(IndexError):
        rows[2]


def test_padding_by_hand():
    rows = RaggedTokens.from_lists([[5], [6, 7, 8], [], [9, 9]])
    padded = rows.padded(np.array([3, 0, 2]), PAD_ID)
    assert padded.dtype == torch.int64
    assert padded.tolist() == [[9, 9], [5, 0], [0, 0]]
    assert rows.padded(np.array([2]), PAD_ID).shape == (1, 0)


def test_rows_can_be_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = RaggedTokens.from_lists([[5, 6], [7]])
    rows.save("rows")
    found = RaggedTokens.open("rows")
    assert isinstance(found.tokens, np.memmap)
    assert [found[0], found[1]] == [[5, 6], [7]]
    assert found.padded(np.array([1, 0]), PAD_ID).tolist() == [[7, 0], [5, 6]]


# Encoding


@pytest.fixture(scope="module")
def tokenizer():
    """A vocabulary of single letters."""
    return Tokenizer.train(["a b c"], 8)


def test_every_line_ends_in_eos(tokenizer, monkeypatch):
    monkeypatch.setattr("aiayn.data.ragged.CHUNK", 2)  # the last chunk is short
    lines = ["a", "b a", "", "c c c", "a b"]
    rows = encode_lines(iter(lines), tokenizer)
    expected = [[*tokenizer.encode(line), EOS_ID] for line in lines]
    assert [rows[i] for i in range(len(rows))] == expected
    assert len(encode_lines([], tokenizer)) == 0


def test_long_pairs_are_left_out_and_counted(tokenizer):
    text = ParallelText(("a", "a b c", "b", "c"), ("b", "a", "a b c", "c"))
    length = len(tokenizer.encode("b")) + 1
    pairs, too_long = encode_pairs(text, tokenizer, max_length=length)
    assert too_long == 2
    assert [tokenizer.decode(pairs.source[i]) for i in range(len(pairs))] == ["a", "c"]
    assert [tokenizer.decode(pairs.target[i]) for i in range(len(pairs))] == ["b", "c"]
    everything, too_long = encode_pairs(text, tokenizer)
    assert (len(everything), too_long) == (4, 0)


def test_a_length_that_leaves_nothing_is_refused(tokenizer):
    with pytest.raises(InputError, match="All 1 pairs have more than max_length=1"):
        encode_pairs(ParallelText(("a",), ("b",)), tokenizer, max_length=1)


# Batches


@given(PAIRS, st.integers(12, 100), st.integers(0, 9), st.integers(0, 5))
def test_every_pair_comes_once_and_no_side_is_too_large(lists, limit, seed, epoch):
    batches = TokenBatches(EncodedPairs.from_lists(lists), limit, seed=seed)
    made = list(batches.epoch(epoch))
    assert sorted(itertools.chain.from_iterable(map(content, made))) == sorted(lists)
    assert len(batches) == len(made)
    for batch in made:
        assert batch.source.numel() <= limit
        assert batch.target.numel() <= limit
        # No column is padding alone: the tensor is as wide as its longest row.
        assert (batch.source != PAD_ID).any(0).all()
        assert (batch.target != PAD_ID).any(0).all()
    assert batches.target_tokens == sum(batch.target_tokens for batch in made)
    slots = sum(batch.source.numel() + batch.target.numel() for batch in made)
    real = sum(
        int((side != PAD_ID).sum()) for b in made for side in (b.source, b.target)
    )
    assert batches.padding_share() == pytest.approx(1 - real / slots, abs=1e-12)


def test_cutting_by_hand():
    # Longer sides 2, 2, 3, 4, 4: three rows of 3 fill 9 of 9 places, a fourth would
    # need 4 x 4; two rows of 4 fill 8.
    lists = [([7] * s, [8] * t) for s, t in [(4, 1), (2, 2), (4, 4), (1, 2), (3, 2)]]
    plan = TokenBatches(EncodedPairs.from_lists(lists), 9).plan(0)
    assert sorted(sorted(rows.tolist()) for rows in plan) == [[0, 2], [1, 3, 4]]


def test_where_the_longer_side_grows_the_other_stays_alike():
    """The other rises and falls in turn: after (3, 1) comes (4, 1), and not (1, 4)."""
    lists = [([7] * s, [8] * t) for s, t in [(1, 4), (4, 1), (3, 1)]]
    plan = TokenBatches(EncodedPairs.from_lists(lists), 8).plan(0)
    assert sorted(sorted(rows.tolist()) for rows in plan) == [[0], [1, 2]]


def test_an_epoch_depends_on_seed_and_number_alone():
    pairs = numbered(40)

    def epoch(seed, number, before=()):
        batches = TokenBatches(pairs, 12, seed=seed)
        for other in before:
            list(batches.epoch(other))
        return [content(batch) for batch in batches.epoch(number)]

    assert epoch(1, 3) == epoch(1, 3, before=(0, 1, 7))
    assert epoch(1, 3) != epoch(1, 4)
    assert epoch(1, 3) != epoch(2, 3)
    assert epoch(1, 3) != epoch(2, 2)  # nor is one seed's epoch another's next


def test_neighbours_change_from_epoch_to_epoch():
    # Pairs of one length are drawn together anew, not only served in another order.
    batches = TokenBatches(numbered(40), 12)
    together = [{frozenset(rows.tolist()) for rows in batches.plan(n)} for n in (0, 1)]
    assert together[0] != together[1]


def test_batches_are_not_served_by_length():
    lists = [([7] * length, [8] * length) for length in range(1, 41)]
    batches = TokenBatches(EncodedPairs.from_lists(lists), 40)
    widths = [batch.source.shape[1] for batch in batches.epoch(0)]
    assert widths not in (sorted(widths), sorted(widths, reverse=True))


@given(PAIRS, st.data())
def test_an_epoch_can_start_in_its_middle(lists, data):
    batches = TokenBatches(EncodedPairs.from_lists(lists), 24)
    whole = [content(batch) for batch in batches.epoch(2)]
    first = data.draw(st.integers(0, len(whole) + 1))
    assert [content(batch) for batch in batches.epoch(2, first)] == whole[first:]


def test_a_pair_that_fits_into_no_batch_is_named():
    pairs = EncodedPairs.from_lists([([4], [4]), ([4] * 3, [4] * 9)])
    with pytest.raises(InputError, match=r"Pair 2 has 9 tokens .*=8"):
        TokenBatches(pairs, 8)
    assert len(TokenBatches(pairs, 9)) == 2


def test_no_pairs_make_no_batches():
    with pytest.raises(InputError, match="no sentence pairs"):
        TokenBatches(EncodedPairs.from_lists([]), 8)


def test_a_batch_counts_its_tokens_and_moves():
    source, target = [[5, 2, 9], [5, 6, 2]], [[2, 9], [7, 2]]
    batch = Batch(torch.tensor(source), torch.tensor(target), pad_id=9)
    assert (batch.target_tokens, len(batch)) == (3, 2)
    moved = batch.to("meta")
    assert moved.source.device.type == moved.target.device.type == "meta"


def test_multi30k_is_cut_well(data_folder):
    corpus = load_corpus("multi30k")
    tokenizer = Tokenizer.train([*corpus.train.source, *corpus.train.target], 8000)
    pairs, too_long = encode_pairs(corpus.train, tokenizer, max_length=100)
    assert (len(pairs), too_long) == (29_000, 0)
    batches = TokenBatches(pairs, 4096)
    # Random batches hold 54 % padding; sorting by the longer side alone leaves 7 %.
    assert batches.padding_share() < 0.05
    assert tokenizer.decode(pairs.source[-1]) == corpus.train.source[-1]


# Inference


@given(st.lists(st.lists(st.integers(4, 99), max_size=12)), st.integers(1, 40))
def test_results_come_back_in_order(lists, limit):
    shapes = []

    def double(source):
        shapes.append(source.shape)
        return [[2 * i for i in row.tolist() if i != PAD_ID] for row in source]

    found = map_batches(double, RaggedTokens.from_lists(lists), limit)
    assert found == [[2 * i for i in row] for row in lists]
    assert all(rows * width <= limit or rows == 1 for rows, width in shapes)
    widths = [width for _, width in shapes]
    assert widths == sorted(widths, reverse=True)


def test_a_missing_result_is_noticed():
    with pytest.raises(ValueError, match="zip"):
        map_batches(lambda source: [1], RaggedTokens.from_lists([[4], [5]]), 10)
