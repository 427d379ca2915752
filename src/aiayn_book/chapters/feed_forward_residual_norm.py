"""Chapter 7, what else a layer needs: its stacks, its trainings, its drawings.

Paper: §3.1 and §3.3.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import scaled_dot_product_attention
from aiayn.model import (
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    PositionwiseFeedForward,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    causal_mask,
)
from aiayn_book.claims import settle
from aiayn_book.colours import SERIES, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.svg import Svg

# A stack of encoder layers to take apart. Its first dimension is the run: several draws
# of the weights are computed side by side. One head, no dropout, no gain and bias.


def glorot(runs: int, rows: int, columns: int) -> nn.Parameter:
    """The library's first weights, drawn anew for each run."""
    bound = math.sqrt(6 / (rows + columns))
    return nn.Parameter(torch.empty(runs, rows, columns).uniform_(-bound, bound))


def times(x: Tensor, W: Tensor) -> Tensor:
    """(runs, batch, length, rows) times (runs, rows, columns), run by run."""
    return (x.flatten(1, 2) @ W).unflatten(1, x.shape[1:3])


class Attention(nn.Module):
    """Self-attention with one head."""

    def __init__(self, runs: int, d: int) -> None:
        super().__init__()
        self.W_Q, self.W_K = glorot(runs, d, d), glorot(runs, d, d)
        self.W_V, self.W_O = glorot(runs, d, d), glorot(runs, d, d)

    def forward(self, x: Tensor) -> Tensor:
        """The update of each word, from all words."""
        q, k, v = (times(x, W) for W in (self.W_Q, self.W_K, self.W_V))
        return times(scaled_dot_product_attention(q, k, v)[0], self.W_O)


class FeedForward(nn.Module):
    """Equation (2), with the paper's ratio of widths."""

    def __init__(self, runs: int, d: int) -> None:
        super().__init__()
        self.W_1, self.W_2 = glorot(runs, d, 4 * d), glorot(runs, 4 * d, d)
        self.b_1 = nn.Parameter(torch.zeros(runs, 1, 1, 4 * d))
        self.b_2 = nn.Parameter(torch.zeros(runs, 1, 1, d))

    def forward(self, x: Tensor) -> Tensor:
        """The update of each word, from that word alone."""
        hidden = F.relu(times(x, self.W_1) + self.b_1)
        return times(hidden, self.W_2) + self.b_2


LAYER = (Attention, FeedForward)


def normalise(x: Tensor) -> Tensor:
    """LayerNorm without gain and bias."""
    return F.layer_norm(x, x.shape[-1:])


class Stack(nn.Module):
    """Encoder layers with switches for their parts.

    Args:
        runs: draws of the weights, computed side by side.
        depth: layers.
        d: d_model.
        parts: the sub-layers of each layer.
        residual: whether an update is added to x, or takes its place.
        norm: "post", as the paper has it, "pre", or "none".
    """

    def __init__(
        self,
        runs: int,
        depth: int,
        d: int,
        parts: Sequence[Callable[[int, int], nn.Module]] = LAYER,
        residual: bool = True,
        norm: str = "post",
    ) -> None:
        super().__init__()
        self.residual, self.norm = residual, norm
        self.sublayers = nn.ModuleList(
            part(runs, d) for _ in range(depth) for part in parts
        )

    def forward(self, x: Tensor, keep: list[Tensor] | None = None) -> Tensor:
        """All sub-layers in turn; `keep` collects x before each, and at the end."""
        for sublayer in self.sublayers:
            if keep is not None:
                keep.append(x)
            update = sublayer(normalise(x) if self.norm == "pre" else x)
            x = x + update if self.residual else update
            x = normalise(x) if self.norm == "post" else x
        if keep is not None:
            keep.append(x)
        return normalise(x) if self.norm == "pre" else x


WIRINGS: dict[str, dict[str, Any]] = {
    "neither": {"residual": False, "norm": "none"},
    "norm only": {"residual": False},
    "residual only": {"norm": "none"},
    "both, post-norm": {},
    "both, pre-norm": {"norm": "pre"},
}
"""Whole layers with and without residual connection and norm."""

MIXES: dict[str, dict[str, Any]] = {
    "attention": {"parts": (Attention,), "residual": False, "norm": "none"},
    "+ feed-forward": {"residual": False, "norm": "none"},
    "+ norm": {"parts": (Attention,), "residual": False},
    "+ residual": {"parts": (Attention,), "norm": "none"},
    "all, post-norm": {},
    "all, pre-norm": {"norm": "pre"},
}
"""Attention alone, with one more part, and with all."""

DEPTHS = (6, 12, 24, 48)


def off_mean(x: Tensor) -> Tensor:
    """How far words lie from their mean, as a share of their length, for each run."""
    off = x - x.mean(dim=2, keepdim=True)
    return off.flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)


