"""Chapter 5: its drawings show multi-head attention, its task measures, its claims."""

import math
from itertools import combinations
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from aiayn import MultiHeadAttention, scaled_dot_product_attention
from aiayn_book import claims, paper
from aiayn_book.chapters import multi_head as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

RESULTS = {"side by side": ("100.0%", "100.0%"), "in turn": ("99.9%", "37.7% to 55.0%")}
DRAWINGS = {
    "key picture": [
        chapter.split_attend_concatenate(),
        chapter.split_attend_concatenate(phone=True),
    ],
    "two sentences": chapter.two_sentences(),
    "where and what": chapter.where_and_what(),
    "matrices": chapter.twenty_five_and_four(),
    "one query": [
        chapter.one_query_map(
            chapter.new_layer(0, 1),
            chapter.WithHiddenLayer(chapter.new_layer(1, 1)),
            chapter.new_layer(2, 2),
        )
    ],
    "sum": [chapter.sum_of_blocks()],
    "numberings": chapter.numberings(RESULTS),
}


def words(drawing):
    return [shown for *_, shown in texts(drawing)]


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_the_key_picture_is_multi_head_attention():
    """Its numbers are those of the formula, head by head."""
    parts = chapter._three_words()
    Q, K, V = parts.projected
    output = torch.zeros(3, 8)
    for half in (slice(0, 4), slice(4, 8)):
        scores = Q[:, half] @ K[:, half].T / 2
        output += scores.softmax(dim=-1) @ V[:, half] @ parts.W_O[half]
    assert torch.allclose(parts.output, output, atol=1e-5)
    wide, narrow = DRAWINGS["key picture"]
    shapes = {"3×8", "3×4", "4×3", "3×3", "8×8"}
    assert shapes <= set(words(wide))
    assert shapes <= set(words(narrow))


def test_one_head_answers_alike_and_two_heads_do_not():
    """(5, 5) twice; who and what change places with the words."""
    cat, milk = (
        [w for x, _, _, w in texts(one) if x > 300 and w != "answer"]
        for one in chapter.two_sentences()
    )
    assert cat == ["(5, 5)", "(10, 0)", "(0, 10)"]
    assert milk == ["(5, 5)", "(0, 10)", "(10, 0)"]


def test_only_different_positions_need_two_heads():
    same, different = (" ".join(words(one)) for one in chapter.where_and_what())
    assert "needs two heads" not in same
    assert different.count("needs two heads") == 2


def test_as_many_matrices_are_drawn_as_are_counted():
    """24 narrow ones and one square, or three squares of eight and one."""
    loose, stored = chapter.twenty_five_and_four()
    assert (words(loose)[0][:2], words(stored)[0][0]) == ("25", "4")
    for panel in (loose, stored):
        assert panel.markup.count('width="7"') == 24


# The task.


@pytest.mark.parametrize("draw", [chapter.draw, chapter.draw_distinct])
def test_the_answer_is_what_lies_in_the_wanted_drawers(draw):
    query, entries, target = draw(50, torch.Generator().manual_seed(1))
    places, letters = entries.split(8, dim=-1)
    asked = query.view(50, 2, 8)
    assert torch.equal((asked @ places @ letters).argmax(dim=-1), target)
    assert (asked.sum(dim=-1) == 1).all()
    assert (asked[:, 0] != asked[:, 1]).any(dim=-1).all()
    distinct = all(len(set(row.tolist())) == 8 for row in letters.argmax(dim=-1))
    assert distinct == (draw is chapter.draw_distinct)


class Mean(nn.Module):
    """One head set by hand, read linearly, with all letters treated alike."""

    def __init__(self, share, first, second):
        super().__init__()
        self.share, self.signs = share, (first, second)

    def forward(self, query, entries, _):
        """Scores of the letters: a sign times their share, for each answer."""
        weights = torch.tensor([self.share, 1 - self.share])
        asked = weights[None, None] @ query.view(-1, 2, 8)  # (batch, 1, 8)
        found = asked @ entries[..., :8] @ entries[..., 8:]
        return torch.cat([sign * found for sign in self.signs], dim=-1), None


