"""Chapter 13: its merges, its vocabularies, its batches and its drawings."""

import numpy as np
import pytest

from aiayn.data import EncodedPairs
from aiayn_book import claims, paper
from aiayn_book.chapters import data_and_batching as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts


def pairs_of(lengths):
    """Pairs of these lengths on both sides, end token included."""
    sides = [[5] * (n - 1) + [2] for n in lengths]
    return EncodedPairs.from_lists([(side, side) for side in sides])


@pytest.mark.parametrize(
    "drawing",
    [
        chapter.from_sentences_to_tensor(),
        chapter.from_sentences_to_tensor(phone=True),
        chapter.phrase_in_pieces(),
        *chapter.six_sentences(),
        chapter.staircase(),
    ],
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_every_merge_is_drawn():
    drawn = [words for *_, words in texts(chapter.every_merge())]
    assert [f"{n}." for n in range(1, 8)] == [w[:2] for w in drawn if w[1:2] == "."]
    assert drawn[-3:] == list(chapter.TINY)


def test_the_merges_of_the_example():
    """Figure 13.3, and the 12 entries that the text counts."""
    found = [("".join(pair), times) for pair, times in chapter.learn(chapter.TINY, 99)]
    assert found == [
        ("er", 9),
        ("her", 9),
        ("▁her", 7),
        ("▁here", 3),
        ("▁t", 2),
        ("here", 2),
        ("▁there", 2),
    ]
    assert len(set("".join(chapter.TINY))) + len(found) == 12
    assert [len(s["▁there"]) for s in chapter.states(chapter.TINY)][::7] == [6, 1]


def test_a_merge_joins_each_pair_once_from_the_left():
    assert chapter.merge(list("aaab"), ("a", "a")) == ["aa", "a", "b"]
    assert chapter.merge(list("abab"), ("a", "b")) == ["ab", "ab"]


def test_learning_stops_at_the_number_of_merges_and_counts_repeated_words():
    assert chapter.learn({"ab": 2, "cd": 3}, 1) == [(("c", "d"), 3)]


def test_a_tie_goes_to_the_shorter_piece_then_to_the_alphabet():
    assert chapter.learn({"ba": 1, "ab": 1}, 1)[0][0] == ("a", "b")
    assert chapter.shorter_first(("▁", "t")) < chapter.shorter_first(("her", "e"))


def test_the_order_of_learning_decides_how_a_word_is_cut():
    rank = {("b", "c"): 0, ("a", "b"): 1, ("a", "bc"): 2}
    assert chapter.encode("abc", rank) == ["abc"]
    assert chapter.encode("abd", rank) == ["ab", "d"]


def test_words_are_cut_before_spaces_and_signs():
    cut = ["▁Er", "▁hat", ",", "▁was", "▁er", "▁will", "."]
    assert chapter.words_of("Er hat, was er will.") == cut


def test_the_first_figure_is_a_true_encoding():
    """Three rows of seven, one frequent word whole, and two numbers in every row."""
    pieces, numbers = chapter.rectangle()
    assert [len(row) for row in numbers] == [7, 7, 7]
    assert "▁She" in pieces[0]
    assert "▁laughed" not in pieces[0]
    everywhere = set.intersection(*map(set, numbers)) - {0}
    assert len(everywhere) == 2


def test_larger_vocabularies_cut_the_phrase_into_fewer_pieces():
    """And *Fleisch* is whole before *frisches* is, as Figure 13.4 asks about."""
    found = list(chapter.cuts().values())
    counts = [len(cut) for cut in found]
    assert counts == sorted(counts, reverse=True)
    assert all("".join(cut) == "▁frisches▁Fleisch" for cut in found)
    assert "▁Fleisch" in found[-1]
    assert "▁frisches" not in found[-1]


def test_words_of_both_languages_never_end():
    """Both curves still rise at the end; German lies above."""
    rows = chapter.distinct_words()
    english, german = (
        [row["different words"] for row in rows if row["language"] == name]
        for name in ("English", "German")
    )
    assert english[-1] > english[-6]
    assert german[-1] > german[-6]
    assert all(g > e for g, e in zip(german[5:], english[5:], strict=True))
    assert 0 < chapter.unseen_share("source") < chapter.unseen_share("target")


def test_each_doubling_saves_fewer_tokens():
    lengths = [sum(both) for both in chapter.lengths_by_size().values()]
    saved = -np.diff(lengths[1:])
    assert list(saved) == sorted(saved, reverse=True)
    characters, *_, whole = chapter.lengths_by_size().values()
    assert all(4 < a / b < 6 for a, b in zip(characters, whole, strict=True))
    assert chapter.rarely_used(400) < 0.2 < 0.5 < chapter.rarely_used(3200)


def test_what_a_vocabulary_costs():
    """Twelve networks of 8 d² and eighteen attentions of 4 d², of which six read z.

    At 37,000 entries the scores cost a target token about an encoder.
    """
    layer = 8 * 512**2 + 4 * 512**2
    across = 6 * 2 * 512**2
    decoder = 6 * (layer + 4 * 512**2)
    assert chapter.multiplications_per_token() == (6 * layer + across, decoder - across)
    assert [round(n / 1e6, 1) for n in chapter.multiplications_per_token()] == [
        22.0,
        22.0,
    ]
    assert round(6 * layer / 1e6, 1) == 18.9
    assert round(paper.BASE.vocabulary_en_de * 512 / 1e6, 1) == 18.9
    size = chapter.equal_at()
    layers, scores = chapter.cost(size, source=1, target=1)
    assert scores == pytest.approx(layers, rel=1e-4)
    together = {size: sum(both) for size, both in chapter.costs().items()}
    assert min(together, key=together.get) == 3200


def test_what_both_languages_share():
    """The sentence about nine words, and the shares of Figure 13.7."""
    assert len(chapter.words_in_both()) == 9
    assert {"will", "hat", "Was"} <= chapter.words_in_both()
    groups = chapter.shared_pieces()
    assert list(groups) == list(chapter.GROUPS)
    for what in ("entries", "tokens"):
        assert sum(group[what] for group in groups.values()) == pytest.approx(1)
    assert groups["both"]["tokens"] > 1.5 * groups["both"]["entries"]
    assert groups["unused"]["tokens"] == 0


def test_table_3_fits_more_entries_than_the_text_names():
    low, high = chapter.implied_entries()
    assert paper.BASE.vocabulary_en_de < low < 40_960 < high


def test_padding_by_hand():
    """Figure 13.8, and the text before it."""
    assert sum(chapter.SIX) == 36
    assert chapter.padding_by_hand() == 18
    assert chapter.padding_by_hand(sorted(chapter.SIX)) == 6
    assert "54 slots, 18 of them padding" in chapter.six_sentences()[0].markup


def test_slots_of_a_plan():
    of = pairs_of([2, 5, 3])
    plan = [np.array([0, 1]), np.array([2])]
    assert chapter.slots(of, plan).tolist() == [2 * 5 * 2, 3 * 2]


@pytest.mark.parametrize("way", chapter.WAYS)
def test_every_pair_stands_in_one_batch(way):
    of = pairs_of(range(3, 23))
    plan = chapter.plans(of, seed=1, rows=4)[way]
    assert sorted(np.concatenate(plan)) == list(range(20))
    if way != "by tokens":
        assert [len(rows) for rows in plan] == [4] * 5


def test_sorting_removes_nearly_all_padding():
    of = chapter.pairs()
    assert min(chapter.padding(of, "as they come")) > 0.45
    assert max(chapter.padding(of, "sorted") + chapter.padding(of, "by tokens")) < 0.06
    assert chapter.budget(of) == 872  # as the text says


def test_every_batch_is_drawn_with_all_its_slots():
    """Tokens and padding add up to the slots of both sides, way by way."""
    of, chart = chapter.pairs(), chapter.batch_chart().to_dict()
    data = chart.get("data") or chart["layer"][0]["data"]
    for way, plan in chapter.plans(of, 0).items():
        bars = [bar for bar in data["values"] if bar["way"] == way]
        drawn = sum(bar["number"] for bar in bars)
        assert drawn == chapter.slots(of, plan).sum()
        assert len(bars) == 2 * len(plan)


def test_a_span_of_one_value_is_named_once():
    assert chapter.span([0.161, 0.164]) == "16%"
    assert chapter.span([0.05, 0.06]) == "5% to 6%"


def test_by_tokens_the_batches_are_of_nearly_one_size():
    of = chapter.pairs()
    plans = chapter.plans(of, 0)
    ratio = {
        way: np.sort(chapter.slots(of, plan))[-1] / np.sort(chapter.slots(of, plan))[1]
        for way, plan in plans.items()
    }
    assert ratio["by tokens"] < ratio["as they come"] < 2 < 4 < ratio["sorted"]


def test_the_prediction_is_a_ratio_of_slots():
    of = pairs_of([2, 9, 3, 8, 4, 10] * 40)
    found = chapter.predicted(of, seeds=[0])
    assert found["as they come"] == [1.0]
    assert found["sorted"][0] > 1.3


def test_the_claims_of_the_section(monkeypatch):
    """The sizes are reported by the paper only; the batches follow the definition."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    chapter.settle_vocabulary(0)
    chapter.settle_batches()
    found = [
        record
        for one in shown
        for record in records_in_html(one._repr_html_(), "13-data-and-batching")
    ]
    assert [r.verdict for r in found] == ["reported by the paper only", "defined"]
    assert "with 0 differences" in found[0].measured


@pytest.mark.parametrize(
    "chart",
    [chapter.word_growth, chapter.length_chart, chapter.cost_chart],
)
def test_ticks_are_few_enough_for_a_phone(chart):
    for layer in chart().to_dict()["layer"]:
        axis = layer["encoding"]["x"].get("axis", {})
        assert len(axis.get("values", [])) <= 6
