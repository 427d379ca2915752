"""Chapter 6: its drawings show masks, its claims can fail, its text is true."""

import math

import pytest
import torch

from aiayn import Transformer, TransformerConfig, causal_mask, padding_mask
from aiayn import scaled_dot_product_attention as attend
from aiayn_book import claims
from aiayn_book.chapters import masks as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
ANSWER = ["der", "Hund", "hat", "die", "Kuh", "</s>"]

TIGHT = torch.ones(6, 6).tril(-1)  # mask and shift: what comes before, and no more
MAPS = {
    "mask and shift": (TIGHT, TIGHT),
    "no mask": 2 * (torch.cat([torch.ones(6, 5), torch.zeros(6, 1)], dim=1),),
    "no shift": 2 * (torch.ones(6, 6).tril(),),
    "neither": 2 * (torch.ones(6, 6),),
}
DRAWINGS = {
    "mask": [chapter.how_a_mask_works(), chapter.how_a_mask_works(phone=True)],
    "intersection": [chapter.intersection(), chapter.intersection(phone=True)],
    "three uses": [chapter.three_uses(), chapter.three_uses(phone=True)],
    "causality": chapter.causality_and_autoregression(),
    "answer": [
        chapter.where_the_answer_stands(),
        chapter.where_the_answer_stands(phone=True),
    ],
    "leaks": chapter.leak_maps(MAPS, ANSWER),
}


def count(drawing, words):
    return sum(text == words for *_, text in texts(drawing))


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_the_mask_that_is_drawn_is_the_one_by_hand():
    """Six crosses become six times −∞; row der has the thirds of the text's table."""
    drawing = chapter.how_a_mask_works()
    assert count(drawing, "×") == count(drawing, "−∞") == 6
    assert count(drawing, "2/3") == count(drawing, "1/3") == 1
    assert chapter.EXPONENTIALS[1].tolist() == [2, 1, 4, 1]
    assert f"{math.log(4):.1f}" == "1.4"


@pytest.mark.parametrize("drawing", DRAWINGS["intersection"])
def test_both_rules_permit_nine_pairs(drawing):
    assert count(drawing, "✓") == 10 + 12 + 9


@pytest.mark.parametrize("drawing", DRAWINGS["three uses"])
def test_each_use_has_its_mask(drawing):
    """3 × 2 pairs in the encoder, 9 in the decoder, 4 × 2 between them."""
    assert count(drawing, "✓") == 6 + 9 + 8


def test_only_generation_feeds_back():
    """Ten lines of the triangle, or four lines and three dashed ones."""
    training, inference = (
        (one.markup.count("<polyline"), one.markup.count("stroke-dasharray"))
        for one in chapter.causality_and_autoregression()
    )
    assert training == (10, 0)
    assert inference == (4 + 3, 3)


def test_leaks_are_counted_and_drawn():
    """A leak is on the diagonal or above it."""
    assert [chapter.leaks(slopes) for slopes, _ in MAPS.values()] == [0, 15, 6, 21]
    for drawing, leaks in zip(DRAWINGS["leaks"], (0, 15, 6, 21), strict=True):
        assert count(drawing, "!") == leaks
        assert count(drawing, "✓") == 15


def test_a_window_reaches_two_positions_further_with_each_layer():
    """Position 9 depends on position 1 from four layers on; never on a later one."""
    rows = chapter.reach_chart().to_dict()["data"]["values"]
    signs = {(r["layers"], r["i"], r["j"]): r["reach"] for r in rows}
    assert [signs[layers, 9, 1] for layers in range(1, 7)] == list("···✓✓✓")
    assert all((sign == "×") == (j > i) for (_, i, j), sign in signs.items())


# The decoder whose mask and shift can be switched off, and the claims.


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(6)
    sizes = {"vocab_size": 20, "d_model": 32, "d_ff": 64, "dropout": 0.0}
    return Transformer(TransformerConfig(num_heads=4, **sizes)).double().eval()


SOURCE = torch.tensor([[5, 6, 7, 8, 9, 2], [5, 6, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 10, 11, 12], [1, 13, 14, 15]])


