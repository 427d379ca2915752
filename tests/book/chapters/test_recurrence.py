"""Chapter 1: its counts are right, its drawings show them, its text is true."""

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
import torch
from torch import nn

from aiayn.data.grammar import generate
from aiayn.parsing import linearise
from aiayn_book.chapters import recurrence as chapter
from tests.book.chapters.drawings import check_words, texts

CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"
NOTEBOOK = Path(__file__).resolve().parents[3] / "notebooks" / "01-recurrence.ipynb"
SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS = {
    "unrolled": chapter.unrolled(),
    "by hand": [chapter.chain_by_hand()],
    "batches": [chapter.batch_shapes()],
    "one vector": chapter.one_vector_or_all(),
    "receptive fields": chapter.receptive_fields(),
}
LENGTHS = (8, 16, 32)


def words_of(drawing):
    return [words for *_, words in texts(drawing)]


def verdicts(shown):
    """The verdicts that were printed, by claim."""
    found = re.findall(r"Claim (\S+) .*?Verdict: ([^\n]+)", shown, re.DOTALL)
    return {name: verdict.removesuffix(" by derivation") for name, verdict in found}


def recorded(name):
    return {c["id"]: c["verdict"] for c in json.loads(CLAIMS.read_text("utf-8"))}[name]


@pytest.fixture(scope="module")
def paths():
    layers = chapter.new_layers()
    return {
        name: {n: chapter.critical_path(f(chapter.sentences(2, n))) for n in LENGTHS}
        for name, f in layers.items()
    }


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_the_first_figure_counts_the_steps():
    """Six steps in a row, against twice: encoder or decoder, then cross-attention."""
    recurrence, attention = (words_of(drawing) for drawing in chapter.unrolled())
    assert [w for w in recurrence if w.isdigit()] == list("123456")
    assert sorted(w for w in attention if w.isdigit()) == list("111111222")


def test_the_numbers_by_hand():
    """States, factors and their product, as in the table, the figure and autograd."""
    states, factors = chapter.states_and_factors()
    assert [round(state, 2) for state in states] == [0.76, 0.36, 0.18, 0.80]
    x = torch.tensor([1.0, 0, 0, 1], dtype=torch.float64, requires_grad=True)
    state = torch.zeros((), dtype=torch.float64)
    for number in x:
        state = torch.tanh(state / 2 + number)
    (slopes,) = torch.autograd.grad(state, x)
    assert slopes[0].item() == pytest.approx(math.prod(factors))
    assert slopes[3].item() == pytest.approx(1 - states[-1] ** 2)
    assert round(math.prod(factors), 3) == 0.016
    assert 0.25 / math.prod(factors) == pytest.approx(15, abs=1)  # a fifteenth
    assert max(factors[1:]) <= 0.5
    shown = " ".join(words_of(chapter.chain_by_hand()))
    assert "0.18 × 0.48 × 0.43 × 0.42 = 0.016" in shown


def test_with_a_tanh_the_state_is_no_sum_of_parts():
    """0.09 and 0.76 make 0.85, and not 0.80; the linear state is 1 + 1/8."""
    ends = [
        chapter.states_and_factors(x)[0][-1]
        for x in ([1.0, 0, 0, 0], [0.0, 0, 0, 1.0], [1.0, 0, 0, 1.0])
    ]
    assert [round(end, 2) for end in ends] == [0.09, 0.76, 0.80]
    assert round(ends[0] + ends[1], 2) == 0.85


def test_a_critical_path_is_the_longest_way_back():
    """Of two ways to a result, the longer one counts; shared inputs count once."""
    a = torch.ones(2, 2, requires_grad=True)
    once = a @ a
    leaf = 1  # a leaf's own node, which collects its gradient
    assert chapter.critical_path(once) == 1 + leaf
    assert chapter.critical_path(once @ a @ a) == 3 + leaf
    assert chapter.critical_path(once @ a + once) == 3 + leaf
    assert chapter.critical_path(once + once) == 2 + leaf


def test_only_recurrence_grows_with_the_sentence(capsys, paths):
    """Three operations a word in the plain layer: a product, a sum and a tanh."""
    assert chapter.added_per_word(paths["plain recurrence"]) == [3, 3]
    assert chapter.added_per_word(paths["attention"]) == [0, 0]
    chapter.settle_sequential(paths)
    assert verdicts(capsys.readouterr().out)["s1-sequential"] == "derived"
    chapter.settle_sequential({**paths, "GRU": paths["attention"]})
    assert verdicts(capsys.readouterr().out)["s1-sequential"] == "contradicted"


