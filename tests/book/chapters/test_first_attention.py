"""Chapter 2: its drawings show attention, its tasks are what the text says."""

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aiayn_book import claims
from aiayn_book.chapters import first_attention as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

RUNS = {v: [(None, 0.5), (None, 1.0), (None, 0.98)] for v in chapter.VERSIONS}
DRAWINGS = {
    "step": [chapter.bahdanau_step(), chapter.bahdanau_step(phone=True)],
    "tanh": chapter.along_the_tanh(),
    "parts": [chapter.two_parts(), chapter.parts_deleted(RUNS)],
    "jobs": [chapter.what_remains()],
}


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_the_step_that_is_drawn_is_a_softmax():
    """The weights are those of the scores, and the text's 24.1 is their sum."""
    shown = [t for *_, t in texts(chapter.bahdanau_step())]
    scores = torch.tensor([-1.0, 0.5, 3.0, -1.0, 0.5])
    assert f"{scores.exp().sum():.1f}" == "24.1"
    for weight in scores.softmax(dim=0).tolist():
        assert f"{weight:.2f}" in shown


def test_the_table_by_hand():
    assert chapter.attend_by_hand(0) == pytest.approx([9 / 13, 3 / 13, 1 / 13])


@pytest.mark.parametrize("state", [-2.0, 1.0, 5.0])
def test_without_the_tanh_the_state_does_not_matter(state):
    """And with it the order of the weights stays, since one unit only rises."""
    plain = chapter.attend_by_hand(0, squash=lambda x: x)
    assert chapter.attend_by_hand(state, squash=lambda x: x) == pytest.approx(plain)
    weights = chapter.attend_by_hand(state)
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("query", [-1.0, 0.0, 1.0])
def test_with_two_units_the_query_selects(query):
    """The chart's second form is largest at the key that is minus the query."""
    keys = torch.tensor([1.0, 0.0, -1.0])
    total = query + keys
    score = torch.tanh(total + 1) - torch.tanh(total - 1)
    assert keys[score.argmax()] == -query


@pytest.fixture(scope="module")
def data():
    return chapter.short_sentences()


def test_the_sentences_are_short_and_their_gold_is_theirs(data):
    assert all(
        max(map(len, (s.source_tokens, s.target_tokens))) <= 8 for s in data.test
    )
    k = next(k for k, s in enumerate(data.test) if s.alignment)
    pairs = {(i, j) for j, i in data.gold[k].nonzero().tolist()}
    assert pairs == set(data.test[k].alignment)
    assert not {s.source for s in data.train} & {s.source for s in data.test}


def test_agreement_of_a_perfect_map_and_of_one_that_is_shifted(data):
    """Gold weights are always right, and rows that are shifted are found out."""
    maps = [data.gold.float()]
    table = chapter.agreement(maps, data)
    assert table.loc["attention, seed 0"].tolist() == [1, 1, 1]
    assert table.loc["same position"].tolist()[1:] == [1, 0]
    shares = chapter.off_by_one(maps, data).iloc[0]
    assert shares["gold found"] == 1
    assert shares["off by one"] < 0.5
    late = [data.gold.float().roll(1, dims=1)]
    assert chapter.off_by_one(late, data).iloc[0]["off by one"] > 0.99


def test_articles_that_attend_to_the_next_word(data):
    """Weights one position to the right of gold: every article misses, and so."""
    ahead = data.gold.float().roll(1, dims=2)
    row = chapter.articles([ahead], data).iloc[0]
    assert row["articles"] < 0.2  # "zum" and its like have two partners
    assert row["missed: next word"] > 0.98  # but for two words with a gap


def test_the_reference_map_is_of_a_sentence_that_was_learnable(data):
    drawn = chapter.example_map([data.gold.float()], data)
    assert drawn.seed == 0
    assert drawn.source.count(" ") >= 4
    assert "zum" in drawn.target.split()  # the text speaks of it


def test_sensitivity_of_a_layer_that_is_known():
    """Each output is its own word plus a quarter of the word before."""

    def layer(x):
        return x + 0.25 * F.pad(x[:, :-1], (0, 0, 1, 0))

    felt = chapter.sensitivity(layer, torch.randn(5, 3, dtype=torch.float64))
    expected = 0.8 * torch.eye(5) + 0.2 * torch.ones(4).diag(-1)
    expected[0, 0] = 1
    torch.testing.assert_close(felt, expected.double(), rtol=1e-6, atol=1e-9)


