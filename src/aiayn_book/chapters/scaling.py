"""Chapter 4, scaling: its drawings, its measurements of gradients, its small trainings.

Paper: §3.2.1 and its footnote 4.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from aiayn import additive_attention, scaled_dot_product_attention
from aiayn_book.claims import Settlement, judge
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.power import smallest_effect
from aiayn_book.svg import Svg

WITH, WITHOUT = "divided", "not divided"


@contextmanager
def _own_seed(seed: int) -> Iterator[None]:
    """Random numbers that do not depend on what a notebook drew before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


# What reaches a query: the chapter's finding.


def gradients(d_k: int, keys: int = 32, root: bool = True, draws: int = 100) -> Any:
    """Lengths of the gradients that reach random queries, and their weights.

    Queries, keys and values have independent components of variance 1; a value has one
    number, and the gradient of the loss with respect to the context is 1.

    Args:
        d_k: the width.
        keys: how many keys each query has.
        root: whether scores are divided by the root of d_k.
        draws: how many queries, each with keys of its own.
    """
    q = torch.randn(draws, 1, d_k, requires_grad=True)
    k = torch.randn(draws, keys, d_k)
    v = torch.randn(draws, keys, 1)
    scores = q @ k.mT  # (draws, 1, keys)
    if root:
        scores = scores / math.sqrt(d_k)
    weights = scores.softmax(dim=-1)
    loss = (weights @ v).sum()  # its gradient at a context is 1
    (grad,) = torch.autograd.grad(loss, q)
    lengths = grad.squeeze(1).norm(dim=1)  # (draws,)
    return lengths, weights.detach().squeeze(1)


def jacobian(weights: Tensor) -> Tensor:
    """The derivative of a softmax at its output: (..., keys) → (..., keys, keys)."""
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]


