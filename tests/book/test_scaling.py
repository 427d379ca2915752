"""Chapter 23's language model: causal, sized as it says, read from a seeded text."""

import pytest
import torch

from aiayn.errors import InputError
from aiayn_book import scaling


@pytest.fixture
def small_text(monkeypatch):
    """Texts of few sentences."""
    monkeypatch.setattr(scaling, "FIRST", 50)
    monkeypatch.setattr(scaling, "HELD_OUT", 10)
    return scaling.make_text


def test_the_language_model_does_not_see_what_follows():
    """With a later token changed, earlier scores stay bit for bit."""
    model = scaling.LanguageModel(scaling.sized(16, vocab_size=20))
    tokens = torch.randint(20, (2, 7))
    changed = tokens.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 20
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4], after[:, 4])


def test_a_longer_text_begins_with_a_shorter_one(small_text):
    """So the chapter, which makes less of it, trains on what the record did."""
    short, long = small_text(3), small_text(9)
    assert short.words == long.words
    assert torch.equal(short.training, long.training[: len(short.training)])
    assert torch.equal(short.held_out, long.held_out)
    assert len(long.training) == 9 * scaling.ROWS


def test_each_row_goes_on_where_the_one_before_ended(small_text):
    """Every token is predicted once."""
    rows = small_text(3).training
    assert rows.size(1) == scaling.ROW + 1
    assert torch.equal(rows[1:, 0], rows[:-1, -1])


def test_each_token_is_of_one_kind(small_text):
    """English and German by turns, each sentence with its end."""
    text = small_text(3)
    kinds = scaling.token_kinds(text)
    words = [text.words[i] for i in text.held_out[:, 1:].flatten().tolist()]
    assert len(kinds) == len(words)
    names = [scaling.KINDS[kind] for kind in kinds.tolist()]
    assert names[0] == "English words"
    assert {n for n, w in zip(names, words, strict=True) if w == "</s>"} == {
        "end of sentence"
    }
    first = words.index("</s>")
    assert set(names[:first]) <= {"English words", "punctuation"}
    second = words.index("</s>", first + 1)
    assert set(names[first + 1 : second]) <= {"German words", "punctuation"}


def test_losses_by_kind_have_the_loss_as_their_mean(small_text):
    text = small_text(3)
    model = scaling.LanguageModel(scaling.sized(8, len(text.words)))
    by_kind = scaling.losses_by_kind(model, text)
    counts = scaling.token_kinds(text).bincount(minlength=4).tolist()
    total = sum(
        n * loss for n, loss in zip(counts, by_kind.values(), strict=True) if n
    ) / sum(counts)
    assert total == pytest.approx(scaling.held_out_loss(model, text), rel=1e-5)


@pytest.mark.parametrize("steps", [10, 19, 31])
def test_a_training_is_refused_that_the_warm_up_or_the_text_cannot_bear(
    small_text, steps
):
    with pytest.raises(InputError, match=f"steps is {steps}, .* 20 .* 30 are what"):
        scaling.train_size(8, 0, small_text(30), steps)


def test_the_fewest_steps_reach_the_peak_rate(small_text, monkeypatch):
    """The second of them, where a tenth of 20 ends."""
    rates = []
    step = torch.optim.Adam.step

    def noted(self):
        rates.append(self.param_groups[0]["lr"])
        step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", noted)
    scaling.train_size(8, 0, small_text(20), steps=20)
    assert rates[1] == max(rates) == scaling.RATE * 8**-0.5


def test_training_lowers_the_loss_and_a_seed_repeats_it(small_text):
    """Twice the same seed, twice the same loss."""
    text = small_text(30)
    models = [scaling.train_size(8, 0, text, steps=30) for _ in range(2)]
    first, again = (scaling.held_out_loss(model, text) for model in models)
    torch.manual_seed(0)
    fresh = scaling.LanguageModel(scaling.sized(8, len(text.words)))
    assert first == again
    assert first < scaling.held_out_loss(fresh, text)
