"""Scores of heads, their baselines, and what is left when heads are taken out."""

import math
import re

import pytest
import torch

from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig, shift_right
from aiayn_book.head_scores import (
    all_heads,
    attention_by_sentence,
    attention_of,
    best_offset,
    heads_at_their_mean,
    mean_contexts,
    score_heads,
    shuffled,
    uniform_baseline,
    value_norms,
    without_heads,
)

PAIRS = [([5, 6, 7, 2], [8, 9, 2]), ([6, 2], [9, 10, 11, 2])]


@pytest.fixture
def model():
    torch.manual_seed(3)
    return Transformer(TransformerConfig.tiny(vocab_size=20, d_model=16, d_ff=8)).eval()


def test_hits_and_mass_of_three_rows_worked_by_hand():
    sharp = torch.tensor([[1.0, 0, 0], [0.4, 0.6, 0], [0.5, 0.2, 0.3]])
    flat = torch.full((3, 3), 1 / 3)
    weights = torch.stack([sharp, flat])[None]  # (layers, heads, queries, keys)
    scores = score_heads([weights], [[(2, 0), (1, 0), (1, 2)]])
    # Row 1: its greatest weight is on 1, wrong; 0.4 lies on 0 or 2. Row 2: right.
    assert scores.hits[0, 0] == 0.5
    assert scores.mass[0].tolist() == pytest.approx([0.45, 0.5])


def test_the_mass_of_a_sharp_row_is_all_of_it():
    """Weights near one are where a figure is drawn; they are not cut off."""
    weights = torch.tensor([[[[0.01, 0.99], [0.98, 0.02]]]])
    assert score_heads([weights], [[(0, 1)]]).mass.item() == pytest.approx(0.99)
    assert score_heads([weights], [[(0, 1), (1, 0)]]).mass.item() == pytest.approx(
        0.985
    )


def test_without_a_pair_there_is_no_score():
    scores = score_heads([torch.full((1, 2, 3, 3), 1 / 3)], [[]])
    assert scores.hits.isnan().all()
    assert scores.hits.shape == (1, 2)

    assert math.isnan(uniform_baseline([3], [[]]))
    with pytest.raises(InputError, match="Without a pair there is no offset"):
        best_offset([[]])


def test_without_a_sentence_nobody_knows_how_many_heads():
    with pytest.raises(InputError, match="Without a sentence there are no heads"):
        score_heads([], [])


@pytest.mark.parametrize("gold", [[(0, 1), (0, 2), (1, 1)], []])
def test_scores_are_computed_where_the_weights_are(gold):
    """The meta device computes shapes only, and takes no tensor of the CPU's."""
    scores = score_heads([torch.full((1, 2, 3, 3), 1 / 3, device="meta")], [gold])
    assert {score.device.type for score in scores} == {"meta"}
    assert {score.shape for score in scores} == {(1, 2)}


