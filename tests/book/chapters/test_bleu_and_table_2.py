"""Chapter 17b: its pictures show what is counted, and its claims can fail."""

import json
import math

import numpy as np
import pytest

from aiayn.inference import evaluate_bleu
from aiayn_book import claims, paper
from aiayn_book.bleu import bleu, sentence_counts, words_13a
from aiayn_book.chapters import bleu_and_table_2 as chapter
from aiayn_book.ledger import records_in_html
from aiayn_book.records import load_record
from tests.book.chapters.drawings import check_words, texts

RUN = load_record("search")["runs"][0]
BEAM = chapter.caption_counts(RUN, "paper")
GREEDY = chapter.caption_counts(RUN, "greedy")
FOUND, SCORED = chapter.by_hand()
DRAWINGS = {
    "found runs": FOUND,
    "score": SCORED,
    "clipping": chapter.clipped_words(),
    "bars": chapter.share_bars({"more": 3, "as many": 5, "fewer": 1}, "one, other"),
    "cuts": chapter.cut_sentence(),
    "compound": chapter.compound_before_and_after(),
    "splitting": chapter.splitting_drawing(),
    "margins": chapter.margin_drawing(),
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawing):
    """And there is a text alternative of more than a few words."""
    check_words(drawing)


def test_key_picture_is_the_calculation_of_the_text():
    """5/6, 3/5, 1/4, half a match of 3; 0.846; 32.2."""
    shown = [words for *_, words in texts(FOUND)]
    assert {"5/6", "3/5", "1/4", "0/3"} <= set(shown)
    shown = [words for *_, words in texts(SCORED)]
    assert {"½/3 = 0.17", "0.380", "0.846", "32.2"} <= set(shown)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_matches_are_those_that_bleu_counts(n):
    """In every sentence, of both translations."""
    for one in chapter.SENTENCES:
        reference = words_13a(one.reference)
        for line in (one.reworded, one.altered):
            words = words_13a(line)
            counts = sentence_counts(words, reference)
            found = chapter.matches(words, reference, n)
            assert (sum(found), len(found)) == (counts[n], counts[4 + n])


def test_scores_are_sacrebleu_s():
    for lines in (chapter.REWORDED, chapter.ALTERED, *map(chapter.changed, (0.5, 5))):
        sacre = evaluate_bleu(lines, chapter.REFERENCES).score
        assert chapter.score(lines) == pytest.approx(sacre, abs=1e-9)


def test_scores_that_the_text_names():
    """28.4 without a mistake, 80.8 where all is false, and gains of 0.6 and 4.8."""
    before = chapter.score(chapter.REWORDED)
    assert round(before, 1) == 28.4
    assert round(chapter.score(chapter.ALTERED), 1) == 80.8
    gains = [chapter.score(chapter.changed(points)) - before for points in (0.5, 5)]
    assert [round(gain, 1) for gain in gains] == [0.6, 4.8]


def test_one_word_of_each_altered_sentence_differs():
    for one in chapter.SENTENCES:
        a, b = words_13a(one.altered), words_13a(one.reference)
        assert len(a) == len(b)
        assert sum(x != y for x, y in zip(a, b, strict=True)) == 1


def test_precisions_that_the_text_names():
    """Three of four words and one of eight fours; a model has as many right words."""
    reworded, altered, model = chapter.profiles().values()
    assert reworded[0] == pytest.approx(0.75, abs=0.02)
    assert reworded[3] == pytest.approx(1 / 8, abs=0.01)
    assert model[0] == pytest.approx(reworded[0], abs=0.02)
    assert model[3] > 2 * reworded[3]
    assert (altered > model).all()


def test_no_word_of_a_sentence_is_lost_by_marking():
    """Only underlined ones are missing from the reference."""
    parts = chapter.two_translations(range(8)).parts
    assert [part.html.count("border-bottom") for part in parts][1] == 8
    for part in parts:
        assert all(row.count("<em>") == 1 for row in part.rows)


def test_edits_lead_to_the_references():
    known = chapter.edits(chapter.REWORDED)
    lines = chapter.edited(chapter.REWORDED, known)
    assert lines == [words_13a(line) for line in chapter.REFERENCES]
    assert chapter.edited(chapter.REWORDED, []) == [
        words_13a(line) for line in chapter.REWORDED
    ]


def test_each_random_order_begins_and_ends_alike():
    runs = chapter.towards_the_reference(orders=3)
    for _, one in runs.groupby("order"):
        assert one.BLEU.iloc[0] == pytest.approx(chapter.score(chapter.REWORDED))
        assert one.BLEU.iloc[-1] == pytest.approx(100)
        assert one.words.is_monotonic_decreasing
        assert one.words.iloc[-1] == 0


def test_the_slope_is_that_of_a_straight_line():
    runs = chapter.pd.DataFrame({"words": [0, 10, 20], "BLEU": [100, 85, 70]})
    assert chapter.points_for_each_word(runs) == pytest.approx(1.5)


def test_brevity_is_bleu_s():
    """All precisions are 1, so the factor is what is left."""
    for written in (10, 20, 40):
        counts = np.array([20, *range(written, written - 4, -1)] * 1)
        counts = np.array([*counts, *counts[1:]])
        assert 100 * chapter.brevity(written / 20) == pytest.approx(bleu(counts))


