"""Chapter 1, recurrence: its drawings, counts, trainings and claims (§1, §2)."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from aiayn import fast
from aiayn.data import (
    Batch,
    TokenBatches,
    Tokenizer,
    encode_pairs,
    load_corpus,
)
from aiayn.inference import greedy_search
from aiayn.model import TokenEmbedding, Transformer, TransformerConfig, shift_right
from aiayn.training import Trainer, TrainingConfig
from aiayn_book import paper
from aiayn_book.claims import settle
from aiayn_book.colours import KEY, QUERY, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator
from aiayn_book.svg import Svg

Layer = Callable[[Tensor], Tensor]
Model = RecurrentTranslator | Transformer

SEEDS = range(3)
KINDS = ("one vector", "GRU + attention", "Transformer")
"""The three models that copy letters and that run the race."""


# The first screen: what must wait for what.

_SOURCE, _TARGET = ["cat", "drinks", "milk"], ["start", "Katze", "trinkt"]
_WRITTEN = ["Katze", "trinkt", "Milch"]


def unrolled() -> list[Svg]:
    """A recurrent encoder–decoder beside attention; a box says when it can begin."""
    places = [34 + 54 * i for i in range(6)]
    panels = []
    for title, total in (
        ("Recurrence", "6 steps for 3 + 3 words: one for each word"),
        ("Attention", "2 steps for any number of words"),
    ):
        drawing = Diagram(338, 290)
        drawing.text(169, 12, title, bold=True)
        drawing.text(169, 278, total, bold=True)
        drawing.text(88, 250, "encoder reads", italic=True)
        drawing.text(250, 250, "decoder reads and writes", italic=True)
        for x, word in zip(places, _SOURCE + _TARGET, strict=True):
            drawing.text(x, 226, word)
        for x, word in zip(places[3:], _WRITTEN, strict=True):
            drawing.text(x, 44, word)
        if title == "Recurrence":
            _unrolled_recurrence(drawing, places)
        else:
            _unrolled_attention(drawing, places)
        panels.append(
            drawing.finish(
                title,
                f"Three source words and three target words. {total}. "
                "Each box has the number of the step at which it can be computed.",
            )
        )
    return panels


def _unrolled_recurrence(drawing: Diagram, places: Sequence[float]) -> None:
    for number, x in enumerate(places, start=1):
        drawing.arrow((x, 214), (x, 150))
        drawing.box(x, 135, str(number), width=34, role="alert")
        if number > 1:
            drawing.arrow((x - 37, 135), (x - 18, 135), role="alert", width=3)
        if number > 3:
            drawing.arrow((x, 120), (x, 56))


def _unrolled_attention(drawing: Diagram, places: Sequence[float]) -> None:
    thin: dict[str, Any] = {"role": "neutral", "head": False, "width": 0.8}
    for j, x in enumerate(places):
        for i, y in enumerate(places):
            same = (i < 3) == (j < 3)
            if same and (i < 3 or j <= i):  # the decoder reads from left to right
                drawing.arrow((x, 214), (y, 189), **thin)
    for y in places[3:]:
        for x in [*places[:3], y]:
            drawing.arrow((x, 159), (y, 109), **thin)
        drawing.arrow((y, 79), (y, 56))
    path = {"role": "alert", "width": 3}
    drawing.arrow((places[0], 214), (places[1], 189), **path)
    drawing.arrow((places[1], 159), (places[4], 109), **path)
    for number, x in enumerate(places):
        on_path = "alert" if number == 1 else "weight"
        drawing.box(x, 174, "1", width=34, role=on_path)
        if number > 2:
            on_path = "alert" if number == 4 else "weight"
            drawing.box(x, 94, "2", width=34, role=on_path)


# Four numbers by hand.


def states_and_factors(
    x: Sequence[float] = (1.0, 0.0, 0.0, 1.0), keep: float = 0.5
) -> tuple[list[float], list[float]]:
    """States of h = tanh(keep · h + x), and what each step multiplies a derivative by.

    The first factor leads from the first number to the first state, each of the others
    from one state to the next.
    """
    states: list[float] = []
    factors: list[float] = []
    state = 0.0
    for number in x:
        state = math.tanh(keep * state + number)
        factors.append((1 - state**2) * (keep if states else 1.0))
        states.append(state)
    return states, factors


def chain_by_hand() -> Svg:
    """Forwards each state waits for the one before; backwards the factors multiply."""
    numbers = (1.0, 0.0, 0.0, 1.0)
    states, factors = states_and_factors(numbers)
    drawing = Diagram(360, 236)
    places = [62 + 84 * i for i in range(4)]
    drawing.text(180, 14, "derivative: backwards, the factors multiply", role="alert")
    for i, (x, state, factor) in enumerate(zip(places, states, factors, strict=True)):
        drawing.box(x, 102, f"{state:.2f}", width=50)
        drawing.text(x, 174, f"reads {numbers[i]:.0f}")
        drawing.arrow((x + 6, 162), (x + 6, 118))
        if i:
            drawing.arrow((x - 59, 102), (x - 26, 102), width=2.2)
            drawing.arrow((x, 86), (x, 64), (x - 84, 64), (x - 84, 84), role="alert")
            drawing.text(x - 42, 46, f"× {factor:.2f}", role="alert")
        else:
            drawing.arrow((x - 8, 118), (x - 8, 160), role="alert")
            drawing.text(x - 16, 138, f"× {factor:.2f}", role="alert", anchor="end")
    product = " × ".join(f"{factor:.2f}" for factor in reversed(factors))
    drawing.text(180, 204, f"{product} = {math.prod(factors):.3f}", role="alert")
    drawing.text(180, 226, "for the first of four numbers; in a mean: 0.25")
    return drawing.finish(
        "Four states in a row",
        "Four boxes with the states 0.76, 0.36, 0.18 and 0.80, each computed from the "
        "one before it and the number that is read. Arrows back from the last state to "
        "the first number carry the factors 0.18, 0.48, 0.43 and 0.42.",
    )


def keep_chart() -> alt.LayerChart:
    """The derivative of a linear recurrence by distance, with a slider for *keep*."""
    keep = alt.param(
        name="keep",
        value=0.5,
        bind=alt.binding_range(min=0.4, max=1, step=0.01, name="keep "),
    )
    rows = [{"steps ago": n} for n in range(20)]
    base = alt.Chart(alt.Data(values=rows)).transform_calculate(
        recurrence="pow(keep, datum['steps ago'])", mean="1 / 20"
    )
    x = alt.X("steps ago:Q", scale=alt.Scale(domain=[-0.6, 19.6]))
    y = alt.Y("recurrence:Q", title="derivative", scale=alt.Scale(domain=[0, 1]))
    bars = base.mark_bar(color=QUERY.mark, size=9).encode(x=x, y=y)
    line = base.mark_line(color=KEY.mark, strokeDash=[5, 4])
    line = line.encode(x=x, y=alt.Y("mean:Q"))
    return (
        alt.layer(bars, line)
        .add_params(keep)
        .properties(
            width="container",
            height=200,
            description="Derivative of the last state with respect to each of twenty "
            "numbers, as bars over how many steps ago it was read. With keep at one "
            "half the bars halve at each step and are invisible from the eighth on. A "
            "dashed line at one twentieth shows the mean's derivative, the same for "
            "all.",
        )
    )


# The critical path.


def critical_path(result: Tensor) -> int:
    """The number of operations on the longest way back from a result to a leaf."""
    length: dict[Any, int] = {}
    todo: list[Any] = [result.grad_fn]
    while todo:
        node = todo[-1]
        inputs = [n for n, _ in node.next_functions if n]
        missing = [n for n in inputs if n not in length]
        if missing:
            todo.extend(missing)
        else:
            before = max((length[n] for n in inputs), default=0)
            length[todo.pop()] = before + 1
    return length[result.grad_fn]


WIDTH = 64
"""Numbers in a word's vector, in everything that is counted or timed."""