def test_a_model_of_few_bits_is_scored_in_32():
    """bfloat16 holds 0.375 and 0.625, but their mean over three rows only roughly."""
    weights = torch.tensor([[[[0.375, 0.625], [0.625, 0.375], [0.375, 0.625]]]])
    gold = [[(0, 1), (1, 1), (2, 1)]]
    expected = score_heads([weights], gold)
    for found, wanted in zip(
        score_heads([weights.bfloat16()], gold), expected, strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_baselines_of_a_relation_worked_by_hand():
    gold = [[(2, 1)], [(3, 2), (4, 0)], [(1, 0), (1, 2)]]
    assert uniform_baseline([4, 5, 4], gold) == pytest.approx(
        (1 / 4 + 2 / 5 + 1 / 2) / 4
    )
    assert uniform_baseline([4, 5, 4], gold, causal=True) == pytest.approx(
        (1 / 3 + 1 / 4 + 1 / 5 + 2 / 2) / 4
    )
    assert best_offset(gold) == (-1, 3 / 4)
    assert best_offset([[(5, 1)], [(5, 4)]]) == (-1, 1 / 2)  # of equals the nearest


def test_shuffled_gold_keeps_queries_and_distances():
    gold = [[(i, i - 1 - i % 3) for i in range(4, 12)] for _ in range(5)]
    dealt = shuffled(gold, [12] * 5, seed=1)
    assert dealt != gold
    assert [[q for q, _ in pairs] for pairs in dealt] == [
        [q for q, _ in pairs] for pairs in gold
    ]
    assert sorted(k - q for pairs in dealt for q, k in pairs) == sorted(
        k - q for pairs in gold for q, k in pairs
    )


def test_a_shuffled_key_stays_in_its_sentence():
    """Distances 1 and -3, dealt the other way round, would lead out at both ends."""
    gold = [[(0, 1)], [(3, 0)]]
    dealt = [shuffled(gold, [2, 4], seed=seed) for seed in range(20)]
    assert gold in dealt
    assert [[(0, 0)], [(3, 3)]] in dealt


def test_weights_come_sentence_by_sentence_without_padding(model):
    for (source, target), seen in zip(
        PAIRS, attention_by_sentence(model, PAIRS, bos_id=1), strict=True
    ):
        n, m = len(source), len(target)
        assert seen.encoder.shape == (2, 4, n, n)
        assert seen.decoder.shape == (2, 4, m, m)
        assert seen.cross.shape == (2, 4, m, n)
        weights = model.attention_weights(
            torch.tensor([source]), shift_right(torch.tensor([target]), 1)
        )
        sides = weights.encoder, weights.decoder, weights.cross
        for table, side in zip(seen, sides, strict=True):
            torch.testing.assert_close(table, torch.cat(side))


def test_weights_may_be_changed_in_place(model):
    for table in attention_by_sentence(model, PAIRS, bos_id=1)[0]:
        table[:, 0] = 0.0
        assert not table[:, 0].any()


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_stack_without_layers_has_no_weights(side):
    config = TransformerConfig.tiny(vocab_size=20, **{f"num_{side}_layers": 0})
    seen = attention_by_sentence(Transformer(config), PAIRS, bos_id=1)[0]
    layers = {"encoder": 2, "decoder": 2} | {side: 0}
    assert seen.encoder.shape == (layers["encoder"], 4, 4, 4)
    assert seen.decoder.shape == (layers["decoder"], 4, 3, 3)
    assert seen.cross.shape == (layers["decoder"], 4, 3, 4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here")
def test_weights_of_a_model_on_a_gpu_are_those_on_the_cpu(model):
    expected = attention_by_sentence(model, PAIRS, bos_id=1)
    found = attention_by_sentence(model.cuda(), PAIRS, bos_id=1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("use", "place"),
    [
        ("encoder", "encoder.layers.1.self_attention"),
        ("decoder", "decoder.layers.1.self_attention"),
        ("cross", "decoder.layers.1.cross_attention"),
    ],
)
def test_a_head_that_is_taken_out_contributes_nothing_and_comes_back(model, use, place):
    x = torch.randn(2, 5, 16)
    attention = model.get_submodule(place)
    whole, _ = attention(x, x, x)
    parts = []
    for head in range(4):
        others = [(use, 1, other) for other in range(4) if other != head]
        with without_heads(model, others):
            parts.append(attention(x, x, x)[0])
    torch.testing.assert_close(sum(parts), whole)  # heads add up
    torch.testing.assert_close(attention(x, x, x)[0], whole, rtol=0, atol=0)


def test_the_mean_of_a_head_is_taken_over_all_positions(model):
    """Of one sentence of one token in the encoder, the mean is what was handed over."""
    seen = {}
    projection = model.encoder.layers[1].self_attention.output_projection
    hook = projection.register_forward_pre_hook(
        lambda module, given: seen.setdefault("contexts", given[0])
    )
    means = mean_contexts(model, PAIRS[:1], bos_id=1)
    hook.remove()
    assert len(means) == 3 * 2
    torch.testing.assert_close(
        means["encoder", 1], seen["contexts"].flatten(0, 1).mean(dim=0)
    )


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_a_head_at_its_mean_says_the_same_of_every_input(model, use):
    """All heads of one attention at their mean: its output is one vector, W_O(mean)."""
    means = mean_contexts(model, PAIRS, bos_id=1)
    heads = [head for head in all_heads(model) if head[:2] == (use, 1)]
    attention = attention_of(model, use, 1)
    x = torch.randn(2, 5, 16)
    whole = attention(x, x, x)[0]
    with heads_at_their_mean(model, heads, means):
        fixed = attention(x, x, x)[0]
    expected = attention.output_projection(means[use, 1]).expand_as(fixed)
    torch.testing.assert_close(fixed, expected)
    torch.testing.assert_close(attention(x, x, x)[0], whole, rtol=0, atol=0)
    with heads_at_their_mean(model, heads[:1], means):  # the other heads still read
        assert not torch.allclose(attention(x, x, x)[0], expected)


def test_heads_come_back_after_an_error(model):
    """Each of them is named twice here, and is zero already the second time."""
    before = {n: w.clone() for n, w in model.state_dict().items()}
    with pytest.raises(KeyError), without_heads(model, 2 * all_heads(model)):
        raise KeyError
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    "head",
    [
        ("encoder", 0, 4),
        ("encoder", 0, -1),
        ("decoder", 2, 0),
        ("cross", -1, 0),
        ("self", 0, 0),
    ],
)
def test_a_head_that_is_not_there_is_refused(model, head, unchecked_shapes):
    """And those before it are put back."""
    before = {n: w.clone() for n, w in model.state_dict().items()}
    with (
        pytest.raises(InputError, match=re.escape(f"has no head {head}")),
        without_heads(model, [("encoder", 0, 0), head]),
    ):
        pass
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_every_head_is_listed_once(model):
    heads = all_heads(model)
    assert len(heads) == len(set(heads)) == 3 * 2 * 4


def test_what_keys_hand_over_adds_up_to_the_output(model):
    """One key at a time: its vector's length is the norm, and the vectors sum up."""
    source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[8, 9, 2]])
    memory = model.encode(source)
    weights = model.attention_weights(source, shift_right(target, 1)).cross[0]
    attention = attention_of(model, "cross", 0)
    norms = value_norms(attention, weights, memory)
    total = torch.zeros(1, 3, 16)
    for key in range(4):
        values = attention.value_projection(memory)[:, key].view(1, 4, 1, 4)
        context = weights[..., key, None] * values  # (batch, heads, queries, d_v)
        part = attention.output_projection(context.transpose(1, 2).flatten(2))
        torch.testing.assert_close(norms[..., key], part.norm(dim=-1))
        total = total + part
    values = attention.value_projection(memory).unflatten(-1, (4, 4)).transpose(1, 2)
    whole = attention.output_projection((weights @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(total, whole)
