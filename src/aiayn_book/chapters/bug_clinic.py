"""Appendix B, the bug clinic: its task, the examinations of its patients, its pictures.

What is wrong with each patient stands in `aiayn_book.clinic`; the notebook holds the
tests that catch them.

Paper: §3 to §5, where an implementation can go wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import torch
from torch import Tensor
from torch.nn import functional as F

import aiayn
from aiayn.data import Batch
from aiayn_book.colours import ALERT, KEY, NEUTRAL, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.svg import Svg

PAD, START, END = 0, 1, 2
SEEDS = (1, 2, 3)
Package = Any
"""The correct package, or a patient: what is used as aiayn is."""


# The task


def draw(count: int, seed: int) -> Batch:
    """Rows of 3 to 6 letters, and the same letters backwards, each with its end."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 7, (count, 1), generator=generator)
    letters = torch.randint(3, 13, (count, 7), generator=generator)
    column = torch.arange(7)
    back = (lengths - 1 - column).clamp(min=0)
    rows = [letters, letters.gather(1, back)]
    rows = [row.where(column < lengths, PAD) for row in rows]
    source, target = (row.where(column != lengths, END) for row in rows)
    return Batch(source, target)


def spell(tokens: Sequence[int]) -> str:
    """A row as letters; the end and padding are dots."""
    return "".join(chr(ord("a") + t - 3) if t > END else "·" for t in tokens)


HELD_OUT = draw(200, seed=0)


# Training and examination


def new_trainer(
    lib: Package,
    seed: int,
    layers: int = 1,
    dropout: float = 0.0,
    warmup: int = 100,
) -> Any:
    """A trainer of the package with a fresh model of width 48."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "d_model": 48, "d_ff": 96, "dropout": dropout}
    for stack in ("encoder", "decoder"):
        sizes[f"num_{stack}_layers"] = layers
    config = lib.TrainingConfig(
        model=lib.TransformerConfig.tiny(**sizes),
        warmup_steps=warmup,
        learning_rate_scale=2.0,
        label_smoothing=0.0,
        device="cpu",
        fast=False,  # the mistakes are in the plain classes
    )
    return lib.training.Trainer(config, lib.Transformer(config.model), START)


def train(
    lib: Package,
    seed: int,
    steps: int = 300,
    watch: Callable[[int, Any], None] | None = None,
    **options: Any,
) -> tuple[Any, float]:
    """A trained model, and the mean training loss of its last twenty steps.

    Args:
        lib: whose trainer it is.
        seed: of weights and data.
        steps: of the optimizer, with 64 rows each.
        watch: called with the number of steps done and the model, from 0 on.
        options: of `new_trainer`.
    """
    trainer = new_trainer(lib, seed, **options)
    losses = []
    for step in range(1, steps + 1):
        if watch:
            watch(step - 1, trainer.model)
        _, loss, tokens = trainer.step(step, [draw(64, 10**6 * seed + step)])
        losses.append((loss / tokens).item())
    if watch:
        watch(steps, trainer.model)
    last = losses[-20:]
    return trainer.model, sum(last) / len(last)


@torch.no_grad()
def loss_in(lib: Package, model: Any, training: bool) -> float:
    """The loss on the held-out rows, with the model in training or evaluation mode."""
    model.train(training)
    logits = model(HELD_OUT.source, lib.shift_right(HELD_OUT.target, START))
    return aiayn.label_smoothed_cross_entropy(logits, HELD_OUT.target, 0.0).item()


def held_out_loss(lib: Package, model: Any) -> float:
    """The loss on the held-out rows in evaluation mode."""
    return loss_in(lib, model, training=False)


def written(lib: Package, model: Any) -> list[str]:
    """What greedy search writes for the held-out rows."""
    model.eval()
    found = lib.greedy_search(model, HELD_OUT.source, bos_id=START, eos_id=END)
    return [spell([t for t in one.tokens if t > END]) for one in found]


WANTED = [spell([t for t in row if t > END]) for row in HELD_OUT.target.tolist()]


def share_right(lib: Package, model: Any) -> float:
    """The share of held-out rows that the model writes without a mistake."""
    pairs = zip(written(lib, model), WANTED, strict=True)
    return sum(a == b for a, b in pairs) / len(WANTED)


def random_model(lib: Package, **changes: Any) -> Any:
    """An untrained model of width 16 with two heads."""
    sizes = {"vocab_size": 13, "d_model": 16, "d_ff": 32, "num_heads": 2}
    return lib.Transformer(lib.TransformerConfig.tiny(**sizes | changes))


def with_weights(lib: Package, model: Any) -> Any:
    """A model of another package with these weights and sizes."""
    sizes = {name: getattr(model.config, name) for name in vars(model.config)}
    other = lib.Transformer(lib.TransformerConfig(**sizes))
    other.load_state_dict(model.state_dict())
    return other


def learns_alike(lib: Package) -> bool:
    """Whether three steps give the correct package's weights, bit for bit."""
    one, other = (train(x, seed=1, steps=3)[0] for x in (lib, aiayn))
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(a.equal(b) for a, b in pairs)