class Plain(nn.Module):
    """The plainest recurrent layer: a tanh of the token and the state."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.of_token = nn.Linear(width, width)
        self.of_state = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h, states = torch.zeros_like(x[:, 0]), []
        for token in self.of_token(x).unbind(dim=1):
            h = torch.tanh(token + self.of_state(h))
            states.append(h)
        return torch.stack(states, dim=1)


def new_layers(seed: int = 0) -> dict[str, Layer]:
    """Four untrained layers, each from (batch, n, width) to the same shape."""
    torch.manual_seed(seed)
    reader = nn.GRU(WIDTH, WIDTH, batch_first=True)
    convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
    attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
    return {
        "plain recurrence": Plain(WIDTH),
        "GRU": lambda x: reader(x)[0],
        "convolution": lambda x: convolution(x.mT).mT,
        "attention": lambda x: attention(x, x, x, need_weights=False)[0],
    }


def sentences(batch: int, n: int) -> Tensor:
    """Random word vectors that ask for a gradient: (batch, n, width)."""
    return torch.randn(batch, n, WIDTH, requires_grad=True)


Paths = Mapping[str, Mapping[int, int]]


def path_chart(paths: Paths) -> alt.LayerChart:
    """The critical path of each layer over the length of the sentence."""
    rows = [
        {"words": n, "critical path": length, "layer": name}
        for name, by_length in paths.items()
        for n, length in by_length.items()
    ]
    return curves(
        rows,
        "words",
        "critical path",
        "layer",
        description="Operations on the critical path over the number of words. Those "
        "of plain recurrence and of the GRU rise along straight lines. Those of the "
        "convolution and of attention stay level near zero.",
    )


def added_per_word(by_length: Mapping[int, int]) -> list[float]:
    """How much each further word adds to a critical path, between two lengths."""
    return [(q - p) / (m - n) for (n, p), (m, q) in pairwise(by_length.items())]


def settle_sequential(paths: Paths) -> None:
    """Settle that computed step by step, only recurrence grows with the sentence."""
    added = {name: added_per_word(by_length) for name, by_length in paths.items()}
    steady = all(max(each) == min(each) for each in added.values())
    each = {name: values[0] for name, values in added.items()}
    lengths = list(next(iter(paths.values())))
    settle(
        "s1-sequential",
        holds=steady
        and min(each["plain recurrence"], each["GRU"]) >= 1
        and each["convolution"] == each["attention"] == 0,
        expected="computed step by step, each further word lengthens a recurrent "
        "layer's critical path by the same amount, and lengthens neither attention's "
        "nor a convolution's",
        measured="computed step by step, each word adds to the critical path: "
        + ", ".join(f"{name} {count:g}" for name, count in each.items())
        + f" operations; {'as many' if steady else 'not as many'} for each word from "
        f"{lengths[0]} to {lengths[-1]} words. (A recurrence without a nonlinear "
        "function takes only log₂ n rounds: exercise 1.1)",
        scale="derivation",
    )


# Batches, and the memory that they need.


def batch_shapes() -> Svg:
    """The same memory as many short sentences or as few long ones."""
    drawing = Diagram(360, 306)
    left = 34
    for top, rows, words, high, wide in (
        (28, 64, 50, 160, 40),
        (248, 8, 400, 20, 320),
    ):
        middle = left + wide / 2, top + high / 2
        drawing.box(*middle, "", width=wide, height=high, role="value")
        drawing.arrow((left, top + high + 9), (left + wide, top + high + 9))
        label = f"{words} steps, one after another"
        if wide < 100:
            drawing.text(left + wide + 10, top + high + 9, label, anchor="start")
            at = left + wide + 10, top + high / 2, "start"
            drawing.text(at[0], at[1], f"{rows} sentences in parallel", anchor="start")
        else:
            drawing.text(left + wide / 2, top + high + 26, label)
            words_ = f"{rows} sentences in parallel"
            drawing.text(left, top - 14, words_, anchor="start")
    drawing.text(left, 12, "memory for 3,200 tokens", anchor="start", bold=True)
    return drawing.finish(
        "The same memory, filled in two ways",
        "Two rectangles of the same area. The first is high and narrow: 64 sentences "
        "in parallel, 50 steps one after another. The second is low and long: 8 "
        "sentences in parallel, 400 steps.",
    )


def kept_bytes(layer: Layer, batch: int, n: int) -> int:
    """Bytes that PyTorch keeps for the gradient of a layer that reads a batch."""
    sizes: dict[int, int] = {}
    held: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        held.append(tensor)  # so that no address is used twice
        return tensor

    x = sentences(batch, n)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        layer(x)
    return sum(sizes.values())


def bytes_a_sentence(layer: Layer, n: int) -> float:
    """What one more sentence of n words needs, without what a batch shares."""
    return (kept_bytes(layer, 3, n) - kept_bytes(layer, 1, n)) / 2


def memory(lengths: Sequence[int] = (16, 64, 256, 1024)) -> dict[str, dict[int, float]]:
    """Bytes that a sentence needs, by layer and by its number of words."""
    layers = new_layers()
    written_out = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
    readers: dict[str, Layer] = {
        "plain recurrence": layers["plain recurrence"],
        "GRU": layers["GRU"],
        "attention, written out": lambda x: written_out(x, x, x)[0],
        "attention, fused": layers["attention"],
    }
    return {
        name: {n: bytes_a_sentence(layer, n) for n in lengths}
        for name, layer in readers.items()
    }


def settle_memory(needed: Mapping[str, Mapping[int, float]]) -> None:
    """Settle that longer sentences leave a recurrent layer less to do in parallel."""
    by_length = needed["GRU"]
    short, long = min(by_length), max(by_length)
    a_token = [size / n for n, size in by_length.items()]
    uneven = max(a_token) / min(a_token) - 1
    layer = new_layers()["GRU"]
    waits = [critical_path(layer(sentences(1, n))) for n in (short, long)]
    pairs = needed["attention, written out"]
    # The text: written out, attention needs more than a constant for each token.
    assert pairs[long] / pairs[short] > 2 * long / short
    assert needed["attention, fused"][long] < 2 * by_length[long]
    settle(
        "s1-memory",
        holds=uneven < 0.1 and waits[1] / waits[0] > long / short / 2,
        expected="a recurrent layer keeps the same bytes for every token, so that "
        f"{long / short:.0f} times longer sentences leave room for as many times fewer "
        "of them, while the critical path grows with their length",
        measured=f"from {short} to {long} words, the bytes kept for each token differ "
        f"by {uneven:.1%}, so {by_length[long] / by_length[short]:.0f} times fewer "
        "sentences fit into one memory, while the critical path becomes "
        f"{waits[1] / waits[0]:.0f} times longer",
        scale="derivation",
    )


# Cheaper steps.

Step = Callable[[Tensor, Tensor], Tensor]


def operations(task: Callable[[], object]) -> int:
    """Multiplications and additions in the matrix products of a task."""
    with FlopCounterMode(display=False) as counter:
        task()
    return counter.get_total_flops()


def count_steps(step: Step, n: int = 64) -> dict[str, int]:
    """Operations and critical path of reading n words with a step."""

    def read() -> Tensor:
        h = torch.zeros(1, WIDTH)
        for x in torch.randn(n, 1, WIDTH):
            h = step(x, h)
        return h

    return {"operations": operations(read), "critical path": critical_path(read())}


def settle_constraint(counts: pd.DataFrame) -> None:
    """Settle that cheaper steps are as many.

    Args:
        counts: a row for each step, ``full`` first.
    """
    share = counts / counts.loc["full"]
    tricks = share.drop(index="full")
    by_trick = [
        f"{row.Index}, {row.operations:.2f} times the operations and "
        f"{row.path:.2f} times the critical path"
        for row in tricks.rename(columns={"critical path": "path"}).itertuples()
    ]
    settle(
        "s1-constraint-remains",
        holds=bool(
            (tricks["operations"] < 0.5).all() and (tricks["critical path"] >= 1).all()
        ),
        expected="less than half the operations, and a critical path that is no "
        "shorter, because each step still takes the state before it",
        measured=f"two steps of these kinds, built here: {'; '.join(by_trick)}, for 64 "
        "words. Counted, not trained: what the tricks do to quality is not tested here",
        scale="derivation",
    )


# One vector for a sentence.


def one_vector_or_all() -> list[Svg]:
    """How the decoder gets at the source: through one vector, or through all states."""
    places = [50, 126, 202, 278]
    panels = []
    for title in ("One vector", "With attention"):
        drawing = Diagram(338, 236)
        drawing.text(169, 12, title, bold=True)
        for i, (x, letter) in enumerate(zip(places, "abcd", strict=True)):
            drawing.text(x, 222, letter)
            drawing.arrow((x, 212), (x, 197))
            drawing.text(x, 38, letter)
            drawing.arrow((x, 64), (x, 49))
            if i:
                for y in (79, 182):
                    drawing.arrow((x - 55, y), (x - 22, y))
        if title == "One vector":
            last = places[-1]
            drawing.arrow((last, 167), (last, 132), (242, 132), role="alert", width=3)
            for x in places:
                start = 169 + (x - 164) * 0.35
                drawing.arrow((start, 117), (x, 96), role="alert")
            drawing.box(169, 132, "one vector", width=140, role="alert")
        else:
            for y in places:
                for x in places:
                    strong = y == places[2]
                    drawing.arrow(
                        (x, 167),
                        (y, 96),
                        role="weight" if strong else "neutral",
                        width=2.4 if strong and x == y else 1.6 if strong else 0.8,
                        head=strong,
                    )
        for x in places:
            drawing.box(x, 182, "", width=40, role="key")
            drawing.box(x, 79, "", width=40, role="query")
        panels.append(
            drawing.finish(
                title,
                "Four encoder states below, four decoder states above. "
                + (
                    "One arrow leads from the last encoder state to a box named one "
                    "vector, and from it to every decoder state."
                    if title == "One vector"
                    else "Lines lead from every encoder state to every decoder state; "
                    "those of the third decoder state are drawn stronger."
                ),
            )
        )
    return panels


LETTERS, COPY_STEPS = 9, 400


def new_model(kind: str, vocab: int, width: int, d_ff: int, seed: int) -> Model:
    """One of the three `KINDS`, untrained and plain."""
    torch.manual_seed(seed)
    if kind == "Transformer":
        return Transformer(
            TransformerConfig(
                vocab,
                d_model=width,
                d_ff=d_ff,
                num_heads=4,
                num_encoder_layers=1,
                num_decoder_layers=1,
                dropout=0.0,
            )
        )
    return RecurrentTranslator(
        RecurrentConfig(vocab, width, attention=kind != "one vector", dropout=0.0)
    )


def _copier(kind: str, seed: int) -> Model:
    return new_model(kind, 3 + LETTERS, width=32, d_ff=64, seed=seed)


def trainer_for(model: Model, seed: int) -> Trainer:
    """This book's trainer, with the same settings for all models; it accelerates."""
    return Trainer(
        TrainingConfig(
            warmup_steps=50,
            learning_rate_scale=0.4,
            label_smoothing=0.0,
            seed=seed,
            device="cpu",
        ),
        model,  # pyright: ignore[reportArgumentType]  (called like a Transformer)
        bos_id=1,
    )