@dataclass(frozen=True)
class Passed:
    """What reaches a sample of queries: one number for each."""

    gradient: Tensor
    frobenius: Tensor  # of the softmax's Jacobian
    weights: Tensor  # (queries, keys)

    @property
    def gap(self) -> Tensor:
        """By how much the best score exceeds the second best."""
        first, second = self.weights.topk(2).values.log().unbind(1)
        return first - second

    def share_of(self, chosen: Tensor) -> float:
        """The share of all gradient that reaches the chosen queries."""
        return (self.gradient[chosen].sum() / self.gradient.sum()).item()

    def shares(self, parts: int) -> Tensor:
        """The shares of equal parts of the queries, those with most gradient first."""
        lengths = self.gradient.sort(descending=True).values
        return lengths.view(parts, -1).sum(1) / lengths.sum()

    @property
    def top_tenth(self) -> float:
        """The share of all gradient that reaches one query in ten."""
        order = self.gradient.argsort(descending=True)
        return self.share_of(order[: len(order) // 10])


def passed(d_k: int, keys: int, root: bool, queries: int = 500) -> Passed:
    """What reaches that many queries, in parts of a hundred, which fit any memory."""
    parts = [gradients(d_k, keys, root) for _ in range(queries // 100)]
    lengths, weights = (torch.cat(part) for part in zip(*parts, strict=True))
    norms = torch.cat([jacobian(part).flatten(1).norm(dim=1) for _, part in parts])
    return Passed(lengths, norms, weights)


Sweep = dict[tuple[int, int, bool], Passed]

NUMBERS = (4, 32, 128)
"""Of keys."""
WIDTHS = (1, 4, 16, 64, 256, 1024)


@cache
def sweep(queries: int = 500) -> Sweep:
    """Over numbers of keys and widths, with and without the root."""
    with _own_seed(2017):
        return {
            (keys, d_k, root): passed(d_k, keys, root, queries)
            for keys in NUMBERS
            for d_k in WIDTHS
            for root in (True, False)
        }


@dataclass(frozen=True)
class Unfair:
    """Figure 4.1 and its numbers, by whether scores are divided."""

    drawings: list[Svg]
    mean: dict[bool, float]
    median: dict[bool, float]


def unfair(found: Sweep, d_k: int = 1024, bars: int = 50) -> Unfair:
    """Shares of all gradient, of equally many queries a bar, the largest first."""
    parts = {root: found[32, d_k, root] for root in (True, False)}
    shares = {root: part.shares(bars) for root, part in parts.items()}
    steps = math.ceil(10 * max(part.max().item() for part in shares.values()))
    high = steps / 10
    drawings = []
    for root, name in ((True, f"divided by √{d_k}"), (False, "not divided")):
        part, share = parts[root], shares[root]
        drawing = Diagram(330, 250)
        left, top, width, height = 50, 46, 276, 160
        base, tenth = top + height, bars // 10
        drawing.text(left + width / 2, 12, name, bold=True)
        reach = height + 6  # so that the axis' head is free
        ticks = [
            (height * i / steps / reach, f"{10 * i} %" if i else "0")
            for i in range(steps + 1)
        ]
        drawing.axis((left, base), (left, base - reach), ticks)
        drawing.text(left - 46, 30, "share of all gradient", anchor="start")
        first = width * tenth / bars
        for x, wide, some, role in (
            (left + 4 + first / 2, first, share[:tenth], "query"),
            (left + 4 + (width + first) / 2, width - first, share[tenth:], "neutral"),
        ):
            drawing.bars(
                x,
                top + height / 2,
                some,
                role=role,
                width=wide,
                height=height,
                limit=high,
            )
        even = base - height / bars / high
        drawing.arrow((left, even), (left + width, even), head=False, dashed=True)
        drawing.text(left + width, even - 12, "equal shares", anchor="end", italic=True)
        drawing.text(
            left + first + 16,
            top + 22,
            f"the first tenth: {part.top_tenth:.0%}".replace("%", " %"),
            anchor="start",
            role="query",
            bold=True,
        )
        mean, median = part.gradient.mean(), part.gradient.median()
        for y, words in ((46, f"mean {mean:.2g}"), (66, f"median {median:.2g}")):
            drawing.text(left + first + 16, top + y, words, anchor="start")
        below = f"{len(part.gradient)} queries, largest gradient first"
        drawing.text(left + width / 2, base + 18, below)
        drawings.append(
            drawing.finish(
                f"Shares of the gradient, scores {name}",
                f"{bars} bars in descending order. "
                + (
                    "All are near the dashed line of equal shares."
                    if root
                    else "The first few are many times as high as the dashed line of "
                    "equal shares; most cannot be seen."
                ),
            )
        )
    return Unfair(
        drawings,
        mean={root: part.gradient.mean().item() for root, part in parts.items()},
        median={root: part.gradient.median().item() for root, part in parts.items()},
    )


# The variance of a score.


def sixteen_keys() -> Svg:
    """All keys of four signs, stacked above their dot product with (1, 1, 1, 1)."""
    drawing = Diagram(360, 212)
    floor, step, tall = 138, 66, 19
    stacks: dict[int, list[tuple[int, ...]]] = {}
    for key in product([1, -1], repeat=4):
        stacks.setdefault(sum(key), []).append(key)
    for score, stack in stacks.items():
        x = 180 + step * score / 2
        for place, key in enumerate(stack):
            y = floor - tall * (place + 0.6)
            drawing.grid(
                x, y, [key], role="key", negative="neutral", cell=13, tall=13,
                digits=None,
            )  # fmt: skip
        drawing.text(x, floor - tall * len(stack) - 10, f"{len(stack)}", bold=True)
    ticks = [((score + 5) / 10, f"{score:+d}".replace("-", "−").replace("+0", "0"))
             for score in sorted(stacks)]  # fmt: skip
    drawing.axis((15, floor + 2), (345, floor + 2), ticks)
    drawing.text(352, floor + 17, "q · k", anchor="end", italic=True)
    drawing.arrow((114, 180), (246, 180), width=2, role="alert", head=False)
    for x in (114, 246):
        drawing.arrow((x, 175), (x, 185), width=2, role="alert", head=False)
    drawing.text(180, 198, "one standard deviation to either side: ±2")
    return drawing.finish(
        "All sixteen keys",
        "Sixteen keys of four plus or minus signs in five stacks, by their dot product "
        "with (1, 1, 1, 1): one at −4, four at −2, six at 0, four at +2, one at +4. A "
        "bar from −2 to +2 is one standard deviation to either side.",
    )


@dataclass(frozen=True)
class Sampled:
    """Dot products of random pairs: for each width (draws, pairs)."""

    scores: dict[int, Tensor]

    @property
    def chart(self) -> alt.LayerChart:
        """Variance over width, with and without the division."""
        rows = [
            {"dₖ": d_k, "variance of a score": value / part, "scores": name,
             "seed": draw}
            for d_k, scores in self.scores.items()
            for draw, value in enumerate(scores.var(1).tolist())
            for name, part in ((WITHOUT, 1), (WITH, d_k))
        ]  # fmt: skip
        return curves(
            rows,
            "dₖ",
            "variance of a score",
            "scores",
            description="Variance against d_k, both logarithmic: not divided, a "
            "straight line up to about a thousand; divided, flat at one.",
            log_x=True,
            log_y=True,
        )

    @property
    def furthest(self) -> tuple[float, float]:
        """How far mean and variance are off at most, in standard errors.

        A variance from N samples has the relative standard error √((κ − 1) / N). The
        kurtosis κ of a dot product of normal vectors is 3 + 6 / d_k.
        """
        means, variances = [], []
        for d_k, scores in self.scores.items():
            pairs = scores.numel()
            error = math.sqrt((2 + 6 / d_k) / pairs)
            means.append(abs(scores.mean().item()) / math.sqrt(d_k / pairs))
            variances.append(abs(scores.var().item() / d_k - 1) / error)
        return max(means), max(variances)


@cache
def sampled() -> Sampled:
    """Ten draws of 2,000 pairs for each width from 1 to 1024."""
    with _own_seed(2017):
        return Sampled(
            {d: torch.mul(*torch.randn(2, 10, 2000, d)).sum(-1)
             for d in (2**power for power in range(11))}
        )  # fmt: skip


# The Jacobian, and charts of what it passes.


def three_jacobians() -> Svg:
    """Weights that are even, that compete, and that are certain, with their J."""
    even = torch.full((8,), 1 / 8)
    compete = torch.tensor([0.46, 0.46, *[0.08 / 6] * 6])
    certain = torch.tensor([0.99, *[0.01 / 7] * 7])
    drawing = Diagram(360, 262)
    drawing.text(6, 36, "p", anchor="start", italic=True)
    drawing.text(6, 150, "J", anchor="start", italic=True)
    cases = (("all equal", even), ("two compete", compete), ("one wins", certain))
    for x, (name, weights) in zip((76, 190, 304), cases, strict=True):
        drawing.text(x, 10, name, bold=True)
        drawing.bars(x, 54, weights, role="weight", width=100, height=58, limit=1)
        J = jacobian(weights)
        drawing.grid(
            x, 152, J, role="weight", negative="neutral", cell=12.5, tall=12.5,
            limit=0.25, digits=None,
        )  # fmt: skip
        drawing.text(x, 224, f"‖J‖ = {J.norm():.2f}", bold=True)
    drawing.text(190, 250, "full strength: ¼; pink positive, grey negative")
    return drawing.finish(
        "Three Jacobians of a softmax over eight keys",
        "Above, weights as bars; below, the Jacobian as an 8 by 8 map. With equal "
        "weights all of its cells are pale. Where two keys compete, four cells are "
        "strong. Where one key has 99 %, hardly any cell is shaded.",
    )


def jacobian_charts(found: Sweep) -> list[alt.LayerChart]:
    """Norm of the Jacobian over the width, for 4 and for 128 keys."""
    charts = []
    for keys in (4, 128):
        name = f"‖J‖ with {keys} keys"
        rows = [
            {"dₖ": d_k, name: statistic(part.frobenius).item(), "scores": scores}
            for (number, d_k, root), part in found.items()
            if number == keys
            for scores, wanted, statistic in (
                (f"{WITH}, mean", True, torch.mean),
                (f"{WITHOUT}, mean", False, torch.mean),
                (f"{WITHOUT}, median", False, torch.median),
            )
            if wanted is root
        ]
        told = "it falls from the start" if keys == 4 else "it first rises, then falls"
        charts.append(
            curves(
                rows,
                "dₖ",
                name,
                "scores",
                description=f"Norm of the softmax's Jacobian against d_k, {keys} keys. "
                f"Divided: flat. Not divided: {told}; the median ends near zero, the "
                "mean above it.",
                log_x=True,
            )
        )
    return charts


def gradient_chart(found: Sweep) -> alt.LayerChart:
    """Mean and median of the gradient that reaches a query, 32 keys."""
    name = "length of the gradient"
    rows = [
        {"dₖ": d_k, name: statistic(part.gradient).item(),
         "scores": f"{WITH if root else WITHOUT}, {statistic.__name__}"}
        for (keys, d_k, root), part in found.items()
        if keys == 32
        for statistic in (torch.mean, torch.median)
    ]  # fmt: skip
    return curves(
        rows,
        "dₖ",
        name,
        "scores",
        description="Length of the gradient that reaches the query against d_k, both "
        "logarithmic, 32 keys. Divided: mean and median are flat. Not divided: the "
        "mean grows and levels off; the median grows, then falls steeply.",
        log_x=True,
        log_y=True,
    )


def gap_chart(found: Sweep, d_k: int = 1024, widest: int = 20) -> alt.LayerChart:
    """The gradient that reaches a query over the gap of its two best scores."""
    names = [WITH, WITHOUT]
    rows = [
        {"gap": round(gap, 3), "length": float(f"{length:.3g}"), "scores": name}
        for root, name in ((True, WITH), (False, WITHOUT))
        for gap, length in zip(
            found[32, d_k, root].gap.tolist(),
            found[32, d_k, root].gradient.tolist(),
            strict=True,
        )
        if gap < widest and length > 1e-8
    ]
    line = [
        {"gap": gap / 4, "length": two_best_keys(gap / 4, d_k)}
        for gap in range(4 * widest + 1)
    ]
    x = alt.X(
        "gap:Q",
        title="gap between the two best scores",
        axis=alt.Axis(tickCount=10),
    )
    y = alt.Y(
        "length:Q",
        title="length of the gradient",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~r", values=[1e-6, 1e-4, 1e-2, 1]),
    )
    colours = ["#c97800", "#2a86c4"]
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(size=26, filled=True, opacity=0.55)
        .encode(
            x=x,
            y=y,
            color=alt.Color("scores:N", scale=alt.Scale(domain=names, range=colours)),
            shape=alt.Shape(
                "scores:N",
                scale=alt.Scale(domain=names, range=["triangle-up", "circle"]),
                legend=alt.Legend(symbolType="circle"),
            ),
        )
    )
    predicted = (
        alt.Chart(alt.Data(values=line))
        .mark_line(strokeDash=[6, 3], color="#7a828e")
        .encode(x=x, y=y)
    )
    return alt.LayerChart(layer=[points, predicted]).properties(
        description="Each point is a query. Not divided: the points follow a dashed "
        "line that falls by a factor of e for each unit of the gap, over eight powers "
        "of ten. Divided: all gaps are below about two and all lengths about alike.",
        width="container",
        height=280,
    )


def two_best_keys(gap: float, d_k: int) -> float:
    """The gradient's mean length if only the two best keys have weight, undivided.

    Their weights are p and 1 − p, the difference of two keys has a length of about
    √(2 d_k), and that of two values the mean size √(4 / π).
    """
    p = 1 / (1 + math.exp(-gap))
    return p * (1 - p) * math.sqrt(2 * d_k) * math.sqrt(4 / math.pi)


# The small trainings: a look-up, five seeds side by side.

SYMBOLS, PAIRS, BATCH, SEEDS = 16, 8, 32, 5
RATES = (0.001, 0.003, 0.01)
KINDS = ("with", "without", "additive")
IN_WORDS = {"with": WITH, "without": WITHOUT, "additive": "additive"}

Weights = dict[str, Tensor]
Run = tuple[Tensor, Tensor, Weights]
Runs = Mapping[tuple[int, str, float], Run]


def undivided_attention(query: Tensor, key: Tensor, value: Tensor) -> Any:
    """Dot-product attention as it was before: a query √d_k times as long."""
    return scaled_dot_product_attention(query * math.sqrt(query.size(-1)), key, value)


def attend(kind: str, query: Tensor, key: Tensor, value: Tensor, w: Tensor) -> Any:
    """One of the three ways to score; `w` is additive attention's own vector."""
    if kind == "additive":
        return additive_attention(query, key, value, w)
    return (scaled_dot_product_attention if kind == "with" else undivided_attention)(
        query, key, value
    )


def recall_batch(generator: torch.Generator) -> list[Tensor]:
    """One batch for each seed: keys, values, asked, answer; all one-hot."""
    shape = (SEEDS, BATCH)
    shuffled = torch.rand(*shape, SYMBOLS, generator=generator).argsort(-1)
    keys = shuffled[..., :PAIRS]  # (seeds, batch, pairs), no symbol twice
    values = torch.randint(SYMBOLS, keys.shape, generator=generator)
    place = torch.randint(PAIRS, (*shape, 1), generator=generator)
    asked, answer = keys.gather(-1, place), values.gather(-1, place)
    return [F.one_hot(x, SYMBOLS).float() for x in (keys, values, asked, answer)]


def look_up(weights: Weights, kind: str, keys: Any, values: Any, asked: Any) -> Tensor:
    """The model: one attention, and a logit for each symbol."""
    embedding = weights["embedding"]  # (symbols, d_model)
    query = asked @ embedding @ weights["W_Q"]  # (batch, 1, d_k)
    key = keys @ embedding @ weights["W_K"]  # (batch, pairs, d_k)
    value = values @ weights["value"]  # (batch, pairs, d_model)
    w = weights["score"]  # of additive scores
    context, _ = attend(kind, query, key, value, w)
    return context @ weights["W_O"]  # (batch, 1, symbols)


def start(
    d_k: int, generator: torch.Generator, d_model: int = 32, shrink: float = 1.0
) -> Weights:
    """Weights for each seed, such that queries and keys have variance 1.

    Args:
        d_k: the width of queries and keys.
        generator: where the numbers come from.
        d_model: the width of embeddings and values.
        shrink: what W_Q and W_K are multiplied by.
    """
    fan_in = {"W_Q": d_model, "W_K": d_model, "W_O": d_model, "score": d_k}
    sizes = {
        "embedding": (SYMBOLS, d_model),
        "W_Q": (d_model, d_k),
        "W_K": (d_model, d_k),
        "value": (SYMBOLS, d_model),
        "W_O": (d_model, SYMBOLS),
        "score": (d_k,),
    }
    weights = {}
    for name, size in sizes.items():
        scale = fan_in.get(name, 1) ** -0.5
        scale *= shrink if name in ("W_Q", "W_K") else 1
        drawn = torch.randn(SEEDS, *size, generator=generator)
        weights[name] = (drawn * scale).requires_grad_()
    return weights


def train(
    kind: str, d_k: int, rate: float, steps: int = 300, shrink: float = 1.0
) -> Run:
    """Train five seeds side by side: losses and hits, (steps, seeds), and weights.

    `torch.vmap` runs the model once for each seed, and Adam treats every number on its
    own, so that the five trainings are independent.

    Args:
        kind: ``"with"`` or ``"without"`` the root, or ``"additive"``.
        d_k: the width of queries and keys.
        rate: Adam's learning rate.
        steps: how many batches of 32 look-ups.
        shrink: what W_Q and W_K are multiplied by at first.
    """
    generator = torch.Generator().manual_seed(2017)
    weights = start(d_k, generator, shrink=shrink)
    adam = torch.optim.Adam(weights.values(), lr=rate)
    model = torch.vmap(lambda w, *batch: look_up(w, kind, *batch))
    losses, hits = [], []
    for _ in range(steps):
        *batch, answer = recall_batch(generator)
        logits = model(weights, *batch)
        loss = -(logits.log_softmax(-1) * answer).sum(-1).mean((1, 2))
        adam.zero_grad()
        loss.sum().backward()  # (seeds,): a sum keeps them apart
        adam.step()
        losses.append(loss.detach())
        hit = logits.argmax(-1) == answer.argmax(-1)  # (seeds, batch, 1)
        hits.append(hit.float().mean((1, 2)))
    return torch.stack(losses), torch.stack(hits), weights


def right(run: Run) -> Tensor:
    """Each seed's share of right answers over the last 20 steps, on new pairs."""
    return run[1][-20:].mean(0)


def best(runs: Runs, d_k: int, kind: str) -> Tensor:
    """The shares of right answers at the rate at which their mean is highest."""
    return max((right(runs[d_k, kind, rate]) for rate in RATES), key=torch.mean)


def in_words(shares: Tensor) -> str:
    """Mean, lowest and highest of a few seeds."""
    return f"{shares.mean():.1%} ({shares.min():.1%} to {shares.max():.1%})"


def _percent(shares: Tensor) -> str:
    """Mean, lowest and highest in percent, or one number if they are the same."""
    mean, low, high = (
        round(100 * number.item())
        for number in (shares.mean(), shares.min(), shares.max())
    )
    return f"{mean}" if low == high else f"{mean} ({low}–{high})"


def right_answers(runs: Runs) -> pd.DataFrame:
    """Percent of right answers by width, kind and rate: mean, lowest and highest."""
    table = pd.DataFrame(
        [
            {"dₖ": d_k, "scores": IN_WORDS[kind], "rate": rate,
             "right": _percent(right(run))}
            for (d_k, kind, rate), run in runs.items()
        ]
    )  # fmt: skip
    return table.pivot(index=["dₖ", "scores"], columns="rate", values="right")


def _blocks(losses: Tensor, name: str, scores: str, size: int = 10) -> list[Any]:
    """Rows for a chart: the mean over each ten steps, for each seed."""
    return [
        {"step": size * i, name: round(value, 4), "scores": scores, "seed": seed}
        for i, block in enumerate(losses.split(size))
        for seed, value in enumerate(block.mean(0).tolist())
    ]


def learning_curves(runs: Runs, rate: float = 0.003) -> list[alt.LayerChart]:
    """Loss over steps at widths of 4 and 256, for the three ways to score."""
    told = {
        4: "Divided and not divided nearly coincide; additive scores learn later, and "
        "get there as well.",
        256: "Divided and additive fall to nearly zero in all seeds; not divided, the "
        "seeds differ widely and fall late or not at all.",
    }
    charts = []
    for d_k, words in told.items():
        name = f"loss at dₖ = {d_k}"
        rows = [
            row
            for kind in KINDS
            for row in _blocks(runs[d_k, kind, rate][0], name, IN_WORDS[kind])
        ]
        charts.append(
            curves(
                rows,
                "step",
                name,
                "scores",
                description=f"Loss against step, five seeds each. {words}",
            )
        )
    return charts


def folded_chart(runs: Runs, folded: Run) -> alt.LayerChart:
    """Loss over steps at a width of 256: the factor, or smaller weights at first."""
    rows = [
        row
        for name, run in (
            (WITH, runs[256, "with", 0.003]),
            ("not divided, small start", folded),
            (WITHOUT, runs[256, "without", 0.003]),
        )
        for row in _blocks(run[0], "loss", name)
    ]
    return curves(
        rows,
        "step",
        "loss",
        "scores",
        description="Loss against step, five seeds each, d_k 256. Divided: all seeds "
        "fall quickly. Not divided with smaller weights at first: they fall nearly as "
        "quickly, some of them later. Not divided: far above both.",
    )


def score_variance(weights: Weights) -> Tensor:
    """The variance of q · k over all pairs of symbols, for each seed."""
    q = weights["embedding"] @ weights["W_Q"]  # (seeds, symbols, d_k)
    k = weights["embedding"] @ weights["W_K"]
    scores = (q @ k.mT).detach()  # (seeds, symbols, symbols)
    return scores.flatten(1).var(1)


def score_variances(runs: Runs, rate: float = 0.003) -> pd.DataFrame:
    """The variance of what enters the softmax, before training and after."""
    rows = []
    for d_k in (4, 32, 256):
        first = start(d_k, torch.Generator().manual_seed(2017))
        for kind, divisor in (("with", d_k), ("without", 1)):
            before = score_variance(first).mean() / divisor
            after = score_variance(runs[d_k, kind, rate][2]) / divisor
            seeds = f"{after.mean():.0f} ({after.min():.0f} to {after.max():.0f})"
            rows.append(
                {"dₖ": d_k, "scores": IN_WORDS[kind], "before": f"{before:.1f}",
                 "after": seeds}
            )  # fmt: skip
    return pd.DataFrame(rows).set_index(["dₖ", "scores"])


# Other divisors, and the price of additive scores.


@dataclass(frozen=True)
class Divisors:
    """Figure 4.11 and its numbers, by the name of the divisor."""

    drawing: Svg
    deviation: dict[str, float]
    top: dict[str, float]


def divisors(d_k: int = 64, d_model: int = 512, keys: int = 16) -> Divisors:
    """The mean weights of the best key, the second best and so on, four divisors."""
    with _own_seed(4):
        q, k = torch.randn(500, 1, d_k), torch.randn(500, keys, d_k)
    scores = (q @ k.mT).squeeze(1)  # (500 queries, keys)
    by = {
        "1": 1.0,
        f"√dₖ = {math.sqrt(d_k):.0f}": math.sqrt(d_k),
        f"√d_model = {math.sqrt(d_model):.1f}": math.sqrt(d_model),
        f"dₖ = {d_k}": float(d_k),
    }
    deviation = {name: (scores / part).std().item() for name, part in by.items()}
    ranked = {
        name: (scores / part).softmax(-1).sort(descending=True).values.mean(0)
        for name, part in by.items()
    }
    top = {name: weights[0].item() for name, weights in ranked.items()}
    drawing = Diagram(360, 24 + 76 * len(by))
    limit = max(top.values())
    drawing.text(8, 12, "divided by", anchor="start", italic=True)
    drawing.text(352, 12, "weights, best key first", anchor="end", italic=True)
    for row, (name, weights) in enumerate(ranked.items()):
        y = 62 + 76 * row
        drawing.text(8, y - 10, name, anchor="start", bold=True)
        drawing.text(8, y + 10, f"deviation {deviation[name]:.2g}", anchor="start")
        drawing.bars(
            242,
            y,
            weights,
            role="weight",
            width=220,
            height=60,
            limit=limit,
        )
        drawing.text(352, y - 22, f"best: {top[name]:.2f}", anchor="end")
    return Divisors(
        drawing.finish(
            "Four divisors",
            f"Mean weights of {keys} keys in order, as bars. Divided by 1, the best "
            "key has nearly all. Divided by the root of d_k, the weights fall off "
            "gently. Divided by the root of d_model or by d_k, they are nearly equal.",
        ),
        deviation,
        top,
    )


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes by (n, d_k, kind)."""

    seconds: dict[tuple[int, int, str], float]
    kept: dict[tuple[int, int, str], int]

    def ratio(self, n: int, d_k: int = 64) -> tuple[float, float]:
        """Additive over dot product, in time and in memory."""
        additive, dot = (n, d_k, "additive"), (n, d_k, "with")
        return (
            self.seconds[additive] / self.seconds[dot],
            self.kept[additive] / self.kept[dot],
        )

    @property
    def charts(self) -> list[alt.LayerChart]:
        """Time and memory over the number of words."""
        charts = []
        for name, table, unit in (
            ("milliseconds", self.seconds, 1000.0),
            ("megabytes kept", self.kept, 1e-6),
        ):
            rows = [
                {"words n": n, name: unit * value,
                 "scores": "dot product" if kind == "with" else kind}
                for (n, _, kind), value in table.items()
            ]  # fmt: skip
            charts.append(
                curves(
                    rows,
                    "words n",
                    name,
                    "scores",
                    description=f"{name.capitalize()} of one forward and backward pass "
                    "against the number of words, both logarithmic. The additive line "
                    "is far above that of the dot product.",
                    log_x=True,
                    log_y=True,
                )
            )
        return charts


def cost(kind: str, n: int, d_k: int) -> tuple[float, int]:
    """Seconds of a forward and backward pass (best of 5), and bytes kept for it."""
    q, k, v = (torch.randn(n, d_k, requires_grad=True) for _ in range(3))
    w = torch.randn(d_k, requires_grad=True)
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        still_there = attend(kind, q, k, v, w)  # storage must not be used twice
    del still_there
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        attend(kind, q, k, v, w)[0].sum().backward()
        seconds.append(time.perf_counter() - began)
    return min(seconds), sum(kept.values())


def costs(
    lengths: Sequence[int] = (32, 64, 128, 256), widths: Sequence[int] = (64,)
) -> Costs:
    """What additive and dot-product attention cost here."""
    seconds, kept = {}, {}
    for n, d_k, kind in product(lengths, widths, ("with", "additive")):
        seconds[n, d_k, kind], kept[n, d_k, kind] = cost(kind, n, d_k)
    return Costs(seconds, kept)


def operations(n: int, d_k: int) -> tuple[int, int]:
    """How many operations the scores take: additive, and as PyTorch counts the dot's.

    An additive score takes a sum, a tanh, a product and a sum for each of d_k numbers.
    """
    q, k = torch.randn(2, n, d_k)
    with FlopCounterMode(display=False) as counter:
        torch.matmul(q, k.mT)
    hidden = torch.tanh(q[:, None, :] + k[None, :, :])  # (n, n, d_k)
    return 4 * hidden.numel(), counter.get_total_flops()


# The eight claims.

Settle = Callable[..., None]

_TABLE = """<style>
.aiayn-claims details.aiayn-claim { margin: 0; padding: .35rem 0; }
.aiayn-claims .aiayn-claim > summary > span:first-child { display: none; }
.aiayn-claims .aiayn-claim .aiayn-what { white-space: normal; overflow: visible; }
.aiayn-claims .aiayn-claim[open] .aiayn-what { visibility: visible; }
.aiayn-claims .aiayn-claim[open] > p:first-of-type { display: none; }
.aiayn-claims .aiayn-claim > summary > em { margin-inline-start: auto;
  text-align: end; max-width: 9.5em; }
</style>"""


@dataclass(frozen=True)
class Claims:
    """Settled claims as the rows of one table: what the paper says, and the verdict."""

    settlements: list[Settlement] = field(default_factory=list)

    def settle(self, claim_id: str, **given: Any) -> None:
        """As `aiayn_book.settle`, but shown with the others."""
        self.settlements.append(judge(claim_id, **given))

    def _repr_html_(self) -> str:
        rows = "".join(settlement._repr_html_() for settlement in self.settlements)
        return f'<div class="aiayn aiayn-claims">{rows}{_TABLE}</div>'

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.settlements))


def settle_variance(settle: Settle) -> None:
    """Footnote 4, over eleven widths."""
    mean, variance = sampled().furthest
    settle(
        "s3.2.1-variance",
        holds=max(mean, variance) < 4,  # eleven widths, two numbers each
        expected="mean 0 and variance dₖ, within 4 standard errors",
        measured="proved in the chapter; in samples of 20,000 pairs for each of eleven "
        f"widths from 1 to 1024, the mean is at most {mean:.1f} and the variance at "
        f"most {variance:.1f} standard errors off",
        scale="derivation",
    )


def settle_same_but_scale(settle: Settle) -> None:
    """The old attention from the new one, by a longer query."""
    generator = torch.Generator().manual_seed(4)
    q, k, v = torch.randn(3, 5, 64, dtype=torch.float64, generator=generator)
    old = (q @ k.mT).softmax(-1) @ v
    new, _ = undivided_attention(q, k, v)
    difference = (new - old).abs().max().item()
    settle(
        "s3.2.1-same-but-scale",
        holds=difference < 1e-12,  # float64 keeps sixteen digits
        expected="the same numbers, once the factor is undone",
        measured="softmax(QKᵀ)V and this book's attention, with the factor undone, "
        f"differ by at most {difference:.1g}",
        scale="derivation",
    )


def norm_ratio(
    found: Sweep, keys: int, d_k: int, statistic: Callable[[Tensor], Tensor]
) -> float:
    """‖J‖ without the root over that with it, by its mean or its median."""
    without, with_it = (found[keys, d_k, root].frobenius for root in (False, True))
    return (statistic(without) / statistic(with_it)).item()


def share_inside(found: Sweep, keys: int, d_k: int) -> float:
    """The share of undivided queries whose ‖J‖ is below 1/100 of the divided median."""
    without, divided = (found[keys, d_k, root].frobenius for root in (False, True))
    return (without < divided.median() / 100).float().mean().item()


def settle_saturation(settle: Settle, found: Sweep) -> None:
    """Whether the Jacobian is extremely small for most queries, and falls in the mean.

    The paper speaks of regions: the share of the queries in one is what is counted.
    """
    median = {n: norm_ratio(found, n, 1024, torch.median) for n in NUMBERS}
    mean = {n: norm_ratio(found, n, 1024, torch.mean) for n in NUMBERS}
    at_64 = {n: norm_ratio(found, n, 64, torch.median) for n in NUMBERS}
    queries = len(found[32, 1024, False].gradient)
    inside = {d: [100 * share_inside(found, n, d) for n in NUMBERS] for d in (1024, 64)}
    high, low = (", ".join(f"{s:.0f}" for s in shares) for shares in inside.values())
    falls = [
        (found[n, 1024, False].frobenius.mean() / found[n, 256, False].frobenius.mean())
        for n in NUMBERS
    ]

    def listed(ratios: Mapping[int, float], form: str) -> str:
        return ", ".join(f"{r:{form}} ({n} keys)" for n, r in ratios.items())

    settle(
        "s3.2.1-saturation",
        holds=max(median.values()) < 0.01 and max(falls) < 0.75,
        expected="without the factor, ‖J‖ of the median query below 1/100 of that with "
        "it, at dₖ = 1024; and the mean ‖J‖ falls from dₖ = 256 to 1024 as well",
        measured="‖J‖ without the factor over that with it, at dₖ = 1024: medians "
        f"{listed(median, '.1g')}, so most queries are in such a region, {high} % of "
        f"them (at dₖ = 64, {low} %); means, which are not extremely small: "
        f"{listed(mean, '.2f')}; they fall like 1/√dₖ only, to {min(falls):.2f} to "
        f"{max(falls):.2f} of those at 256; medians at dₖ = 64: {listed(at_64, '.1g')}",
        sample=f"{queries} random queries for each number of keys",
        detects="a median above one hundredth, or a mean ‖J‖ that keeps 3/4 of it "
        "at four times the width, at any number of keys",
    )


def settle_scaling(settle: Settle, found: Sweep) -> None:
    """Whether with the factor the Jacobian is the same at every large width."""
    change = {
        n: (
            found[n, 1024, True].frobenius.median()
            / found[n, 16, True].frobenius.median()
        ).item()
        for n in NUMBERS
    }
    settle(
        "s3.2.1-scaling",
        holds=all(abs(c - 1) < 0.15 for c in change.values()),
        expected="with the factor, the median ‖J‖ at dₖ = 1024 is that at 16, within "
        "15 %",
        measured="median ‖J‖ at dₖ = 1024 over that at 16, with the factor: "
        + ", ".join(f"{c:.2f} ({n} keys)" for n, c in change.items()),
        sample=f"{len(found[32, 1024, True].gradient)} random queries for each number "
        "of keys",
        detects="a change of the median by 15 %",
    )


def _trainings() -> str:
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    return (
        f"{SEEDS} seeds for each kind, 300 steps of {BATCH} look-ups, at the best of "
        f"three learning rates ({rates})"
    )


def settle_small_width(settle: Settle, runs: Runs) -> None:
    """Additive against dot product without the factor, at a width of 4."""
    plain, additive = best(runs, 4, "without"), best(runs, 4, "additive")
    error = ((plain.var() + additive.var()) / SEEDS).sqrt()
    furthest = abs(plain.mean() - additive.mean()) + 2 * error
    alike = bool(furthest < 0.05)
    ceiling = bool(min(plain.mean(), additive.mean()) > 0.95)  # no room for 5 points
    slow = [in_words(right(runs[4, k, RATES[0]])) for k in ("without", "additive")]
    settle(
        "s3.2.1-small-dk",
        holds=None if alike and ceiling else alike,
        expected="at dₖ = 4, each at its best rate, less than 5 points between them, "
        "two standard errors included, with room for 5 points above both",
        measured=f"right answers: without the factor {in_words(plain)}, additive "
        f"{in_words(additive)}, which decides nothing, because so near the ceiling no "
        f"difference of 5 points could show; at a rate of {RATES[0]}: {slow[0]} and "
        f"{slow[1]}",
        sample=_trainings(),
        detects=f"{smallest_effect(error.item()):.1%} of the answers",
    )


def settle_large_width(settle: Settle, runs: Runs) -> None:
    """The same at a width of 256."""
    plain, additive = best(runs, 256, "without"), best(runs, 256, "additive")
    settle(
        "s3.2.1-large-dk",
        holds=additive.min() - plain.mean() > 0.05,
        expected="at dₖ = 256, the worst additive seed better than the mean without "
        "the factor by more than 5 points",
        measured=f"right answers: without the factor {in_words(plain)}, additive "
        f"{in_words(additive)}; dot product with it "
        f"{in_words(best(runs, 256, 'with'))}",
        sample=_trainings(),
        detects="5 points between the worst additive seed and the other mean",
    )


def settle_similar_complexity(settle: Settle) -> None:
    """Operations of either score, at four sizes."""
    sizes = ((32, 32), (64, 64), (64, 128), (128, 64))
    ratios = [additive / dot for additive, dot in (operations(*s) for s in sizes)]
    settle(
        "s3.2.1-similar-complexity",
        holds=max(ratios) == min(ratios) < 10,
        expected="a constant ratio, whatever n and dₖ, of a few",
        measured="additive scores take "
        + " or ".join(sorted({f"{ratio:g}" for ratio in ratios}))
        + " times the operations of dot products, if a tanh counts as one, at four "
        "sizes of n and dₖ",
        scale="derivation",
    )


def settle_faster(settle: Settle, measured: Costs) -> None:
    """Time and memory at the paper's width, from 64 words on."""
    ratios = {n: measured.ratio(n) for n in (64, 128, 256)}
    settle(
        "s3.2.1-faster",
        holds=all(min(pair) >= 4 for pair in ratios.values()),
        expected="at dₖ = 64, at least 4 times in time and in memory, twice what the "
        "count explains",
        measured="additive attention, not fused, took "
        + ", ".join(f"{pair[0]:.0f}" for pair in ratios.values())
        + " times as long with 64, 128 and 256 words, and "
        + ", ".join(f"{pair[1]:.0f}" for pair in ratios.values())
        + " times the memory",
        sample="the best of five timings at each of three lengths, one processor core",
        detects="a ratio below 4 at any of them",
    )


def check_text(found: Sweep, runs: Runs, folded: Run) -> None:
    """Assert what the text says of the outcomes in words."""
    gradient = {key: part.gradient for key, part in found.items()}

    def times(statistic: Callable[[Tensor], Tensor], d_k: int) -> float:
        """With 32 keys, the undivided statistic over the divided one."""
        without, divided = gradient[32, d_k, False], gradient[32, d_k, True]
        return (statistic(without) / statistic(divided)).item()

    assert 1.7 < times(torch.median, 64) < 2.7  # about twice as large
    assert 60 < 1 / times(torch.median, 1024) < 160  # a hundred times as small
    assert round(times(torch.mean, 1024)) == 6
    tenths = [found[32, d, root].top_tenth for d, root in
              ((64, False), (1024, False), (1024, True))]  # fmt: skip
    assert [round(20 * share) / 20 for share in tenths] == [0.4, 0.75, 0.15]
    kept = [norm_ratio(found, keys, 1024, torch.mean) for keys in NUMBERS]
    assert [round(100 * ratio) for ratio in kept] == [7, 26, 54]
    assert norm_ratio(found, 128, 64, torch.median) > 1

    fails = [right(runs[256, "without", rate]).mean() for rate in RATES]
    assert fails[0] == min(fails)  # a smaller rate is the worst
    assert max(fails) < 0.9
    lowest, *others = [right(runs[32, "without", rate]).min() for rate in RATES]
    assert lowest < 0.5 < 0.9 < min(others)  # at 32, seeds fail at the smallest alone
    for kind in KINDS:
        assert best(runs, 4, kind).mean() > 0.95
    assert right(runs[4, "additive", RATES[0]]).mean() < 0.9
    assert best(runs, 256, "with").min() > 0.95

    divided = runs[256, "with", 0.003][0]
    assert (folded[0][0] - divided[0]).abs().max() < 1e-3  # the same function
    assert ((folded[0] - divided)[40:60].mean(0) > 0.3).any()  # later in some seeds
    assert right(folded).min() > 0.9  # both learn
    for d_k in (4, 32, 256):
        after = score_variance(runs[d_k, "with", 0.003][2]) / d_k
        assert after.min() > 10
    before = score_variance(start(256, torch.Generator().manual_seed(2017)))
    assert (score_variance(runs[256, "without", 0.003][2]) > before).all()
