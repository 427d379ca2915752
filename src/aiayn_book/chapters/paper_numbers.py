"""Appendix *The paper's numbers*: do the printed numbers fit together (Table 3, §5)?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd
import torch

from aiayn import Transformer, TransformerConfig
from aiayn_book import paper, settle
from aiayn_book.colours import ALERT, NEUTRAL, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.svg import Svg

STATED = paper.BASE.vocabulary_en_de
"""The vocabulary of the text, *about 37000*."""

PRINTED = {
    name: row.parameters_in_millions
    for name, row in paper.TABLE_3.items()
    if row.parameters_in_millions is not None
}
"""The rows of Table 3 that print a number of parameters, in millions."""


# What each row allows.


@dataclass(frozen=True)
class Row:
    """A row of Table 3: what it prints, and which vocabularies give that."""

    name: str
    core: int
    """All parameters but the embedding matrix, by the configuration."""
    d_model: int
    printed: int
    """In millions."""

    def total(self, vocabulary: float) -> float:
        """In millions."""
        return (self.core + vocabulary * self.d_model) / 1e6

    @property
    def allowed(self) -> tuple[float, float]:
        """The vocabularies whose total rounds to what is printed: from, and below."""
        low, high = (
            ((self.printed + half) * 1e6 - self.core) / self.d_model
            for half in (-0.5, 0.5)
        )
        return low, high


def core_of(config: TransformerConfig) -> int:
    """All parameters but the embedding matrix; nothing is allocated."""
    with torch.device("meta"):
        model = Transformer(config)
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if not name.startswith("embeddings.")
    )


def rows() -> list[Row]:
    """All rows that print a number, in the table's order."""
    found = []
    for name, printed in PRINTED.items():
        config = TransformerConfig.table3(name)
        found.append(Row(name, core_of(config), config.d_model, printed))
    return found


def rows_table(found: Sequence[Row]) -> pd.DataFrame:
    """What is printed, what 37,000 gives, and which vocabularies are allowed."""
    lines = {
        row.name: [
            row.printed,
            f"{row.total(STATED):.1f}",
            *map("{:,.0f}".format, row.allowed),
        ]
        for row in found
    }
    columns = ["printed", f"at {STATED:,}", "from V", "to V"]
    return pd.DataFrame.from_dict(lines, "index", columns=columns)


def vocabulary_chart(found: Sequence[Row]) -> alt.LayerChart:
    """The vocabularies that each row allows, and a rule that a slider moves."""
    slider = alt.param(
        name="V",
        value=STATED,
        bind=alt.binding_range(min=35_000, max=44_000, step=100, name="V "),
    )
    lowest = 34_500
    bars = [
        {
            "row": row.name,
            "core": row.core,
            "d": row.d_model,
            "paper": row.printed,
            "low": max(row.allowed[0], lowest),
            "high": row.allowed[1],
        }
        for row in found
    ]
    data = (
        alt.Chart(alt.Data(values=bars))
        .transform_calculate(total="(datum.core + V * datum.d) / 1000000")
        .transform_calculate(
            hit="round(datum.total) == datum.paper",
            label="format(datum.total, '.1f') + ' | ' + datum.paper",
        )
    )
    names = [row.name for row in found]
    y = alt.Y("row:N", sort=names, title=None, axis=alt.Axis(grid=False))
    scale = alt.Scale(domain=[lowest, 46_500], nice=False)
    axis = alt.Axis(values=[35_000, 37_000, 39_000, 41_000, 43_000], format="~s")
    x = alt.X("low:Q", scale=scale, axis=axis, title="vocabulary V")
    colour = alt.when("datum.hit").then(alt.value(VALUE.mark))
    intervals = data.mark_bar(height=11).encode(
        x=x, x2="high:Q", y=y, color=colour.otherwise(alt.value(NEUTRAL.mark))
    )
    labels = (
        data.transform_calculate(end=str(46_400))
        .mark_text(align="right")
        .encode(
            x=alt.X("end:Q", scale=scale),
            y=y,
            text="label:N",
        )
    )
    rule = (
        alt.Chart(alt.Data(values=[{"n": 1}]))
        .transform_calculate(x="V")
        .mark_rule(color=ALERT.mark, strokeWidth=2)
        .encode(x=alt.X("x:Q", scale=scale))
    )
    return (
        alt.layer(intervals, labels, rule)
        .add_params(slider)
        .properties(
            width="container",
            height=26 * len(names),
            description="For each of eleven rows of Table 3, a bar over the "
            "vocabularies that give the printed number of parameters, and a rule at a "
            "vocabulary that a slider sets. All bars but one share a narrow strip a "
            "little above 41,000. The bar of the big model lies far to the left, "
            "around 36,000. At 37,000 the rule crosses no bar.",
        )
    )