class Order(nn.Module):
    """Gives the two letters in the wanted order, or in the other."""

    def __init__(self, flip):
        super().__init__()
        self.flip = flip

    def forward(self, query, entries, _):
        """One-hot letters."""
        asked = query.view(-1, 2, 8)
        asked = asked.flip(1) if self.flip else asked
        return (asked @ entries[..., :8] @ entries[..., 8:]).flatten(1)[:, None], None


def test_what_is_measured_of_a_layer_that_knows():
    """And of one that knows the pair in the wrong order."""
    good, wrong = Order(flip=False), Order(flip=True)
    target = chapter.held_out()[2]
    same = (target[:, 0] == target[:, 1]).float().mean().item()
    assert chapter.both_right([good, wrong]) == pytest.approx([1, same])
    assert chapter.both_orders([good, wrong]) == [1, 0]
    assert chapter.first_right([good, wrong]) == pytest.approx([1, same])
    assert chapter.one_letter_twice([good, wrong]) == [0, 0]
    assert same == pytest.approx(1 / 8, abs=0.03)


@pytest.mark.parametrize("share", [0.2, 0.45, 0.7, 0.95])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_one_mean_read_linearly_is_wrong_in_one_order(share, signs):
    """What the text derives: no weight, no sign gets both orders right."""
    layer = Mean(share, *signs)
    assert chapter.both_orders([layer]) == [0]
    assert chapter.both_right([layer])[0] < chapter.ONE_ORDER


def test_a_mean_knows_the_pair_and_not_the_order():
    """Both letters above all others, the larger share as both answers."""
    layer = Mean(0.7, 1, 1)
    assert chapter.pair_known([layer]) == [1]
    assert chapter.one_letter_twice([layer]) == [1]


def test_unequal_weights_contain_the_order():
    """A reader that is not linear finds the smaller share that is not zero."""
    query, entries, target = chapter.held_out()
    found = Mean(0.7, 1, 1)(query, entries, None)[0][:, 0, :8]
    present = found.masked_fill(found == 0, math.inf)
    read = torch.stack([found.argmax(dim=-1), present.argmin(dim=-1)], dim=-1)
    assert torch.equal(read, target)


def by_hand():
    """Two heads, one for each half of the query; the letters as values."""
    layer = MultiHeadAttention(16, 2).eval()
    eye, nothing = torch.eye(8), torch.zeros(8, 8)
    first, second = torch.cat([eye, nothing], 1), torch.cat([nothing, eye], 1)
    with torch.no_grad():
        layer.query_projection.weight.copy_(torch.cat([60 * first, 60 * second]))
        layer.key_projection.weight.copy_(torch.cat([first, first]))
        layer.value_projection.weight.copy_(torch.cat([second, second]))
        layer.output_projection.weight.copy_(torch.eye(16))
    return layer


def test_two_heads_set_by_hand_solve_the_task():
    """Each reads its half of the query, and without it its answer is a guess."""
    layer = by_hand()
    assert chapter.both_right([layer]) == [1]
    assert torch.allclose(
        chapter.weight_on_wanted(layer), torch.eye(2), rtol=0, atol=1e-3
    )
    found = chapter.own_part(layer)
    assert (found.shares, found.parts, found.peaks) == ([1, 1], [0, 1], 1)
    first, second = chapter.right_without(layer, head=0)
    assert first == pytest.approx(1 / 8, abs=0.03)
    assert second == 1
    assert chapter.both_right([layer]) == [1]  # it is as before


def test_the_map_of_one_query_shows_where_each_head_attends():
    """One row for each head; the two set by hand attend to drawers 3 and 6."""
    uniform = chapter.new_layer(0, 1)
    with torch.no_grad():
        uniform.query_projection.weight.zero_()
    hidden = chapter.WithHiddenLayer(uniform)
    drawing = chapter.one_query_map(uniform, hidden, by_hand())
    shown = [word for word in words(drawing) if "." in word]
    assert shown == ["0.12"] * 16 + ["1.00"] * 2  # 1/8 = 0.125, rounded to even