ALIKE, DIFFERENT = "as in the correct package", "different"


@dataclass
class Admission:
    """What every patient's first examination found, three seeds each."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    models: dict[int, Any] = field(default_factory=dict)
    """The correct package's models, by seed."""

    def of(self, patient: str, column: str) -> list[float]:
        """One number of a patient (or of ``correct``), by seed."""
        return [row[column] for row in self.rows if row["patient"] == patient]

    @property
    def patients(self) -> list[str]:
        """Their names, in order; ``correct`` comes first."""
        return list(dict.fromkeys(row["patient"] for row in self.rows))

    def with_a_bad_loss(self) -> list[int]:
        """Whose best held-out loss is over twice the correct package's worst."""
        limit = 2 * max(self.of("correct", "held-out loss"))
        names = self.patients[1:]
        return [int(n) for n in names if min(self.of(n, "held-out loss")) > limit]

    def without_a_symptom(self) -> list[int]:
        """Who agrees with the correct package in all three numbers, to 3 digits."""

        def numbers(name: str) -> list[list[float]]:
            columns = ("training loss", "held-out loss", "rows right")
            return [[round(x, 3) for x in self.of(name, c)] for c in columns]

        right = numbers("correct")
        return [int(n) for n in self.patients[1:] if numbers(n) == right]

    @property
    def charts(self) -> list[alt.Chart]:
        """The held-out loss and the share of rows right, patient by patient."""
        loss = alt.X(
            "shown:Q",
            title="held-out loss",
            scale=alt.Scale(type="log", domain=[1e-4, 10], nice=False),
            axis=alt.Axis(values=[1e-4, 1e-3, 1e-2, 0.1, 1, 10], format="~g"),
        )
        right = alt.X(
            "rows right:Q",
            title="rows written right",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".0%"),
        )
        return [
            self._dots(
                loss,
                "The held-out loss of the correct package and of each "
                "patient, on a logarithmic scale. Those of patients 1 and 3 are far "
                "higher than the others, that of patient 4 is far lower.",
            ),
            self._dots(
                right,
                "The share of 200 rows that each writes without a "
                "mistake. Patients 2, 4 and 5 write none, patient 1 few; patient 6 "
                "differs from seed to seed; the others write most.",
            ),
        ]

    def _dots(self, x: alt.X, description: str) -> alt.Chart:
        rows = [row | {"shown": max(row["held-out loss"], 1e-4)} for row in self.rows]
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_point(filled=True, size=60, opacity=0.75)
            .encode(
                x=x,
                y=alt.Y(
                    "patient:N",
                    title=None,
                    sort=self.patients,
                    axis=alt.Axis(grid=True),
                ),
                color=alt.Color(
                    "weights:N",
                    title="weights after three steps",
                    scale=alt.Scale(
                        domain=[ALIKE, DIFFERENT], range=[KEY.mark, ALERT.mark]
                    ),
                    legend=alt.Legend(
                        orient="top", columns=1, titleLimit=260, labelLimit=260
                    ),
                ),
                shape=alt.Shape(
                    "weights:N",
                    title="weights after three steps",
                    scale=alt.Scale(
                        domain=[ALIKE, DIFFERENT], range=["circle", "diamond"]
                    ),
                ),
                tooltip=[
                    "patient:N",
                    "seed:O",
                    alt.Tooltip("training loss:Q", format=".4f"),
                    alt.Tooltip("held-out loss:Q", format=".4f"),
                    alt.Tooltip("rows right:Q", format=".0%"),
                ],
            )
            .properties(width="container", height=300, description=description)
        )


