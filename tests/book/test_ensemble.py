"""Several models as one: the mean of their probabilities, in any search."""

import pytest
import torch
from torch.testing import assert_close

from aiayn.data import Batch, Tokenizer
from aiayn.errors import InputError
from aiayn.inference import (
    beam_search,
    output_limits,
    perplexity,
    translate,
)
from aiayn.inference.hypothesis import eval_mode
from aiayn.model import shift_right
from aiayn.storage import RunFolder, describe_config, save_tensors
from aiayn_book.ensemble import Ensemble, load_ensemble
from tests.inference.conftest import LINES
from tests.inference.models import (
    BOS,
    ENDS,
    random_ensemble,
    random_recurrent,
    random_source,
    random_transformer,
)

# Float64 sums of a few dozen terms of size ten, added in another order.
CLOSE = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, vocab_size=60)


def test_the_next_token_has_the_mean_of_the_probabilities():
    ensemble = random_ensemble()
    source, target = random_source([4, 2]), random_source([5, 3], seed=1)
    with eval_mode(ensemble):
        found = ensemble(source, target).exp()
        parts = [model(source, target).softmax(-1) for model in ensemble.models]
        assert_close(found, (parts[0] + parts[1]) / 2, **CLOSE)
        assert_close(found.sum(-1), torch.ones(2, 5, dtype=torch.float64), **CLOSE)
        assert not torch.allclose(parts[0], parts[1], atol=0.1), "no mean to see"


def test_one_model_twice_finds_what_it_finds_alone():
    model = random_transformer()
    source = random_source([5, 1, 3])
    options = {"beam_size": 3, "extra_length": 5, **ENDS}
    alone = beam_search(model, source, **options)
    twice = beam_search(Ensemble([model, model]), source, **options)
    assert [one.tokens for one in twice] == [one.tokens for one in alone]
    assert [one.score for one in twice] == pytest.approx([one.score for one in alone])


def test_two_models_can_find_what_neither_finds_alone():
    source = random_source([5, 4, 3, 6])
    options = {"extra_length": 5, **ENDS}
    ensemble = random_ensemble()
    together = [one.tokens for one in beam_search(ensemble, source, **options)]
    for model in ensemble.models:
        assert together != [one.tokens for one in beam_search(model, source, **options)]


def test_perplexity_is_that_of_the_mean():
    ensemble = random_ensemble()
    source, target = random_source([4, 2]), random_source([5, 3], seed=1)
    found = perplexity(ensemble, [Batch(source, target)], bos_id=BOS)
    with eval_mode(ensemble):
        log_probs = ensemble(source, shift_right(target, BOS))
    picked = log_probs.gather(2, target[..., None])[..., 0][target != 0]
    assert found.tokens == 8
    assert found.loss == pytest.approx(-picked.mean().item(), abs=1e-10)


def test_the_shortest_table_of_positions_is_the_limit_of_all():
    long = random_transformer(positions="learned", max_length=9)
    short = random_transformer(positions="learned", max_length=7)
    source = random_source([5, 2])
    for models in ([long, short], [short, long], [random_recurrent(), short]):
        assert output_limits(Ensemble(models), source, 4).tolist() == [7, 6]


@pytest.mark.parametrize("sizes", [(), (9, 8)])
def test_an_ensemble_needs_models_of_one_vocabulary(sizes):
    with pytest.raises(InputError, match=r"at least one model|9, 8 entries"):
        Ensemble([random_transformer(vocab_size) for vocab_size in sizes])


def test_translates_and_moves_as_one_model(tokenizer):
    models = [random_transformer(vocab_size=60, seed=seed) for seed in (2, 3)]
    ensemble = Ensemble(models).float()
    assert all(next(model.parameters()).dtype == torch.float32 for model in models)
    found = translate(LINES, ensemble, tokenizer, extra_length=3)
    assert len(found) == len(LINES)


def test_runs_of_two_tokenizers_cannot_write_together(tokenizer, tmp_path):
    first, second, other = paths = [tmp_path / name for name in ("1", "2", "other")]
    another = Tokenizer.train(LINES, vocab_size=59)
    for path, own in zip(paths, (tokenizer, tokenizer, another), strict=True):
        model = random_transformer(own.vocab_size).float()
        info = {"step": 1, "model": describe_config(model.config)}
        save_tensors(RunFolder(path).best, model.state_dict(), info)
        own.save(RunFolder(path).tokenizer)
    ensemble, found = load_ensemble([first, second])
    assert len(ensemble.models) == 2
    assert not any(module.training for module in ensemble.modules())
    assert found.digest == tokenizer.digest
    with pytest.raises(InputError, match=f"{other} was trained with another tokenizer"):
        load_ensemble([first, other])
    with pytest.raises(InputError, match="at least one"):
        load_ensemble([])