def measure(depth: int, d: int = 64, **wiring: Any) -> tuple[Tensor, Tensor]:
    """What is left of gradient and differences in a stack with fresh weights.

    Returns:
        Two tables (layer 0 to depth, 3 runs): the norm of the gradient as a share of
        the norm at the top, and how far the words lie from their mean.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Stack(3, depth, d, **wiring).double()
        x = torch.randn(3, 4, 16, d, dtype=torch.float64, requires_grad=True)
        states: list[Tensor] = []
        y = stack(x, keep=states)
        states = states[:: len(stack.sublayers) // depth]  # where a layer begins
        top = torch.randn_like(y)
    gradients = torch.autograd.grad((y * top).sum(), states)
    sizes = torch.stack([g.flatten(1).norm(dim=1) for g in gradients])
    apart = torch.stack([off_mean(state.detach()) for state in states])
    return sizes / sizes[-1], apart


Measured = Mapping[tuple[str, int], Tensor]


def gradients_left() -> dict[tuple[str, int], Tensor]:
    """The gradient at each layer, (depth + 1, 3 runs), for each wiring and depth."""
    return {
        (name, depth): measure(depth, **wiring)[0]
        for name, wiring in WIRINGS.items()
        for depth in DEPTHS
    }


def words_apart(depth: int = 12) -> dict[str, Tensor]:
    """How far words lie from their mean at each layer, for each mix of parts."""
    return {name: measure(depth, **mix)[1] for name, mix in MIXES.items()}


def last_gradient(depth: int, norm: str, d: int = 64) -> Tensor:
    """The norm of the gradient of the last feed-forward layer's W_2, for each run."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Stack(3, depth, d, norm=norm).double()
        y = stack(torch.randn(3, 4, 16, d, dtype=torch.float64))
        loss = (y * torch.randn_like(y)).sum()
    last: Any = stack.sublayers[-1]
    (gradient,) = torch.autograd.grad(loss, [last.W_2])
    return gradient.flatten(1).norm(dim=1)


# Small trainings, of several runs at once.

DIGITS = 8
"""How many different digits there are, and how many words in a sequence."""


class Small(nn.Module):
    """A stack between a table of vectors and a linear readout."""

    def __init__(
        self, runs: int, features: int, d: int, positions: bool = True, **options: Any
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(runs, features, d))
        self.positions = torch.randn(runs, 1, DIGITS, d) * positions
        self.stack = Stack(runs, d=d, **options)
        self.readout = glorot(runs, d, DIGITS)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of each digit: (runs, batch, 8, features) to (runs, batch, 8, 8)."""
        return times(self.stack(times(x, self.table) + self.positions), self.readout)


def repeated(model: Small, copies: int) -> Small:
    """The same runs several times over, with the same weights."""

    def again(w: Tensor) -> Tensor:
        return w.data.repeat(copies, *[1] * (w.dim() - 1))

    for w in model.parameters():
        w.data = again(w)
    model.positions = again(model.positions)
    return model


Draw = Callable[[int, int, torch.Generator], tuple[Tensor, Tensor]]


def draw_sorting(
    runs: int, batch: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Digits, one-hot, and the same digits in order."""
    digits = torch.randint(DIGITS, (runs, batch, DIGITS), generator=generator)
    return F.one_hot(digits, DIGITS).float(), digits.sort(dim=-1).values


TASKS = ("fetch", "compute", "order")


