"""Chapter 14, the optimizer: its small trainings, its charts and its drawings.

All trainings run side by side: the first dimension of every weight is the run. A column
of learning rates is one setting, and every setting has the same draws of the weights
and sees the same digits, so that what differs is the setting.

Paper: §5.3.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from aiayn import (
    Encoder,
    TrainingConfig,
    TransformerConfig,
    noam_rate,
    sinusoidal_positional_encoding,
)
from aiayn.model.embeddings import TokenEmbedding
from aiayn_book.claims import settle
from aiayn_book.colours import FULL, KEY, NEUTRAL, QUERY, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.power import mean_and_error
from aiayn_book.svg import Svg

N, WIDTH, BATCH = 8, 16, 8
"""Digits and positions, the width of the model, and the sentences of a batch."""
STEPS, WARMUP = 150, 64
"""Of each training, and of its warm-up."""
LAST = 15
"""The loss at the end is the mean over so many last steps."""
STUCK = 0.9 * math.log(N)
"""A training whose loss at the end is above this has failed; chance is ln 8."""
EVEN = torch.ones(N)
SELDOM = torch.arange(1, N + 1.0) ** -1.5
"""How often each digit occurs: alike, or most of them rarely, as words do."""
UNCORRECTED = 10**6
"""Added to the count of steps, it makes the correction 1: no bias correction."""


def adam(
    g: Any,
    m: Any,
    v: Any,
    t: Any,
    beta1: Any = 0.9,
    beta2: Any = 0.98,
    epsilon: Any = 1e-9,
) -> tuple[Any, Any, Any]:
    """The t-th update, before the learning rate; and the two running means."""
    m = beta1 * m + (1 - beta1) * g  # of the gradients
    v = beta2 * v + (1 - beta2) * g**2  # of their squares
    m_hat = m / (1 - beta1**t)  # both means began at 0:
    v_hat = v / (1 - beta2**t)  # correct for that
    return m_hat / (v_hat**0.5 + epsilon), m, v


def updates(gradients: Any, before: int = 0, **settings: float) -> Iterator[float]:
    """Adam's updates of one weight; `before` pretends that steps went before."""
    m = v = 0.0
    for t, g in enumerate(gradients, start=1 + before):
        update, m, v = adam(g, m, v, t, **settings)
        yield float(update)


def adam_gap() -> float:
    """How far 200 updates of `adam` are from those of PyTorch, in float64."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.logspace(-6, 3, 10, dtype=torch.float64)
    ours, theirs = torch.zeros_like(sizes), torch.zeros_like(sizes)
    optimizer = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.98), eps=1e-9)
    m = v = torch.zeros_like(sizes)
    for t in range(1, 201):
        g = sizes * torch.randn(10, dtype=torch.float64, generator=generator)
        update, m, v = adam(g, m, v, t)
        ours -= 0.1 * update
        theirs.grad = g
        optimizer.step()
    return (ours - theirs).abs().max().item()


def largest_update(beta2: float, beta1: float = 0.9) -> float:
    """The longest update that any sequence of gradients can cause, without ε."""
    return (1 - beta1) / math.sqrt((1 - beta2) * (1 - beta1**2 / beta2))


# The task: sort eight digits. At position i the answer is the i-th smallest.


class Sorter(nn.Module):
    """The library's encoder with six layers, and a readout for each position."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        config = TransformerConfig(
            d_model=WIDTH, d_ff=4 * WIDTH, num_heads=1, norm=norm, dropout=0.0
        )
        self.embedding = TokenEmbedding(N, WIDTH)
        self.encoder = Encoder(config)
        self.reading = nn.Linear(WIDTH, N, bias=False)
        self.register_buffer("place", sinusoidal_positional_encoding(N, WIDTH))

    def forward(self, digits: Tensor) -> Tensor:
        """Logits for each digit at each position: (batch, N, N)."""
        x, _ = self.encoder(self.embedding(digits) + self.place)
        return self.reading(x)


Weights = dict[str, Tensor]