def test_memory_counts_what_a_sentence_needs(capsys):
    """A layer that keeps its input alone needs four bytes a number."""
    square = chapter.bytes_a_sentence(lambda x: x * x, 10)
    assert square == 4 * 10 * chapter.WIDTH
    needed = chapter.memory(lengths=(16, 1024))
    chapter.settle_memory(needed)
    assert verdicts(capsys.readouterr().out)["s1-memory"] == recorded("s1-memory")
    # Written out, attention keeps more than a GRU in long sentences.
    assert needed["attention, written out"][1024] > needed["GRU"][1024]


def test_the_two_batches_need_the_same_memory():
    """64 sentences of 50 words are 8 of 400, in numbers and in area."""
    root = ElementTree.fromstring(chapter.batch_shapes().markup)
    areas = [
        float(r.get("width")) * float(r.get("height")) for r in root.iter(f"{SVG}rect")
    ]
    assert areas == [6400, 6400]
    assert 64 * 50 == 8 * 400 == 3200


def test_cheaper_steps_are_as_many(capsys):
    """A step without the state has a path that does not grow: the claim can fail."""
    U = (torch.randn(64, 64) / 8).requires_grad_()
    A, B = torch.randn(64, 8).requires_grad_(), torch.randn(8, 64).requires_grad_()

    def full(x, h):
        return torch.tanh(x + h @ U)

    def thin(x, h):
        return torch.tanh(x + h @ A @ B)

    def without(x, h):
        return torch.tanh(x @ A @ B)

    counts = {
        step.__name__: chapter.count_steps(step) for step in (full, thin, without)
    }
    assert counts["full"]["operations"] == 64 * 2 * 64 * 64
    table = pd.DataFrame(counts).T
    chapter.settle_constraint(table.drop(index="without"))
    shown = verdicts(capsys.readouterr().out)
    assert shown["s1-constraint-remains"] == recorded("s1-constraint-remains")
    chapter.settle_constraint(table.drop(index="thin"))
    shown = verdicts(capsys.readouterr().out)
    assert shown["s1-constraint-remains"] == "contradicted"


def test_layers_that_relate_two_words(capsys):
    """The formulas of the text, its example, and what the drawing connects."""
    assert chapter.layers_needed(14) == 7
    assert chapter.layers_needed(14, doubling=True) == 3
    assert chapter.layers_needed(15, doubling=True) == 4
    reach = {62: 5, 63: 6, 124: 10, 128: 12}  # the published ByteNet's dilations
    for distance, layers in reach.items():
        assert chapter.layers_needed(distance, doubling=True, largest=16) == layers
    chapter.settle_convolutions((1, 2, 5, 14, 30))
    found = verdicts(capsys.readouterr().out)["s2-convolutions-distance"]
    assert found == "consistent with the paper's own figures"
    for drawing, reached in zip(chapter.receptive_fields(), (6, 14), strict=True):
        dots = re.findall(r'cy="178" r="5"', drawing.markup)
        assert len(dots) == reached + 1


def test_gradients_vanish_in_recurrent_layers():
    """As the text says of every seed; the shares of one layer sum to one."""
    shares = chapter.gradients()
    chapter.check_gradients(shares)
    of_one = shares[(shares["layer"] == "GRU") & (shares["seed"] == 0)]
    assert of_one["share of the gradient"].sum() == pytest.approx(1, abs=1e-5)
    flat = chapter.gradient_by_distance(lambda x: x.mean(dim=1, keepdim=True), n=5)
    assert flat == pytest.approx([0.2] * 5)


def test_all_models_of_the_race_have_the_same_size():
    """About 155,000 weights each, as the text says."""
    for kind in chapter.KINDS:
        model = chapter.new_model(kind, 300, **chapter.SIZES[kind], seed=0)
        count = sum(p.numel() for p in model.parameters())
        assert count == pytest.approx(155_000, rel=0.01)


