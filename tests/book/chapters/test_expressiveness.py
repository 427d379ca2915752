"""The appendix *What a Transformer can express*: its models, tasks and weights."""

import pytest
import torch

from aiayn import Transformer
from aiayn_book.chapters import expressiveness as chapter
from tests.book.chapters.drawings import check_words

REVERSER = chapter.by_arithmetic(chapter.turn(5, reflect=True))
SHARES = chapter.padded_on_the_right(REVERSER)


@pytest.mark.parametrize(
    "drawing",
    [
        chapter.who_sees_the_last(),
        chapter.two_heads(),
        chapter.reflected_and_turned(),
        chapter.compartments(),
        chapter.right_padding(SHARES),
    ],
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_only_a_causal_model_hides_the_last_word():
    found = chapter.depends_on_the_last()
    assert found["translator, parser"] == [1.0] * 4
    assert found["language model"] == [0.0] * 5 + [1.0]
    assert found["classifier"] == [1.0]


def test_the_five_tasks_are_what_their_names_say():
    tasks = chapter.five_tasks()
    assert len({len(pairs) for pairs in tasks.pairs.values()}) == 1
    assert all(x == y for x, y in tasks.pairs["copy"])
    assert all(x == y[::-1] for x, y in tasks.pairs["reverse"])
    assert all(list(y) == sorted(x) for x, y in tasks.pairs["sort"])
    source, target = tasks.data["reverse"]
    x, y = tasks.pairs["reverse"][0]
    assert tasks.text(source[0].tolist()) == " ".join(("reverse", *x))
    assert tasks.text(target[0].tolist()) == " ".join(y)


def test_the_grammar_has_eleven_constructions():
    assert len({sample.kind for sample in chapter.drawn()}) == 11


def test_no_string_is_held_out_and_trained():
    strings = [x for x, _ in chapter.five_tasks().pairs["copy"]]
    assert len(strings) == len(dict.fromkeys(strings))


def test_exact_is_what_a_search_finds():
    """Also for a model that has learned little."""
    tasks = chapter.five_tasks()
    model = chapter.train_five(tasks, seed=0, steps=20)
    assert chapter.search_agrees(model, tasks, "copy")
    source, target = (side[:4] for side in tasks.data["copy"])
    assert chapter.exact(model, source, target).shape == (4,)


def test_turns_move_and_reflect_positions():
    PE = chapter.POSITIONS
    assert torch.allclose(PE[:20] @ chapter.turn(5).T, PE[5:25], atol=1e-6)
    mirrored = PE[:20] @ chapter.turn(19, reflect=True).T
    assert torch.allclose(mirrored, PE[:20].flip(0), atol=1e-6)


def test_a_vector_has_one_mean_and_one_deviation_whatever_the_word():
    """So that layer normalisation does the same to all."""
    model = chapter.blank(Transformer, 1, 1)
    tokens = torch.tensor([[2, 3, 4, 5]])
    with torch.no_grad():
        x = model.source_positions(model.embedding("source")(tokens))
    assert x.size(-1) == chapter.WIDTH == 82
    for statistic in (x.mean(dim=-1), x.std(dim=-1)):
        assert torch.allclose(statistic, statistic[0, 0].expand(4), atol=1e-6)


def test_padding_on_the_right_spoils_four_of_six_lengths():
    """The first position survives from length 3 on; the others get one word only."""
    assert [min(shares) == 1 for shares in SHARES] == [True, *[False] * 4, True]
    assert SHARES[1] == [0.25, 0.25]
    for shares in SHARES[2:5]:
        assert shares[0] == 1
        assert set(shares[1:]) == {0.25}


def test_what_followed_the_last_time():
    assert chapter.slowly([1, 2, 3, 2, 4, 2]) == [0, 0, 0, 3, 0, 4]


def test_induction_completes_every_short_text():
    inductor = chapter.induction()
    for length in (2, 3, 4, 5):
        right, asked = chapter.follows(inductor, chapter.every_input(length))
        assert right == asked > 0