def test_what_the_text_says_of_the_two_systems():
    """160 for, 140 against, 714 alike; 0.65 BLEU, whose interval just excludes 0."""
    found = chapter.better_or_worse(BEAM, GREEDY)
    assert list(found.values()) == [160, 714, 140]
    one, other = (bleu(counts.sum(axis=0)) for counts in (BEAM, GREEDY))
    assert round(float(one - other), 2) == 0.65
    assert abs(one - RUN["settings"][0]["bleu"]) < 1e-3  # sacreBLEU's, on the text
    gains = chapter.bootstrap_differences(BEAM, GREEDY)
    assert 0 < np.quantile(gains, 0.025) < 0.1


def test_what_the_text_says_of_the_intervals():
    """About ±1.6, ±0.9 on three times as many sentences; seeds span 0.75."""
    low, high = chapter.interval(BEAM)
    half = (high - low) / 2
    assert round(half, 1) == 1.6
    assert round(half * math.sqrt(len(BEAM) / 3003), 1) == 0.9
    seeds = chapter.test_scores()
    assert len(seeds) == 3
    assert round(max(seeds) - min(seeds), 2) == 0.75


def test_two_seeds_change_their_order_with_the_cut():
    """As the caption promises."""
    table = chapter.conventions().pivot(index="cut", columns="run", values="BLEU")
    assert len(set(np.sign(table["seed 1"] - table["seed 2"]).round())) > 1


def test_splitting_is_within_noise_on_captions():
    """In every seed the interval holds zero."""
    low, high = list(chapter.splitting_gains().values())[-1]
    assert low < 0 < high
    for run in load_record("search")["runs"]:
        _, low, high = run["test"]["conventions"]["splitting"]
        assert low < 0 < high


def test_the_map_has_every_row_with_a_cost():
    for pair, chart in zip(chapter.PAIRS, chapter.table_2_map(), strict=True):
        datasets = chart.to_dict()["datasets"].values()
        rows = next(rows for rows in datasets if "operations" in rows[0])
        known = [r for r in paper.TABLE_2 if getattr(r, f"flops_{pair}")]
        known = [r for r in known if getattr(r, f"bleu_{pair}")]
        assert len(rows) == len(known) + (pair == "en_fr")
        named = {row["model"] for row in rows}
        assert set(chapter.SIDES[pair]) <= named


def test_the_table_says_what_the_text_says():
    """Costs by hours; a third; two cheaper single models; two better ensembles."""
    for row, settings in zip(chapter.OURS, (paper.BASE, paper.BIG), strict=True):
        speed = settings.gpus * paper.TERAFLOPS["P100"] * 1e12
        by_hours = settings.training_hours * 3600 * speed
        assert f"{by_hours:.1e}" == f"{row.flops_en_de:.1e}"
    by_steps = paper.BASE.steps * paper.BASE.seconds_per_step
    assert round(1 - by_steps / 3600 / paper.BASE.training_hours, 2) == 0.07
    costs = [row.flops_en_de for row in chapter.BEFORE if row.flops_en_de]
    assert round(min(costs) / chapter.BASE.flops_en_de, 1) == 2.9
    assert sum(cost < chapter.BIG.flops_en_de for cost in costs) == 2
    french = [row.bleu_en_fr for row in chapter.BEFORE if row.bleu_en_fr]
    assert sum(one > 41.0 for one in french) == 2
    assert max(french) < chapter.BIG.bleu_en_fr
    german = [row.bleu_en_de for row in paper.TABLE_2 if row.bleu_en_de]
    assert max(german) - min(german) == pytest.approx(4.65)
    day = paper.TERAFLOPS["K80"] * 1e12 * 24 * 3600
    gnmt = next(row for row in chapter.BEFORE if row.model == "GNMT + RL")
    assert gnmt.flops_en_fr / day == pytest.approx(6 * 96, rel=0.01)


def test_margins():
    assert [round(one, 2) for one in chapter.margins().values()] == [2.04, 1.34, 1.04]


def verdicts(call, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    call()
    html = "".join(one._repr_html_() for one in shown)
    records = records_in_html(html, "17b-bleu-and-table-2")
    return {record.claim_id: record.verdict for record in records}


def test_claims_of_this_chapter_are_settled_as_listed(monkeypatch):
    found = {}
    for call in (chapter.settle_german, chapter.settle_base, chapter.settle_french):
        found |= verdicts(call, monkeypatch)
    path = claims.__file__.replace("claims.py", "claims.json")
    with open(path, encoding="utf-8") as file:
        listed = json.load(file)
    own = {
        claim["id"]: claim["verdict"]
        for claim in listed
        if claim["chapter"] == "17b-bleu-and-table-2"
    }
    assert len(own) == 4
    assert found == own


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        (chapter.settle_german, {"BIG": paper.TranslationResult("big", 28.3)}),
        (
            chapter.settle_base,
            {"BASE": paper.TranslationResult("base", 26.3, flops_en_de=3.3e18)},
        ),
        (
            chapter.settle_french,
            {"BIG": paper.TranslationResult("big", 1, 40, 1, 4e19, 40)},
        ),
    ],
)
def test_claims_can_fail(call, changed, monkeypatch):
    """If the table had other figures."""
    before = verdicts(call, monkeypatch)
    for name, row in changed.items():
        monkeypatch.setattr(chapter, name, row)
    after = verdicts(call, monkeypatch)
    assert all(after[name] != verdict for name, verdict in before.items())