def admission(
    patients: Mapping[int, Package], seeds: Sequence[int] = SEEDS, steps: int = 300
) -> Admission:
    """Train and examine the correct package and every patient.

    A patient that learns the correct package's weights is not trained: it gets them.
    """
    found = Admission()
    trained = {seed: train(aiayn, seed, steps) for seed in seeds}
    found.models = {seed: model for seed, (model, _) in trained.items()}

    def examine(name: str, lib: Package, alike: bool) -> None:
        for seed in seeds:
            model, loss = trained[seed]
            if not alike:
                model, loss = train(lib, seed, steps)
            elif lib is not aiayn:
                model = with_weights(lib, model)
            found.rows.append(
                {
                    "patient": name,
                    "seed": seed,
                    "weights": ALIKE if alike else DIFFERENT,
                    "training loss": loss,
                    "held-out loss": held_out_loss(lib, model),
                    "rows right": share_right(lib, model),
                }
            )

    examine("correct", aiayn, alike=True)
    for number, lib in patients.items():
        examine(str(number), lib, learns_alike(lib))
    return found


# Examinations of single patients


def largest_weight(lib: Package, d_k: int) -> float:
    """The largest of ten weights, on average, for random queries and keys."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1000, 10, d_k, generator=generator)
    weights = lib.scaled_dot_product_attention(q, k, k)[1]
    return weights.amax(dim=-1).mean().item()


@torch.no_grad()
def largest_weight_of_heads(lib: Package, heads: int, width: int = 256) -> float:
    """The largest of ten weights, on average, in a layer with so many heads."""
    torch.manual_seed(1)
    layer = lib.MultiHeadAttention(width, heads)
    for weight in layer.parameters():
        weight.mul_(2.0)  # scores large enough to see
    x = torch.randn(8, 10, width)
    return layer(x, x, x, need_weights=True)[1].amax(dim=-1).mean().item()


def sharpness(patients: Mapping[int, Package]) -> list[alt.Chart]:
    """The largest weight: patient 1's by width of a head, patient 11's by heads."""
    widths, counts = (1, 4, 16, 64, 256), (1, 2, 4, 8, 16)
    first = [
        {"width of a head": d, "largest weight": largest_weight(lib, d), "package": n}
        for n, lib in {"correct": aiayn, "patient 1": patients[1]}.items()
        for d in widths
    ]
    second = [
        {
            "heads (256 numbers in all)": h,
            "largest weight": largest_weight_of_heads(lib, h),
            "package": n,
        }
        for n, lib in {"correct": aiayn, "patient 11": patients[11]}.items()
        for h in counts
    ]
    return [
        _lines(
            first,
            "width of a head",
            "largest weight",
            "Largest of ten attention weights against the width of a head. The "
            "correct package's stays level; patient 1's equals it at width 1 and "
            "rises towards one.",
            ticks=widths,
            domain=[0, 1],
        ),
        _lines(
            second,
            "heads (256 numbers in all)",
            "largest weight",
            "Largest of ten attention weights against the number of heads. Patient "
            "11's equals the correct package's for one head and falls towards a "
            "tenth as heads are added.",
            ticks=counts,
            domain=[0, 1],
        ),
    ]


@torch.no_grad()
def difference_of_logits(patient: Package, width: int) -> float:
    """How far a patient's logits are from the correct ones, with the same weights."""
    torch.manual_seed(1)
    sizes = {"d_model": width, "d_ff": width, "num_heads": 2, "dropout": 0.0}
    model = random_model(aiayn, **sizes).double().eval()
    other = with_weights(patient, model).double().eval()
    logits = model(HELD_OUT.source, HELD_OUT.target)
    changed = other(HELD_OUT.source, HELD_OUT.target)
    return ((changed - logits).norm() / logits.norm()).item()