def fresh(norm: str, settings: int, seeds: Sequence[int] = range(3)) -> Weights:
    """The same draws of the weights for each setting: (settings · draws, …)."""
    draws = []
    with torch.random.fork_rng(devices=[]):
        for seed in seeds:
            torch.manual_seed(seed)
            draws.append(dict(Sorter(norm).named_parameters()))
    return {
        name: torch.stack([draw[name].detach() for draw in draws] * settings)
        for name in draws[0]
    }


def draw_digits(
    batch: int, settings: int, draws: int, generator: Any, odds: Tensor = EVEN
) -> tuple[Tensor, Tensor]:
    """Digits and their sorted order, the same for each setting: (runs, batch, N)."""
    count = draws * batch * N
    digits = torch.multinomial(odds, count, True, generator=generator)
    digits = digits.view(draws, batch, N).repeat(settings, 1, 1)
    return digits, digits.sort(dim=-1).values


def losses_of(
    model: nn.Module, weights: Weights, digits: Tensor, answers: Tensor
) -> Tensor:
    """The loss of each run: (runs,)."""

    def one_run(weights: Weights, digits: Tensor) -> Tensor:
        return functional_call(model, weights, (digits,))

    logits = vmap(one_run)(weights, digits).permute(0, 3, 1, 2)
    loss = F.cross_entropy(logits, answers, reduction="none")
    return loss.flatten(1).mean(dim=1)


