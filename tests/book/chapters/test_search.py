"""Chapter 17's searches, on tables and on translators that are hardly trained."""

import math
from types import SimpleNamespace

import pytest
import torch

from aiayn.inference import beam_search, beam_search_n_best, greedy_search
from aiayn_book import paper
from aiayn_book.chapters import search as chapter
from aiayn_book.chapters.search import BOS, EOS
from tests.book.chapters.drawings import check_words
from tests.book.conftest import drawn


@pytest.fixture(scope="module")
def translators():
    return chapter.train_translators(seeds=(1, 2), steps=90, drawn=2_500)


@pytest.fixture(scope="module")
def recorded():
    return chapter.Recorded()


# The table


def test_the_table_s_sentences_are_a_distribution():
    for table in (chapter.TABLE, chapter.CONFIDENT):
        assert math.isclose(sum(chapter.table_sentences(table).values()), 1.0)
        for row in table.values():
            assert math.isclose(sum(row.values()), 1.0)


def test_greedy_a_beam_of_two_and_one_of_three_find_what_the_text_says():
    sentences = chapter.table_sentences()
    for width, words, p in (
        (1, "Der Hund bellt", 0.132),
        (2, "Ein Hund bellt", 0.198),
        (3, "Der Hase", 0.21),
    ):
        best = chapter.best_found(chapter.beam_states(width))
        assert " ".join(best[:-1]) == words
        assert math.isclose(sentences[best], p)
    assert max(sentences.values()) == sentences["Der", "Hase", "</s>"]
    states = chapter.beam_states(2)
    assert states["Der", "Hase"] == "dropped"
    assert states["Ein", "Hund", "</s>"] == "finished"
    assert ("Der", "Hase", "</s>") not in states


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_library_searches_a_table_as_the_drawing_does(width):
    decoder, source = chapter.TableDecoder(chapter.TABLE), torch.tensor([[EOS]])
    knobs = {"beam_size": width, "length_penalty": 0.0}
    [found] = beam_search(decoder, source, bos_id=BOS, eos_id=EOS, **knobs)
    words = [decoder.vocabulary[token] for token in found.tokens]
    best = chapter.best_found(chapter.beam_states(width))
    assert (*words, "</s>") == best
    p = chapter.table_sentences()[best]
    assert math.isclose(math.exp(found.log_probability), p, rel_tol=1e-5)


def test_a_confident_model_s_early_ends_are_no_reason_to_stop():
    """Two have ended after two steps, and the search goes on to the sentence."""
    states = chapter.beam_states(2, chapter.CONFIDENT)
    ends = [one for one, state in states.items() if state == "finished"]
    assert len([one for one in ends if len(one) <= 2]) == 2
    decoder = chapter.TableDecoder(chapter.CONFIDENT)
    [found] = beam_search(
        decoder, torch.tensor([[EOS]]), bos_id=BOS, eos_id=EOS, beam_size=2
    )
    assert len(found.tokens) == 3
    assert "−6.9" in chapter.early_stop().markup


def test_the_drawings_words_stay_inside():
    for drawing in (
        chapter.tree(1, "Greedy search"),
        chapter.tree(2, "A beam of two"),
        chapter.early_stop(),
        *chapter.suspects(),
        *chapter.walks(),
    ):
        check_words(drawing)


def test_the_tree_shows_what_is_computed():
    """Greedy search computes the dropped ones too, a beam of two more of them."""
    for width, name in ((1, "Greedy"), (2, "Beam")):
        drawing = chapter.tree(width, name).markup
        boxes = drawing.count('height="38"')
        assert boxes == len(chapter.beam_states(width))
        assert "0.210" in drawing


# The translators


def test_every_tenth_checkpoint_counts_once_in_the_mean(translators):
    _, checkpoints = translators.trained[1]
    assert len(checkpoints) == 10
    name = next(iter(checkpoints[0]))
    stacked = torch.stack([one[name] for one in checkpoints[-5:]])
    mean = chapter.average(checkpoints[-5:])
    torch.testing.assert_close(mean[name], stacked.mean(dim=0))
    torch.testing.assert_close(translators.model(1).state_dict()[name], mean[name])