def draw_tasks(
    runs: int, batch: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Words of three digits each; a third of the runs gets each of three tasks."""
    shape = runs, batch, DIGITS
    name = torch.rand(shape, generator=generator).argsort(dim=-1)
    wanted = torch.randint(DIGITS, shape, generator=generator)
    letter = torch.randint(DIGITS, shape, generator=generator)
    digits = torch.stack([name, wanted, letter], dim=-1)
    where = name.argsort(dim=-1).gather(-1, wanted)
    answers = (
        letter.gather(-1, where),
        (wanted + letter) % DIGITS,
        letter.roll(1, dims=-1),
    )
    third = runs // 3
    target = [answer[i * third :][:third] for i, answer in enumerate(answers)]
    return F.one_hot(digits, DIGITS).float().flatten(-2), torch.cat(target)


def train(
    model: Small,
    draw: Draw,
    rates: Sequence[float],
    warmup: Sequence[int],
    steps: int,
) -> Tensor:
    """Adam with the paper's β, side by side for runs of different rates.

    Args:
        model: what is trained.
        draw: makes a batch.
        rates: the learning rate of each run after its warm-up.
        warmup: the steps in which each run's rate rises in a straight line.
        steps: how many batches.

    Returns:
        The losses, (steps, runs).
    """
    at, rising = torch.tensor(rates), torch.tensor(warmup)
    generator = torch.Generator().manual_seed(1)
    weights = list(model.parameters())
    m, v = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    losses = []
    for step in range(1, steps + 1):
        x, y = draw(len(rates), 16, generator)
        logits = model(x).permute(0, 3, 1, 2)  # classes second
        loss = F.cross_entropy(logits, y, reduction="none").flatten(1).mean(dim=1)
        gradients = torch.autograd.grad(loss.sum(), weights)
        losses.append(loss.detach())
        rate = at * (step / rising).clamp(max=1)
        rate = rate * math.sqrt(1 - 0.98**step) / (1 - 0.9**step)
        for w, m_w, v_w, g in zip(weights, m, v, gradients, strict=True):
            m_w.lerp_(g, 0.1)
            v_w.lerp_(g * g, 0.02)
            own = rate.view(-1, *[1] * (w.dim() - 1))  # each run its rate
            w.data -= own * m_w / (v_w.sqrt() + 1e-9)
    return torch.stack(losses)


ABLATED: dict[str, dict[str, Any]] = {
    "whole layer": {},
    "no attention": {"parts": (FeedForward,)},
    "no feed-forward": {"parts": (Attention,)},
    "no positions": {"positions": False},
    "a linear map": {"parts": (), "norm": "none"},
}
"""One layer, whole and without a part, for the three tasks."""

Right = Mapping[str, Mapping[str, Sequence[float]]]


def tasks_without(steps: int = 200) -> dict[str, dict[str, list[float]]]:
    """Shares of right answers by ablated model and task, one for each of 3 seeds."""
    right = {}
    for name, options in ABLATED.items():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = Small(9, 3 * DIGITS, 32, depth=1, **options)
            train(model, draw_tasks, [0.01] * 9, [50] * 9, steps)
        x, y = draw_tasks(9, 500, torch.Generator().manual_seed(2))
        with torch.no_grad():
            hits = (model(x).argmax(dim=-1) == y).float().mean(dim=(1, 2))
        right[name] = dict(zip(TASKS, hits.view(3, 3).tolist(), strict=True))
    return right


def most_frequent_of_seven(draws: int = 20_000) -> float:
    """How often a letter that occurs most often among the seven others is the one."""
    generator = torch.Generator().manual_seed(0)
    seven = torch.randint(DIGITS, (draws, DIGITS - 1), generator=generator)
    most = F.one_hot(seven, DIGITS).sum(dim=1).max(dim=1).values
    return (most / (DIGITS - 1)).mean().item()


def loss_without_attention() -> float:
    """The least loss of sorting if each word knows its position and own digit only.

    In nats, the mean over the positions. The i-th smallest of eight digits is at most
    d if at least i of them are; one of the eight is known.
    """
    others, total = DIGITS - 1, 0.0
    for position, own in product(range(1, DIGITS + 1), range(DIGITS)):
        at_most = [0.0]
        for digit in range(DIGITS):
            share, wanted = (digit + 1) / DIGITS, position - (own <= digit)
            at_most.append(
                sum(
                    math.comb(others, k) * share**k * (1 - share) ** (others - k)
                    for k in range(wanted, others + 1)
                )
            )
        chances = (after - before for before, after in pairwise(at_most))
        total -= sum(p * math.log(p) for p in chances if p > 0)
    return total / DIGITS**2


VARIANTS: dict[str, dict[str, Any]] = {
    "everything": {},
    "no feed-forward": {"parts": (Attention,)},
    "no normalisation": {"norm": "none"},
    "no attention": {"parts": (FeedForward,)},
    "no positions": {"positions": False},
    "no residuals": {"residual": False},
}
"""Four layers that sort, whole and without a part."""

INSTEAD: dict[str, dict[str, Any]] = {
    "attention and feed-forward": {"norm": "pre"},
    "one attention": {"parts": (Attention,), "norm": "pre"},
    "three attentions": {"parts": (Attention,) * 3, "norm": "pre"},
}
"""What may stand in a layer that sorts, all pre-norm."""


def sort_with(variants: Mapping[str, Mapping[str, Any]]) -> dict[str, list[float]]:
    """The loss of three seeds at the better of two rates, for each variant."""
    found = {}
    for name, options in variants.items():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = Small(6, DIGITS, 16, depth=4, **options)
            rates = [3e-3] * 3 + [1e-2] * 3
            losses = train(model, draw_sorting, rates, [50] * 6, 150)
        runs = losses[-10:].mean(dim=0).view(2, 3)
        found[name] = runs[runs.mean(dim=1).argmin()].tolist()
    return found


RATES = (1e-3, 3e-3, 1e-2)


def with_and_without_warmup(steps: int = 150) -> dict[str, Tensor]:
    """Losses (steps, rates, 3 seeds) with post- or pre-norm, with warm-up or none."""
    logs = {}
    each = [rate for rate in RATES for _ in range(3)]
    for norm in ("post", "pre"):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = repeated(Small(3, DIGITS, 16, depth=6, norm=norm), 6)
            rising = [1] * 9 + [60] * 9
            losses = train(model, draw_sorting, each * 2, rising, steps)
        without, risen = losses.unflatten(1, (2, 3, 3)).unbind(dim=1)
        logs[f"{norm}-norm"] = without
        logs[f"{norm}-norm, warm-up"] = risen
    return logs


def span(values: Iterable[float], form: str = ".2f") -> str:
    """From the lowest to the highest; one number where both look alike."""
    numbers = list(values)
    low, high = f"{min(numbers):{form}}", f"{max(numbers):{form}}"
    return low if low == high else f"{low} to {high}"


def powers(left: Tensor) -> str:
    """What is left at the bottom, as powers of 10, over the runs."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    exponents = left[0].log10().round().int().tolist()
    low, high = (f"10{str(f(exponents)).translate(raised)}" for f in (min, max))
    return low if low == high else f"{low} to {high}"


# Why words become alike.

WORDS = ("my", "cat", "drinks", "cold", "fresh", "milk")


def six_words(residual: bool) -> list[Tensor]:
    """Six random vectors through the untrained base encoder: (6, 512) after each layer.

    Without residual connections each sub-layer's update takes the place of x.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = Encoder(TransformerConfig(dropout=0.0)).eval()
        states = [torch.randn(1, len(WORDS), 512)]

    def join(x: Tensor, update: Tensor, norm: nn.Module) -> Tensor:
        return norm(x + update if residual else update)

    with torch.no_grad():
        layers: Any = encoder.layers
        for layer in layers:
            x = states[-1]
            update, _ = layer.self_attention(x, x, x)
            x = join(x, update, layer.self_attention_residual.norm)
            x = join(x, layer.feed_forward(x), layer.feed_forward_residual.norm)
            states.append(x)
    return [state[0] for state in states]


def six_words_apart(residual: bool) -> list[float]:
    """How far the six words lie from their mean before and after each layer."""
    return [off_mean(x[None, None]).item() for x in six_words(residual)]


def words_become_alike(*, phone: bool = False) -> Svg:
    """A sentence after some layers, without residual connections and with them."""
    layers = (0, 2, 6) if phone else (0, 1, 2, 3, 6)
    drawing = Diagram(360, 330) if phone else Diagram(690, 330)
    cell, first, step = (11, 101, 98) if phone else (14, 126, 124)
    for top, residual in ((0, False), (168, True)):
        name = "with" if residual else "without"
        drawing.text(
            8, top + 12, f"{name} residual connections", anchor="start", bold=True
        )
        states = six_words(residual)
        for number, layer in enumerate(layers):
            x = first + step * number
            drawing.text(x, top + 34, f"layer {layer}" if layer else "input")
            drawing.grid(
                x,
                top + 92,
                states[layer][:, :8],
                cell=cell,
                tall=16,
                limit=2.0,
                digits=None,
                negative="neutral",
                rows=WORDS if number == 0 else (),
            )
            if number:
                edge = x - step / 2
                drawing.arrow((edge - 5, top + 92), (edge + 6, top + 92))
    return drawing.finish(
        "Words become alike without residual connections",
        "A sentence of six words, one row each, as it leaves layers "
        f"{', '.join(map(str, layers[1:]))} of a stack. Without residual connections "
        "the rows soon look the same. With them the rows still differ after layer 6.",
    )


def two_words(layers: int = 3) -> list[Svg]:
    """The numbers 0 and 8 under repeated averaging, without and with x itself."""
    shares = torch.tensor([[3.0, 1.0], [1.0, 3.0]]) / 4
    panels = []
    for residual in (False, True):
        mixing = (torch.eye(2) + shares) / 2 if residual else shares
        drawing = Diagram(330, 232)
        values = [torch.tensor([0.0, 8.0])]
        for _ in range(layers):
            values.append(mixing @ values[-1])
        name = "half of (x + mean)" if residual else "the mean takes the place of x"
        drawing.text(8, 12, name, anchor="start", bold=True)

        def at(layer: int, value: float) -> tuple[float, float]:
            return 40 + 80 * layer, 190 - 18 * value

        for word, role in ((1, "query"), (0, "key")):
            points = [at(n, float(value[word])) for n, value in enumerate(values)]
            drawing.arrow(*points, role=role, head=False, width=2.4)
            for (x, y), value in zip(points, values, strict=True):
                drawing.dot(x, y, role=role)
                text = f"{float(value[word]):.3g}"
                drawing.text(x, y + (16 if word == 0 else -15), text, role=role)
        for layer in range(layers + 1):
            label = f"layer {layer}" if layer else "input"
            drawing.text(at(layer, 0)[0], 222, label)
        panels.append(
            drawing.finish(
                f"Two words: {name}",
                "Two lines over the layers, from 0 and 8: "
                + "; ".join(
                    f"{float(value[0]):.3g} and {float(value[1]):.3g}"
                    for value in values[1:]
                )
                + ".",
            )
        )
    return panels


def apart_chart(apart: Mapping[str, Tensor], floor: float = 1e-12) -> alt.LayerChart:
    """How far words lie from their mean, by layer, cut at a floor."""
    rows = [
        {"layer": layer, "off the mean": max(value, floor), "stack": name, "seed": run}
        for name, table in apart.items()
        for run in range(table.size(1))
        for layer, value in enumerate(table[:, run].tolist())
    ]
    return curves(
        rows,
        "layer",
        "off the mean",
        "stack",
        log_y=True,
        description="Share of the words' length that lies off their mean, by layer, on "
        f"a logarithmic scale cut off at {floor:g}. Attention alone, with a "
        "feed-forward layer or with a norm falls to the floor within a few layers. "
        "Everything with a residual connection falls slowly; pre-norm most slowly.",
    )


# How far a gradient reaches.


def gradient_chart(left: Measured) -> alt.Chart:
    """The gradient at each layer, against that at the top; choose the depth."""
    depth = alt.param(
        name="depth",
        value=48,
        bind=alt.binding_select(options=list(DEPTHS), name="Layers "),
    )
    rows = [
        {
            "wiring": name,
            "depth": layers,
            "run": run,
            "layer": layer,
            "gradient": float(f"{value:.3g}"),
        }
        for (name, layers), table in left.items()
        for run in range(table.size(1))
        for layer, value in enumerate(table[:, run].tolist())
    ]
    names = list(WIRINGS)
    legend = alt.Legend(orient="bottom", columns=2)
    colours = [colour.mark for colour in SERIES[: len(names)]]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(opacity=0.8)
        .transform_filter("datum.depth == depth")
        .encode(
            x=alt.X(
                "layer:Q",
                title="layer, from the bottom",
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y(
                "gradient:Q",
                title="gradient, against that at the top",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~e", tickCount=6),
            ),
            color=alt.Color(
                "wiring:N",
                title=None,
                scale=alt.Scale(domain=names, range=colours),
                legend=legend,
            ),
            strokeDash=alt.StrokeDash(
                "wiring:N", title=None, scale=alt.Scale(domain=names), legend=legend
            ),
            detail="run:N",
            tooltip=["wiring:N", "layer:Q", "gradient:Q"],
        )
        .add_params(depth)
        .properties(
            width="container",
            height=280,
            description="Gradient at each layer of a stack against that at the top, on "
            "a logarithmic scale, three draws each, for 6 to 48 layers. Without "
            "residual connections and norm it shrinks by about a constant factor at "
            "each layer. With residual connections alone it grows. With a norm it "
            "stays within a factor of a hundred, with residual connections or without.",
        )
    )


# The layer, by hand and drawn.


def by_hand() -> Svg:
    """Add & Norm on four numbers, step by step, as bars."""
    drawing = Diagram(360, 430)
    x, update = torch.tensor([5.0, 1, 1, 1]), torch.tensor([0.0, 0, 4, 0])
    total = x + update
    centred = total - total.mean()
    steps = [
        (44, x, "x", "one word", "key"),
        (134, update, "FFN(x)", "its update", "weight"),
        (224, total, "add", "x + FFN(x)", "value"),
        (318, centred, "centre", "minus the mean, 3", "value"),
        (394, centred / 2, "scale", "divided by 2", "value"),
    ]
    unit = 12  # pixels
    for y, vector, name, detail, role in steps:
        drawing.text(8, y - 9, name, anchor="start", bold=True)
        drawing.text(8, y + 9, detail, anchor="start")
        tall = 5 * unit * (2 if vector.min() < 0 else 1)
        drawing.bars(180, y, vector, role=role, width=96, height=tall, limit=5)
        numbers = ", ".join(f"{number:g}" for number in vector.tolist())
        drawing.text(352, y, f"({numbers})".replace("-", "−"), anchor="end", small=True)
    drawing.plus(180, 89)
    mean = 224 + 30 - 3 * unit
    drawing.arrow((130, mean), (230, mean), head=False, dashed=True, width=1.2)
    return drawing.finish(
        "One sub-layer by hand",
        "Five rows of four bars. The word (5, 1, 1, 1), its update (0, 0, 4, 0), their "
        "sum (5, 1, 5, 1) with a dashed line at the mean 3, the sum minus its mean "
        "(2, −2, 2, −2), and that divided by 2: (1, −1, 1, −1).",
    )


def _layer_drawing(sublayers: Sequence[tuple[str, str, str]], name: str) -> Svg:
    """One layer from the bottom up: sub-layers, residual arrows, sums and norms."""
    pitch, x, lane, notes = 132, 128, 40, 206
    height = pitch * len(sublayers) + 74
    drawing = Diagram(338, height)
    drawing.text(x, height - 12, "x, n × d_model", small=True)
    drawing.arrow((x, height - 24), (x, height - 44), head=False)
    for number, (label, note, role) in enumerate(sublayers):
        split = height - 44 - pitch * number
        box, plus, norm = split - 36, split - 76, split - 106
        drawing.arrow((x, split), (x, box + 20))
        drawing.box(x, box, label, width=116, height=40, role=role)
        drawing.arrow((x, box - 20), (x, plus + 9))
        drawing.plus(x, plus)
        drawing.arrow(
            (x, split),
            (lane, split),
            (lane, plus),
            (x - 9, plus),
            role="alert",
            width=3,
        )
        drawing.arrow((x, plus - 9), (x, norm + 11))
        drawing.box(x, norm, "LayerNorm", width=116, height=22)
        drawing.arrow((x, norm - 11), (x, split - pitch), head=False)
        drawing.text(notes, box, note, anchor="start", role=_ink(role))
        drawing.text(notes, plus, "keeps the word", anchor="start", role="alert")
        drawing.text(notes, norm, "keeps the size", anchor="start")
        if label.startswith("Cross"):
            drawing.arrow((300, box + 26), (300, box + 12), (x + 58, box + 12))
            drawing.text(300, box + 36, "memory", small=True)
    top = height - 44 - pitch * len(sublayers)
    drawing.arrow((x, top), (x, top - 16))
    drawing.text(x + 12, top - 10, "to the next layer", anchor="start")
    return drawing.finish(
        name,
        f"{len(sublayers)} sub-layers from the bottom up: "
        + ", ".join(label.replace("\n", " ") for label, *_ in sublayers)
        + ". Around each an arrow leads x past it to a plus sign, where the update is "
        "added; a LayerNorm follows each sum.",
    )


def _ink(role: str) -> str | None:
    return None if role == "neutral" else role


def layer_drawings() -> list[Svg]:
    """An encoder layer and a decoder layer, with their residual arrows."""
    attend = ("Self-\nattention", "fetches from words", "weight")
    masked = ("Masked self-\nattention", "fetches from words", "weight")
    cross = ("Cross-\nattention", "fetches from source", "weight")
    compute = ("Feed-\nforward", "computes", "value")
    return [
        _layer_drawing([attend, compute], "An encoder layer"),
        _layer_drawing([masked, cross, compute], "A decoder layer"),
    ]


# Four sums.


def four_sums() -> list[Svg]:
    """The four things that are called a sum, with small vectors."""
    generator = torch.Generator().manual_seed(2)

    def vector() -> Tensor:
        return torch.randn(6, generator=generator, dtype=torch.float64)

    values = [1.5 * vector() for _ in range(3)]
    heads = [vector() for _ in range(2)]
    x, update, word, position = vector(), 0.8 * vector(), vector(), vector()
    shares = (0.67, 0.09, 0.24)
    sums = [
        (
            "Attention: over words",
            [
                (f"{share:.2f} · {name}", share * value, "value")
                for share, name, value in zip(shares, "ABC", values, strict=True)
            ],
        ),
        (
            "Heads: over heads",
            [(f"from head {n}", head, "weight") for n, head in enumerate(heads, 1)],
        ),
        ("Residual: old and new", [("x", x, "key"), ("update", update, "weight")]),
        (
            "Input: word and position",
            [("embedding", word, "key"), ("position", position, "query")],
        ),
    ]
    panels = []
    for title, parts in sums:
        drawing = Diagram(338, 128)
        drawing.text(8, 12, title, anchor="start", bold=True)
        wide = 66 if len(parts) == 3 else 88
        step = 86 if len(parts) == 3 else 118
        total = torch.stack([part for _, part, _ in parts]).sum(dim=0)
        shown = [*parts, ("sum", total, "neutral")]
        limit = max(float(part.abs().max()) for _, part, _ in shown)
        for number, (label, part, role) in enumerate(shown):
            centre = 40 + step * number if len(parts) == 3 else 52 + step * number
            drawing.bars(
                centre, 64, part, role=role, width=wide, height=76, limit=limit
            )
            drawing.text(centre, 118, label)
            if number:
                sign = "=" if number == len(parts) else "+"
                drawing.text(centre - step / 2, 64, sign, bold=True)
        panels.append(
            drawing.finish(
                title,
                f"{len(parts)} vectors of six bars each, and their sum: "
                + ", ".join(label for label, *_ in parts)
                + ".",
            )
        )
    return panels


# The feed-forward layer.


def who_reads_whom() -> list[Svg]:
    """Attention connects the words, the feed-forward layer the numbers of one word."""
    words = ("cat", "drinks", "milk")
    panels = []
    for attention in (True, False):
        drawing = Diagram(330, 214)
        name = "attention" if attention else "feed-forward layer"
        drawing.text(165, 12, name, bold=True)
        columns = drawing.tokens(165, 194, words, step=104)
        drawing.tokens(165, 44, ["", "", ""], step=104, height=22)
        for column in columns:
            if attention:
                for other in columns:
                    start = other + (column - other) * 0.06
                    drawing.arrow((start, 180), (column, 57), role="weight", width=1.4)
            else:
                drawing.arrow((column, 180), (column, 144))
                drawing.box(
                    column, 120, "4 → 16 → 4", width=92, height=46, role="value"
                )
                drawing.arrow((column, 96), (column, 57))
        what = (
            "lines from each of three words to each of three outputs"
            if attention
            else "each of three words passes through a box of its own, 4 to 16 to 4 "
            "numbers, and no line leads from one word to another"
        )
        panels.append(drawing.finish(f"The {name}", what[0].upper() + what[1:] + "."))
    return panels


def base_model() -> Transformer:
    """The paper's base model, its shapes alone."""
    with torch.device("meta"):
        return Transformer(TransformerConfig()).eval()


def parameter_counts() -> dict[str, int]:
    """The parameters of the base model, by part."""
    base = base_model()

    def count(kind: type[nn.Module]) -> int:
        modules = (m for m in base.modules() if isinstance(m, kind))
        return sum(p.numel() for m in modules for p in m.parameters())

    return {
        "feed-forward": count(PositionwiseFeedForward),
        "attention": count(MultiHeadAttention),
        "embeddings": sum(p.numel() for p in base.embeddings.parameters()),
        "normalisation": count(nn.LayerNorm),
    }


def parameter_chart(counts: Mapping[str, int]) -> Any:
    """Bars of parameters by part, with shares of all and of all but embeddings."""
    total = sum(counts.values())
    inner = total - counts["embeddings"]
    rows = [
        {
            "part": part,
            "millions": count / 1e6,
            "label": f"{count / total:.1%} of all"
            + (f", {count / inner:.1%} of the layers" if part != "embeddings" else ""),
        }
        for part, count in counts.items()
    ]
    bars = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("part:N", sort=list(counts), title=None),
        x=alt.X(
            "millions:Q",
            title="parameters, in millions",
            scale=alt.Scale(domain=[0, 30]),
        ),
        tooltip=["part:N", "millions:Q", "label:N"],
    )
    words = bars.mark_text(align="left", baseline="bottom", dy=-13).encode(
        x=alt.value(3), text="label:N"
    )
    return alt.layer(bars.mark_bar(color=WEIGHT.mark, height=16), words).properties(
        width="container",
        height=210,
        description="Bars: parameters of the base model's parts. "
        + "; ".join(f"{row['part']}: {row['label']}" for row in rows)
        + ".",
    )


