"""Chapter 8: its drawings show the numbers of the text, its claims can fail."""

import math
from statistics import median

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig, shift_right
from aiayn.data.grammar.nouns import BY_NAME
from aiayn.model import TokenEmbedding
from aiayn_book import claims
from aiayn_book.chapters import embeddings as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

PAPER = chapter.STARTS["as in the paper"]
DRAWINGS = {
    "three jobs": lambda: [chapter.three_jobs(), chapter.three_jobs(phone=True)],
    "two products": chapter.two_products,
    "rows that move": lambda: [chapter.rows_that_move([torch.eye(12)] * 3)],
    "echo": lambda: [chapter.echo()],
    "fading row": lambda: [chapter.fading_row()],
    "neighbours": chapter.neighbour_lists,
}


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings():
        check_words(drawing)


def test_the_example_by_hand():
    """Entries of variance 1/d_model, a state like LayerNorm's, the text's logits."""
    assert chapter.MATRIX.square().mean().item() == 1 / chapter.MATRIX.size(1)
    assert (chapter.STATE.mean(), chapter.STATE.square().mean()) == (0, 1)
    logits = dict(zip(chapter.WORDS, (chapter.MATRIX @ chapter.STATE), strict=True))
    assert [int(logit) for logit in logits.values()] == [1, 1, -1, -1, 2, 0]
    assert max(logits, key=logits.get) == "trinkt"
    shown = [words for *_, words in texts(chapter.three_jobs())]
    assert [shown.count(f"{number}") for number in ("1", "2")] == [2 + 6 + 2, 1]
    # The two looked-up rows are twice the matrix's: six ones and two minus ones; the
    # state has two of each, and so have the scores.
    assert shown.count("−1") == 2 + 2 + 2


def test_a_shared_gradient_is_the_sum():
    """Of those that three matrices with the same numbers get."""
    one, three = chapter.with_equal_weights(vocab_size=9)
    source, target = torch.tensor([[3, 4]]), torch.tensor([[5, 6]])
    for model in (one, three):
        logits = model(source, shift_right(target, 1))
        F.cross_entropy(logits[0], target[0]).backward()
    found = {use: three.embedding(use).weight.grad for use in chapter.JOBS}
    torch.testing.assert_close(one.output_weight.grad, sum(found.values()))
    moved = {use: found[use].any(dim=1).nonzero()[:, 0].tolist() for use in found}
    assert moved == {"source": [3, 4], "target": [1, 5], "output": list(range(9))}


def test_each_start_is_what_it_says():
    """Entries, factor and shared matrices."""
    for name, start in chapter.STARTS.items():
        model = chapter.untrained(start, 0)
        weights = {use: model.embedding(use).weight for use in ("source", "target")}
        if start.sharing == "one matrix":
            output = model.output_weight
        else:
            output = model.embeddings["output"].weight
        same = (
            weights["source"] is weights["target"],
            weights["source"] is output,
        )
        assert (
            same
            == {
                "one matrix": (True, True),
                "output apart": (True, False),
                "three matrices": (False, False),
            }[start.sharing]
        ), name
        tokens = torch.arange(7)
        for use, weight in weights.items():
            assert weight.std().item() == pytest.approx(start.std, rel=0.03)
            looked_up = model.embedding(use)(tokens)
            torch.testing.assert_close(looked_up, start.factor * weight[tokens])


def test_the_first_loss():
    """Half the variance for small logits, less for large ones; models lie above."""
    assert chapter.excess(1.0) == pytest.approx(0.5, abs=0.02)
    assert chapter.excess(64.0) < 24
    rows = chapter.losses_at_the_start()
    found = {(row["how"], row["variance"]): row["excess"] for row in rows}
    for variance in chapter.VARIANCES:
        by_model = found["untrained models", variance]
        assert by_model > found["random logits", variance]
        if variance <= 1:
            assert by_model == pytest.approx(variance / 2, rel=0.25)
    apart = chapter.mean_first_words(chapter.Start(std=1.0, sharing="output apart"))
    without = apart.loss - math.log(chapter.VOCABULARY)
    assert without == pytest.approx(chapter.excess(64.0), rel=0.1)  # as the text says


def test_the_explanation_of_the_repetition():
    """It takes the shared output, and a row that positions do not hide."""
    found = {name: chapter.mean_first_words(s) for name, s in chapter.STARTS.items()}
    assert found["as in the paper"].repeats > 0.5
    assert found["output apart"].repeats < 0.01
    assert found["no factor"].repeats < 0.02
    start = chapter.STARTS["no factor"]
    assert chapter.mean_first_words(start, positions=False).repeats > 0.9
    read, predicted = chapter.predictions("The duck sleeps.", "Die Ente schläft.", 0)
    assert (read[0], len(read), len(predicted)) == ("start", 5, 5)
    assert sum(map(str.__eq__, read, predicted)) >= 3


def test_the_rows_share():
    """The numbers of the text and of exercise 8.4, the position's half among them."""
    assert chapter.row_shares() == pytest.approx([2 / 3, 2 / 5, 1 / 5, 1 / 10])
    assert chapter.row_shares(2)[-1] == pytest.approx(1 / 80)
    assert chapter.row_shares(2, "pre")[-1] == pytest.approx(2 / 15)
    found = chapter.measured_shares()
    assert found[0] == pytest.approx(2 / 3, abs=0.02)
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.2, abs=0.05)  # 'a fifth', says the text
    assert all(map(float.__gt__, found[2:], chapter.row_shares()[2:]))
    largest = torch.randn(2000, 1000, generator=torch.Generator().manual_seed(0))
    assert largest.amax(dim=1).mean().item() == pytest.approx(3.2, abs=0.1)