def surplus_chart(found: Sequence[Row]) -> alt.LayerChart:
    """What is printed beyond the count at 37,000, over the width of the model."""
    points = [
        {
            "row": row.name,
            "d_model": row.d_model,
            "surplus": row.printed - row.total(STATED),
            "low": row.printed - 0.5 - row.total(STATED),
            "high": row.printed + 0.5 - row.total(STATED),
            "kind": "big" if row.name == "big" else "the other ten",
        }
        for row in found
    ]
    x = alt.X(
        "d_model:Q",
        title="d_model",
        scale=alt.Scale(domain=[0, 1150], nice=False),
        axis=alt.Axis(values=[256, 512, 1024]),
    )
    title = "printed minus counted, millions"
    y = alt.Y("surplus:Q", title=title)
    kinds = ["the other ten", "big"]
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[VALUE.mark, ALERT.mark]),
    )
    shape = alt.Shape(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=["circle", "square"]),
    )
    base = alt.Chart(alt.Data(values=points))
    low, high = common_interval(found)
    middle = (low + high) / 2 - STATED
    ends = [{"d_model": d, "surplus": middle * d / 1e6} for d in (0, 1150)]
    line = (
        alt.Chart(alt.Data(values=ends))
        .mark_line(color=NEUTRAL.mark, strokeDash=[5, 4])
        .encode(x=x, y=y)
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=["row:N"]
    )
    return alt.layer(line, bars, dots).properties(
        width="container",
        height=260,
        description="Printed minus counted parameters, in millions, over the width of "
        "the model, each with half a million up and down. One row at 256 lies at "
        "about one million, eight at 512 around two, one at 1,024 at about four, all "
        "along one dashed line through zero. The big model, at 1,024, lies at about "
        "minus one.",
    )


def common_interval(found: Sequence[Row]) -> tuple[float, float]:
    """The vocabularies that all rows but the big model allow."""
    others = [row.allowed for row in found if row.name != "big"]
    return max(low for low, _ in others), min(high for _, high in others)


# Other ways of counting.

Extra = Callable[[TransformerConfig], int]


def _attentions(config: TransformerConfig) -> int:
    return config.num_encoder_layers + 2 * config.num_decoder_layers


def attention_biases(config: TransformerConfig) -> int:
    """A bias for each of the four projections of each attention."""
    d, h = config.d_model, config.num_heads
    d_k, d_v = config.d_k or d // h, config.d_v or d // h
    return _attentions(config) * (h * (2 * d_k + d_v) + d)


def no_vectors(config: TransformerConfig) -> int:
    """Without the networks' biases and without the LayerNorms."""
    encoder, decoder = config.num_encoder_layers, config.num_decoder_layers
    norms = 2 * encoder + 3 * decoder
    networks = (encoder + decoder) * (config.d_ff + config.d_model)
    return -(networks + norms * 2 * config.d_model)


def one_more(config: TransformerConfig) -> int:
    """A square matrix too many in each layer: wrong on purpose."""
    layers = config.num_encoder_layers + config.num_decoder_layers
    return layers * config.d_model**2


@dataclass(frozen=True)
class Way:
    """A way of counting, and how many rows it gives at its best vocabulary."""

    name: str
    fits: tuple[str, ...]
    """The rows, at the first of the best vocabularies."""
    first: int
    """The smallest of the vocabularies that fit so many."""
    last: int
    near_stated: int
    """The most rows that fit with V from 36,500 to 37,499."""