def test_one_letter_is_flagged():
    x, letter = chapter.flagged(64, 10, torch.Generator().manual_seed(0), distance=4)
    assert ((x >= 8).sum(dim=1) == 1).all()
    assert torch.equal(x[:, 10 - 1 - 4] - 8, letter)


def test_questions_have_one_answer():
    """Names differ, and the name asked for has the letter of the answer."""
    given, answer, distance = chapter.questions(
        32, 12, torch.Generator().manual_seed(1)
    )
    names, letters, asked = given
    assert all(len(set(row)) == 12 for row in names.tolist())
    at = (names == asked[:, None]).int().argmax(dim=1)
    assert torch.equal(letters.gather(1, at[:, None])[:, 0], answer)
    assert torch.equal(12 - at, distance)


class Perfect(nn.Module):
    """Looks the answer up."""

    def __init__(self, attend):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, names, letters, asked):
        at = (names == asked[:, None]).int().argmax(dim=1, keepdim=True)
        return 9 * F.one_hot(letters.gather(1, at)[:, 0], 4).float() + 0 * self.unused


def test_recall_is_measured_in_bands_of_four():
    rows = chapter.train_recall(Perfect, True, seed=0, steps=1)
    assert [row[:2] for row in rows if row[0] == 12] == [(12, 4), (12, 8), (12, 12)]
    assert {row[2] for row in rows} == {1.0}


def test_load_remains_a_burden_after_five_times_as_much_training():
    """What the text says beside Figure 2.6, for its first seed."""
    rows = chapter.train_recall(chapter.Recall, False, seed=0, steps=3000)
    near = {words: share for words, distance, share in rows if distance == 4}
    assert near[4] == pytest.approx(0.82, abs=0.05)
    assert near[12] == pytest.approx(0.55, abs=0.05)


def recalled(attention, state):
    """A table as `recall` makes it, with these shares."""
    rows = [
        (kind, seed, words, band, share)
        for kind, share in (("attention", attention), ("last state", state))
        for seed in (0, 1, 2)
        for words in (4, 12, 36)
        for band in range(4, words + 1, 4)
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "words", "distance", "right"])


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1.0, "reproduced at small scale"), (0.9, "not reproduced at small scale")],
)
def test_the_claim_about_distance_can_fail(share, verdict, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    kept = [dict.fromkeys(chapter.DISTANCES, 1.0)]
    chapter.settle_distance(recalled(share, 0.4), kept)
    (found,) = records_in_html(shown.pop()._repr_html_(), "02-first-attention")
    assert (found.claim_id, found.verdict) == ("s1-distance", verdict)


def test_shares_are_picked_and_drawn_on_one_scale():
    table = recalled(1.0, 0.25)
    assert chapter.share_right(table, "last state", 12, 8) == [0.25] * 3
    assert chapter.span([0.25, 0.5]) == "25 to 50 %"
    assert chapter.span([0.5, 0.501]) == "50 %"
    for chart in chapter.recall_charts(table):
        for layer in chart.to_dict()["layer"]:
            assert layer["encoding"]["y"]["scale"]["domain"] == [0, 1]


@pytest.mark.parametrize("writer", ["GRU", chapter.WORDS, chapter.PLACED])
def test_a_source_of_words_alone_is_a_bag(writer):
    """Shuffled letters change nothing; with positions they do."""
    torch.manual_seed(0)
    x, before = chapter.letters(16)
    order = torch.randperm(chapter.LENGTH)
    for reader, same in ((chapter.WORDS, True), (chapter.PLACED, False)):
        model = chapter.Writer(reader, writer)
        with torch.no_grad():
            change = (model(x[:, order], before) - model(x, before)).abs().max()
        assert (change < 1e-5) == same


def test_a_random_bag_writes_letters_to_come_as_often_as_chance():
    """The two measures agree where nothing was learned: near, and below one."""
    torch.manual_seed(0)
    bag = chapter.bag_of_letters(
        {(chapter.WORDS, "GRU"): [(chapter.Writer(chapter.WORDS, "GRU"), 0.1)]}
    )
    assert bag.moved < 1e-5
    assert 0.6 < bag.any_letter < 0.8
    assert bag.waiting[0] < bag.any_letter


def test_one_function_cannot_find_every_successor():
    """The identity of the text, for random vectors."""
    vectors = torch.randn(8, 5, dtype=torch.float64)
    after = vectors.roll(-1, dims=0)
    gap = (vectors * vectors).sum() - (vectors * after).sum()
    torch.testing.assert_close(gap, 0.5 * (vectors - after).square().sum())