def test_what_is_added_to_all_keys_alike_is_no_part_of_a_head():
    """It changes no weight, so it must not count."""
    layer, same = by_hand(), by_hand()
    with torch.no_grad():
        same.key_projection.weight[0, :8] += 3  # every drawer, one direction
    assert torch.allclose(
        chapter.weight_on_wanted(layer), chapter.weight_on_wanted(same), atol=1e-3
    )
    assert chapter.own_part(same).shares == pytest.approx(
        chapter.own_part(layer).shares
    )


def test_numberings_are_two_orders_of_the_same_outputs():
    output = torch.arange(16.0)[None, None]
    assert chapter.side_by_side(output)[0].tolist() == [
        list(range(8)),
        list(range(8, 16)),
    ]
    assert chapter.in_turn(output)[0].tolist() == [
        list(range(0, 16, 2)),
        list(range(1, 16, 2)),
    ]


def test_training_finds_two_heads_and_cannot_help_one():
    """Same width, same steps, one seed."""
    one, two = (chapter.train(chapter.new_layer(5, h), 5) for h in (1, 2))
    known, knows_both = chapter.both_right([one, two])
    assert known < chapter.ONE_ORDER
    assert knows_both > 0.95


def test_layers_of_all_numbers_of_heads_have_1024_parameters():
    """And two heads with keys of two numbers have fewer than sixteen of one."""

    def size(layer):
        return sum(p.numel() for p in layer.parameters())

    for heads in (1, 2, 4, 8, 16):
        assert size(chapter.new_layer(0, heads)) == 1024
    assert size(chapter.new_layer(0, 2, d_k=2, d_v=8)) == 640


# Cost, rank, and what a narrow head can do.


def test_the_operations_are_those_of_the_formula():
    """For 64 words 142.6 million in products, whatever h is, and h n² · 5."""
    found = chapter.cost(64, repeats=1, heads=(1, 8))
    formula = 4 * (8 * 64 * 512**2 + 4 * 64**2 * 512)
    assert found.products == {1: formula, 8: formula}
    assert formula == 4 * 142_606_336
    assert found.softmax[8] == 4 * 163_840
    total = (formula + 4 * 163_840) / (formula + 4 * 20_480)
    assert found.total(8) == pytest.approx(total)
    assert found.time(1) == 1


def test_full_matrices_are_four_times_the_factors():
    """Of eight heads, W_V W_O as one matrix; its rank is that of a head."""
    assert 8 * 512**2 == 4 * 8 * 2 * 512 * 64
    product = torch.randn(512, 64).double() @ torch.randn(64, 512).double()
    assert torch.linalg.matrix_rank(product) == 64


@pytest.mark.parametrize("d_k", [1, 2, 8])
def test_scores_have_the_rank_of_a_head(d_k):
    X, W_Q, W_K = (torch.randn(s).double() for s in ((30, 64), (64, d_k), (64, d_k)))
    scores = X @ W_Q @ (X @ W_K).T
    assert torch.linalg.matrix_rank(scores) == d_k
    logs = scores.log_softmax(dim=-1)
    assert torch.linalg.matrix_rank(logs) <= d_k + 1


def test_a_head_of_width_one_can_pick_out_two_keys_only():
    """The largest or the smallest, whatever the query."""
    _, good = chapter.fit(torch.eye(4), d_k=1, tries=8)
    assert good.sum() == 2
    _, good = chapter.fit(torch.eye(4), d_k=2, tries=8)
    assert good.all()


def test_all_pairs_are_all_pairs():
    wanted = chapter.all_pairs(6)
    assert [tuple(row.nonzero().flatten().tolist()) for row in wanted] == list(
        combinations(range(6), 2)
    )
    assert torch.equal(wanted.sum(dim=-1), torch.ones(15))