def train(
    rates: Tensor,
    norm: str = "post",
    odds: Tensor = EVEN,
    draws: int = 3,
    longest: float = math.inf,
    collect: int = 0,
    from_zero: bool = False,
    **settings: Tensor,
) -> tuple[Tensor, Tensor]:
    """Train a column of learning rates each: losses and mean sizes of the updates.

    Args:
        rates: (steps, settings).
        norm: ``"post"`` or ``"pre"``.
        odds: how often each digit occurs.
        draws: how many draws of the weights each setting gets.
        longest: a longer mean update, over all weights of a run, is scaled down to it.
        collect: so many first steps update v alone; m begins after them.
        from_zero: m has no bias correction, so that the first updates are short.
        settings: of `adam`, one for each setting; `before` is added to the step.

    Returns:
        Two tables, (steps, settings, draws).
    """
    rates = rates.repeat_interleave(draws, dim=1)  # (steps, runs)
    runs = rates.size(1)
    each = {key: s.repeat_interleave(draws) for key, s in settings.items()}
    weights = fresh(norm, runs // draws, range(draws))
    count = sum(w[0].numel() for w in weights.values())
    means = {name: (torch.zeros(()),) * 2 for name in weights}
    model, logs = Sorter(norm), []
    generator = torch.Generator().manual_seed(1)
    for t, rate in enumerate(rates, start=1):
        tracked = {name: w.requires_grad_() for name, w in weights.items()}
        batch = draw_digits(BATCH, runs // draws, draws, generator, odds)
        loss = losses_of(model, tracked, *batch)
        gradients = torch.autograd.grad(loss.sum(), list(tracked.values()))
        moves, size = {}, torch.zeros(runs)
        # Adam corrects m for t steps; here it has had fewer, or is not corrected.
        corrected = 1 - 0.9**t if from_zero else 1.0
        if collect and not from_zero:
            corrected = (1 - 0.9**t) / (1 - 0.9 ** max(1, t - collect))
        for name, g in zip(tracked, gradients, strict=True):
            shape = (-1,) + (1,) * (g.dim() - 1)
            own = {key: s.view(shape) for key, s in each.items()}
            steps = t + own.pop("before", 0)
            move, m, v = adam(g, *means[name], steps, **own)
            means[name] = (0.0 * m, v) if t <= collect else (m, v)
            moves[name] = move * corrected
            size += moves[name].abs().flatten(1).sum(dim=1) / count
        scale = (longest / size).clamp(max=1.0)
        for name, w in weights.items():
            own_rate = (rate * scale).view((-1,) + (1,) * (w.dim() - 1))
            weights[name] = w.detach() - own_rate * moves[name]
        logs.append(torch.stack([loss.detach(), size * scale]))
    losses, sizes = torch.stack(logs).unflatten(2, (-1, draws)).unbind(dim=1)
    return losses, sizes


def formula(factor: float, warmup: int, steps: int = STEPS) -> Tensor:
    """Equation (3) at this chapter's width, times a factor: (steps,)."""
    counted = range(1, steps + 1)
    return factor * torch.tensor([noam_rate(t, WIDTH, warmup) for t in counted])


def chance(odds: Tensor = EVEN) -> float:
    """The loss of a model that knows how often a digit stands where, and no more."""
    generator = torch.Generator().manual_seed(0)
    _, answers = draw_digits(10_000, 1, 3, generator, odds)
    counts = F.one_hot(answers.flatten(0, 1), N).double().mean(dim=0)
    return -(counts * counts.log()).nan_to_num().sum(dim=-1).mean().item()


# The starts: a ramp, no warm-up, and four attempts to do without the ramp.

COLLECT = 50
"""Steps in which v is collected and no weight moves."""
SHORT = 0.3
"""The mean update of the shortened start is at most this, as later in training."""
STARTS: dict[str, dict[str, Any]] = {  # and what `train` is told
    "warm-up": {},
    "no warm-up": {},
    "first steps shortened": {"longest": SHORT},
    "m from zero": {"from_zero": True},
    "v collected": {"collect": COLLECT},
    "v collected, m from zero": {"collect": COLLECT, "from_zero": True},
}
FACTORS = (1 / 8, 3 / 16, 1 / 4)
"""On the learning rate, in the comparison of starts."""
DRAWS = 6


def start(kind: str, factor: float, steps: int = STEPS) -> Tensor:
    """The rates of one start; no weight moves while v is collected."""
    rates = formula(factor, WARMUP, steps)
    if kind != "warm-up":
        rates[:WARMUP] = rates.max()
    return torch.cat([torch.zeros(STARTS[kind].get("collect", 0)), rates])


@dataclass(frozen=True)
class Start:
    """What trainings of one kind of start gave, after any collecting."""

    rates: Tensor
    """(STEPS, factors)."""
    losses: Tensor
    """(STEPS, factors, draws)."""
    sizes: Tensor
    """The mean size of an update, likewise."""

    @property
    def final(self) -> Tensor:
        """The loss at the end: (factors, draws)."""
        return self.losses[-LAST:].mean(dim=0)

    @property
    def failed(self) -> Tensor:
        """How many draws failed: (factors,)."""
        return (self.final > STUCK).sum(dim=1)

    def way(self, factor: int, moves: int = 10) -> float:
        """How far an average weight moves in the first moves: the path length."""
        size = self.sizes[:moves, factor].mean(dim=1)
        return (self.rates[:moves, factor] * size).sum().item()


@cache
def starts(norm: str) -> dict[str, Start]:
    """All starts in post-norm; in pre-norm, with warm-up and without."""
    found = {}
    pair = list(STARTS)[:2]
    rates = torch.stack([start(kind, f) for kind in pair for f in FACTORS], dim=1)
    together = train(rates, norm, draws=DRAWS)
    losses, sizes = (log.unflatten(1, (2, len(FACTORS))) for log in together)
    for i, kind in enumerate(pair):
        own = rates[:, i * len(FACTORS) : (i + 1) * len(FACTORS)]
        found[kind] = Start(own, losses[:, i], sizes[:, i])
    if norm == "post":
        for kind in list(STARTS)[2:]:
            rates = torch.stack([start(kind, f) for f in FACTORS], dim=1)
            losses, sizes = train(rates, norm, draws=DRAWS, **STARTS[kind])
            found[kind] = Start(rates[-STEPS:], losses[-STEPS:], sizes[-STEPS:])
    return found


def failures(norm: str) -> dict[str, int]:
    """Failed trainings of each start, of `DRAWS` at each factor."""
    return {kind: int(s.failed.sum()) for kind, s in starts(norm).items()}


def gained(kind: str, norm: str = "post", factor: int = -1) -> tuple[float, float]:
    """By how much a start's loss is lower than without warm-up; two standard errors.

    The draws are paired: each has the same weights at first, and sees the same digits.
    """
    found = starts(norm)
    paired = found["no warm-up"].final[factor] - found[kind].final[factor]
    gain, error = mean_and_error(paired.tolist())
    return gain, 2 * error


def share(number: float) -> str:
    """A factor in words: ``"3/16"``."""
    top, bottom = float(number).as_integer_ratio()
    return f"{top}/{bottom}" if bottom > 1 else f"{top}"


def loss_map(
    table: Sequence[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    stuck: float,
    *,
    column_title: str,
    description: str,
    height: int = 34,
) -> alt.LayerChart:
    """Mean losses as shaded cells, each with a cross for each draw that failed.

    Args:
        table: (rows, columns, draws) of losses at the end.
        rows: a name for each row.
        columns: a name for each column.
        stuck: the loss above which a draw has failed; there the shade is strongest.
        column_title: what the columns are.
        description: the text alternative.
        height: of a row, in pixels.
    """
    cells = [
        {
            "row": row,
            "column": column,
            "loss": draws.mean().item(),
            "failed": int((draws > stuck).sum()),
            "label": f"{draws.mean():.1f}",
            "crosses": "×" * int((draws > stuck).sum()),
        }
        for row, by_column in zip(rows, table, strict=True)
        for column, draws in zip(columns, by_column, strict=True)
    ]
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X(
            "column:N",
            sort=list(columns),
            title=column_title,
            axis=alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False),
        ),
        y=alt.Y(
            "row:N",
            sort=list(rows),
            title=None,
            axis=alt.Axis(labelLimit=170, ticks=False, domain=False),
        ),
        tooltip=["row:N", "column:N", alt.Tooltip("loss:Q", format=".2f"), "failed:Q"],
    )
    shade = alt.Opacity(
        "loss:Q",
        scale=alt.Scale(domain=[0.4, stuck], range=[0.03, FULL], clamp=True),
        legend=None,
    )
    layers = [
        base.mark_rect(color=WEIGHT.light, stroke=NEUTRAL.mark, strokeOpacity=0.3)
        .encode(opacity=shade),
        base.mark_text(dy=-6).encode(text="label:N"),
        base.mark_text(dy=8, fontWeight="bold").encode(text="crosses:N"),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers).properties(
        width="container", height=height * len(rows), description=description
    )


def starts_charts() -> list[alt.LayerChart]:
    """Losses of the six starts in post-norm and two in pre-norm, by factor."""
    told = {
        "post": "In post-norm with a warm-up no draw fails. Without it most fail at a "
        "quarter, and as many where only v was collected. Where the first steps are "
        "short, because they are scaled down or m begins at zero, at most one fails.",
        "pre": "In pre-norm no draw fails, with a warm-up or without.",
    }
    return [
        loss_map(
            [result.final for result in starts(norm).values()],
            list(starts(norm)),
            [share(f) for f in FACTORS],
            STUCK,
            column_title=f"{norm}-norm: factor",
            description="A table of losses, a row for each kind of start, for three "
            f"factors on the learning rate. {words}",
        )
        for norm, words in told.items()
    ]


# The first screen: rate times update is the move.


def rate_times_update(kind: str, steps: int = WARMUP) -> Svg:
    """Three strips of bars, measured at the highest factor: rate, update and move."""
    both = starts("post")
    peak = both["warm-up"].rates.max().item()
    found = both[kind]
    rate = found.rates[:steps, -1]
    size = found.sizes[:steps, -1].mean(dim=1)
    drawing = Diagram(336, 330)
    drawing.text(216, 14, kind, bold=True)
    strips = [
        (64, rate / peak, "the learning", "rate", "query"),
        (156, size, "× the size of", "Adam's update", "key"),
        (248, rate / peak * size, "= how far a", "weight moves", "value"),
    ]
    for y, numbers, first, second, role in strips:
        drawing.text(4, y - 8, first, anchor="start", role=role)
        drawing.text(4, y + 9, second, anchor="start", role=role)
        drawing.bars(216, y, numbers, role=role, width=228, height=68, limit=1.0)
    drawing.text(102, 296, "step 1", anchor="start")
    drawing.text(330, 296, f"step {steps}", anchor="end")
    loss = found.final[-1].mean().item()
    failed = int(found.failed[-1])
    words = f"{failed} of {DRAWS} trainings fail; mean loss {loss:.1f}"
    drawing.text(168, 318, words, bold=True)
    return drawing.finish(
        f"Rate, update and move: {kind}",
        f"Three strips of {steps} bars, one for each of the first steps. The learning "
        + (
            "rate rises in a straight line. "
            if kind == "warm-up"
            else "rate is constant. "
        )
        + "The size of Adam's update starts near 1 and falls. Their product, how far "
        + (
            "a weight moves, stays small."
            if kind == "warm-up"
            else "a weight moves, is largest in the first steps."
        ),
    )


# Adam's first update, and its later ones.


def sign_of_the_gradient(weights: int = 12, later: int = 20) -> Svg:
    """Gradients of a few weights, Adam's first update, and its twentieth."""
    generator = torch.Generator().manual_seed(3)
    mean = 0.5 * torch.randn(weights, generator=generator)
    noise = torch.randn(later, weights, generator=generator)
    gradients = mean + noise
    m = v = torch.zeros(weights)
    made = []
    for t, g in enumerate(gradients, start=1):
        update, m, v = adam(g, m, v, t)
        made.append(update)
    drawing = Diagram(350, 296)
    strips = [
        (56, gradients[0], "gradient of", "the first batch", "key", None),
        (148, made[0], "Adam's update", "in step 1", "value", 1.0),
        (240, made[-1], "Adam's update", f"in step {later}", "value", 1.0),
    ]
    for y, vector, first, second, role, limit in strips:
        drawing.text(4, y - 8, first, anchor="start", role=role)
        drawing.text(4, y + 9, second, anchor="start", role=role)
        drawing.bars(230, y, vector, role=role, width=228, height=74, limit=limit)
    return drawing.finish(
        "A gradient, and two updates of Adam",
        f"Three rows of {weights} bars, one for each weight. The gradients of the "
        "first batch have very different lengths. Adam's first update is plus one or "
        f"minus one for every weight. Its update in step {later} is shorter for most.",
    )


def size_chart() -> alt.LayerChart:
    """The mean size of an update in trainings with a warm-up, at the lowest factor."""
    rows = [
        {"step": t, "mean update / rate": value, "model": f"{norm}-norm", "seed": run}
        for norm in ("post", "pre")
        for run, moves in enumerate(starts(norm)["warm-up"].sizes[:, 0].T.tolist())
        for t, value in enumerate(moves, start=1)
        if t < 30 or t % 5 == 0
    ]
    return curves(
        rows,
        "step",
        "mean update / rate",
        "model",
        description="Mean size of Adam's update against the learning rate, over 150 "
        "steps on a logarithmic axis, six draws each. It begins near 1 in post-norm "
        "and pre-norm alike and has fallen below 0.4 after twenty steps.",
        log_x=True,
    )


def mean_size(norm: str, step: int) -> float:
    """The mean size of the update in a step, with a warm-up, at the lowest factor."""
    return starts(norm)["warm-up"].sizes[step - 1, 0].mean().item()


@dataclass(frozen=True)
class Prediction:
    """First steps of several lengths: what the gradient predicts, and what happens."""

    rates: Tensor
    """(rates,)."""
    predicted: Tensor
    """The decrease of the loss to first order: (rates, draws)."""
    actual: Tensor
    """The decrease of the loss on the same batch, likewise."""
    weights: int
    """How many weights the model has."""

    @property
    def kept(self) -> Tensor:
        """The actual decrease as a share of the predicted one."""
        return self.actual / self.predicted

    def at(self, rate: float) -> tuple[float, float]:
        """Predicted and actual decrease at the nearest rate, means over the draws."""
        i = int((self.rates / rate).log().abs().argmin())
        return self.predicted[i].mean().item(), self.actual[i].mean().item()


@cache
def predictions(norm: str, draws: int = 3, batch: int = 64) -> Prediction:
    """Take Adam's first step, the sign of the gradient, at many learning rates."""
    peak = formula(FACTORS[-1], WARMUP).max().item()
    own = torch.tensor([peak / WARMUP, peak], dtype=torch.float64)  # the first rates
    rates = torch.logspace(-5, -1, 17, dtype=torch.float64)
    rates = torch.cat([rates, own]).sort().values
    weights = {k: w.requires_grad_() for k, w in fresh(norm, 1, range(draws)).items()}
    generator = torch.Generator().manual_seed(2)
    digits = draw_digits(batch, 1, draws, generator)
    model = Sorter(norm)
    loss = losses_of(model, weights, *digits)
    gradients = torch.autograd.grad(loss.sum(), list(weights.values()))
    slope = torch.stack([g.abs().flatten(1).sum(dim=1) for g in gradients]).sum(dim=0)
    actual = []
    for rate in rates.tolist():
        pairs = zip(weights.items(), gradients, strict=True)
        moved = {k: (w - rate * g.sign()).detach() for (k, w), g in pairs}
        actual.append((loss - losses_of(model, moved, *digits)).detach())
    count = sum(w[0].numel() for w in weights.values())
    return Prediction(rates, rates[:, None] * slope, torch.stack(actual), count)


def prediction_chart() -> alt.LayerChart:
    """The share of the predicted decrease that happens, by the length of the step."""
    rows = [
        {
            "learning rate of the first step": rate,
            "actual / predicted decrease": max(-1.0, value),
            "model": f"{norm}-norm",
            "seed": draw,
        }
        for norm in ("post", "pre")
        for rate, values in zip(
            predictions(norm).rates.tolist(), predictions(norm).kept, strict=True
        )
        for draw, value in enumerate(values.tolist())
    ]
    return curves(
        rows,
        "learning rate of the first step",
        "actual / predicted decrease",
        "model",
        description="The actual decrease of the loss as a share of the predicted one, "
        "for first steps at rates from a hundred-thousandth to a tenth, three draws "
        "each. Near 1 at small rates, it falls below a half at about a hundredth and "
        "near zero at a tenth, in post-norm and pre-norm alike.",
        log_x=True,
    )


# Equation (3).


def schedule_chart() -> alt.LayerChart:
    """Equation (3) for a width and a warm-up that the reader sets."""
    log_width = alt.param(
        name="log_width",
        value=9,
        bind=alt.binding_range(min=8, max=11, step=1, name="log₂ d_model "),
    )
    warmup = alt.param(
        name="warmup",
        value=4000,
        bind=alt.binding_range(min=1000, max=16000, step=1000, name="warm-up "),
    )
    x = alt.X("step:Q", title="step", scale=alt.Scale(domain=[0, 40000]))
    y = alt.Y(
        "rate:Q",
        title="learning rate",
        scale=alt.Scale(domain=[0, 0.002]),
        axis=alt.Axis(format=".4f"),
    )
    base = alt.Chart(alt.sequence(100, 40001, 100, as_="step"))
    root, line = "pow(datum.step, -0.5)", "datum.step * pow({}, -1.5)"
    equation = f"pow({{}}, -0.5) * min({root}, {line})"
    width = "pow(2, log_width)"
    yours = base.transform_calculate(rate=equation.format(width, "warmup"))
    papers = base.transform_calculate(rate=equation.format(512, 4000))
    peak = alt.Chart(alt.Data(values=[{}])).transform_calculate(
        step="warmup",
        rate=f"pow({width} * warmup, -0.5)",
        label=f"'d_model ' + {width} + ', peak ' + format(datum.rate, '.5f')",
    )
    layers = [
        papers.mark_line(color=NEUTRAL.mark, strokeDash=[5, 4]).encode(x=x, y=y),
        yours.mark_line(color=KEY.mark, strokeWidth=3).encode(x=x, y=y),
        peak.mark_point(filled=True, size=90, opacity=1, color=QUERY.mark)
        .encode(x=x, y=y),
        peak.mark_text(align="left", dx=9, dy=-9).encode(x=x, y=y, text="label:N"),
    ]  # fmt: skip
    return (
        alt.LayerChart(layer=layers)
        .add_params(log_width, warmup)
        .properties(
            width="container",
            height=260,
            description="The learning rate over 40,000 steps for a width and a warm-up "
            "that you set. At first it is the base model's: a straight line up to "
            "0.0007 at step 4000, then a slow fall to 0.0002. The base model's own "
            "curve stays in view, dashed.",
        )
    )


def settle_schedule(rate: Callable[..., float]) -> None:
    """Settle that the schedule is the paper's, and that the library trains by it."""
    peak = rate(4000, 512)
    shares = {s: rate(s, 512) / peak for s in range(1, 100_001)}
    rises = max(abs(shares[s] - s / 4000) for s in range(1, 4001))
    falls = max(abs(shares[s] - (4000 / s) ** 0.5) for s in range(4000, 100_001))
    widths = max(abs(rate(4000, d) * (4000 * d) ** 0.5 - 1) for d in (512, 1024))
    config, gap = TrainingConfig(), adam_gap()
    ours = config.betas, config.epsilon, config.warmup_steps
    ours += config.optimizer, config.cooldown_steps
    settle(
        "s5.3-schedule",
        holds=max(rises, falls, widths, gap) < 1e-12
        and ours == ((0.9, 0.98), 1e-9, 4000, "adam", 0),
        expected="a straight line to step 4,000, then the peak times "
        "√(4000 / step), the peak as in equation (3) for both widths, and Adam at the "
        "paper's settings",
        measured=f"the rate is off the line by at most {rises:.1g} and off the inverse "
        f"root by at most {falls:.1g} of the peak, and the peaks of base and big by "
        f"{widths:.1g}; this book's Adam and PyTorch's differ by at most {gap:.1g}",
        scale="derivation",
    )


KINDS = ("inverse root (paper)", "exponential", "linear", "cosine")


def decay(kind: str, step: float, last: int = 100_000) -> float:
    """The share of the peak that is left at a step after 4,000; all but the paper's
    and the exponential reach zero at the last step."""
    done = (step - 4000) / (last - 4000)
    return {
        "inverse root (paper)": (4000 / step) ** 0.5,
        "exponential": (4000 / last) ** (done / 2),
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
    }[kind]


def halvings(kind: str, times: int = 2) -> list[int]:
    """The steps, to the nearest hundred below, at which the rate has halved again."""
    return [
        next(s for s in range(4000, 10**6) if decay(kind, s) <= 0.5**k)
        for k in range(1, times + 1)
    ]


def decays_chart() -> alt.LayerChart:
    """Four ways down from the peak, on logarithmic axes."""
    steps = sorted({round(10 ** (k / 25)) for k in range(125)} | {4000, 95_000})
    rows = [
        {"step": step, "share of the peak": part, "decay": kind}
        for kind in KINDS
        for step in steps
        for part in [step / 4000 if step < 4000 else decay(kind, step)]
    ]
    return curves(
        rows,
        "step",
        "share of the peak",
        "decay",
        description="Four learning rates over 100,000 steps, both axes logarithmic. "
        "All rise in the same line to step 4000. Then the paper's falls in a straight "
        "line to a fifth. The exponential, set to end at the same height, stays high "
        "for longer and bends down. Linear and cosine decay bend down to zero.",
        log_x=True,
        log_y=True,
    )


# The map: warm-up by factor.

WARMUPS = (1, 4, 16, 64)
SCALES = {"post": (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1), "pre": (1 / 4, 1 / 2, 1)}


@cache
def grid(norm: str) -> Tensor:
    """Losses at the end of equation (3): (scales, warm-ups, three draws)."""
    rates = [formula(scale, w) for scale in SCALES[norm] for w in WARMUPS]
    losses, _ = train(torch.stack(rates, dim=1), norm)
    return losses[-LAST:].mean(dim=0).view(-1, len(WARMUPS), 3)


def grid_charts() -> list[alt.LayerChart]:
    """Post-norm and pre-norm: losses by warm-up and factor."""
    told = {
        "post": "In post-norm draws fail at and below a diagonal: with a warm-up of "
        "one step nearly everything, with 64 steps only the two highest factors.",
        "pre": "In pre-norm only the highest factors with the shortest warm-ups fail.",
    }
    return [
        loss_map(
            grid(norm),
            [share(s) for s in SCALES[norm]],
            [str(w) for w in WARMUPS],
            STUCK,
            column_title=f"{norm}-norm: warm-up steps",
            description="A table of losses, by warm-up from 1 to 64 steps and by a "
            f"factor on the learning rate. {words}",
        )
        for norm, words in told.items()
    ]


def by_peak(norm: str = "post") -> dict[float, tuple[int, int]]:
    """Failed trainings, and all, at each height of the peak."""
    counts: dict[float, tuple[int, int]] = {}
    for row, scale in enumerate(SCALES[norm]):
        for column, warmup in enumerate(WARMUPS):
            peak = round(scale * noam_rate(warmup, WIDTH, warmup), 4)
            failed, tried = counts.get(peak, (0, 0))
            here = int((grid(norm)[row, column] > STUCK).sum())
            counts[peak] = failed + here, tried + 3
    return dict(sorted(counts.items()))


# Adam's parts.


def bias_chart() -> alt.LayerChart:
    """The size of Adam's step for a constant gradient, corrected and not."""

    def uncorrected(beta2: float) -> list[float]:
        return list(updates([1.0] * 1000, before=UNCORRECTED, beta2=beta2))

    rows = [
        {"step": t, "size of the step": size, "settings": name}
        for name, sizes in {
            "β₂ = 0.98, uncorrected": uncorrected(0.98),
            "β₂ = 0.999, uncorrected": uncorrected(0.999),
            "corrected, any β₂": [1.0] * 1000,
        }.items()
        for t, size in enumerate(sizes, start=1)
        if t < 50 or t % 10 == 0
    ]
    return curves(
        rows,
        "step",
        "size of the step",
        "settings",
        description="Size of Adam's step for a constant gradient, against the learning "
        "rate, over a thousand steps on a logarithmic axis. Corrected it is 1. "
        "Uncorrected with beta two 0.98 it starts at 0.7, rises to about 1.5 and is "
        "back near 1 after a hundred steps. With 0.999 it starts at 3, rises above 6 "
        "and is still above 1 after all thousand steps.",
        log_x=True,
    )


VARIANTS: dict[str, dict[str, float]] = {
    "all of Adam": {},
    "no momentum": {"beta1": 0.0},
    "no second moment": {"epsilon": 1e3, "scale": 128e3},
    "no correction": {"before": UNCORRECTED},
    "β₂ = 0.999": {"beta2": 0.999},
    "β₂ = 0.999, no correction": {"beta2": 0.999, "before": UNCORRECTED},
    "ε = 10⁻⁸": {"epsilon": 1e-8},
    "ε = 0.1": {"epsilon": 0.1},
}
TRIED = (1 / 32, 1 / 16, 1 / 8, 1 / 4)
_DEFAULTS = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "before": 0}