def test_a_cost_between_two_points_lies_on_a_line():
    spent, losses = [10.0, 20.0, 30.0], [4.0, 2.0, 1.0]
    assert chapter.spent_at(3.0, spent, losses) == 15
    assert chapter.spent_at(1.0, spent, losses) == 30
    assert chapter.spent_at(5.0, spent, losses) == 10
    with pytest.raises(ValueError, match="never reached"):
        chapter.spent_at(0.5, spent, losses)


@pytest.fixture(scope="module")
def short_race():
    return chapter.run_race(seeds=(0,), steps=20)


def test_the_race_adds_up_what_is_spent(short_race):
    """All start from the same data; costs grow; only recurrence's path is long."""
    by_kind = dict(list(short_race.progress.groupby("model")))
    assert set(by_kind) == set(chapter.KINDS)
    for rows in by_kind.values():
        assert rows["steps"].tolist() == [10, 20]
        assert all(rows[cost].is_monotonic_increasing for cost in chapter.COSTS)
    ratio = short_race.ratios()
    assert ratio["critical path"].min() > 2
    assert (
        short_race.target
        == short_race.last[short_race.last["model"] != "one vector"]["loss"].max()
    )


def test_the_paths_of_the_race(short_race):
    """The recurrent one grows with the sentence; layers lengthen the other."""
    paths = short_race.paths((8, 16))
    assert paths.loc[16, "GRU + attention"] > 1.8 * paths.loc[8, "GRU + attention"]
    for name in ("Transformer", "six layers"):
        assert paths.loc[16, name] == paths.loc[8, name]
    assert paths.loc[8, "six layers"] > 5 * paths.loc[8, "Transformer"]
    assert all(passes == pieces + 1 for pieces, passes in short_race.passes())


def test_what_the_text_says_of_table_2():
    costs = chapter.table_2_costs()
    assert min(costs, key=costs.get) == "ConvS2S"
    assert round(costs["ConvS2S"], 1) == 2.9
    of_big = chapter.table_2_costs("big")
    assert min(of_big, key=of_big.get) == "ConvS2S"
    assert round(of_big["ConvS2S"], 1) == 0.4


def test_the_five_tasks_of_the_table():
    """Translation and parse are the grammar's; the letters are as they should be."""
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    text = "".join(next("".join(c["source"]) for c in cells if c["id"] == "tasks"))
    sample = generate(6, seed=3)[0]
    source = " ".join(sample.source_tokens)
    tree = linearise(sample.source_tree)
    rows = {
        "copy": ("h e l l o", "h e l l o"),
        "reverse": ("h e l l o", " ".join("hello"[::-1])),
        "sort": ("h e l l o", " ".join(sorted("hello"))),
        "translate": (source, " ".join(sample.target_tokens)),
        "parse (XX: a word)": (source, " ".join(tree)),
    }
    for name, (x, y) in rows.items():
        lengths = f"{len(x.split())} → {len(y.split())}"
        assert f"| {name} | {x} | {y} | {lengths} |" in text


def test_the_plain_layer_is_the_formula():
    """tanh(W x + U h), one word after another."""
    layer = chapter.Plain(4)
    x, h = torch.randn(1, 3, 4), torch.zeros(4)
    assert isinstance(layer.of_state, nn.Linear)
    for t in range(3):
        h = torch.tanh(layer.of_token(x[0, t]) + layer.of_state.weight @ h)
    assert torch.allclose(layer(x)[0, -1], h, atol=1e-6)


def test_the_text_is_held_against_the_copiers():
    """What is said of every seed fails if one seed is otherwise."""
    rows = [
        {"letters": n, "model": kind, "seed": seed, "right": share}
        for seed in (0, 1)
        for kind, shares in {
            "one vector": (0.95, 0.7, 0.5, 0.4),
            "GRU + attention": (1, 0.95, 0.85, 0.7),
            "Transformer": (1, 1, 0.8, 0.6),
        }.items()
        for n, share in zip((4, 8, 12, 16), shares, strict=True)
    ]
    copied = pd.DataFrame(rows)
    chapter.check_copying(copied)
    assert chapter.longest_copied(copied, "one vector") == 4
    assert chapter.copied_at(copied, "Transformer", 12) == pytest.approx(0.8)
    copied.loc[copied["letters"] == 12, "right"] = 0.85
    with pytest.raises(AssertionError):
        chapter.check_copying(copied)