# What does what.


def tasks_drawing(right: Right) -> Svg:
    """The shares of right answers as a map, the mean of the seeds."""
    drawing = Diagram(360, 250)
    means = [
        [sum(right[name][task]) / len(right[name][task]) for task in TASKS]
        for name in ABLATED
    ]
    drawing.grid(240, 138, means, cell=74, tall=40, rows=list(ABLATED), columns=TASKS)
    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{task} {share:.0%}" for task, share in zip(TASKS, row, strict=True)
        )
        for name, row in zip(ABLATED, means, strict=True)
    )
    return drawing.finish("Which task fails without which part", f"{said}.")


def check_sorting(
    sorting: Mapping[str, Sequence[float]], instead: Mapping[str, Sequence[float]]
) -> None:
    """Assert what the text says about the two comparisons."""
    mean = {name: sum(runs) / len(runs) for name, runs in sorting.items()}
    whole = max(sorting["everything"])
    for name in ("no attention", "no positions", "no residuals"):
        assert min(sorting[name]) > whole + 0.5, name
    for name in ("no feed-forward", "no normalisation"):
        assert mean["everything"] < mean[name] < mean["no attention"], name
    assert min(sorting["no residuals"]) > max(sorting["no attention"]) + 0.2
    guess = loss_without_attention()
    assert max(sorting["no attention"]) < guess + 0.2  # nearly all that can be told
    assert min(sorting["no residuals"]) > guess + 0.3  # not even that
    both, one, three = (sum(runs) / len(runs) for runs in instead.values())
    assert both < three < one  # three attentions recover something,
    assert one - three < (one - both) / 2  # but not much


