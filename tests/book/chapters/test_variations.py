"""Chapter 18: its statistics are right, its sentences hold, its claims are settled."""

import math
from itertools import permutations

import numpy as np
import pytest

from aiayn_book import claims, paper
from aiayn_book.chapters import variations as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

CLAIMS = {
    chapter.settle_heads: {
        "s6.2-one-head": "reported by the paper only",
        "s6.2-many-heads": "reproduced at small scale",
    },
    chapter.settle_keys: {
        "s6.2-smaller-keys": "reproduced at small scale",
        "s6.2-compatibility": "reported by the paper only",
    },
    chapter.settle_size: {"s6.2-bigger": "reported by the paper only"},
    chapter.settle_dropout: {"s6.2-dropout": "reported by the paper only"},
    chapter.settle_positions: {"s6.2-learned-positions": "reported by the paper only"},
}


def rows_of(chart):
    """The numbers of each layer of a chart."""
    spec = chart.to_dict()
    return list(spec["datasets"].values()) if "datasets" in spec else [
        layer["data"]["values"] for layer in spec["layer"] if "data" in layer
    ]  # fmt: skip


def test_the_pooled_deviation_is_that_within_groups():
    groups = [[1.0, 2.0, 4.0], [7.0, 7.5, 9.0]]
    mean_variance = np.mean([np.var(group, ddof=1) for group in groups])
    assert chapter.pooled_sd(groups) == pytest.approx(math.sqrt(mean_variance))
    shifted = [groups[0], [x + 100 for x in groups[1]]]
    assert chapter.pooled_sd(shifted) == pytest.approx(chapter.pooled_sd(groups))


def test_base_does_not_differ_from_itself():
    assert chapter.gap("base", "loss") == 0
    assert chapter.here("base", "bleu") == "within noise"


def test_three_seeds_are_compared_with_three():
    s = chapter.pooled_sd([chapter.values(row, "bleu") for row in chapter.TABLE])
    assert chapter.error("big", "bleu") == pytest.approx(s * math.sqrt(2 / 3))
    assert 2 * chapter.error("big", "bleu") == pytest.approx(1.7, abs=0.05)
    assert s == pytest.approx(1.0, abs=0.05)
    counts = chapter.runs().groupby("row")["seed"].nunique()
    assert set(counts) == {3}
    assert set(chapter.runs()["pairs"]) == {317}


def test_the_table_has_the_paper_s_change_beside_ours():
    table = chapter.report("A h=1", "C d_model=256")
    assert list(table.loc["A · 1 head"]) == ["+7.5%", "+4.2%", "-0.9", "-0.6"]
    assert 2 * chapter.error("A h=1", "loss") == pytest.approx(0.030, abs=0.0005)


def test_the_groups_of_the_text():
    """*Likely to be real*, *depends on s*, and the other eleven."""
    found = {name: set() for name in chapter.group_sizes()}
    for row in chapter.CHANGED:
        found[chapter.group(row)].add(row)
    assert found["likely to be real"] == {"C N=2", "C d_model=256", "D dropout=0.0"}
    assert found["depends on s"] == {
        "A h=1",
        "B d_k=16",
        "C N=4",
        "D label_smoothing=0.0",
        "big",
    }
    assert len(found["cannot be told"]) == 11


def test_a_row_counts_up_to_its_breaking_point():
    s = chapter.breaking_sd("A h=1")
    assert 2 * s * math.sqrt(2) == pytest.approx(0.9)
    assert chapter.breaking_sd("A h=16") == 0


def test_the_range_of_s_is_what_the_text_observes():
    _, slope, scatter = chapter.line_through_table()
    assert scatter == pytest.approx(0.16, abs=0.005)
    assert slope < 0
    pooled = chapter.pooled_sd(list(chapter.caption_scores().values()))
    assert pooled == pytest.approx(chapter.HIGH_SD, abs=0.005)
    assert sum(map(len, chapter.caption_scores().values())) == 16


def test_nine_rows_would_count_in_perplexity():
    s = chapter.pooled_sd([chapter.values(row, "loss") for row in chapter.TABLE])
    assert s == pytest.approx(0.018, abs=0.0005)
    least = 2 * math.sqrt(2) * s
    assert {
        row for row in chapter.CHANGED if abs(chapter.in_paper(row, "loss")) > least
    } == {
        "A h=1",
        "C N=2",
        "C N=4",
        "C d_model=256",
        "C d_model=1024",
        "D dropout=0.0",
        "D label_smoothing=0.0",
        "D label_smoothing=0.2",
        "big",
    }


def test_one_order_in_3360_has_every_size_in_order():
    """Counted for five models, and by the text's formula for all ten."""
    # Places 0 to 4: two layers, four layers, keys of 16, base, width 1024.
    good = sum(
        p[0] > p[1] > p[3] and p[2] > p[3] > p[4] for p in permutations(range(5))
    )
    assert good == math.factorial(3) * math.factorial(1) // 2
    ten = math.factorial(6) * math.factorial(3) // 4
    assert (ten, math.factorial(10)) == (1080, 3_628_800)
    assert math.factorial(10) / ten == 3360