def count_rows(
    name: str, extra: Extra = lambda config: 0, matrices: int = 1, rounding: float = 0.5
) -> Way:
    """Try every vocabulary from 10,000 to 60,000.

    Args:
        name: What the way is called.
        extra: Parameters beyond those of the book's model.
        matrices: How many embedding matrices there are.
        rounding: 0.5 rounds to millions, 0 cuts off.
    """
    vocabularies = torch.arange(10_000, 60_000)
    hits = []
    for row in rows():
        core = row.core + extra(TransformerConfig.table3(row.name))
        total = core + matrices * vocabularies * row.d_model
        hits.append((total + rounding * 1e6) // 1_000_000 == row.printed)
    table = torch.stack(hits)  # (rows, vocabularies)
    fitting = table.sum(dim=0)
    best = vocabularies[fitting == fitting.max()]
    at_best = table[:, vocabularies == best[0]].flatten().tolist()
    near = (vocabularies >= STATED - 500) & (vocabularies < STATED + 500)
    return Way(
        name,
        tuple(row for row, hit in zip(PRINTED, at_best, strict=True) if hit),
        int(best[0]),
        int(best[-1]),
        int(fitting[near].max()),
    )


def ways() -> list[Way]:
    """Five ways that the authors may have counted, and one that is wrong."""
    return [
        count_rows("as in this book"),
        count_rows("biases in attention", attention_biases),
        count_rows("no biases, no norms", no_vectors),
        count_rows("cut off, not rounded", rounding=0.0),
        count_rows("two embeddings", matrices=2),
        count_rows("one matrix more", one_more),
    ]


def ways_drawing(found: Sequence[Way]) -> Svg:
    """A row for each way of counting, with a filled cell for each row that fits."""
    names = list(PRINTED)
    drawing = Diagram(360, 56 + 46 * len(found))
    cell, first = 15, 150
    drawing.text(first + cell * len(names) / 2, 14, "rows of Table 3", bold=True)
    drawing.text(338, 14, "fit", bold=True)
    drawing.text(first, 34, "base", anchor="start")
    drawing.text(first + cell * len(names), 34, "big", anchor="end")
    for number, way in enumerate(found):
        y = 62 + 46 * number
        drawing.text(4, y, way.name, anchor="start")
        drawing.text(4, y + 17, f"V from {way.first:,}", anchor="start", small=True)
        hits = [[1.0 if name in way.fits else 0.0 for name in names]]
        x = first + cell * len(names) / 2
        drawing.grid(
            x, y, hits, cell=cell, tall=22, role="value", digits=None, limit=1.2
        )
        drawing.text(338, y, f"{len(way.fits)}", bold=True)
    said = "; ".join(f"{way.name}: {len(way.fits)}" for way in found)
    return drawing.finish(
        "Ways of counting",
        "Six ways of counting, each with eleven cells, one for each row of Table 3; "
        f"filled if it fits at the best vocabulary. Rows that fit: {said}.",
    )


def rows_with_biases(vocabulary: int) -> list[str]:
    """The rows that come out with biases in the attentions and this vocabulary."""
    return [
        row.name
        for row in rows()
        if round(
            row.total(vocabulary)
            + attention_biases(TransformerConfig.table3(row.name)) / 1e6
        )
        == row.printed
    ]


def settle_parameters(found: Sequence[Row], counted: Sequence[Way]) -> None:
    """Table 3: whether one vocabulary of about 37,000 gives all printed counts."""
    ours, *others = [way for way in counted if way.name != "one matrix more"]
    right = sum(round(row.total(STATED)) == row.printed for row in found)
    (missing,) = [row for row in found if row.name not in ours.fits]
    low, high = missing.allowed
    most = max(len(way.fits) for way in (ours, *others))
    settle(
        "s6.2-parameters",
        holds=ours.near_stated == len(found),
        expected="one vocabulary of about 37,000 gives all the printed counts",
        measured=f"of {len(found)} printed counts, {right} come out with a vocabulary "
        f"of {STATED:,} entries, and at most {ours.near_stated} with {STATED - 500:,} "
        f"to {STATED + 499:,}; with {ours.first:,} to {ours.last:,} entries "
        f"{len(ours.fits)} do, all but that of {missing.name}, which needs {low:,.0f} "
        f"to {high:,.0f}; no vocabulary gives more than {most}, in any of "
        f"{1 + len(others)} ways of counting",
        scale="figures",
    )


# Numbers that follow from others.


@dataclass(frozen=True)
class Derived:
    """A printed number, and what other printed numbers make of it."""

    name: str
    printed: float
    rounded_by: float
    """Half a unit of the last digit that is printed."""
    low: float
    """The least that follows from the others, each as printed but for rounding."""
    high: float

    @property
    def fits(self) -> bool:
        """Whether rounding can explain the difference."""
        above = self.low <= self.printed + self.rounded_by
        return above and self.printed - self.rounded_by <= self.high


def derived() -> list[Derived]:
    """Training times, training operations and parameters of base and big."""
    sizes = {row.name: row for row in rows()}
    costs = {row.model: row.flops_en_de for row in paper.TABLE_2}
    times, operations, parameters = [], [], []
    for name, chosen, off, digit, model in (
        ("base", paper.BASE, 0.5, 1e17, "Transformer (base model)"),
        ("big", paper.BIG, 0.05 * 24, 1e18, "Transformer (big)"),  # 3.5 days
    ):
        hours = chosen.training_hours
        step = [chosen.seconds_per_step + side * 0.05 for side in (-1, 1)]
        ends = [chosen.steps * seconds / 3600 for seconds in step]
        times.append(Derived(f"{name}: training time", hours, off, *ends))
        speed = chosen.gpus * paper.TERAFLOPS["P100"] * 1e12 * 3600
        ends = [(hours + side * off) * speed for side in (-1, 1)]
        cost = costs[model] or 0.0
        operations.append(Derived(f"{name}: operations", cost, digit / 2, *ends))
        row = sizes[name]
        ends = [row.total(STATED + side * 500) for side in (-1, 1)]
        parameters.append(Derived(f"{name}: parameters", row.printed, 0.5, *ends))
    return times + operations + parameters


def derived_chart(found: Sequence[Derived]) -> alt.LayerChart:
    """Each number twice: as printed, and as it follows, in parts of the printed one."""
    lines = [
        {
            "number": one.name,
            "low": one.low / one.printed,
            "high": one.high / one.printed,
            "from": 1 - one.rounded_by / one.printed,
            "to": 1 + one.rounded_by / one.printed,
            "rounding": "explains it" if one.fits else "does not",
        }
        for one in found
    ]
    scale = alt.Scale(domain=[0.78, 1.08], nice=False)
    title = "printed = 100 %"
    axis = alt.Axis(format="%", values=[0.8, 0.9, 1.0])
    base = alt.Chart(alt.Data(values=lines)).encode(
        y=alt.Y("number:N", title=None, sort=[one.name for one in found])
    )
    printed = base.mark_bar(height=20, color=NEUTRAL.mark, opacity=0.4).encode(
        x=alt.X("from:Q", title=title, scale=scale, axis=axis), x2="to:Q"
    )
    follows = base.mark_bar(height=8).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=axis),
        x2="high:Q",
        color=alt.Color(
            "rounding:N",
            title="rounding",
            scale=alt.Scale(
                domain=["explains it", "does not"], range=[VALUE.mark, ALERT.mark]
            ),
            legend=alt.Legend(symbolType="square"),
        ),
    )
    return alt.layer(printed, follows).properties(
        width="container",
        height=34 * len(lines),
        description="Six printed numbers, each with a wide grey bar for what rounds to "
        "it and a narrow bar for what follows from other printed numbers. For the "
        "training times and the operations of base and big the two overlap, for the "
        "parameters they do not: base has some three percent fewer than printed, and "
        "big a little more.",
    )


def same_size() -> dict[str, int]:
    """The cores of rows (A), which are to cost what base costs."""
    names = [name for name in paper.TABLE_3 if name.startswith("A ")]
    return {name: core_of(TransformerConfig.table3(name)) for name in ["base", *names]}
