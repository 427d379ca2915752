"""Chapter 12's counts, paths and experiments, and what its text says of them."""

import inspect
import json
import math
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import torch

from aiayn_book.chapters import why_self_attention as chapter
from aiayn_book.svg import Svg

CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"
MINE = {
    claim["id"]: claim["verdict"]
    for claim in json.loads(CLAIMS.read_text("utf-8"))
    if claim["chapter"] == "12-why-self-attention"
}
DERIVED = [
    chapter.settle_complexity,
    chapter.settle_costs,
    chapter.settle_parallel,
    chapter.settle_paths,
    chapter.settle_separable,
]


def verdicts(shown):
    """Verdicts by claim, read from what `settle` prints."""
    found, name = {}, ""
    for line in shown.splitlines():
        if line.startswith("Claim "):
            name = line.split()[1]
        if line.strip().startswith("Verdict: "):
            found[name] = line.split("Verdict: ")[1].removesuffix(" by derivation")
    return found


@pytest.mark.parametrize("settle", DERIVED, ids=lambda function: function.__name__)
def test_derivations_give_the_recorded_verdicts(capsys, settle):
    """Counts, costs, parallel work, paths and the separable convolution."""
    settle()
    found = verdicts(capsys.readouterr().out)
    assert found
    assert found == {name: MINE[name] for name in found}


def test_the_longest_stack_connects_its_ends_whatever_the_words_are():
    """Forty layers of a window of three: no weight may become exactly zero."""
    layer = chapter.stack_of("restricted attention", 3)
    for seed in range(60):
        torch.manual_seed(seed)
        assert chapter.ends_meet(layer, n=41, depth=40)
    assert not chapter.ends_meet(layer, n=41, depth=39)


def test_the_counts_by_hand():
    """Three words of two numbers: 36, 12 and 36 multiplications, as the text says."""
    counts = chapter.core_counts(n=3, d=2)
    assert list(counts.values()) == [36, 12, 36, 36]
    wide = chapter.core_counts(n=3, d=100)
    assert wide["self-attention"] == 2 * 9 * 100 == wide["restricted"]
    assert wide["self-attention"] == min(wide.values())


def test_whole_layers_are_the_formulas_of_the_chart():
    """And attention meets the GRU at n = d and the LSTM at n = 2d."""
    d = 32
    for n in (5, 32, 64):
        counts = chapter.layer_counts(n, d)
        for name, formula in chapter.FORMULAS.items():
            if "table" not in name:
                key = "self-attention" if name == "attention layer" else name
                per_word = eval(formula.replace("datum.n", str(n)), {"d": d})
                assert counts[key] == n * per_word
    assert chapter.layer_counts(d, d)["self-attention"] == 6 * d**3
    twice = chapter.layer_counts(2 * d, d)
    assert twice["self-attention"] == twice["LSTM"]


def test_the_restricted_core_is_attention_under_a_mask():
    """The windows that are counted compute the same numbers as the full map."""
    x = torch.randn(9, 4)
    masked = chapter.scaled_dot_product_attention(x, x, x, chapter.near(9, 5))[0]
    assert torch.allclose(chapter.restricted_core(x, 5), masked, atol=1e-6)


def test_longest_and_shortest_ways():
    """Two products in a row beside a single one: 2 and 1; unrelated results: none."""
    a, matrix = torch.randn(1, 4, requires_grad=True), torch.randn(4, 4)
    result = a @ matrix @ matrix + a @ matrix
    assert chapter.products_between(result, a, max) == 2
    assert chapter.products_between(result, a, min) == 1
    other = torch.randn(1, 4, requires_grad=True)
    assert chapter.products_between(result, other, min) == math.inf