@cache
def ablation() -> Tensor:
    """Losses at the end of Adam without each part: (variants, factors, draws).

    Without the second moment the steps have another unit: that variant is made by an
    ε of 1000, and its rates are larger by a factor that was chosen in a run beforehand.
    """
    each = [(f, v) for v in VARIANTS.values() for f in TRIED]
    rates = [formula(f * v.get("scale", 1.0), WARMUP) for f, v in each]
    settings = {
        key: torch.tensor([v.get(key, default) for _, v in each])
        for key, default in _DEFAULTS.items()
    }
    losses, _ = train(torch.stack(rates, dim=1), odds=SELDOM, **settings)
    return losses[-LAST:].mean(dim=0).view(len(VARIANTS), len(TRIED), 3)


def best_of(losses: Tensor) -> Mapping[str, Tensor]:
    """The draws of each variant at its best factor."""
    return {
        name: by_factor[by_factor.mean(dim=1).argmin()]
        for name, by_factor in zip(VARIANTS, losses, strict=True)
    }


def ablation_chart() -> alt.LayerChart:
    """Eight variants of Adam at four learning rates."""
    return loss_map(
        ablation(),
        list(VARIANTS),
        [share(f) for f in TRIED],
        0.9 * chance(SELDOM),
        column_title="factor on the learning rate",
        description="Loss at the end for eight variants of Adam at four learning "
        "rates, mean of three draws, with a cross for each draw that stayed near "
        "chance. With an epsilon of 0.1 nearly nothing is learned. With beta two 0.999 "
        "and no bias correction the higher rates fail. The others are much alike.",
    )