def sorting_chart(losses: Mapping[str, Sequence[float]], title: str) -> Any:
    """The loss of each seed, and the mean, by variant; lines at two guesses."""
    rows = [
        {"variant": name, "loss": round(loss, 3), "seed": seed}
        for name, runs in losses.items()
        for seed, loss in enumerate(runs)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y(
            "variant:N",
            sort=list(losses),
            title=None,
            axis=alt.Axis(labelLimit=220),
        )
    )
    x = {
        "title": "loss in nats; dashed: guesses",
        "scale": alt.Scale(domain=[0, 2.2]),
    }
    dots = base.mark_circle(size=60, color=WEIGHT.mark, opacity=0.7).encode(
        x=alt.X("loss:Q", **x), tooltip=["variant:N", "seed:Q", "loss:Q"]
    )
    means = base.mark_tick(thickness=3, size=20, color=SERIES[0].mark).encode(
        x=alt.X("loss:Q", aggregate="mean", **x)
    )
    guesses = math.log(DIGITS), loss_without_attention()
    chance = (
        alt.Chart(alt.Data(values=[{"guess": guess} for guess in guesses]))
        .mark_rule(strokeDash=[5, 4], color=SERIES[5].mark)
        .encode(x=alt.X("guess:Q", **x))
    )
    said = "; ".join(f"{name} {span(runs)}" for name, runs in losses.items())
    return alt.layer(chance, dots, means).properties(
        width="container",
        height=34 * len(losses) + 10,
        description=f"{title}. Losses of three seeds: {said}. A uniform guess has "
        f"{guesses[0]:.2f}, the best one without attention {guesses[1]:.2f}.",
    )


