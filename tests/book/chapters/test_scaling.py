"""Chapter 4: its gradients are the formula's, its text is true, its claims can fail."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from aiayn import scaled_dot_product_attention
from aiayn_book.chapters import scaling as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words

SVG = "{http://www.w3.org/2000/svg}"
CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"


def settled(function, *given):
    """The one claim that a function settles."""
    table = chapter.Claims()
    function(table.settle, *given)
    (settlement,) = table.settlements
    return settlement


@pytest.fixture(scope="module")
def found():
    """The sweep of the chapter: a second or two."""
    return chapter.sweep()


def test_the_gradient_is_that_of_the_formula():
    """c Kᵀ J V: by hand for one query, against autograd's length."""
    for root, factor in ((True, 1 / 4), (False, 1)):
        torch.manual_seed(1)
        length, weights = chapter.gradients(16, keys=5, root=root, draws=1)
        torch.manual_seed(1)
        q, k, v = (torch.randn(1, *size) for size in ((1, 16), (5, 16), (5, 1)))
        p = (factor * q @ k.mT).softmax(-1).squeeze(0)
        by_hand = factor * k[0].T @ chapter.jacobian(p)[0] @ v[0]
        assert length.item() == pytest.approx(by_hand.norm().item(), rel=1e-4)
        assert torch.allclose(weights, p)


def test_the_jacobian_is_autograds():
    scores = torch.randn(6, dtype=torch.float64)
    slopes = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    assert torch.allclose(chapter.jacobian(scores.softmax(-1)), slopes)


def test_its_norm_is_what_a_random_gradient_meets():
    """The mean squared length of what passes is the squared norm."""
    J = chapter.jacobian(torch.tensor([0.5, 0.3, 0.2]))
    passes = torch.randn(200_000, 3, generator=torch.Generator().manual_seed(1)) @ J
    assert passes.square().sum(1).mean() == pytest.approx(
        J.norm().square().item(), rel=0.02
    )


def test_shares_and_gaps():
    """One of four queries has half of the gradient; a ratio of e² is a gap of 2."""
    part = chapter.Passed(
        torch.tensor([1.0, 5.0, 2.0, 2.0]),
        torch.ones(4),
        torch.full((4, 3), 1 / 3),
    )
    assert part.shares(4).tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1])
    assert part.shares(2).tolist() == pytest.approx([0.7, 0.3])
    ratio = replace(part, weights=torch.tensor([[0.1, 0.1 * math.e**2, 0.01]]))
    assert ratio.gap.tolist() == pytest.approx([2.0], abs=1e-5)
    many = replace(part, gradient=torch.arange(1.0, 21.0))
    assert many.top_tenth == pytest.approx(39 / 210)


def test_two_best_keys_predict_the_gradient(found):
    """For undivided queries, the median of measured over predicted is near one."""
    part = found[32, 1024, False]
    near = part.gap < 10
    predicted = torch.tensor(
        [chapter.two_best_keys(gap, 1024) for gap in part.gap[near].tolist()]
    )
    ratio = (part.gradient[near] / predicted).median().item()
    assert 0.6 < ratio < 1.4
    steep = chapter.two_best_keys(8, 1024) / chapter.two_best_keys(9, 1024)
    assert steep == pytest.approx(math.e, rel=1e-3)


def test_the_mean_levels_off_as_the_text_derives(found):
    """At four times the width ties are half as frequent, and the mean is the same."""
    ties = {d: (found[32, d, False].gap < 2).float().mean() for d in (256, 1024)}
    assert 1.5 < ties[256] / ties[1024] < 2.7
    mean = {d: found[32, d, False].gradient.mean() for d in (256, 1024)}
    assert 0.8 < mean[256] / mean[1024] < 1.25


def test_all_sixteen_keys_are_drawn():
    """Four cells each, in stacks of 1, 4, 6, 4 and 1."""
    drawing = chapter.sixteen_keys()
    root = ElementTree.fromstring(drawing.markup)
    assert len(list(root.iter(f"{SVG}rect"))) == 64
    bold = [
        text.text for text in root.iter(f"{SVG}text") if "600" in text.get("style", "")
    ]
    assert sorted(bold) == ["1", "1", "4", "4", "6"]


def test_the_three_jacobians_of_the_drawing():
    """Their norms: all equal, two compete, one wins."""
    shown = re.findall(r"‖J‖ = ([\d.]+)", chapter.three_jacobians().markup)
    even = math.sqrt(8 * (7 / 64) ** 2 + 56 / 64**2)
    assert shown == [f"{even:.2f}", "0.46", "0.01"]


def test_divisors():
    """1, 8, √512 and 64: the deviation is 8 over the divisor, and even is 1/16."""
    by = chapter.divisors()
    for name, deviation in zip(by.deviation, (8, 1, 8 / 512**0.5, 1 / 8), strict=True):
        assert by.deviation[name] == pytest.approx(deviation, rel=0.03)
    top = list(by.top.values())
    assert top == sorted(top, reverse=True)
    assert top[0] > 0.8
    assert top[-1] < 0.08
    assert round(1 / 16, 2) == 0.06


def test_words_stay_inside(found):
    """Of every drawing, which also has a text alternative."""
    drawings = [
        *chapter.unfair(found).drawings,
        chapter.sixteen_keys(),
        chapter.three_jacobians(),
        chapter.divisors().drawing,
    ]
    for drawing in drawings:
        check_words(drawing)


