"""Chapter 7: its stacks are the library's layers, its drawings and text are true."""

import math
import re
from collections import Counter
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aiayn.model import EncoderLayer, PositionwiseFeedForward, TransformerConfig
from aiayn_book import claims
from aiayn_book.chapters import feed_forward_residual_norm as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

RIGHT = {
    name: {task: [0.5, 1.0, 0.9] for task in chapter.TASKS} for name in chapter.ABLATED
}
DRAWINGS = {
    "alike": [
        chapter.words_become_alike(),
        chapter.words_become_alike(phone=True),
    ],
    "two words": chapter.two_words(),
    "by hand": [chapter.by_hand()],
    "layers": chapter.layer_drawings(),
    "sums": chapter.four_sums(),
    "who reads whom": chapter.who_reads_whom(),
    "tasks": [chapter.tasks_drawing(RIGHT)],
    "arrangements": chapter.two_arrangements(),
}


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_two_words_are_those_of_the_text():
    """Halved, and three quarters, of a difference of 8."""
    alone, added = ([words for *_, words in texts(one)] for one in chapter.two_words())
    assert {"0", "8", "2", "6", "3", "5"} <= set(alone)
    assert {"0", "8", "1", "7", "1.75", "6.25"} <= set(added)


def test_the_sub_layer_that_is_drawn_is_the_one_by_hand():
    shown = [words for *_, words in texts(chapter.by_hand())]
    for numbers in ("5, 1, 1, 1", "0, 0, 4, 0", "5, 1, 5, 1", "2, −2, 2, −2"):
        assert f"({numbers})" in shown
    x = torch.tensor([5.0, 1, 1, 1]) + torch.tensor([0.0, 0, 4, 0])
    assert chapter.normalise(x).round().tolist() == [1, -1, 1, -1]


def test_each_bar_of_a_sum_is_the_sum_of_those_to_its_left():
    """Lengths with their signs, from the rectangles of the drawing."""
    for drawing in chapter.four_sums():
        found = re.findall(
            r'<rect x="[-\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"',
            drawing.markup,
        )
        signed = [
            float(height) * (1 if float(top) < 64 - 1e-3 else -1)
            for top, height in found
        ]
        bars = torch.tensor(signed).view(-1, 6)
        assert torch.allclose(bars[:-1].sum(dim=0), bars[-1], atol=0.05)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_stack_is_the_librarys_layer(norm):
    """With its weights: two sub-layers, one head, a last norm where it is pre-norm."""
    names = {
        "query_projection": "W_Q",
        "key_projection": "W_K",
        "value_projection": "W_V",
        "output_projection": "W_O",
        "inner": "W_1",
        "outer": "W_2",
    }
    config = TransformerConfig(d_model=16, d_ff=64, num_heads=1, norm=norm, dropout=0.0)
    layer, stack = EncoderLayer(config), chapter.Stack(1, 1, 16, norm=norm)
    theirs = layer.self_attention, layer.feed_forward
    for kind, ours in zip(theirs, stack.sublayers, strict=True):
        for name, module in kind.named_children():
            if name in names:
                getattr(ours, names[name]).data = module.weight.data.T[None]
    x = torch.randn(2, 5, 16)
    y = layer(x)[0]
    y = chapter.normalise(y) if norm == "pre" else y
    torch.testing.assert_close(stack(x[None])[0], y)


def test_runs_do_not_mix():
    """Each run of a stack depends on its own weights and its own input."""
    stack = chapter.Stack(3, 2, 8)
    x = torch.randn(3, 2, 5, 8)
    changed = x.clone()
    changed[1] += torch.randn(2, 5, 8)
    moved = (stack(changed) - stack(x)).abs().amax(dim=(1, 2, 3))
    assert (moved > 0).tolist() == [False, True, False]