def draw_letters(batch: int, n: int) -> Tensor:
    """Random letters: (batch, n)."""
    return torch.randint(3, 3 + LETTERS, (batch, n))


Models = dict[tuple[str, int], Model]


def train_copiers(seeds: Sequence[int] = SEEDS, steps: int = COPY_STEPS) -> Models:
    """Train each kind of model to copy two to twelve letters; all see the same."""
    copiers: Models = {}
    for kind in KINDS:
        for seed in seeds:
            model = _copier(kind, seed)
            trainer = trainer_for(model, seed)
            for step in range(1, steps + 1):
                torch.manual_seed(1000 * seed + step)  # the same for all kinds
                rows = draw_letters(32, int(torch.randint(2, 13, ())))
                trainer.step(step, [Batch(rows, rows)])
            copiers[kind, seed] = model.eval()
    return copiers


def share_right(model: Model, source: Tensor, target: Tensor) -> float:
    """The share of right tokens, with teacher forcing."""
    with torch.no_grad():
        best = model(source, shift_right(target, 1)).argmax(dim=-1)
    return (best == target)[target != 0].float().mean().item()


def copying(copiers: Models, rows: int = 300) -> pd.DataFrame:
    """The share of letters copied right, by model, seed and number of letters."""
    found = []
    for n in range(2, 17):
        torch.manual_seed(n)
        test = draw_letters(rows, n)
        for (kind, seed), model in copiers.items():
            share = share_right(model, test, test)
            found.append({"letters": n, "right": share, "model": kind, "seed": seed})
    return pd.DataFrame(found)