@torch.no_grad()
def test_with_the_mask_it_is_the_packages_model(model):
    """And without it, it is not."""
    right = model(SOURCE, TARGET)
    torch.testing.assert_close(chapter.predict(model, SOURCE, TARGET, True), right)
    without = chapter.predict(model, SOURCE, TARGET, False)
    assert (without - right).abs().max() > 0.01


@pytest.fixture
def settled(monkeypatch):
    """Calls something and returns the records that the ledger would read of it."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)

    def records(settle, *given):
        shown.clear()
        settle(*given)
        found = [records_in_html(one._repr_html_(), "06-masks")[0] for one in shown]
        return {record.claim_id: record.verdict for record in found}

    return records


def test_the_uses_are_those_of_the_paper(settled, model, monkeypatch):
    """Keys and values from another sentence would be noticed."""
    uses = {"s3.2.3-encoder": "defined", "s3.2.3-cross": "defined"}
    assert settled(chapter.settle_uses, model, SOURCE, TARGET) == uses
    written = chapter.by_the_definition

    def other_memory(model, source, target):
        memory, _ = written(model, source, target)
        return memory, written(model, source.flip(0), target)[1]

    monkeypatch.setattr(chapter, "by_the_definition", other_memory)
    wrong = settled(chapter.settle_uses, model, SOURCE, TARGET)
    assert wrong == {"s3.2.3-encoder": "defined", "s3.2.3-cross": "open"}


@torch.no_grad()
def test_the_mask_is_settled_by_reading_in_steps(settled, model):
    """A row that had seen a later token would differ."""
    at_once = model(SOURCE, TARGET)
    weights = model.attention_weights(SOURCE, TARGET).decoder
    claim = "s3.2.3-mask"
    assert settled(chapter.settle_mask, at_once, at_once, weights)[claim] == "derived"
    unmasked = chapter.predict(model, SOURCE, TARGET, False)
    assert settled(chapter.settle_mask, at_once, unmasked, weights)[claim] != "derived"


def test_both_halves_are_needed(settled):
    """A leak with both, or none without one of them, refutes the claim."""
    claim = "s3.1-no-future"
    assert settled(chapter.settle_no_future, MAPS)[claim] == "derived"
    for name, other in (("mask and shift", "no shift"), ("no mask", "mask and shift")):
        maps = MAPS | {name: MAPS[other]}
        assert settled(chapter.settle_no_future, maps)[claim] != "derived"


# The small language and its translators.


@pytest.fixture(scope="module")
def words():
    return chapter.language()


def test_each_sentence_holds_one_coin(words):
    """Its two translations differ in the participle alone, and no two are alike."""
    assert len(words.pairs) == 2 * 16 * 5 * 16 == len(words.sources)
    english = {" ".join(line) for line, _ in words.pairs}
    assert len(english) == len(words.pairs)
    differ = (words.targets[0] != words.targets[1]).sum(dim=1)
    assert torch.equal(differ, torch.ones_like(differ))
    guess = (words.targets[0] > 0).sum(dim=1).float().mean() * math.log(46)
    assert len(words.vocabulary) == 46
    assert 28.5 < guess < 29.5  # nats a sentence
    row = words.targets[1, 0].tolist()
    assert words.words([chapter.BOS, *row]) == words.pairs[0][1][1]


@pytest.mark.parametrize("kind", ["verb", "noun"])
def test_one_word_is_replaced_by_another_of_its_kind(words, kind):
    at, other = chapter._replacements(words, kind)
    rows = torch.arange(chapter.TESTS)
    first = words.targets[0, : chapter.TESTS]
    assert (first[rows, at] != other).all()
    if kind == "verb":
        assert torch.equal(words.targets[1, rows, at], other)
    else:
        genders = dict(chapter.NOUNS.values())
        for before, after in zip(first[rows, at].tolist(), other.tolist(), strict=True):
            names = words.vocabulary[before], words.vocabulary[after]
            assert genders[names[0]] == genders[names[1]]


@pytest.fixture(scope="module")
def runs(words):
    """One seed of each decoder; the fourth, without both, as well."""
    return [
        chapter.train(words, mask, shift, seed=1)
        for mask, shift in chapter.VARIANTS.values()
    ]


def test_what_the_text_says_of_the_decoders_is_true(words, runs):
    """With the first seed; the chapter itself checks all three."""
    table = chapter.scores(words, runs)
    chapter.check_scores(table)
    shown = chapter.scores_table(table)
    assert list(shown.index) == list(chapter.VARIANTS)
    assert shown.loc["no shift", "follows the noun"] == "100%"
    swapped = table.assign(decoder=table["decoder"].tolist()[::-1])
    with pytest.raises(AssertionError):
        chapter.check_scores(swapped)


def test_without_both_it_is_as_without_the_shift(runs):
    """Two loss curves that cannot be told apart, and the order of the four."""
    last = [sum(run.losses[-10:]) / 10 for run in runs]
    assert last[3] == pytest.approx(last[2], rel=0.2)
    assert [chapter.name_of(run) for run in runs] == list(chapter.VARIANTS)
    steps = [chapter.passes_the_coin(run) for run in runs]
    assert steps[0] is None
    assert steps[2] < steps[1]


def test_without_the_shift_it_repeats_what_it_reads(words, runs):
    """Even if the first word is given, and the honest decoder hardly ever does."""
    assert chapter.repeated(words, runs[2]) == 1
    assert chapter.repeated(words, runs[0]) < 0.2
    table = chapter.written_table(words, [runs[0], runs[2]])
    for said in table.loc["no shift, first word given"]:
        assert len(dict.fromkeys(said.split())) == 1


# What the chapter says of queries that may attend to nothing, and of practice.

SCORES = [2.0, 1.0, 0.0, -1.0]


@pytest.mark.parametrize("dtype", TYPES)
def test_who_may_attend_to_nothing(dtype):
    """NaN with −∞, the plain mean with a large finite number, and ours zeros."""
    scores = torch.tensor(SCORES, dtype=dtype)
    forbid = torch.ones(4, dtype=torch.bool)
    assert scores.masked_fill(forbid, -math.inf).softmax(dim=-1).isnan().all()
    lowest = torch.full_like(scores, torch.finfo(dtype).min)
    assert (lowest.softmax(dim=-1) == 0.25).all()
    # Two such masks, added, are −∞ again.
    assert (scores + lowest + lowest).softmax(dim=-1).isnan().all()
    if dtype == torch.float16:
        with pytest.raises(RuntimeError):
            scores.masked_fill(forbid, -1e9)
    else:
        assert (scores.masked_fill(forbid, -1e9).softmax(dim=-1) == 0.25).all()
    q, k = torch.ones(1, 1, dtype=dtype), torch.ones(4, 1, dtype=dtype)
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    assert (attend(q, k, k, nothing)[1] == 0).all()
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, k, nothing)
    assert (theirs == 0).all()


@pytest.mark.parametrize(
    ("tokens", "empty"),
    [([[0, 0, 5, 6]], 2), ([[5, 6, 0, 0]], 0), ([[0, 0, 0, 0]], 4)],
    ids=["left", "right", "all"],
)
def test_padding_on_the_left_leaves_rows_with_nothing(tokens, empty):
    may = causal_mask(4) & padding_mask(torch.tensor(tokens), 0)
    assert (~may.any(dim=-1)).sum() == empty


def test_in_another_library_true_means_the_opposite():
    """All weight on the future, and NaN in the last row."""
    layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
    x = torch.randn(1, 4, 8)
    _, weights = layer(x, x, x, attn_mask=causal_mask(4))
    assert weights[0, :3].tril().abs().max() == 0
    assert weights[0, 3].isnan().all()


def test_a_later_score_shrinks_what_a_zero_after_the_softmax_leaves():
    """And does nothing to a row that was masked before it."""
    may = torch.tensor([True, True, False, False])
    low = torch.tensor([2.0, 1, 4, 1]).log()
    high = torch.tensor([2.0, 1, 9, 1]).log()
    after = [one.softmax(dim=-1)[1] for one in (low, high)]
    before = [
        one.masked_fill(~may, -math.inf).softmax(dim=-1)[1] for one in (low, high)
    ]
    assert after[1] < after[0]
    assert before[0] == before[1]