def test_the_paper_s_perplexity_falls_with_each_size():
    for family in chapter.FAMILIES.values():
        losses = [paper.TABLE_3[family[size]].perplexity for size in sorted(family)]
        assert losses == sorted(losses, reverse=True)
    ours = [np.mean(chapter.values(f"C N={n}", "loss")) for n in (4, 8)]
    assert ours[0] < ours[1]  # the text: not with the number of layers


def test_where_nothing_differs_about_one_row_does():
    found = chapter.false_findings().float()
    assert 0.03 < found.mean() / 19 < 0.08
    assert 0.5 < (found == 0).float().mean() < 0.65


def test_what_seeds_share():
    for score, share in (("loss", 0.59), ("bleu", 0.46)):
        found, ruled, without = chapter.shared(score)
        assert found == pytest.approx(share, abs=0.005)
        assert without < ruled
    assert set(chapter.overlooked("loss")) == {"C N=8", "C d_ff=1024"}
    assert chapter.overlooked("bleu") == []
    for row in ("C N=8", "C d_ff=1024"):
        pair = zip(chapter.values(row, "loss"), chapter.values("base", "loss"))  # noqa: B905
        assert all(one > base for one, base in pair)


def test_the_trend_of_the_text():
    by_seed, printed = chapter.slopes()
    doubling = [slope * math.log(2) for slope in by_seed]
    assert doubling == pytest.approx([-0.15] * 3, abs=0.005)
    assert printed * math.log(2) == pytest.approx(-0.10, abs=0.005)


def test_what_the_text_says_of_heads_and_dropout():
    assert 0.15 < chapter.chance("A h=1", "bleu") < 0.25
    assert chapter.chance("C N=4", "loss") > 0.9
    seen = {
        row: np.mean(chapter.values(row, "training_loss"))
        for row in ("base", "A h=32", "D dropout=0.0", "D dropout=0.2")
    }
    assert seen["A h=32"] > seen["base"]
    new = {row: np.mean(chapter.values(row, "loss")) for row in seen}
    order = ("D dropout=0.0", "base", "D dropout=0.2")
    gaps = [new[row] - seen[row] for row in order]
    assert gaps == sorted(gaps, reverse=True)
    for losses in (seen, new):
        assert [losses[row] for row in order] == sorted(losses[row] for row in order)


def test_learned_positions_are_neither_surely_near_nor_far():
    mean, se = chapter.learned_positions()
    assert mean < 0
    assert abs(mean) + 2 * se > chapter.NEAR > abs(mean) - 2 * se


def test_seeds_for_equality_are_enough_and_one_fewer_is_not():
    """By drawing means of a row that equals base."""
    _, se = chapter.learned_positions()
    rng, needed = np.random.default_rng(0), chapter.seeds_for_equality()
    shares = []
    for seeds in (needed - 1, needed):
        error = se * math.sqrt(3 / seeds)
        means = rng.normal(0, error, 100_000)
        shares.append((abs(means) + 2 * error < chapter.NEAR).mean())
    assert shares[0] < 0.8 <= shares[1]


def test_all_sizes_would_hardly_be_found_together():
    """The text: in 3 % of such tables."""
    found = chapter.all_found(chapter.LARGER, "loss")
    assert found == pytest.approx(0.03, abs=0.005)


def test_a_rule_that_would_mostly_be_missed_does_not_decide():
    rows = {"C N=2": "worse", "C d_model=256": "worse"}
    assert chapter._decide(rows, "loss") is True
    rows["C N=2"] = "better"  # it is worse, and would be seen, as the other
    assert chapter._decide(rows, "loss") is False
    assert chapter._decide(rows | {"C N=8": "better"}, "loss") is None


@pytest.mark.parametrize("settle", CLAIMS, ids=lambda one: one.__name__)
def test_the_claims(settle, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    settle()
    html = "".join(one._repr_html_() for one in shown)
    found = records_in_html(html, "18-variations")
    assert {one.claim_id: one.verdict for one in found} == CLAIMS[settle]


def test_charts_show_the_paper_s_numbers():
    data = rows_of(chapter.table_of_the_paper())
    row = next(r for rows in data for r in rows if r.get("row") == "A · 1 head")
    assert row["change"] == -0.9
    width = row["high"] - row["low"]
    assert width == pytest.approx(4 * math.sqrt(2) * chapter.HIGH_SD)


def test_the_miniature_s_chart_has_every_row_and_its_verdict():
    data = rows_of(chapter.perplexity_chart())
    shown = {r["row"]: r for rows in data for r in rows if "row" in r}
    assert len(shown) == 19
    assert shown["C · width 256"]["reading"] == "agrees"
    assert chapter.score_table().to_numpy().sum() == 2 * 19


@pytest.mark.parametrize("draw", [chapter.where_the_rows_change, chapter.shrink])
def test_drawings_are_readable(draw):
    check_words(draw())


def test_the_drawing_names_the_paper_s_sizes():
    words = [text for *_, text in texts(chapter.shrink())]
    assert "d_model 64, d_ff 256" in words
    assert "0.5 million" in words
