"""§6.1: the searches against slow ones, against each other and against every output."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.inference import (
    beam_search,
    beam_search_n_best,
    gnmt_length_penalty,
    greedy_search,
    output_limits,
)
from tests.inference import slow
from tests.inference.models import (
    BOS,
    ENDS,
    EOS,
    PAD,
    TableModel,
    random_ensemble,
    random_recurrent,
    random_source,
    random_transformer,
    table,
)
from tests.inference.uncached import Uncached

MODELS = {
    "transformer": random_transformer,
    "pre-norm": lambda **k: random_transformer(norm="pre", **k),
    "learned positions": lambda **k: random_transformer(positions="learned", **k),
    "rotary positions": lambda **k: random_transformer(positions="rotary", **k),
    "recurrent": random_recurrent,
    "without attention": lambda **k: random_recurrent(attention=False, **k),
    "ensemble": random_ensemble,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
kinds = st.sampled_from(list(MODELS.values()))
seeds = st.integers(0, 10_000)
source_lengths = st.lists(st.integers(1, 5), min_size=1, max_size=4)
LENGTHS = [5, 1, 3, 7, 2, 6]
# Float64 sums of a few dozen terms of size ten, added in another order.
CLOSE = {"rtol": 0, "atol": 1e-10}


def tokens_of(hypotheses):
    return [hypothesis.tokens for hypothesis in hypotheses]


def scores_of(hypotheses):
    return torch.tensor([h.score for h in hypotheses], dtype=torch.float64)


def assert_same(one, other):
    assert tokens_of(one) == tokens_of(other)
    assert_close(scores_of(one), scores_of(other), **CLOSE)


# ---- greedy search


@settings(max_examples=10)
@given(make=kinds, seed=seeds, lengths=source_lengths)
def test_greedy_search_takes_the_most_probable_token(make, seed, lengths):
    model, source = make(seed=seed), random_source(lengths, seed=seed)
    found = greedy_search(model, source, extra_length=4, **ENDS)
    model.eval()
    for hypothesis, row, length in zip(found, source, lengths, strict=True):
        assert hypothesis.tokens == slow.greedy(model, row[:length], length + 4)


@settings(max_examples=10)
@given(make=kinds, seed=seeds, lengths=source_lengths)
def test_a_beam_of_one_is_greedy_search(make, seed, lengths):
    model, source = make(seed=seed), random_source(lengths, seed=seed)
    greedy = greedy_search(model, source, extra_length=8, **ENDS)
    options = {"beam_size": 1, "extra_length": 8, **ENDS}
    assert greedy == beam_search(model, source, length_penalty=0.0, **options)
    assert tokens_of(greedy) == tokens_of(beam_search(model, source, **options))


# ---- beam search


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [random_transformer, random_recurrent])
def test_a_beam_that_holds_every_output_is_exhaustive_search(make, seed, alpha):
    vocab_size, limit = 6, 4
    model = make(vocab_size=vocab_size, seed=seed)
    source = random_source([3], vocab_size, seed)
    every = slow.exhaustive(model, source[0], limit, alpha, vocab_size)
    assert len(every) == 1 + 3 + 9 + 27
    found = beam_search_n_best(
        model,
        source,
        num_best=len(every),
        beam_size=len(every),
        length_penalty=alpha,
        max_length=limit,
        **ENDS,
    )[0]
    assert [(h.tokens) for h in found] == [tokens for _, _, tokens in every]
    scores = torch.tensor([score for score, _, _ in every], dtype=torch.float64)
    assert_close(scores_of(found), scores, **CLOSE)
    log_probs = [h.log_probability for h in found]
    assert log_probs == pytest.approx([log_prob for _, log_prob, _ in every], abs=1e-10)
    assert sum(math.exp(p) for p in log_probs) < 1  # the rest is PAD, BOS and the cut


def test_a_beam_of_all_candidates_of_one_step_is_enough_to_find_the_best():
    """Both rules that end a search are on: they must not lose the best output."""
    for seed in range(4):
        model = random_transformer(vocab_size=6, seed=seed)
        source = random_source([3], 6, seed)
        best = slow.exhaustive(model, source[0], 4, 0.6, 6)[0]
        found = beam_search(model, source, beam_size=40, max_length=4, **ENDS)[0]
        assert found.tokens == best[2]


@settings(max_examples=10)
@given(
    make=kinds,
    seed=seeds,
    lengths=source_lengths,
    beam_size=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    data=st.data(),
)
def test_beam_search_is_what_its_description_says(
    make, seed, lengths, beam_size, alpha, data
):
    """Batched, cached and ended early, it equals the slow search, which is neither."""
    num_best = data.draw(st.integers(1, beam_size))
    model, source = make(seed=seed), random_source(lengths, seed=seed)
    found = beam_search_n_best(
        model,
        source,
        num_best=num_best,
        beam_size=beam_size,
        length_penalty=alpha,
        extra_length=3,
        **ENDS,
    )
    for best, row, length in zip(found, source, lengths, strict=True):
        limit = length + 3
        expected = slow.beam(model, row[:length], limit, beam_size, alpha, num_best)
        assert tokens_of(best) == [tokens for _, _, tokens in expected]
        scores = torch.tensor([s for s, _, _ in expected], dtype=torch.float64)
        assert_close(scores_of(best), scores, **CLOSE)


@settings(max_examples=10)
@given(make=kinds, seed=seeds, lengths=source_lengths, beam_size=st.integers(1, 5))
def test_the_cache_changes_nothing(make, seed, lengths, beam_size):
    model, source = make(seed=seed), random_source(lengths, seed=seed)
    options = {"beam_size": beam_size, "extra_length": 6, **ENDS}
    cached = beam_search(model, source, **options)
    assert_same(cached, beam_search(Uncached(model), source, **options))
    greedy = greedy_search(model, source, extra_length=6, **ENDS)
    plain = greedy_search(Uncached(model), source, extra_length=6, **ENDS)
    assert_same(greedy, plain)


@every_model
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_batch_of_mixed_lengths_is_what_its_sentences_are_one_by_one(make, beam_size):
    source, early = random_source(LENGTHS), 0
    options = {"beam_size": beam_size, "extra_length": 5, **ENDS}
    for seed in (1, 2, 8):
        model = make(seed=seed)
        together = beam_search(model, source, **options)
        alone = [
            beam_search(model, row[None, :length], **options)[0]
            for row, length in zip(source, LENGTHS, strict=True)
        ]
        assert_same(together, alone)
        lengths = torch.tensor([len(h.tokens) for h in together])
        early += ((lengths > 0) & (lengths < lengths.max())).sum()
    assert early > 0, "no sentence left the batch before another: no test"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here")
@every_model
def test_a_gpu_writes_what_the_cpu_writes(make):
    model, source = make(seed=2), random_source(LENGTHS)
    lists = beam_search_n_best(model, source, num_best=4, **ENDS)
    greedy = greedy_search(model, source, **ENDS)
    model, source = model.cuda(), source.cuda()
    for one, other in zip(
        lists, beam_search_n_best(model, source, num_best=4, **ENDS), strict=True
    ):
        assert_same(one, other)
    assert_same(greedy, greedy_search(model, source, **ENDS))


class Elsewhere(torch.Tensor):
    """Ids on another device: of no use to anybody before they have been moved."""

    FREE = ("__get__", "dim", "size", "__len__")

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.to:
            assert args[1] == torch.device("cpu")
            return args[0].as_subclass(torch.Tensor)
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.Tensor.as_subclass or func.__name__ in cls.FREE:
                return func(*args, **(kwargs or {}))
        raise RuntimeError("Expected all tensors to be on the same device")


SEARCHES = {
    "greedy": greedy_search,
    "beam": beam_search,
    "n best": partial(beam_search_n_best, num_best=2),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("wrap", [lambda model: model, Uncached], ids=["", "uncached"])
@every_model
def test_a_source_goes_where_the_model_is(make, wrap, search):
    """As those of `translate` and `perplexity` do."""
    model, source = wrap(make()), random_source(LENGTHS)
    elsewhere = source.as_subclass(Elsewhere)
    with pytest.raises(RuntimeError, match="on the same device"):
        elsewhere != PAD  # noqa: B015
    options = {"max_length": 4, **ENDS}
    assert search(model, elsewhere, **options) == search(model, source, **options)


def test_ends_take_no_place_from_what_goes_on():
    """Two of the second step's four best are ends, and both of the others go on.

    The last of them, 4 and 6 with 0.4 · 0.4, becomes the second best output.
    """
    following = {BOS: {3: 0.6, 4: 0.4}, 3: {EOS: 0.5, 5: 0.5}, 4: {EOS: 0.6, 6: 0.4}}
    following |= {5: {5: 0.999, EOS: 0.001}, 6: {EOS: 1.0}}
    model, source = TableModel(table(7, following)[None]), torch.tensor([[0]])
    options = {"num_best": 2, "beam_size": 2, "max_length": 3}
    [found] = beam_search_n_best(model, source, **options, **ENDS)
    assert tokens_of(found) == [[3], [4, 6]]


def test_hopeless_ends_do_not_end_the_search():
    """A sure model: at each word the end is the second choice, with one in a thousand.

    After two words two outputs are finished, both of them beginnings of what it means.
    """
    sure = {token: {token + 1: 0.999, EOS: 0.001} for token in range(3, 9)}
    model = TableModel(table(10, {BOS: {3: 1.0}, 9: {EOS: 1.0}} | sure)[None])
    source = torch.tensor([[0]])
    for beam_size in (1, 2, 3, 4):
        found = beam_search(model, source, beam_size=beam_size, **ENDS)[0]
        assert found.tokens == [3, 4, 5, 6, 7, 8, 9]


def test_the_n_best_list_is_sorted_and_starts_with_the_best():
    model, source = random_transformer(seed=1), random_source(LENGTHS)
    lists = beam_search_n_best(model, source, num_best=4, **ENDS)
    assert [best[0] for best in lists] == beam_search(model, source, **ENDS)
    for best in lists:
        assert [h.score for h in best] == sorted((h.score for h in best), reverse=True)
        assert len({tuple(h.tokens) for h in best}) == len(best) == 4


# ---- length penalty and limits


def test_the_length_penalty_by_hand():
    # |Y| = 19: (24 / 6)^α is 4 for α = 1, 2 for α = 1/2 and 1 for α = 0.
    assert [gnmt_length_penalty(19, alpha) for alpha in (1.0, 0.5, 0.0)] == [4, 2, 1]
    # And α = 0.6, the paper's: |Y| = 1 is never penalised; |Y| = 10 gives 2.5^0.6.
    assert gnmt_length_penalty(1, 0.6) == 1.0
    assert gnmt_length_penalty(10, 0.6) == pytest.approx(1.7329, abs=5e-5)


@pytest.mark.parametrize(
    ("alpha", "tokens", "probability", "penalty"),
    # α = 0: ln 0.55 = -0.60 > ln 0.45 = -0.80. α = 1: -0.60 / 1 < -0.80 / 2.
    [(0.0, [], 0.55, 1), (1.0, [3, 4, 5, 6, 7, 8], 0.45, 2)],
)
def test_the_length_penalty_decides(alpha, tokens, probability, penalty):
    """Write nothing, or six tokens in a row: 7 with the end, so lp = (12 / 6)^α."""
    chain = {token: {token + 1: 1.0} for token in range(3, 8)} | {8: {EOS: 1.0}}
    model = TableModel(table(9, {BOS: {EOS: 0.55, 3: 0.45}} | chain)[None])
    source = torch.tensor([[0]])
    found = beam_search(model, source, length_penalty=alpha, **ENDS)[0]
    assert found.tokens == tokens
    assert found.log_probability == pytest.approx(math.log(probability))
    assert found.score == pytest.approx(math.log(probability) / penalty)


def never_ending(vocab_size=5):
    """Token 3 for ever; the end has a probability of one in a million."""
    following = {3: 0.9, 4: 0.1 - 1e-6, EOS: 1e-6}
    rows = table(vocab_size, {BOS: following, 3: following, 4: following})
    return TableModel(torch.stack([rows, rows]))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_each_sentence_has_its_own_limit(beam_size):
    source = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    model = never_ending()
    options = {"extra_length": 2, "beam_size": beam_size, "length_penalty": 2.0}
    found = beam_search(model, source, **options, **ENDS)
    # Input lengths 4, 2 and 1, so 6, 4 and 3 tokens with the end.
    assert tokens_of(found) == [[3] * 5, [3] * 3, [3] * 2]
    assert [h.log_probability for h in found] == pytest.approx(
        [n * math.log(0.9) + math.log(1e-6) for n in (5, 3, 2)]
    )
    greedy = greedy_search(model, source, extra_length=2, **ENDS)
    assert tokens_of(greedy) == tokens_of(found)


def test_the_limit_is_the_input_and_fifty_and_padding_does_not_count():
    model = random_transformer()
    source = torch.tensor([[5, 5, EOS], [EOS, PAD, PAD]])
    assert output_limits(model, source).tolist() == [53, 51]
    assert output_limits(model, source, 0).tolist() == [3, 1]
    assert output_limits(model, source, 50, max_length=52).tolist() == [52, 51]
    model, source = random_transformer(pad_id=8), torch.tensor([[5, EOS, 8, 8]])
    assert output_limits(model, source, 0).tolist() == [2]


def test_a_table_of_learned_positions_is_a_limit_too():
    model = random_transformer(positions="learned", max_length=6)
    source = random_source([5])
    assert output_limits(model, source).tolist() == [6]
    assert len(beam_search(model, source, **ENDS)[0].tokens) <= 5
    assert len(greedy_search(model, source, **ENDS)[0].tokens) <= 5


# ---- what saves time


def test_finished_sentences_leave_the_batch():
    # A sentence of kind k writes token 3 until, after k more, it must end.
    stop = {BOS: {EOS: 1.0}}
    go = {BOS: {3: 1.0}, 3: {4: 1.0}, 4: {EOS: 1.0}}
    model = TableModel(torch.stack([table(5, stop), table(5, go)]))
    source = torch.tensor([[0], [1], [0]])
    found = greedy_search(model, source, **ENDS)
    assert tokens_of(found) == [[], [3, 4], []]
    assert model.rows == [3, 1, 1]
    model.rows.clear()
    assert tokens_of(beam_search(model, source, beam_size=2, **ENDS)) == tokens_of(
        found
    )
    assert model.rows == [3, 2, 2]


def test_a_search_ends_as_soon_as_nothing_can_change():
    """0.9 beats what is left, 0.1, even over the penalty of the longest output."""
    following = {3: 0.9, EOS: 0.1}
    model = TableModel(table(4, {BOS: {EOS: 0.9, 3: 0.1}, 3: following})[None])
    source = torch.tensor([[0]])
    # ln 0.9 ≈ -0.105 ≥ ln 0.1 / lp(50 + 1) ≈ -2.303 / 3.88 ≈ -0.59
    found = beam_search(model, source, beam_size=4, **ENDS)[0]
    assert (found.tokens, len(model.rows)) == ([], 1)


def test_a_search_goes_on_while_a_longer_output_may_win():
    following = {3: 0.9, EOS: 0.1}
    sure = table(4, {BOS: {EOS: 0.4, 3: 0.6}, 3: following})
    model = TableModel(sure[None])
    beam_search(model, torch.tensor([[0]]), beam_size=4, **ENDS)
    assert len(model.rows) > 1


def test_a_search_ends_when_as_many_outputs_have_as_the_beam_is_wide():
    """Both at once here; 3 and 5 is not waited for, and would have scored higher."""
    following = {BOS: {3: 0.51, 4: 0.49}, 5: {EOS: 1.0}}
    following |= {token: {EOS: 0.55, 5: 0.45} for token in (3, 4)}
    model, source = TableModel(table(6, following)[None]), torch.tensor([[0]])
    options = {"num_best": 2, "beam_size": 2, "length_penalty": 2.0}
    [found] = beam_search_n_best(model, source, **options, **ENDS)
    assert (tokens_of(found), len(model.rows)) == ([[3], [4]], 2)
    longer = math.log(0.51 * 0.45) / gnmt_length_penalty(3, 2.0)
    assert longer > found[0].score


# ---- never padding, never NaN


@pytest.mark.parametrize("beam_size", [1, 4])
def test_padding_and_start_token_are_never_written(beam_size):
    """Not even by a model that finds nothing else probable."""
    favourite = {PAD: 0.5, BOS: 0.4, 3: 0.09, EOS: 0.01}
    model = TableModel(table(4, {BOS: favourite, 3: favourite})[None])
    source = torch.tensor([[0]])
    found = beam_search(model, source, beam_size=beam_size, max_length=5, **ENDS)[0]
    assert set(found.tokens) <= {3}
    found = greedy_search(model, source, max_length=5, **ENDS)[0]
    assert found.tokens == [3, 3, 3, 3]
    # They keep their share of the probability: nothing is normalised anew.
    assert found.log_probability == pytest.approx(4 * math.log(0.09) + math.log(0.01))


@pytest.mark.parametrize("beam_size", [1, 2, 50])
def test_impossible_tokens_give_no_nan(beam_size):
    """Only one output is possible, and the beam has more places than candidates."""
    only = {BOS: {4: 1.0}, 4: {3: 1.0}, 3: {EOS: 1.0}}
    model = TableModel(table(5, only)[None])
    lists = beam_search_n_best(
        model, torch.tensor([[0]]), num_best=beam_size, beam_size=beam_size, **ENDS
    )
    [[found]] = lists
    assert (found.tokens, found.log_probability, found.score) == ([4, 3], 0.0, 0.0)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_that_can_neither_end_nor_go_on(beam_size):
    stuck = {BOS: {4: 1.0}, 4: {PAD: 0.5, BOS: 0.5}}  # neither is ever written
    model = TableModel(table(5, stuck)[None])
    source = torch.tensor([[0]])
    for found in (
        greedy_search(model, source, **ENDS)[0],
        beam_search(model, source, beam_size=beam_size, **ENDS)[0],
    ):
        assert (found.tokens, found.score) == ([4], -math.inf)
        assert found.log_probability == -math.inf


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_end_that_is_impossible_even_at_the_limit(beam_size):
    model = TableModel(table(5, {BOS: {3: 1.0}, 3: {3: 1.0}})[None])
    source = torch.tensor([[0]])
    for found in (
        greedy_search(model, source, max_length=4, **ENDS)[0],
        beam_search(model, source, beam_size=beam_size, max_length=4, **ENDS)[0],
    ):
        assert (found.tokens, found.score) == ([3, 3, 3], -math.inf)


@every_model
def test_a_model_with_nan_in_it_is_refused(make):
    model = make()
    with torch.no_grad():
        next(model.parameters())[5] = math.nan
    source = torch.tensor([[5, 5, EOS], [EOS, PAD, PAD]])
    for search in (greedy_search, beam_search):
        with pytest.raises(InputError, match="scores are NaN"):
            search(model, source, **ENDS)


@every_model
def test_no_sentences_and_a_sentence_of_nothing(make):
    model = make()
    for search in (greedy_search, beam_search):
        assert search(model, torch.zeros(0, 3, dtype=torch.long), **ENDS) == []
        found = search(model, torch.tensor([[EOS]]), extra_length=0, **ENDS)[0]
        assert found.tokens == []
        assert math.isfinite(found.score)


def test_half_precision_adds_up_in_float32():
    model = random_transformer().to(torch.bfloat16)
    source = random_source(LENGTHS)
    found = greedy_search(model, source, **ENDS)
    assert all(math.isfinite(hypothesis.score) for hypothesis in found)
    total = found[0].log_probability
    assert torch.tensor(total).to(torch.bfloat16).item() != total


# ---- manners


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_search_leaves_the_model_as_it_found_it(search):
    model, source = random_transformer(), random_source(LENGTHS)
    model.encoder.eval()  # somebody froze a part of it
    before = [module.training for module in model.modules()]
    assert search(model, source, **ENDS) == search(model, source, **ENDS)  # no dropout
    assert [module.training for module in model.modules()] == before
    assert True in before
    assert False in before
    with pytest.raises(InputError):
        search(model, source, extra_length=-1, **ENDS)
    assert [module.training for module in model.modules()] == before


def test_a_model_can_be_trained_after_a_search():
    """The search lets the table of sinusoids grow, inside inference mode."""
    model, source = random_transformer(max_length=4), random_source([6])
    greedy_search(model, source, **ENDS)
    assert model.target_positions.table.size(0) > 4
    assert not model.target_positions.table.is_inference()
    model(source, source).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"beam_size": 0}, "beam_size"),
        ({"length_penalty": -0.1}, "length_penalty"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"length_penalty": 1000.0}, "length_penalty"),  # would overflow
        ({"beam_size": 2.5}, "beam_size must be a whole number"),
        ({"length_penalty": None}, "length_penalty"),
        ({"extra_length": -1}, "extra_length"),
        ({"extra_length": None}, "extra_length must be a whole number"),
        ({"max_length": 0}, "max_length"),
        ({"max_length": "9"}, "max_length"),
    ],
)
def test_arguments_that_make_no_sense(options, named, unchecked_shapes):
    with pytest.raises(InputError, match=named):
        beam_search(random_transformer(), random_source([2]), **options, **ENDS)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize("ends", [(EOS, EOS), (BOS, PAD)])
def test_an_end_that_is_never_written_is_refused(search, ends):
    """Some libraries start with the end token; here every output would be endless."""
    bos_id, eos_id = ends
    with pytest.raises(InputError, match=f"eos_id = {eos_id} must be two tokens"):
        search(random_transformer(), random_source([2]), bos_id=bos_id, eos_id=eos_id)


@pytest.mark.parametrize("name", ["bos_id", "eos_id"])
@pytest.mark.parametrize("token", [-1, 10**6])
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_start_and_end_are_tokens(search, name, token):
    """With an end that is none, a greedy search would never end."""
    ends = {"bos_id": 1, "eos_id": 2} | {name: token}
    with pytest.raises(InputError, match=f"{name} = {token} .*must be two tokens"):
        search(random_transformer(), random_source([2]), **ends)


@pytest.mark.parametrize("source", [torch.tensor([5, 6, 2]), [[5, 6, 2]]], ids=type)
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_the_source_is_a_table_of_tokens(search, source, unchecked_shapes):
    with pytest.raises(InputError, match=r"source must hold token ids of shape"):
        search(random_transformer(), source, bos_id=1, eos_id=2)


def test_more_outputs_than_the_beam_holds_cannot_be_had():
    with pytest.raises(InputError, match="num_best"):
        beam_search_n_best(random_transformer(), random_source([2]), num_best=5, **ENDS)