# Post-norm and pre-norm.


def two_arrangements() -> list[Svg]:
    """Where the norm stands: on the main path, or on the branch."""
    panels = []
    for pre in (False, True):
        name = "pre-norm" if pre else "post-norm, the paper"
        drawing = Diagram(330, 300)
        drawing.text(165, 12, name, bold=True)
        trunk, branch = 92, 220
        for y in (268, 148):  # two sub-layers, from the bottom up
            split, plus = y, y - 62
            top = plus - 58
            drawing.arrow(
                (trunk, split), (trunk, plus + 9), role="alert", width=3, head=False
            )
            drawing.plus(trunk, plus)
            if pre:
                drawing.arrow((trunk, split), (branch, split), head=False)
                drawing.arrow((branch, split), (branch, split - 11), head=False)
                drawing.box(branch, split - 22, "norm", width=96, height=22)
                drawing.arrow((branch, split - 33), (branch, plus + 12), head=False)
                drawing.box(
                    branch, plus, "sub-layer", width=96, height=24, role="weight"
                )
                drawing.arrow((branch - 48, plus), (trunk + 9, plus))
                drawing.arrow(
                    (trunk, plus - 9), (trunk, top), role="alert", width=3, head=False
                )
            else:
                drawing.arrow((trunk, split), (branch, split), head=False)
                drawing.arrow((branch, split), (branch, plus + 12), head=False)
                drawing.box(
                    branch, plus, "sub-layer", width=96, height=24, role="weight"
                )
                drawing.arrow((branch - 48, plus), (trunk + 9, plus))
                drawing.arrow((trunk, plus - 9), (trunk, plus - 20), head=False)
                drawing.box(trunk, plus - 31, "norm", width=96, height=22)
                drawing.arrow((trunk, plus - 42), (trunk, top), head=False)
        drawing.arrow((trunk, 34), (trunk, 26), role="alert" if pre else None)
        drawing.text(trunk, 288, "x")
        drawing.text(branch, 288, "read upwards", italic=True)
        where = (
            "on the branch, before the sub-layer, so that x passes through sums alone"
            if pre
            else "on the main path, after each sum"
        )
        panels.append(drawing.finish(name, f"Two sub-layers. The norm stands {where}."))
    return panels