def copied_at(copied: pd.DataFrame, kind: str, letters: int) -> float:
    """The mean share over the seeds."""
    rows = copied[(copied["model"] == kind) & (copied["letters"] == letters)]
    return float(rows["right"].mean())


def longest_copied(copied: pd.DataFrame, kind: str, share: float = 0.9) -> int:
    """Up to how many letters the mean share over the seeds stays above a share."""
    mean = copied[copied["model"] == kind].groupby("letters")["right"].mean()
    return max((int(n) for n in mean.index if mean.loc[:n].min() >= share), default=0)


def check_copying(copied: pd.DataFrame) -> None:
    """What the text says of the copiers, in every seed."""
    at = copied.set_index(["letters", "model", "seed"])["right"]
    for seed in copied["seed"].unique():
        for kind in KINDS[1:]:
            gained = at[12, kind, seed] - at[12, KINDS[0], seed]
            assert gained > 0.1, (kind, seed)  # with attention, far fewer are lost
            assert at[16, kind, seed] < at[12, kind, seed]  # and fewer are right beyond
        assert at[8, KINDS[0], seed] < 0.9  # one vector loses letters early


def copy_chart(copied: pd.DataFrame) -> alt.LayerChart:
    """The share of right letters over their number."""
    return curves(
        copied,
        "letters",
        "right",
        "model",
        description="Share of letters copied right over the number of letters, 2 to "
        "16, three seeds. With one vector the share falls from the start, the more the "
        "longer the sequence. With attention, and in the Transformer, it stays far "
        "higher up to twelve letters, the longest in training, and falls beyond.",
    )