def test_scores_divided_twice():
    """The pitfall of the text: the context is nearly the plain mean."""
    generator = torch.Generator().manual_seed(4)
    q, k, v = torch.randn(3, 64, 64, generator=generator)
    twice, weights = scaled_dot_product_attention(q / 8, k, v)
    plain = v.mean(0, keepdim=True).expand_as(twice)
    assert (twice - plain).norm() < 0.2 * v.norm()
    assert weights.max() < 0.05


def test_the_numbers_of_the_text():
    assert 2900 < math.exp(8) < 3100


def test_a_batch_asks_for_one_of_its_keys():
    """The answer is the value of the key that is asked for; no key stands twice."""
    generator = torch.Generator().manual_seed(0)
    keys, values, asked, answer = chapter.recall_batch(generator)
    assert keys.sum(-2).max() == 1
    found = (asked @ keys.mT) @ values  # (seeds, batch, 1, symbols)
    assert torch.equal(found, answer)


def test_the_seeds_train_apart():
    """They differ, queries have variance 1, and a small start is the same function."""
    torch.manual_seed(0)
    losses, hits, _ = chapter.train("with", 8, 0.003, steps=3)
    assert losses.shape == hits.shape == (3, chapter.SEEDS)
    assert losses[0].unique().numel() == chapter.SEEDS
    folded, _, _ = chapter.train("without", 8, 0.003, steps=1, shrink=8**-0.25)
    assert torch.allclose(folded[0], losses[0], atol=1e-4)
    weights = chapter.start(256, torch.Generator().manual_seed(1))
    q = weights["embedding"] @ weights["W_Q"]
    assert q.var().item() == pytest.approx(1, abs=0.2)


def test_additive_scores_cost_twice_the_operations():
    assert chapter.operations(32, 16) == (4 * 32 * 32 * 16, 2 * 32 * 32 * 16)


def test_memory_is_what_the_caption_counts():
    """About n² d_k numbers against n² + 3 n d_k, of four bytes each."""
    n, d_k = 64, 16
    for kind, numbers in (("additive", n * n * d_k), ("with", n * n + 3 * n * d_k)):
        _, kept = chapter.cost(kind, n, d_k)
        assert 4 * numbers <= kept < 10 * numbers


def fake_runs(**shares):
    """Runs in which each kind has these shares of right answers, seed by seed."""
    return {
        (d_k, kind, rate): (
            torch.zeros(20, 5),
            torch.tensor(shares[f"{kind}_{d_k}"]).expand(20, 5),
            {},
        )
        for d_k in (4, 256)
        for kind in chapter.KINDS
        for rate in chapter.RATES
    }


GOOD, POOR = [1.0, 1.0, 1.0, 0.99, 1.0], [0.7, 0.9, 0.5, 0.6, 0.8]


def test_verdicts_on_training_can_fail():
    """Small: alike, noisy, or undecided at the ceiling. Large: better or not."""
    kinds = {f"{kind}_{d}": GOOD for kind in chapter.KINDS for d in (4, 256)}
    assert settled(chapter.settle_small_width, fake_runs(**kinds)).holds is None
    assert not settled(chapter.settle_large_width, fake_runs(**kinds)).holds
    half = {name: [0.5, 0.51, 0.5, 0.49, 0.5] for name in kinds}  # below the ceiling
    assert settled(chapter.settle_small_width, fake_runs(**half)).holds
    poor = {**kinds, "without_4": POOR, "without_256": POOR}
    assert settled(chapter.settle_small_width, fake_runs(**poor)).holds is False
    large = settled(chapter.settle_large_width, fake_runs(**poor))
    assert large.holds
    assert "300 steps" in large.sample
    assert "0.001, 0.003, 0.01" in large.sample


def test_verdicts_on_gradients_can_fail(found):
    """With the factor everywhere nothing is small; without it, not the same."""
    same = {(n, d, r): found[n, d, True] for n, d, r in found}
    assert not settled(chapter.settle_saturation, same).holds
    swapped = {(n, d, r): found[n, d, not r] for n, d, r in found}
    assert not settled(chapter.settle_scaling, swapped).holds
    level = {  # the median vanishes and the mean does not fall
        key: replace(part, frobenius=part.frobenius + (part.frobenius > 0.1) * 9)
        if key[1:] == (1024, False)
        else part
        for key, part in found.items()
    }
    assert not settled(chapter.settle_saturation, level).holds
    assert (
        "means, which are not extremely small"
        in settled(chapter.settle_saturation, found).measured
    )
    for keys in chapter.NUMBERS:
        assert chapter.share_inside(found, keys, 1024) > 0.5  # the text: most


def test_verdicts_are_those_of_the_ledger(found):
    """All but the two that need the trainings; and the table is read as records."""
    recorded = {c["id"]: c["verdict"] for c in json.loads(CLAIMS.read_text("utf-8"))}
    slow = chapter.Costs(
        {(n, 64, kind): 1.0 + 9 * (kind == "additive")
         for n in (64, 128, 256) for kind in ("with", "additive")},
        {(n, 64, kind): 1 + 9 * (kind == "additive")
         for n in (64, 128, 256) for kind in ("with", "additive")},
    )  # fmt: skip
    settlements = [
        settled(chapter.settle_variance),
        settled(chapter.settle_same_but_scale),
        settled(chapter.settle_saturation, found),
        settled(chapter.settle_scaling, found),
        settled(chapter.settle_similar_complexity),
        settled(chapter.settle_faster, slow),
    ]
    for settlement in settlements:
        assert settlement.verdict == recorded[settlement.claim.id]
    table = chapter.Claims(settlements)
    assert len(records_in_html(table._repr_html_(), "04-scaling")) == 6
    even = replace(slow, kept=dict.fromkeys(slow.kept, 1))
    assert not settled(chapter.settle_faster, even).holds