def test_sequential_depth_is_what_the_drawing_shows():
    """Four steps for attention at any length, as many as words for the recurrence."""
    layers = chapter.layers()
    for n in (3, 6):
        depth = {k: chapter.sequential_depth(f, n) for k, f in layers.items()}
        assert depth == {
            "self-attention": 4,
            "recurrent": n,
            "convolutional": 1,
            "restricted": 4,
        }
    attention, recurrence = chapter.schedule(words=6)
    assert "Attention: 4 steps" in attention.html
    assert "Recurrence: 6 steps" in recurrence.html


def test_sequential_claim(capsys):
    """It holds for the layers, and fails if attention's depth grew."""
    lengths = (4, 8)
    depth = {
        k: [chapter.sequential_depth(f, n) for n in lengths]
        for k, f in chapter.layers().items()
    }
    chapter.settle_sequential(depth, lengths)
    assert verdicts(capsys.readouterr().out)["s4-sequential"] == "derived"
    chapter.settle_sequential(depth | {"self-attention": [4, 5]}, lengths)
    assert verdicts(capsys.readouterr().out)["s4-sequential"] == "contradicted"


def test_lengths_claim(capsys):
    """Two thousand sentences of the grammar are shorter than 96 pieces."""
    lengths = chapter.grammar_lengths()
    chapter.settle_lengths(lengths)
    found = verdicts(capsys.readouterr().out)
    assert found["s4-n-is-below-d"] == MINE["s4-n-is-below-d"]
    assert 10 < lengths.float().mean() < 25


def test_stored_activations():
    """Eight heads store eight maps; the fused kernel stores none, nor does the GRU."""
    stored = chapter.memory_table(d=16)
    y = "stored per token, in units of d"
    by = {name: run.set_index("words n")[y] for name, run in stored.groupby("layer")}
    step = {name: (run[800] - run[400]) * 16 / 400 for name, run in by.items()}
    assert step["attention, 8 heads"] == pytest.approx(8 * step["attention, 1 head"])
    assert step["attention, 1 head"] >= 1  # at least one weight for each key
    assert step["attention, 8 heads, fused"] == pytest.approx(0, abs=0.01)
    assert step["GRU"] == pytest.approx(0, abs=0.01)


def test_crossing():
    """A straight line on logarithmic axes; None where the ratio stays on one side."""
    assert chapter.crossing([10, 100, 1000], [0.1, 0.1, 10]) == pytest.approx(10**2.5)
    assert chapter.crossing([1, 2], [0.5, 0.9]) is None
    assert chapter.crossing([1, 2], [1.5, 2.0]) is None


def test_half_time_in_words():
    """The count's own crossing is 6d."""
    shares = chapter.square_table(d=8)
    count = shares[shares["measure"] == "by the count"]
    met = chapter.crossing(count["words n"].tolist(), count["n² part / rest"].tolist())
    assert met == pytest.approx(6 * 8)
    shares["n² part / rest"] = 0.5
    assert chapter.half_time(shares) == "at no length up to 1024"


def test_paths_of_the_text():
    """Nine words by hand, and forty words by the formulas."""
    table = chapter.path_table()
    assert table.loc["recurrence"].tolist() == [9, 20, 40]
    assert table.loc["self-attention"].tolist() == [1, 1, 1]
    assert table.loc["restricted attention, 5 wide"].tolist() == [4, 10, 20]
    assert table.loc["convolution, 3 wide"].tolist() == [4, 10, 20]
    assert table.loc["dilated convolution, 3 wide"].tolist() == [2, 3, 4]
    assert math.ceil(2 * 39 / 4) == 20


@pytest.mark.parametrize(("n", "k"), [(9, 3), (27, 3), (28, 3), (125, 5)])
def test_dilated_depth_is_a_logarithm(n, k):
    """In whole numbers, so that a power of k is not rounded up."""
    depth = chapter.layers_if_dilated(n, k)
    assert k ** (depth - 1) < n <= k**depth


def test_reach_of_the_chart():
    """Corners of Figure 12.9, and nothing above the diagonal of a causal kernel."""
    corners = [int(chapter.first_reached(*stack)[-1, 0]) for stack in chapter.STACKS]
    assert corners == [1, 8, 8, 3]
    assert not chapter.first_reached("convolution", 3).triu(1).any()