def test_the_rate_at_the_end_is_what_the_text_says():
    """Of the peak: a fifth in the paper, about two fifths in the small trainings."""
    base = paper.BASE
    assert round(chapter.learning_rate(base.steps, base.warmup_steps), 2) == 0.2
    assert round(chapter.learning_rate(chapter.STEPS), 2) == 0.41
    assert base.training_hours * 60 / 10 == chapter.STEPS / chapter.EVERY == 72


def test_a_beam_of_one_is_greedy_and_rows_are_counted(translators):
    found, rows = translators.decode(1, beam=1)
    model = translators.model(1)
    plain = greedy_search(model, translators.sources, bos_id=BOS, eos_id=EOS)
    assert [one.tokens for one in found] == [one.tokens for one in plain]
    # One row for each token and for the end, unless a limit ended the output.
    steps = sum(len(one.tokens) + 1 for one in plain)
    assert rows == pytest.approx(steps / len(plain), rel=0.01)
    assert "decode_step" not in vars(model)


def test_quality_knows_the_perfect_translation():
    references = [[3, 4, 5, 6, 7], [8, 9, 10, 11]]
    perfect = chapter.quality(references, references)
    assert perfect == {"BLEU": pytest.approx(100), "exact, %": 100, "length": 1}
    half = chapter.quality([[3, 4, 5, 6, 7], [8, 9]], references)
    assert half["exact, %"] == 50
    assert half["length"] == 7 / 9


def test_the_library_s_search_agrees_with_itself(translators):
    """And a search that stops at K finished outputs does not."""

    def same(model, source, width, alpha):
        knobs = {"beam_size": width, "length_penalty": alpha}
        ends = {"bos_id": BOS, "eos_id": EOS}
        [best] = beam_search(model, source[None], **knobs, **ends)
        return best.score, best.tokens

    def second(model, source, width, alpha):
        knobs = {"beam_size": width, "length_penalty": alpha}
        ends = {"bos_id": BOS, "eos_id": EOS}
        [best] = beam_search_n_best(model, source[None], num_best=2, **knobs, **ends)
        return best[-1].score, best[-1].tokens

    some = {"sentences": 4, "widths": (2, 4), "alphas": (0.6,)}
    found = chapter.agreement(same, translators, **some)
    assert (found.searches, found.different, found.furthest) == (16, 0, 0.0)
    found = chapter.agreement(second, translators, **some)
    assert found.different == 16
    assert found.furthest > 0


def test_gains_are_differences_within_a_seed(translators):
    runs = translators.compare("beam", (1, 2))
    gains = chapter.gains(runs, "BLEU", 1)
    assert (gains.loc[1] == 0).all()
    by = runs.set_index(["beam", "seed"]).BLEU
    assert gains.loc[2, 2] == by[2, 2] - by[1, 2]
    assert len(chapter.beam_charts(runs)) == 2
    for chart in chapter.beam_charts(runs):
        assert "<svg" in drawn(chart)


# Greedy beside beam


def found(tokens, log_probability):
    return SimpleNamespace(tokens=tokens, log_probability=log_probability)


@pytest.fixture
def three():
    """Same and right; the beam right; the beam probable and wrong; greedy ahead."""
    greedy = found([3], -1), found([4, 5], -2), found([6], -2), found([7], -1)
    beam = found([3], -1), found([4], -1), found([9], -1), found([8], -2)
    return greedy, beam, [[3], [4], [6], [1]]


def test_sentences_are_counted_by_both_questions(three):
    counts = chapter.greedy_beside_beam(*three)
    same, beam, greedy = chapter.FOUND
    assert counts.loc[same, "both right"] == 1
    assert counts.loc[beam, "only beam right"] == 1
    assert counts.loc[beam, "only greedy right"] == 1
    assert counts.loc[greedy, "both wrong"] == 1
    assert counts.to_numpy().sum() == 4
    assert "<svg" in drawn(chapter.outcome_chart(counts))


def test_the_case_is_one_that_only_the_beam_gets_right(three):
    assert chapter.instructive_case(*three) == 1


# Averages


def test_the_mean_helps_where_the_rate_stays_and_not_where_it_falls():
    last, mean = chapter.walk_distances(False)
    assert mean < 0.6 * last
    last, mean = chapter.walk_distances(True)
    assert 0.95 * last < mean < 1.1 * last