def differences_chart(patient: Package) -> alt.Chart:
    """`difference_of_logits` for models of several widths, beside 1 / (2 · width)."""
    widths = (4, 16, 64, 256)
    rows = [
        {"width of the model": d, "relative difference": number, "package": name}
        for d in widths
        for name, number in (
            ("1 / (2 · width)", 0.5 / d),
            ("patient 7", difference_of_logits(patient, d)),
        )
    ]
    return _lines(
        rows,
        "width of the model",
        "relative difference",
        "Relative difference of the logits against the width of the model, both "
        "logarithmic. Patient 7's falls in proportion to one divided by the width.",
        ticks=widths,
        heights=(0.001, 0.01, 0.1),
    )


def rates(lib: Package, batches: int, steps: int = 60) -> list[float]:
    """The learning rate after each step of several batches; warm-up takes 20 steps."""
    trainer, found = new_trainer(lib, seed=1, warmup=20), []
    for step in range(1, steps + 1):
        trainer.step(step, [draw(2, step)] * batches)
        found.append(trainer.optimizers.adam.param_groups[0]["lr"])
    return found


def rates_chart(right: Sequence[float], patient: Sequence[float]) -> alt.Chart:
    """The learning rates of the correct package and of patient 8."""
    rows = [
        {"optimizer step": step, "learning rate": rate, "package": name}
        for name, found in (("correct", right), ("patient 8", patient))
        for step, rate in enumerate(found, start=1)
    ]
    return _lines(
        rows,
        "optimizer step",
        "learning rate",
        "Learning rate over 60 optimizer steps. The correct package's rises for 20 "
        "steps and then falls; patient 8's rises four times as steeply, peaks at step "
        "5 at the same height, falls below the correct one at step 13, and lies at "
        "half of it from step 20 on.",
    )


@torch.no_grad()
def similarity(model: Any) -> float:
    """The cosine between all weights of the first and the second encoder layer."""
    one, other = (
        torch.cat([p.flatten() for p in layer.parameters()])
        for layer in model.encoder.layers
    )
    return F.cosine_similarity(one, other, dim=0).item()


def similarities(lib: Package, steps: int = 100) -> dict[int, float]:
    """`similarity` before training and after every twenty steps."""
    found = {}

    def watch(step: int, model: Any) -> None:
        if step % 20 == 0:
            found[step] = similarity(model)

    train(lib, seed=1, steps=steps, layers=2, watch=watch)
    return found


def similarities_chart(
    right: Mapping[int, float], patient: Mapping[int, float]
) -> alt.Chart:
    """How alike two layers are, step by step."""
    rows = [
        {"optimizer step": step, "cosine of the weights": cosine, "package": name}
        for name, found in (("correct", right), ("patient 9", patient))
        for step, cosine in found.items()
    ]
    return _lines(
        rows,
        "optimizer step",
        "cosine of the weights",
        "Cosine between the weights of two encoder layers over 100 steps. Patient 9's "
        "begins at one and falls; the correct package's is lower from the start.",
        values=range(0, 101, 20),
        domain=[0, 1.05],
    )


def loss_with_padding(lib: Package, extra: int) -> float:
    """An untrained model's loss for each token of the held-out rows, padded further."""
    torch.manual_seed(1)
    model = random_model(lib, dropout=0.0)
    criterion = lib.training.Criterion(model, 0.0, START)
    source, target = (
        F.pad(rows, (0, extra), value=PAD)
        for rows in (HELD_OUT.source, HELD_OUT.target)
    )
    _, plain = criterion(source, target)
    return (plain / (target != PAD).sum()).item()