def warmup_chart(logs: Mapping[str, Tensor], rate: int = -1) -> alt.LayerChart:
    """Losses at one of the rates over the steps, in means over five steps."""
    rows = [
        {"step": 5 * step + 3, "loss": round(value, 3), "model": name, "seed": run}
        for name, log in logs.items()
        for run in range(log.size(2))
        for step, value in enumerate(
            log[:, rate, run].unflatten(0, (-1, 5)).mean(dim=1).tolist()
        )
    ]
    return curves(
        rows,
        "step",
        "loss",
        "model",
        description="Loss over 150 steps for post-norm and pre-norm, with and without "
        "warm-up, three draws each. Post-norm without warm-up stays far above the rest "
        "on average, some draws near chance; the other three fall.",
    )


def final_losses(logs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The mean loss of the last ten steps: (rates, 3 seeds)."""
    return {name: log[-10:].mean(dim=0) for name, log in logs.items()}


def warmup_table(logs: Mapping[str, Tensor]) -> pd.DataFrame:
    """The final losses, from the lowest to the highest of the seeds."""
    return pd.DataFrame(
        {
            name: [span(runs) for runs in loss.tolist()]
            for name, loss in final_losses(logs).items()
        },
        index=[f"rate {rate:g}" for rate in RATES],
    ).T


# Two wrong normalisations.


# The claims of §3.1 and §3.3.


def _gap(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def settle_residual_norm(layer_norm: Callable[[Tensor], Tensor]) -> None:
    """Settle that the library's layers are LayerNorm(x + Sublayer(x)), composed."""
    config = TransformerConfig(d_model=16, d_ff=40, num_heads=2, dropout=0.0)
    encoder = EncoderLayer(config).double().eval()
    decoder = DecoderLayer(config).double().eval()
    x, memory, mask = _random(2, 5, 16), _random(2, 7, 16), causal_mask(5)

    def compose(*sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        y = x
        for sublayer in sublayers:
            y = layer_norm(y + sublayer(y))
        return y

    by_sentence = {
        "encoder layer": compose(
            lambda x: encoder.self_attention(x, x, x)[0],
            encoder.feed_forward,
        ),
        "decoder layer": compose(
            lambda x: decoder.self_attention(x, x, x, mask)[0],
            lambda x: decoder.cross_attention(x, memory, memory)[0],
            decoder.feed_forward,
        ),
    }
    layers = {
        "encoder layer": encoder(x)[0],
        "decoder layer": decoder(x, memory, mask)[0],
    }
    gaps = {name: _gap(by_sentence[name], layers[name]) for name in layers}
    settle(
        "s3.1-residual-norm",
        holds=max(gaps.values()) < 1e-12,
        expected="the library's layers are LayerNorm(x + Sublayer(x)), two and three "
        "times, within 1e-12",
        measured="written out by hand and in the library, outputs differ by at most "
        + ", ".join(f"{gap:.1g} ({name})" for name, gap in gaps.items()),
        scale="derivation",
    )


def output_widths() -> list[int]:
    """What every embedding, sub-layer and norm of the base model gives."""
    base, seen = base_model(), []
    kinds = (
        TokenEmbedding,
        MultiHeadAttention,
        PositionwiseFeedForward,
        nn.LayerNorm,
    )

    def note(module: nn.Module, given: Any, output: Tensor) -> None:
        seen.append(output.size(-1))

    for module in base.modules():
        if isinstance(module, kinds):
            # An attention's output is what its last projection gives.
            last = getattr(module, "output_projection", module)
            last.register_forward_hook(note)
    ids = torch.ones(1, 5, dtype=torch.long, device="meta")
    base(ids, ids)
    return seen


def settle_one_width() -> None:
    """Settle that all outputs have one width, and that no other can be added."""
    try:
        torch.add(_random(5, 512), _random(5, 256))
        refused = False
    except RuntimeError:
        refused = True
    widths = output_widths()
    settle(
        "s3.1-one-width",
        holds=len(widths) == 62 and min(widths) == max(widths) == 512 and refused,
        expected="every embedding, sub-layer and norm gives 512 numbers; without a "
        "matrix in the residual connection, 256 cannot be added to them",
        measured=f"{len(widths)} outputs of the base model have "
        f"{' or '.join(map(str, sorted(set(widths))))} numbers, to which 256 "
        f"{'cannot' if refused else 'can'} be added",
        scale="derivation",
    )


def _with_biases(ffn: Any) -> Any:
    """Random biases: zeros would hide one that is lost."""
    ffn = ffn.double()
    for layer in (ffn.inner, ffn.outer):
        nn.init.normal_(layer.bias)
    return ffn


def settle_feed_forward(kind: Callable[[int, int], nn.Module]) -> None:
    """Settle equation (2), at each position separately and identically."""
    ffn = _with_biases(kind(16, 40))
    x = _random(1, 5, 16)
    x[:, 3] = x[:, 1]  # the same word twice
    changed = x.clone()
    changed[:, 0] += 1
    with torch.no_grad():
        y = ffn(x)
        W_1, W_2 = ffn.inner.weight.T, ffn.outer.weight.T
        by_word = [
            (word @ W_1 + ffn.inner.bias).clamp(min=0) @ W_2 + ffn.outer.bias
            for word in x[0]
        ]
        off = _gap(y[0], torch.stack(by_word))
        others = _gap(ffn(changed)[:, 1:], y[:, 1:])
    twice = _gap(y[:, 1], y[:, 3])
    settle(
        "s3.3-feed-forward",
        holds=max(off, others, twice) < 1e-12,
        expected="the formula, word by word, within 1e-12; no word moves another; "
        "equal words give equal outputs",
        measured=f"formula and layer differ by at most {off:.1g}; a changed word "
        f"moves the other words' outputs by {others:.1g}; the outputs of two equal "
        f"words differ by {twice:.1g}",
        scale="derivation",
    )


def settle_convolutions(as_convolution: Callable[[nn.Linear], nn.Conv1d]) -> None:
    """Settle that two convolutions with the same weights give the same output."""
    ffn = _with_biases(PositionwiseFeedForward(16, 40))
    first, second = as_convolution(ffn.inner), as_convolution(ffn.outer)
    x = _random(3, 7, 16)
    with torch.no_grad():
        off = _gap(second(F.relu(first(x.mT))).mT, ffn(x))
    kernels = first.kernel_size + second.kernel_size
    settle(
        "s3.3-convolutions",
        holds=off < 1e-12 and kernels == (1, 1),
        expected="with kernel size 1, the same output within 1e-12",
        measured="two convolutions with the same weights and the feed-forward layer "
        f"differ by at most {off:.1g}",
        scale="derivation",
    )