def test_off_mean_is_zero_for_equal_words_and_one_for_opposite_ones():
    word = torch.randn(1, 1, 1, 8)
    equal, opposite = word.expand(1, 2, 4, 8), torch.cat([word, -word], dim=2)
    assert chapter.off_mean(equal).item() == pytest.approx(0, abs=1e-6)
    assert chapter.off_mean(opposite).item() == pytest.approx(1)


def test_the_first_figure_differs_in_the_residual_connections_only():
    """With them it is the library's encoder; without, its words are soon one."""
    with_residual, without = (chapter.six_words(flag) for flag in (True, False))
    assert torch.equal(with_residual[0], without[0])
    torch.manual_seed(0)
    encoder = chapter.Encoder(TransformerConfig(dropout=0.0)).eval()
    with torch.no_grad():
        torch.testing.assert_close(
            encoder(with_residual[0][None])[0][0], with_residual[-1]
        )
    assert chapter.six_words_apart(residual=False)[3] < 1e-3
    assert chapter.six_words_apart(residual=True)[6] > 0.1


def test_all_parts_but_the_residual_connection_do_not_help():
    """The code of the text, and the curves."""
    assert max(chapter.measure(6, residual=False)[1][-1]) < 1e-6
    assert min(chapter.measure(6)[1][-1]) > 0.1


def test_the_identity_lets_a_gradient_pass_unless_it_is_cancelled():
    """The table of the text, for 12 sub-layers."""
    assert f"{0.1**12:.0e} {1.1**12:.1f}" == "1e-12 3.1"
    assert f"{0.9**12:.2f} {1.9**12:,.0f}" == "0.28 2,213"
    assert f"{0.1**12:.0e}" == f"{(1 - 0.9) ** 12:.0e}"


def test_the_gradient_at_the_top_is_one():
    sizes, apart = chapter.measure(6, residual=False, norm="none")
    assert sizes.shape == apart.shape == (7, 3)
    assert torch.equal(sizes[-1], torch.ones(3, dtype=torch.float64))
    assert 1e-3 < min(sizes[0]) < max(sizes[0]) < 1e-2  # a little under a hundredth


def test_powers_are_exponents_of_ten():
    left = torch.tensor([[1e-13, 2e-12], [1.0, 1.0]])
    assert chapter.powers(left) == "10⁻¹³ to 10⁻¹²"


def test_the_last_gradient_shrinks_in_pre_norm_as_the_text_says():
    fall = {
        norm: (chapter.last_gradient(6, norm) / chapter.last_gradient(48, norm)).mean()
        for norm in ("post", "pre")
    }
    assert f"{math.sqrt(97 / 13):.1f}" == "2.7"
    assert fall["pre"] == pytest.approx(math.sqrt(97 / 13), rel=0.5)
    assert fall["post"] == pytest.approx(1, rel=0.3)


def test_the_answers_of_the_tasks():
    """For all thirds of the runs, from the digits."""
    x, y = chapter.draw_tasks(3, 4, torch.Generator().manual_seed(5))
    digits = x.unflatten(-1, (3, chapter.DIGITS)).argmax(dim=-1)
    for b in range(4):
        name, wanted, letter = digits[0, b].T.tolist()
        assert y[0, b].tolist() == [letter[name.index(w)] for w in wanted]
        _, wanted, letter = digits[1, b].T.tolist()
        pairs = zip(wanted, letter, strict=True)
        assert y[1, b].tolist() == [(w + one) % 8 for w, one in pairs]
        letter = digits[2, b, :, 2].tolist()
        assert y[2, b].tolist() == [letter[-1], *letter[:-1]]
    x, y = chapter.draw_sorting(1, 4, torch.Generator().manual_seed(5))
    assert torch.equal(x.argmax(dim=-1).sort(dim=-1).values, y)