@dataclass
class Repeated:
    """A model that dropped units in training, measured five times by two packages."""

    losses: dict[str, list[float]]
    right: dict[str, float]
    """The share of rows that each writes right."""


def repeated(patient: Package) -> Repeated:
    """Train one model with a dropout of 0.1, and measure it again and again."""
    model, _ = train(aiayn, seed=1, dropout=0.1)
    found = Repeated({}, {})
    for name, lib in {"correct": aiayn, "patient 12": patient}.items():
        mine = with_weights(lib, model)
        found.losses[name] = [held_out_loss(lib, mine) for _ in range(5)]
        found.right[name] = share_right(lib, mine)
    return found


def loss_charts(
    losses: Mapping[str, Sequence[float]], padded: Mapping[str, Mapping[int, float]]
) -> list[alt.Chart]:
    """Patient 12's losses by repetition, and patient 13's by columns of padding."""
    first = [
        {"repetition": count, "held-out loss": loss, "package": name}
        for name, found in losses.items()
        for count, loss in enumerate(found, start=1)
    ]
    second = [
        {"columns of padding added": extra, "loss per token": loss, "package": name}
        for name, found in padded.items()
        for extra, loss in found.items()
    ]
    return [
        _lines(
            first,
            "repetition",
            "held-out loss",
            "The held-out loss of one model, measured five times. The correct "
            "package gives one number, patient 12 five different and higher ones.",
            values=range(1, 6),
        ),
        _lines(
            second,
            "columns of padding added",
            "loss per token",
            "The loss for each token against the number of padded columns. The "
            "correct package's is constant; patient 13's grows with every column.",
            values=[0, 5, 10, 20],
        ),
    ]


def _lines(
    rows: list[dict[str, Any]],
    x: str,
    y: str,
    description: str,
    *,
    ticks: Sequence[float] = (),
    heights: Sequence[float] = (),
    values: Sequence[float] = (),
    domain: list[float] | None = None,
) -> alt.Chart:
    """Two lines with points: what is correct, and a patient.

    `ticks` and `heights` make an axis logarithmic, `values` are those of a plain one.
    """
    names = list(dict.fromkeys(row["package"] for row in rows))
    sick = [name.startswith("patient") for name in names]
    across = alt.Axis(values=list(ticks or values)) if ticks or values else alt.Axis()
    up = alt.Axis(values=list(heights), format="~%") if heights else alt.Axis()
    scale = (
        alt.Scale(type="log", nice=False)
        if heights
        else alt.Scale(domain=domain)
        if domain
        else alt.Scale(zero=True)
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2)
        .encode(
            x=alt.X(
                f"{x}:Q",
                title=x,
                axis=across,
                scale=alt.Scale(type="log", nice=False)
                if ticks
                else alt.Scale(zero=False),
            ),
            y=alt.Y(f"{y}:Q", title=y, axis=up, scale=scale),
            color=alt.Color(
                "package:N",
                title=None,
                scale=alt.Scale(
                    domain=names, range=[(KEY, ALERT)[one].mark for one in sick]
                ),
                legend=alt.Legend(orient="top"),
            ),
            strokeDash=alt.StrokeDash(
                "package:N",
                title=None,
                scale=alt.Scale(
                    domain=names, range=[([1, 0], [6, 3])[one] for one in sick]
                ),
            ),
            tooltip=["package:N", f"{x}:Q", alt.Tooltip(f"{y}:Q", format=".4g")],
        )
        .properties(width="container", height=230, description=description)
    )


# Drawings, and the grid of all tests