# Vanishing gradients.


def gradient_by_distance(layer: Layer, n: int = 40) -> list[float]:
    """The share of the last output's gradient that each input gets, nearest first."""
    x = sentences(32, n)
    last = layer(x)[:, -1]
    (last * torch.randn_like(last)).sum().backward()  # a random direction
    assert x.grad is not None
    norms = x.grad.norm(dim=-1).mean(dim=0).flip(0)  # 0 words away, 1, …
    return (norms / norms.sum()).tolist()


def gradients(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """Shares of the gradient by distance, in untrained layers; zeros are left out."""
    found = []
    for seed in seeds:
        layers = new_layers(seed)
        stack = [new_layers(10 * seed + i)["convolution"] for i in range(8)]

        def eight(x: Tensor, stack: Sequence[Layer] = stack) -> Tensor:
            for layer in stack:
                x = torch.relu(layer(x))
            return x

        attention = layers.pop("attention")
        del layers["convolution"]
        layers |= {"8 convolutions": eight, "attention": attention}
        for name, layer in layers.items():
            for distance, share in enumerate(gradient_by_distance(layer)):
                if share > 0:  # a convolution's ends, and zero has no logarithm
                    found.append(
                        {
                            "words away": distance,
                            "share of the gradient": share,
                            "layer": name,
                            "seed": seed,
                        }
                    )
    return pd.DataFrame(found)


def farthest(shares: pd.DataFrame, name: str) -> list[float]:
    """The share of the first of forty words, lowest and highest of the seeds."""
    rows = shares[(shares["layer"] == name) & (shares["words away"] == 39)]
    return [float(share) for share in sorted(rows["share of the gradient"])]


def check_gradients(shares: pd.DataFrame) -> None:
    """What the text says of untrained layers, in every seed."""
    gru, plain = farthest(shares, "GRU"), farthest(shares, "plain recurrence")
    assert gru[-1] < 1e-7
    assert plain[-1] < gru[0]
    others = shares[(shares["layer"] == "attention") & (shares["words away"] > 0)]
    mean = others.groupby("words away")["share of the gradient"].mean()
    assert mean.max() / mean.min() < 1.5  # about the same for all other words
    ends = shares[shares["layer"] == "8 convolutions"]["words away"].max()
    assert ends == 8


def gradient_chart(shares: pd.DataFrame) -> alt.LayerChart:
    """Share of the gradient over the distance, on a logarithmic scale."""
    return curves(
        shares,
        "words away",
        "share of the gradient",
        "layer",
        description="Share of the gradient of the last output that falls on each "
        "input, over its distance in words, on a logarithmic scale, for untrained "
        "layers and three seeds. Plain recurrence and GRU fall by a steady factor at "
        "each word. Eight convolutions end at a distance of eight. Attention stays "
        "level at one fortieth.",
        log_y=True,
    )


def share_on_source(model: Model, n: int) -> float:
    """Of the middle letter's gradient, the share on the source letter that it needs."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        output.retain_grad()
        seen.append(output)

    first = next(m for m in model.modules() if isinstance(m, TokenEmbedding))
    torch.manual_seed(n)
    source = draw_letters(100, n)
    middle = n // 2
    with first.register_forward_hook(keep):
        scores = model(source, shift_right(source, 1)).log_softmax(dim=-1)
    right = scores[:, middle].gather(1, source[:, middle : middle + 1])
    right.sum().backward()
    assert seen[0].grad is not None
    norms = seen[0].grad.norm(dim=-1)  # (100, n)
    model.zero_grad()
    return (norms[:, middle] / norms.sum(dim=-1)).mean().item()


def span_of_shares(shares: Sequence[float]) -> str:
    """Lowest to highest, to two decimals; one number if both look alike."""
    low, high = f"{min(shares):.2f}", f"{max(shares):.2f}"
    return low if low == high else f"{low} to {high}"


def shares_of_copiers(
    copiers: Models, n: int = 12
) -> dict[tuple[str, str], list[float]]:
    """That share before and after training: by kind and state, one for each seed."""
    shares: dict[tuple[str, str], list[float]] = {}
    for (kind, seed), model in copiers.items():
        fresh = _copier(kind, seed).eval()
        for state, each in (("untrained", fresh), ("trained", model)):
            shares.setdefault((kind, state), []).append(share_on_source(each, n))
    for kind in KINDS:  # the text: training raises it, in every seed
        pairs = zip(shares[kind, "untrained"], shares[kind, "trained"], strict=True)
        assert all(before < after for before, after in pairs)
    assert max(shares["one vector", "untrained"]) < 1 / n  # below an even share
    assert min(shares["one vector", "trained"]) > 1 / n
    return shares


# Convolutions.


def layers_needed(
    distance: int, k: int = 3, doubling: bool = False, largest: int = 2**30
) -> int:
    """Causal convolutions of width k until an output depends on a word so far back.

    Args:
        distance: in words.
        k: the width of the kernel.
        doubling: whether the layers' dilations are 1, 2, 4 and so on.
        largest: the power of two at which the dilations begin again with 1.
    """
    n = distance + 1
    x = torch.ones(1, 1, n, dtype=torch.float64, requires_grad=True)
    y, layers = x, 0
    while True:
        apart = 2 ** (layers % largest.bit_length()) if doubling else 1
        y = F.pad(y, ((k - 1) * apart, 0))  # looks back only
        ones = torch.ones(1, 1, k, dtype=torch.float64)
        y = F.conv1d(y, ones / k, dilation=apart)
        layers += 1
        (gradient,) = torch.autograd.grad(y[0, 0, -1], x, retain_graph=True)
        if gradient[0, 0, 0] != 0:
            return layers


def receptive_fields() -> list[Svg]:
    """Three layers of causal convolutions of width 3, plain and dilated."""
    panels = []
    for title, dilations in (("Plain", (1, 1, 1)), ("Dilated", (1, 2, 4))):
        drawing = Diagram(338, 214)
        reach = 2 * sum(dilations)
        drawing.text(169, 12, f"{title}: dilations 1, {dilations[1]}, {dilations[2]}")
        last, step, rows = 14, 22.5, (178, 132, 86, 40)
        places = [12 + step * position for position in range(last + 1)]
        known = {last}
        dots: list[tuple[float, int, bool]] = []
        for level in (3, 2, 1):
            apart = dilations[level - 1]
            below = {p - back * apart for p in known for back in range(3)}
            for p in sorted(known):
                for back in range(3):
                    end = places[p - back * apart], rows[level - 1]
                    drawing.arrow((places[p], rows[level]), end, role="key", head=False)
            dots += [(places[p], rows[level], p in known) for p in range(last + 1)]
            known = below
        dots += [(places[p], rows[0], p in known) for p in range(last + 1)]
        for x, y, inside in dots:
            role = "key" if inside else "neutral"
            drawing.dot(x, y, role=role, radius=5 if inside else 2.5)
        drawing.text(169, 202, f"the last output depends on {reach} words before it")
        panels.append(
            drawing.finish(
                f"{title} convolutions",
                f"Three layers over fifteen words. Lines lead from the last output "
                f"back to its own word and the {reach} words before it.",
            )
        )
    return panels


def settle_convolutions(
    distances: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
) -> None:
    """Settle how many layers relate two positions, plain and doubling.

    By the paper's own terms only: the published ByteNet stops doubling at 16.
    """
    k = 3
    needed = {
        "plain, as in ConvS2S:": [layers_needed(m) for m in distances],
        "doubling without end:": [layers_needed(m, doubling=True) for m in distances],
    }
    by_formula = {
        "plain, as in ConvS2S:": [math.ceil(m / (k - 1)) for m in distances],
        "doubling without end:": [
            math.ceil(math.log2(m / (k - 1) + 1)) for m in distances
        ],
    }
    published = layers_needed(distances[-1], doubling=True, largest=16)
    settle(
        "s2-convolutions-distance",
        holds=needed == by_formula,
        expected="m / (k − 1) layers, rounded up, with plain convolutions, and "
        "log₂(m / (k − 1) + 1) with dilations that go on doubling",
        measured="; ".join(
            f"{name} {layers[0]} layer to {layers[-1]} for distances of "
            f"{distances[0]} to {distances[-1]} words"
            for name, layers in needed.items()
        )
        + f"; equal to the formulas at all {len(distances)} distances. No more than "
        "these terms of §2 and §4 is shown, because the published ByteNet doubles to "
        "16 and begins again: it is logarithmic up to 62 words and linear beyond, with "
        f"{published} layers for {distances[-1]}",
        scale="figures",
    )


# The race.

COSTS = ["steps", "seconds", "operations", "critical path"]
RACE_STEPS, EVERY = 120, 10
SIZES = {  # about the same number of weights
    "one vector": {"width": 71, "d_ff": 0},
    "GRU + attention": {"width": 64, "d_ff": 0},
    "Transformer": {"width": 64, "d_ff": 336},
}


@cache
def race_data() -> tuple[Any, Batch]:
    """Pairs of short sentences of the grammar, and one batch that is held out."""
    corpus = load_corpus("grammar", size=8000, held_out_size=1000)
    text = [*corpus.train.source, *corpus.train.target]
    tokenizer = Tokenizer.train(text, vocab_size=300)
    pairs, _ = encode_pairs(corpus.train, tokenizer, max_length=14)
    held_out, _ = encode_pairs(corpus.validation, tokenizer, max_length=14)
    return pairs, next(iter(TokenBatches(held_out, 100_000).epoch(0)))


def loss_on(model: Model, source: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy with teacher forcing."""
    scores = model(source, shift_right(target, 1)).flatten(0, 1)
    return F.cross_entropy(scores, target.flatten(), ignore_index=0)


def path_of(model: Model, source: Tensor, target: Tensor) -> int:
    """The critical path of a loss, in PyTorch's own operations."""
    with fast.disabled(model):  # the trainer has accelerated it
        return critical_path(loss_on(model, source, target))


@dataclass(frozen=True)
class Race:
    """Three models that learned to translate with the same data and settings."""

    progress: pd.DataFrame
    """Held-out loss and costs so far, by model, seed and step."""
    models: Models
    """The trained models."""

    @property
    def last(self) -> pd.DataFrame:
        """The rows after the last step."""
        return self.progress[self.progress["steps"] == self.progress["steps"].max()]

    @property
    def target(self) -> float:
        """The lowest loss that both models with attention reached in every seed."""
        return float(self.last[self.last["model"] != "one vector"]["loss"].max())

    def ratios(self) -> pd.DataFrame:
        """What the GRU with attention spends, as a multiple of the Transformer.

        Each model's cost is that of reaching `target`; a row for each seed.
        """
        seeds = sorted(self.progress["seed"].unique())
        rows = {
            f"seed {seed}": {
                cost: self._spent(KINDS[1], seed, cost)
                / self._spent(KINDS[2], seed, cost)
                for cost in COSTS
            }
            for seed in seeds
        }
        return pd.DataFrame(rows).T

    def table(self) -> pd.DataFrame:
        """The ratios, to one decimal."""
        return self.ratios().round(1)

    def _spent(self, kind: str, seed: int, cost: str) -> float:
        of_run = (self.progress["model"] == kind) & (self.progress["seed"] == seed)
        run = self.progress[of_run]
        return spent_at(self.target, run[cost].tolist(), run["loss"].tolist())

    def paths(self, lengths: Sequence[int] = (8, 16, 32, 64)) -> pd.DataFrame:
        """The critical path of one training loss, by the words of source and target."""
        deep = Transformer(
            TransformerConfig(300, d_model=64, d_ff=336, num_heads=4, dropout=0.0)
        )  # as many layers as the paper's base model: six on either side
        seed = min(seed for _, seed in self.models)
        models = {kind: self.models[kind, seed] for kind in KINDS[1:]}
        models["six layers"] = deep
        rows = {}
        for n in lengths:
            words = torch.randint(3, 300, (1, n))
            rows[n] = {name: path_of(m, words, words) for name, m in models.items()}
        return pd.DataFrame(rows).T

    def passes(self, count: int = 3) -> list[tuple[int, int]]:
        """Pieces that the Transformer writes for some sentences, and its passes."""
        model = self.models["Transformer", min(seed for _, seed in self.models)].eval()
        assert isinstance(model, Transformer)
        calls: list[int] = []
        found = []
        with model.decoder.register_forward_hook(lambda *_: calls.append(1)):
            for sentence in race_data()[1].source[:count]:
                calls.clear()
                words = sentence[sentence != 0][None]
                (written,) = greedy_search(model, words, bos_id=1, eos_id=2)
                found.append((len(written.tokens), len(calls)))
        return found

    def chart(self) -> alt.Chart:
        """Held-out loss over one of four costs, to be chosen from a menu."""
        return _race_chart(self.progress, self.last)


def spent_at(target: float, spent: Sequence[float], losses: Sequence[float]) -> float:
    """What had been spent when the loss fell to a target, on straight lines.

    Raises:
        ValueError: the target was never reached.
    """
    points = [(0.0, math.inf), *zip(spent, losses, strict=True)]
    for (a, high), (b, low) in pairwise(points):
        if low <= target:
            share = 1 if high == math.inf else (high - target) / (high - low)
            return a + share * (b - a)
    raise ValueError(f"A loss of {target:.2f} was never reached.")


def _cost_of(known: dict[Any, tuple[int, int]], model: Model, batch: Batch):
    """Operations and critical path of one step; one row of each shape is counted."""
    shape = model.config, batch.source.size(1), batch.target.size(1)
    if shape not in known:
        row = batch.source[:1], batch.target[:1]
        with fast.disabled(model):
            work = operations(lambda: loss_on(model, *row).backward())
        known[shape] = work, path_of(model, *row)
        model.zero_grad()
    work, waits = known[shape]
    return {"operations": work * len(batch), "critical path": waits}


def run_race(seeds: Sequence[int] = SEEDS, steps: int = RACE_STEPS) -> Race:
    """Train the three models in turn, and write down what each step costs."""
    pairs, test = race_data()
    known: dict[Any, tuple[int, int]] = {}
    models: Models = {}

    def run(kind: str, seed: int):
        model = new_model(kind, 300, **SIZES[kind], seed=seed)
        trainer = trainer_for(model, seed)
        order = TokenBatches(pairs, 400, seed=seed)
        batches = [b for epoch in range(4) for b in order.epoch(epoch)]
        spent: dict[str, float] = dict.fromkeys(COSTS, 0)
        for step, batch in enumerate(batches[:steps], start=1):
            begin = time.process_time()
            trainer.step(step, [batch])
            spent["seconds"] += time.process_time() - begin
            for name, cost in _cost_of(known, model, batch).items():
                spent[name] += cost
            spent["steps"] += 1
            if step % EVERY == 0:
                with torch.no_grad():
                    loss = loss_on(model.eval(), test.source, test.target).item()
                yield {**spent, "loss": loss, "model": kind, "seed": seed}
        models[kind, seed] = model

    progress = []
    for seed in seeds:
        runs = [run(kind, seed) for kind in KINDS]
        for points in zip(*runs, strict=True):  # a slow moment hits all three
            progress += points
    return Race(pd.DataFrame(progress), models)


def _race_chart(progress: pd.DataFrame, last: pd.DataFrame) -> alt.Chart:
    whole = last[last["model"] == "GRU + attention"][COSTS].mean()
    rows = [
        {
            "cost": name,
            "loss": row["loss"],
            "model": row["model"],
            "seed": row["seed"],
            "spent": row[name] / whole[name],
        }
        for row in progress.to_dict("records")
        for name in COSTS
    ]
    chosen = alt.param(
        name="cost",
        value="critical path",
        bind=alt.binding_select(options=COSTS, name="Cost "),
    )
    colours = [KEY.mark, QUERY.mark, VALUE.mark]
    dashes = [[1, 0], [6, 3], [2, 2]]
    legend = alt.Legend(columns=2)
    return (
        alt.Chart(alt.Data(values=rows))
        .transform_filter("datum.cost == cost")
        .mark_line()
        .encode(
            x=alt.X(
                "spent:Q",
                title="cost (all of GRU + attention: 100%)",
                axis=alt.Axis(format="%"),
            ),
            y=alt.Y("loss:Q", title="held-out loss", scale=alt.Scale(zero=False)),
            color=alt.Color(
                "model:N",
                title="model",
                legend=legend,
                scale=alt.Scale(domain=list(KINDS), range=colours),
            ),
            strokeDash=alt.StrokeDash(
                "model:N",
                title="model",
                legend=legend,
                scale=alt.Scale(domain=list(KINDS), range=dashes),
            ),
            detail="seed:N",
            tooltip=["model:N", "seed:O", alt.Tooltip("loss:Q", format=".2f")],
        )
        .add_params(chosen)
        .properties(
            width="container",
            height=260,
            description="Held-out loss of three models with three seeds each over a "
            "cost chosen from a menu: steps, seconds, operations or critical path. "
            "Over steps and operations the GRU with attention and the Transformer run "
            "close together. Over the critical path the Transformer's curves lie far "
            "to the left.",
        )
    )


def table_2_costs(of: str = "base model") -> dict[str, float]:
    """Training costs in Table 2, English to German, as multiples of a Transformer's.

    Single models only, without the paper's own.
    """
    costs = {
        row.model: row.flops_en_de
        for row in paper.TABLE_2
        if row.flops_en_de and "Ensemble" not in row.model
    }
    own = costs[f"Transformer ({of})"]
    return {m: c / own for m, c in costs.items() if "Transformer" not in m}


def span(values: Sequence[float]) -> str:
    """Lowest to highest, to one decimal."""
    return f"{min(values):.1f} to {max(values):.1f}"


def settle_faster(race: Race) -> None:
    """Settle what one core can say of training time: nothing that decides."""
    ratio = race.ratios()
    # The text: a large factor in the critical path, small ones in the other costs.
    others = ratio[COSTS[:3]].to_numpy().max()
    assert ratio["critical path"].min() > max(1.5 * others, 2)
    assert ratio["operations"].max() < 1  # the Transformer does not do less work
    costs = table_2_costs()
    settle(
        "s7-faster",
        holds=None,  # one core computes nothing side by side
        expected=f"at least {min(costs.values()):.1f} times the seconds for the GRU "
        "with attention: the smallest factor for the base model in Table 2, English "
        "to German, there of estimated operations and of a convolutional model",
        measured=f"on one core, to a loss of {race.target:.2f} on short sentences, the "
        f"GRU with attention takes {span(ratio['seconds'])} times the Transformer's "
        f"seconds, {span(ratio['operations'])} times the operations and "
        f"{span(ratio['steps'])} times the steps, but "
        f"{span(ratio['critical path'])} times the critical path. Convolutional models "
        "were not trained",
        sample=f"{len(ratio)} seeds",
    )
    paths = race.paths()
    # The text: a deep Transformer has the shorter path in long sentences only.
    assert paths["six layers"][8] > paths["GRU + attention"][8]
    assert paths["six layers"][64] < paths["GRU + attention"][64]
    # In translating, each piece takes a pass, and so does the end of the sentence.
    assert all(passes == pieces + 1 for pieces, passes in race.passes())
    growth = paths.loc[64] / paths.loc[16]
    settle(
        "abstract-less-time",
        holds=None,
        expected="a critical path that does not grow with the sentence, and less time "
        "than the models of Table 2, on their machines",
        measured="from 16 to 64 words the critical path grows "
        f"{growth['GRU + attention']:.1f}-fold for the GRU with attention and "
        f"{growth['Transformer']:.1f}-fold for the Transformer: more parallel it is. "
        "The time is the paper's own word: in its Table 2, for English to German, "
        f"others cost {span(list(costs.values()))} times the base model, but only "
        f"{span(list(table_2_costs('big').values()))} times the big one",
    )