def test_less_repetition_in_deeper_stacks_and_more_in_pre_norm():
    """What exercise 8.4 predicts."""
    found = {
        (layers, norm): chapter.mean_first_words(
            PAPER, 2, layers=layers, norm=norm
        ).repeats
        for layers in (1, 2, 4)
        for norm in ("post", "pre")
    }
    for norm in ("post", "pre"):
        shares = [found[layers, norm] for layers in (1, 2, 4)]
        assert shares == sorted(shares, reverse=True)
    assert all(found[n, "pre"] > found[n, "post"] for n in (1, 2, 4))


def test_training_is_the_same_again_and_lowers_the_loss():
    """A few steps: means over five batches, from near the first loss downwards."""
    rows = chapter._train("as in the paper", 0, 15)
    steps, losses = zip(*((row["step"], row["loss"]) for row in rows), strict=True)
    assert steps == (5, 10, 15)
    assert math.log(chapter.VOCABULARY) < losses[0] < 8
    assert losses[2] < losses[0]


def test_gaps_are_paired_by_seed():
    """The last ten steps count, and the first way is what others are compared with."""
    rows = [
        {"step": step, "loss": loss + seed, "way": way, "seed": seed}
        for way, loss in (("a", 1.0), ("b", 3.0))
        for seed in range(3)
        for step in (5, 10, 15, 20)
    ] + [{"step": 5, "loss": 99.0, "way": "b", "seed": 0}]
    gap = chapter.gaps(rows)["b"]
    assert (gap.mean, gap.standard_error) == (2.0, 0.0)
    assert not chapter.first_is_best(rows)  # a's worst seed ties with b's best
    rows = [{**row, "loss": row["loss"] + 5 * (row["way"] == "b")} for row in rows]
    assert chapter.first_is_best(rows)
    assert not chapter.first_is_worst(rows)
    assert chapter.first_is_worst(rows[12:] + rows[:12])


def test_neighbours_are_the_most_similar_rows():
    """By the cosine, whatever the lengths; the word itself is left out."""
    matrix = torch.tensor([[1.0, 0], [9, 1], [0, 1], [-1, 0]])
    english, german = {"a": 0, "b": 1}, {"c": 2, "d": 3}
    words = chapter.Words(english, german, matrix, matrix)
    assert words.neighbours(matrix, "a") == ["b", "c", "d"]
    assert words.same_language(matrix) == 3 / 4  # the nearest word of c is b


def test_what_the_trained_matrix_has_learned():
    """The sentences of the text about neighbours, genders and translations."""
    words = chapter.words()
    after = chapter.gender_agreement(words.after)
    before = chapter.gender_agreement(words.before)
    assert after.share > 0.9
    assert abs(before.share - before.expected) < 0.15
    near = words.neighbours(words.after, "dog")
    assert near == ["bear", "television", "singer"]  # the caption names them
    assert [BY_NAME[n].german for n in near] == ["Bär", "Fernseher", "Sänger"]
    assert {BY_NAME[n].gender for n in ["dog", *near]} == {"m"}
    assert BY_NAME["cat"].gender == "f"
    assert words.same_language(words.after) > 0.9
    assert 0.4 < words.same_language(words.before) < 0.6
    middle = len(words.german) / 2
    for matrix in (words.before, words.after):
        assert abs(median(words.translation_ranks(matrix)) - middle) < 30
    adjectives = words.neighbours(words.after, "old")
    assert adjectives == ["young", "famous", "dirty"]
    assert words.neighbours(words.after, "the") == ["this", "my", "our"]
    mothers = words.neighbours(words.after, "mother")
    assert all({"she", "kin"} <= BY_NAME[name].classes for name in mothers)


def test_things_are_nouns_without_persons():
    names = dict(chapter.things())
    assert names["dog"] == "m"
    assert not {"king", "mother", "queen"} & names.keys()
    assert set(chapter.LABELLED) <= names.keys()


@pytest.fixture
def settled(monkeypatch):
    """Calls something and returns the record that the ledger would read of it."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)

    def record(settle, *given):
        settle(*given)
        (found,) = records_in_html(shown.pop()._repr_html_(), "08-embeddings")
        return found

    return record


class Unscaled(TokenEmbedding):
    def forward(self, tokens):
        return F.embedding(tokens, self.weight)


def test_the_claim_about_the_factor_can_fail(settled):
    right, wrong = TokenEmbedding(20, 16), Unscaled(20, 16)
    assert settled(chapter.settle_scale, right, 16).verdict == "defined"
    assert settled(chapter.settle_scale, wrong, 16).verdict == "open"


def test_the_claim_about_sharing_can_fail(settled):
    def model(tied):
        config = TransformerConfig.tiny(vocab_size=20, tie_embeddings=tied)
        return Transformer(config)

    one, three, two = model(True), model(False), model(False)
    assert settled(chapter.settle_shared, one, three).verdict == "defined"
    assert settled(chapter.settle_shared, three, three).verdict == "open"
    two.embeddings["target"] = two.embeddings["source"]
    assert isinstance(two.embeddings["target"].weight, nn.Parameter)
    assert settled(chapter.settle_shared, two, three).verdict == "open"