def test_a_walk_ends_at_its_last_checkpoint():
    one = chapter.walk(False)
    assert (one.path[-1] == one.checkpoints[-1]).all()
    assert (one.path[-11] == one.checkpoints[-2]).all()


# Search errors and model errors


def test_errors_are_bounded_where_exact_search_gave_up():
    import pandas as pd

    exact = pd.DataFrame(
        [  # a search error of greedy and of the model; solved and right; not solved
            {"best": -1.0, "greedy": -2.0, "beam 4": -1.0, "beam 32": -1.0}
            | {"reference": -3.0},
            {"best": -1.0, "greedy": -1.0, "beam 4": -1.0, "beam 32": -1.0}
            | {"reference": -1.0},
            {"best": None, "greedy": -4.0, "beam 4": -3.0, "beam 32": -3.0}
            | {"reference": -3.0},
        ]
    ).assign(seed=1)
    shares = chapter.error_shares(exact).set_index("errors of")
    third = pytest.approx(1 / 3)
    assert shares.certain.to_dict() == {
        "greedy": pytest.approx(2 / 3),
        "beam 4": 0,
        "beam 32": 0,
        "model": third,
    }
    assert shares.possible["beam 4"] == third
    assert "<svg" in drawn(chapter.error_chart(shares.reset_index()))


# The record


def test_the_text_quotes_the_record(recorded):
    """Speed, rows, log-probabilities and the test set, as the sentences say them."""
    ms = {k: recorded.chosen(beam=k).ms.mean() for k in (1, 4, 8)}
    assert {k: round(value, 1) for k, value in ms.items()} == {1: 1.3, 4: 4.0, 8: 10.2}
    rows = {k: recorded.chosen(beam=k)["rows"].mean() for k in (1, 4)}
    assert round(rows[4] / rows[1]) == 4
    assert round(ms[4] / ms[1]) == 3
    plain = recorded.chosen(alpha=0.0)
    assert round(plain.log_probability.mean(), 1) == -5.4
    assert round(plain.reference_log_probability.mean(), 1) == -26.1
    proved = plain.reference_is_more_probable.sum() / plain.sentences.sum()
    assert round(proved, 3) == 0.002
    assert 0.975 < recorded.chosen(alpha=2.0).length_ratio.mean() < 0.985
    tests = [run["test"] for run in recorded.runs]
    assert [round(test["bleu"], 2) for test in tests] == [40.27, 40.27, 40.57]
    assert {test["alpha"] for test in tests} == {2.0}
    for test in tests:
        ratio = float(test["printed"].split("ratio = ")[1].split()[0])
        assert 1.005 < ratio < 1.02
    before = [chapter.load_record(run["name"])["test"]["bleu"] for run in recorded.runs]
    assert [round(score, 2) for score in before] == [40.26, 40.57, 41.01]


def test_the_mean_of_five_is_a_little_worse_where_the_rate_falls_to_zero(recorded):
    table = chapter.perplexities(recorded)
    assert (table.loc[5] > table.loc[1]).all()
    assert (table.loc[5] < 1.01 * table.loc[1]).all()


def test_two_settings_of_fifteen_differ_clearly(recorded):
    found = chapter.recorded_gains(recorded)
    verdicts = {name: chapter.verdict(table) for name, table in found.items()}
    clear = {name: one for name, one in verdicts.items() if one != "within noise"}
    assert clear == {"α = 2": "gains", "input + 0": "loses"}
    assert len(verdicts) == 15
    assert round(-found["greedy"].gain.mean(), 1) == 0.7
    assert "<svg" in drawn(chapter.recorded_chart(found))


def test_the_curse_is_there_without_a_penalty_only(recorded):
    wide = chapter.wide_beams(recorded)
    for (alpha, beam), rows in wide[wide.beam > 4].groupby(["alpha", "beam"]):
        assert (rows.gain < 0).all() == (alpha == 0), beam
        if alpha == 0:
            assert (rows.high > 0).sum() == 1, beam
    for chart in chapter.curse_charts(wide):
        assert "<svg" in drawn(chart)