def test_drawings_have_the_paths_that_are_measured():
    """The stacks of Figure 12.8 have as many layers as nine words need."""
    table = chapter.path_table((9,))["n = 9"]
    words = {2: "two layers, by 2, 6 words", 4: "four layers, by 2, 2, 2, 2 words"}
    for name, start in (
        ("convolution, 3 wide", "Contiguous, k = 3"),
        ("dilated convolution, 3 wide", "Dilated by 1 and 3"),
        ("restricted attention, 5 wide", "Attention, r = 5"),
    ):
        assert f"{start}: {words[table[name]]}" in chapter.stacks().description


def routes(steps, distance):
    """Ways to go so far back, with one of the given steps in each layer."""
    return sum(sum(taken) == distance for taken in product(*steps))


def test_jumps_have_one_route_and_windows_fewer():
    """The text's 91, 28 and 1; each distance is a sum of powers of two in one way."""
    steps = [(0, 2**i) for i in range(5)]
    assert all(routes(steps, distance) == 1 for distance in range(32))
    found = [routes([range(back + 1)] * 3, 12) for back in (12, 6, 4)]
    assert found == [91, 28, 1]


def test_a_jump_layer_moves_a_signal_by_its_jump_only():
    """The derivative is zero but for the position itself and the one so far back."""
    torch.manual_seed(12)
    x = torch.randn(1, 9, chapter.WIDTH, requires_grad=True)
    (slope,) = torch.autograd.grad(chapter.Jump(4)(x)[0, -1].sum(), x)
    assert slope[0].abs().sum(dim=1).nonzero().flatten().tolist() == [4, 8]


def made_up(jumps, windows):
    """Five equal seeds of given steps for each path length."""
    rows = [
        (path, steps + seed, family, seed)
        for family, all_steps in (("jumps", jumps), ("windows", windows))
        for path, steps in enumerate(all_steps, 1)
        for seed in range(5)
    ]
    columns = ["path length", "steps to learn", "model", "seed"]
    return pd.DataFrame(rows, columns=columns)


def test_short_paths_claim_can_fail(capsys):
    """Doubling holds; a family without a slope does not."""
    good = made_up((20, 40, 80, 160), (20, 60, 180))
    assert chapter.growth_per_layer(good, "jumps")[0] == pytest.approx(1, abs=0.1)
    chapter.settle_short_paths(good)
    found = verdicts(capsys.readouterr().out)
    assert found["s4-short-paths"] == MINE["s4-short-paths"]
    chapter.settle_short_paths(made_up((20, 40, 80, 160), (60, 60, 60)))
    found = verdicts(capsys.readouterr().out)
    assert found["s4-short-paths"] == "not reproduced at small scale"


def test_the_nearer_letter_with_the_longer_path_is_learned_later():
    """One seed of the model of jumps: 16 positions back before 15."""
    one_jump = chapter.steps_to_learn(chapter.jump_layers, 16, seed=0)
    assert one_jump < chapter.steps_to_learn(chapter.jump_layers, 12, seed=0)


def test_every_drawing_has_a_text_alternative():
    """A title and what a reader who does not see it should know."""
    drawings = [
        chapter.three_layers(),
        chapter.stacks(),
        chapter.three_layers(phone=True),
        chapter.stacks(phone=True),
        *chapter.products_by_hand(),
        *chapter.schedule(),
        *chapter.jumps_drawing(),
    ]
    for drawing in drawings:
        assert isinstance(drawing, Svg)
        assert len(drawing.description) > 60
    assert all(drawing.width <= 360 for drawing in drawings[2:])


def test_every_function_says_what_it_does():
    """Readers open this module to see what the hidden cells call."""
    for name, function in inspect.getmembers(chapter, inspect.isfunction):
        if function.__module__ == chapter.__name__ and not name.startswith("_"):
            assert function.__doc__, name