def test_the_paper_s_chart_shows_table_3():
    scores = {h: [0.5, 0.6, 0.7] for h in (1, 2, 4, 8, 16)}
    here, there = chapter.heads_charts(scores)
    rows = [(row["heads"], row["y"]) for row in there.data.values]
    assert rows[2] == ("8×64", paper.TABLE_3["base"].bleu)
    assert rows[-1] == ("32×16", paper.TABLE_3["A h=32"].bleu)
    assert [row["heads"] for row in here.data.values][::3] == [
        "1×16",
        "2×8",
        "4×4",
        "8×2",
        "16×1",
    ]


def test_a_range_of_seeds_in_words():
    assert chapter.shown([0.254, 0.3, 0.263]) == "25.4% to 30.0%"
    assert chapter.shown([1.0, 1.0]) == "100.0%"


# Claims.


@pytest.fixture
def settled(monkeypatch):
    """Calls something and returns the record that the ledger would read of it."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)

    def record(settle, *given):
        settle(*given)
        (found,) = records_in_html(shown.pop()._repr_html_(), "05-multi-head")
        return found

    return record


FAILS, KNOWS, GOOD = [0.25, 0.3, 0.26], [1.0, 1.0, 0.99], [1.0, 1.0, 1.0]
SCORES = {1: FAILS, 2: GOOD, 4: GOOD, 8: GOOD, 16: [0.6, 0.65, 0.62]}


def costing(same):
    """A cost whose products do not depend on the number of heads, or do."""
    return SimpleNamespace(
        words=64,
        products={1: 100, 8: 100 if same else 800},
        total=lambda h: 1.001,
        time=lambda h: 1.1,
    )


@pytest.mark.parametrize(
    ("claim", "settle", "right", "wrong"),
    [
        (
            "s2-averaging",
            chapter.settle_averaging,
            (FAILS, GOOD, KNOWS, GOOD),
            (FAILS, GOOD, FAILS, GOOD),
        ),
        (
            "s2-heads-counteract",
            chapter.settle_heads,
            (FAILS, GOOD, GOOD),
            (FAILS, FAILS, GOOD),
        ),
        (
            "s3.2.2-one-head-averages",
            chapter.settle_one_head,
            ({"1": [0.0], "2": GOOD, "hidden": KNOWS},),
            ({"1": [0.0], "2": FAILS, "hidden": KNOWS},),
        ),
        (
            "s3.2.2-subspaces",
            chapter.settle_subspaces,
            ([by_hand()],),
            ([MultiHeadAttention(16, 2)],),
        ),
        (
            "s3.2.2-equation",
            chapter.settle_equation,
            ({"fused": 1e-15},),
            ({"fused": 1e-3},),
        ),
        (
            "s3.2.2-same-cost",
            chapter.settle_cost,
            (costing(same=True), costing(same=True)),
            (costing(same=False), costing(same=True)),
        ),
        (
            "s3.2.2-beneficial",
            chapter.settle_beneficial,
            (SCORES, GOOD),
            (SCORES | {4: FAILS}, GOOD),
        ),
    ],
)
def test_each_claim_holds_and_could_fail(settled, claim, settle, right, wrong):
    holds, fails = settled(settle, *right), settled(settle, *wrong)
    assert holds.claim_id == claim
    expected = {"s3.2.2-equation": "defined", "s3.2.2-same-cost": "derived"}
    assert holds.verdict == expected.get(claim, "reproduced at small scale")
    assert fails.verdict not in {holds.verdict, "reproduced"}


def test_several_heads_must_help_a_translator_as_well(settled, monkeypatch):
    """In the task alone one head must fail: it is read linearly."""
    monkeypatch.setattr(chapter.variations, "here", lambda *_: "within noise")
    found = settled(chapter.settle_beneficial, SCORES, GOOD)
    assert found.verdict == "not reproduced at small scale"


def test_two_heads_with_equal_weights_are_one_with_wider_values():
    """Exactly: the identity of the text."""
    q, k, v = torch.randn(5, 4), torch.randn(7, 4), torch.randn(7, 6)
    wide, _ = scaled_dot_product_attention(q, k, v)
    parts = [scaled_dot_product_attention(q, k, half)[0] for half in v.chunk(2, dim=1)]
    assert torch.allclose(torch.cat(parts, dim=1), wide, atol=1e-6)