def three_computations() -> Svg:
    """Training, evaluation and writing: what is read, in which mode, what comes out."""
    drawing = Diagram(360, 330)
    rows = (
        ("Training", "correct target,\nshifted", "model,\ndropout on", "loss"),
        (
            "Evaluation",
            "correct target,\nshifted",
            "model,\ndropout off",
            "held-out\nloss",
        ),
        ("Writing", "its own\nwords so far", "model,\none position", "next\nword"),
    )
    outcomes = ("alert", "key", "value")
    for number, (name, read, mode, out) in enumerate(rows):
        y = 58 + 112 * number
        drawing.text(6, y - 40, name, anchor="start", bold=True)
        drawing.box(60, y, read, width=112, height=44)
        drawing.box(194, y, mode, width=100, height=44, role="query")
        drawing.box(314, y, out, width=76, height=44, role=outcomes[number])
        drawing.arrow((116, y), (143, y))
        drawing.arrow((244, y), (275, y))
    drawing.arrow((314, 80), (314, 98), (194, 98), (194, 82), dashed=True, role="alert")
    drawing.text(254, 111, "update of the weights")
    drawing.arrow((314, 304), (314, 318), (60, 318), (60, 306), dashed=True)
    return drawing.finish(
        "Three computations with one model",
        "Training: the correct target, shifted, is read by the model with dropout, and "
        "the loss updates the weights. Evaluation: the same without dropout and "
        "without an update. Writing: the model reads its own words so far, one "
        "position at a time, and gives the next word, which it reads in turn.",
    )


def changes_maps(maps: Mapping[str, Tensor]) -> Svg:
    """Which predictions move when a letter of the target is changed, by package."""
    side, drawing = 20, Diagram(360, 176)
    for place, (name, table) in enumerate(maps.items()):
        x = 66 + 118 * place
        drawing.text(x, 14, name, bold=True)
        drawing.grid(
            x,
            50 + side * len(table) / 2,
            table.float(),
            cell=side,
            tall=side,
            digits=None,
            role="alert" if name.startswith("patient") else "key",
            columns=[str(i + 1) for i in range(len(table))],
        )
    drawing.text(184, 164, "rows: predictions, columns: changed letters")
    return drawing.finish(
        "Which predictions a changed letter moves",
        "Three maps of five predictions and five letters. Correct: filled below the "
        "diagonal only. Patient 2: filled above the diagonal as well. Patient 4: "
        "filled on the diagonal and below it.",
    )


def which_test_catches_whom(
    caught: Mapping[str, Sequence[bool]], chosen_first: str
) -> alt.VConcatChart:
    """A grid of tests and patients, and below it whom the chosen tests catch."""
    cells = [
        {"test": name, "patient": number, "caught": bool(hit)}
        for name, hits in caught.items()
        for number, hit in enumerate(hits, start=1)
    ]
    chosen = alt.selection_point(
        fields=["test"], toggle="true", value=[{"test": chosen_first}], name="chosen"
    )
    wide = 14 * len(next(iter(caught.values())))
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("patient:O", axis=alt.Axis(labelAngle=0)),
    )
    sick, sound = alt.value(ALERT.mark), alt.value(NEUTRAL.mark)
    grid = (
        base.mark_square()
        .encode(
            size=alt.condition("datum.caught", alt.value(130), alt.value(25)),
            y=alt.Y(
                "test:N", sort=list(caught), title=None, axis=alt.Axis(labelLimit=240)
            ),
            color=alt.condition("datum.caught", sick, sound),
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.3)),
            tooltip=["test:N", "patient:O", "caught:N"],
        )
        .add_params(chosen)
        .properties(width=wide, height=17 * len(caught))
    )
    sums = (
        base.transform_filter(chosen)
        .transform_aggregate(hits="sum(caught)", groupby=["patient"])
        .mark_square()
        .encode(
            size=alt.condition("datum.hits > 0", alt.value(130), alt.value(25)),
            color=alt.condition("datum.hits > 0", alt.value(VALUE.mark), sound),
            tooltip=["patient:O", "hits:Q"],
        )
        .properties(width=wide, height=17, title="caught by those chosen")
    )
    return (grid & sums).properties(
        description="A grid of 13 tests by 13 patients, a large square where a test "
        "catches a patient and a small one where it does not. Each test catches its "
        "own patient, and a few catch others too. Below it, one row: the patients "
        "that the chosen tests catch together."
    )
