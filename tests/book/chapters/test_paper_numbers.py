"""The appendix *The paper's numbers*: what each row allows, and ways of counting."""

import pytest

from aiayn import TransformerConfig
from aiayn_book import claims, paper
from aiayn_book.chapters import paper_numbers as chapter
from aiayn_book.checks import chapter_10
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in chapter.rows()}


@pytest.fixture(scope="module")
def ways():
    return {way.name: way for way in chapter.ways()}


def test_the_core_of_base_is_the_closed_form(rows):
    assert rows["base"].core == chapter_10._count_core(*chapter_10._BASE) == 44_101_632


def test_the_ends_of_an_interval_round_to_what_is_printed(rows):
    for row in rows.values():
        low, high = row.allowed
        assert row.total(low) == pytest.approx(row.printed - 0.5)
        assert row.total(high) == pytest.approx(row.printed + 0.5)
    assert [round(end) for end in rows["base"].allowed] == [39_841, 41_794]


def test_no_row_comes_out_at_37_000(rows):
    assert len(rows) == 11
    assert not any(round(row.total(37_000)) == row.printed for row in rows.values())


def test_ten_rows_share_an_interval_and_big_lies_below(rows):
    low, high = chapter.common_interval(list(rows.values()))
    assert (int(low) + 1, int(high)) == (41_004, 41_208)
    assert rows["big"].allowed[1] < 36_500


def test_ways_of_counting(ways):
    names = [name for name in chapter.PRINTED if name != "big"]
    honest = [way for name, way in ways.items() if name != "one matrix more"]
    assert len(honest) == 5
    assert all(list(way.fits) == names for way in honest)
    assert (ways["as in this book"].first, ways["as in this book"].last) == (
        41_004,
        41_208,
    )
    halves = ways["two embeddings"]
    assert (halves.first, halves.last) == (20_502, 20_604)
    assert len(ways["one matrix more"].fits) == 5


def test_what_a_way_of_counting_adds():
    """For one pair of layers: three attentions, two networks, five norms."""
    config = TransformerConfig(
        10, d_model=4, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    assert chapter.attention_biases(config) == 3 * 4 * 4
    assert chapter.no_vectors(config) == -(2 * (8 + 4) + 5 * 2 * 4)
    assert chapter.one_more(config) == 2 * 16


def test_the_first_public_code_gives_all_but_big():
    assert set(chapter.PRINTED) - set(chapter.rows_with_biases(40_960)) == {"big"}
    assert chapter.rows_with_biases(37_000) == []


def test_rows_a_have_the_size_of_base():
    assert set(chapter.same_size().values()) == {44_101_632}


def test_times_and_costs_follow_and_parameters_do_not():
    found = {one.name: one for one in chapter.derived()}
    assert [name for name, one in found.items() if not one.fits] == [
        "base: parameters",
        "big: parameters",
    ]
    time = found["base: training time"]
    assert (time.low, time.high) == pytest.approx((9.722, 12.5), abs=1e-3)
    assert found["base: operations"].printed == 3.3e18
    assert pytest.approx(3.283e18, rel=1e-3) == 12 * 8 * 9.5e12 * 3600
    base = found["base: parameters"]
    assert (base.low, base.high) == pytest.approx((62.79, 63.30), abs=0.01)


def test_a_derived_number_fits_if_intervals_meet():
    assert chapter.Derived("x", 10, 0.5, 10.5, 11).fits
    assert not chapter.Derived("x", 10, 0.5, 10.6, 11).fits
    assert not chapter.Derived("x", 10, 0.5, 8, 9.4).fits


def test_words_stay_inside(ways):
    check_words(chapter.ways_drawing(list(ways.values())))


def test_charts_say_what_they_show(rows):
    found = list(rows.values())
    for chart in (
        chapter.vocabulary_chart(found),
        chapter.surplus_chart(found),
        chapter.derived_chart(chapter.derived()),
    ):
        assert len(chart.to_dict()["description"].split()) > 20


def test_the_claim_is_contradicted_and_could_hold(monkeypatch, rows, ways):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    found, counted = list(rows.values()), list(ways.values())
    chapter.settle_parameters(found, counted)
    (record,) = records_in_html(shown[0]._repr_html_(), "paper-numbers")
    assert record.verdict == "contradicted"
    assert record.measured.startswith("of 11 printed counts, 0 come out")
    assert "all but that of big, which needs 35,368 to 36,344" in record.measured


def test_the_vocabulary_is_the_text_s():
    assert chapter.STATED == paper.BASE.vocabulary_en_de == 37_000