@pytest.mark.parametrize("warmup", [1, 4])
def test_runs_are_trained_as_by_adam(warmup):
    """One of two runs against torch's optimizer, with the rate of its warm-up."""
    torch.manual_seed(0)
    model = chapter.repeated(chapter.Small(1, 8, 8, depth=1), 2)
    alone = chapter.Small(2, 8, 8, depth=1)
    alone.load_state_dict(model.state_dict())
    alone.positions = model.positions
    losses = chapter.train(model, chapter.draw_sorting, [0.01, 0.0], [warmup, 1], 6)

    optimizer = torch.optim.Adam(alone.parameters(), betas=(0.9, 0.98), eps=1e-9)
    generator = torch.Generator().manual_seed(1)
    for step in range(6):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1, (step + 1) / warmup)
        x, y = chapter.draw_sorting(2, 16, generator)
        loss = F.cross_entropy(alone(x)[0].flatten(0, 1), y[0].flatten())
        assert losses[step, 0].item() == pytest.approx(loss.item(), rel=1e-3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_the_best_guess_without_positions():
    """0.34 of the text, by another way: the mean of the largest count of seven."""
    assert f"{chapter.most_frequent_of_seven():.2f}" == "0.34"
    assert f"{1 / 8 + 7 / 8 / 8:.2f}" == "0.23"


def test_the_weights_of_the_two_stacks_that_sort():
    """12,608 and 12,288, as the text says."""
    sizes = []
    for parts in (chapter.LAYER, (chapter.Attention,) * 3):
        stack = chapter.Stack(1, 4, 16, parts=parts)
        sizes.append(sum(p.numel() for p in stack.parameters()))
    assert sizes == [12_608, 12_288]
    feed_forward = chapter.Stack(1, 4, 16, parts=(chapter.FeedForward,))
    share = sum(p.numel() for p in feed_forward.parameters()) / sizes[0]
    assert share == pytest.approx(2 / 3, abs=0.02)


def test_the_best_guess_without_attention_is_found_by_trying_all(monkeypatch):
    """Three digits instead of eight: 27 inputs, and the entropy of what they answer."""
    monkeypatch.setattr(chapter, "DIGITS", 3)
    seen = Counter()
    for digits in product(range(3), repeat=3):
        seen.update(enumerate(zip(digits, sorted(digits), strict=True)))
    known = Counter((place, own) for place, (own, _) in seen.elements())
    entropy = -sum(
        n / 81 * math.log(n / known[place, own])
        for (place, (own, _)), n in seen.items()
    )
    assert chapter.loss_without_attention() == pytest.approx(entropy)


def test_what_is_said_of_sorting_could_fail():
    sorting = {
        "everything": [0.5],
        "no feed-forward": [0.7],
        "no normalisation": [0.8],
        "no attention": [1.3],
        "no positions": [1.6],
        "no residuals": [1.9],
    }
    instead = {"both": [0.4], "one": [0.7], "three": [0.6]}
    chapter.check_sorting(sorting, instead)
    for wrong in ({"no residuals": [1.4]}, {"no feed-forward": [0.4]}):
        with pytest.raises(AssertionError):
            chapter.check_sorting({**sorting, **wrong}, instead)
    with pytest.raises(AssertionError):
        chapter.check_sorting(sorting, {**instead, "three": [0.41]})


def test_parameters_are_those_of_the_whole_model():
    """The closed form of §3.3, and nothing left out."""
    counts = chapter.parameter_counts()
    assert counts["feed-forward"] == 12 * (2 * 512 * 2048 + 2048 + 512)
    assert counts["attention"] == 18 * 4 * 512 * 512
    assert counts["embeddings"] == 37_000 * 512
    total = sum(p.numel() for p in chapter.base_model().parameters())
    assert sum(counts.values()) == total


def test_charts_show_all_runs():
    """And have a text alternative."""
    left = {
        (name, depth): torch.rand(depth + 1, 3) + 0.1
        for name in chapter.WIRINGS
        for depth in chapter.DEPTHS
    }
    charts = {
        3 * 5 * (6 + 12 + 24 + 48 + 4): chapter.gradient_chart(left),
        12: chapter.sorting_chart({name: [0.5, 1, 2] for name in "abcd"}, "Sorting"),
        4: chapter.parameter_chart(chapter.parameter_counts()),
    }
    for count, chart in charts.items():
        made = chart.to_dict()
        assert len(made["description"].split()) > 9
        data = made["data"] if "data" in made else made["layer"][-1]["data"]
        assert len(data["values"]) == count


def test_losses_of_a_warm_up_are_means_over_five_steps():
    log = torch.arange(150.0)[:, None, None].expand(150, 3, 3)
    data = chapter.warmup_chart({"post-norm": log}).to_dict()
    rows = data["data"]["values"]
    assert rows[0]["loss"] == 2  # the mean of 0 to 4
    assert len(rows) == 3 * 30
    table = chapter.warmup_table({"post-norm": log})
    assert table.loc["post-norm"].tolist() == ["144.50"] * 3


def test_widths_may_differ_where_nothing_is_added():
    """Inside sub-layers."""
    x = torch.randn(2, 5, 16)
    odd = TransformerConfig(d_model=16, num_heads=2, d_ff=100, d_k=6, d_v=9)
    assert EncoderLayer(odd)(x)[0].shape == x.shape


def test_fixed_weights_cannot_take_a_difference_and_zero():
    """What a linear map does to x and -x cancels, the ReLU of the text does not."""
    weights, W_V, W_O = torch.rand(3, 3), torch.randn(4, 4), torch.randn(4, 4)
    x = torch.randn(3, 4)
    one, other = (weights @ (s @ W_V) @ W_O for s in (x, -x))
    assert torch.allclose(one + other, torch.zeros(3, 4))
    assert max(0, 4) + max(0, -4) == 4


@pytest.fixture
def settled(monkeypatch):
    """Calls something and returns the records that the ledger would read of it."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)

    def record(settle, *given):
        settle(*given)
        (found,) = records_in_html(
            shown.pop()._repr_html_(), "07-feed-forward-residual-norm"
        )
        return found

    return record


def over_words(x):
    return F.layer_norm(x, x.shape[-2:])


class Mixing(PositionwiseFeedForward):
    def forward(self, x):
        return super().forward(x + x.mean(dim=-2, keepdim=True))


def as_convolution(linear, kernel=1):
    rows, columns = linear.weight.shape
    conv = nn.Conv1d(columns, rows, kernel_size=kernel, padding=kernel // 2).double()
    conv.weight.data[:, :, kernel // 2] = linear.weight.data
    conv.bias.data = linear.bias.data
    return conv


@pytest.mark.parametrize(
    ("claim", "verdict", "settle", "right", "wrong"),
    [
        (
            "s3.1-residual-norm",
            "defined",
            chapter.settle_residual_norm,
            chapter.normalise,
            over_words,
        ),
        (
            "s3.3-feed-forward",
            "defined",
            chapter.settle_feed_forward,
            PositionwiseFeedForward,
            Mixing,
        ),
        (
            "s3.3-convolutions",
            "derived",
            chapter.settle_convolutions,
            as_convolution,
            lambda linear: as_convolution(linear, kernel=3),
        ),
    ],
)
def test_a_claim_is_checked_and_could_fail(
    settled, claim, verdict, settle, right, wrong
):
    """With a norm over words, a layer that mixes them, a kernel of size 3."""
    holds, fails = settled(settle, right), settled(settle, wrong)
    assert (holds.claim_id, holds.verdict) == (claim, verdict)
    assert fails.verdict in {"open", "contradicted"}


def test_one_width_is_settled(settled, monkeypatch):
    """62 outputs of 512 numbers, and not if one of them has another width."""
    assert chapter.output_widths() == [512] * 62
    assert settled(chapter.settle_one_width).verdict == "defined"
    monkeypatch.setattr(chapter, "output_widths", lambda: [512] * 61 + [256])
    assert settled(chapter.settle_one_width).verdict == "open"
