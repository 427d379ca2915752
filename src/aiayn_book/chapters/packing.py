"""Appendix *Packing*: several sentence pairs in one row, and what mixed batches teach.

Not in the paper, whose §5.1 batches pairs of similar length.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig, fast, shift_right
from aiayn.data import Batch, EncodedPairs, TokenBatches, encode_pairs, pack_pairs
from aiayn_book.chapters.data_and_batching import (
    Plan,
    both_sides,
    corpus,
    first_pairs,
    lengths_of,
    longer_side,
    pairs,
    plans,
    slots,
    tokenizer,
)
from aiayn_book.colours import WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

SEEDS = range(3)
BUDGETS = (500, 2000, 8000, 25_000)

# Drawings.

_STEP = 30
LENGTHS = (6, 5, 5, 3, 3, 2)
"""Tokens of the six sentences of the first figure."""


def _row(
    drawing: Diagram, y: float, sentences: Sequence[int], total: int, left: float = 8
) -> None:
    """A row of token slots: sentences in two colours in turn, then padding."""
    x = left
    for number, length in enumerate(sentences):
        for column in range(length):
            last = column == length - 1
            drawing.box(
                x + _STEP / 2,
                y,
                "⟨e⟩" if last else "",
                width=_STEP - 2,
                height=22,
                role=("weight", "neutral")[number % 2],
            )
            x += _STEP
    for _ in range(total - sum(sentences)):
        drawing.box(x + _STEP / 2, y, "0", width=_STEP - 2, height=22, role="alert")
        x += _STEP


def rows_of_one_and_packed() -> list[Svg]:
    """Six sentences in six rows with padding, and in three rows without."""
    panels = []
    for title, rows in (
        ("one sentence a row", [[length] for length in LENGTHS]),
        ("packed, rows of 8", [[6, 2], [5, 3], [5, 3]]),
    ):
        total = max(map(sum, rows))
        drawing = Diagram(300, 40 + 27 * len(rows))
        drawing.text(8, 12, title, anchor="start", bold=True)
        for number, row in enumerate(rows):
            _row(drawing, 42 + 27 * number, row, total)
        wasted = total * len(rows) - sum(LENGTHS)
        label = f"{total * len(rows)} slots, {wasted} padding"
        drawing.text(296, 12, label, anchor="end")
        panels.append(
            drawing.finish(
                f"Six sentences: {title}",
                f"{len(rows)} rows of {total} token slots. The sentences have "
                f"{', '.join(map(str, LENGTHS))} tokens; {wasted} slots are padding.",
            )
        )
    return panels


WORDS = ("das", "stimmt", "⟨end⟩", "warum", "?", "⟨end⟩")


def three_repairs() -> Svg:
    """What the decoder must be told about a row of two sentences."""
    drawing = Diagram(358, 218)
    lines = {
        "target": WORDS,
        "sentence": ("1", "1", "1", "2", "2", "2"),
        "position": ("0", "1", "2", "0", "1", "2"),
        "read": ("⟨start⟩", "das", "stimmt", "⟨start⟩", "warum", "?"),
    }
    step, left = 48, 70
    for row, (name, words) in enumerate(lines.items()):
        y = 24 + 44 * row
        drawing.text(2, y, name, anchor="start", bold=not row)
        for column, word in enumerate(words):
            x = left + step * (column + 0.5)
            if row == 0:
                role = ("weight", "neutral")[column // 3]
                drawing.box(x, y, word, width=step - 3, height=26, role=role)
            else:
                repaired = row > 1 and column == 3
                strong = "alert" if repaired or (row == 2 and column > 2) else None
                drawing.text(x, y, word, role=strong, bold=strong is not None)
    drawing.text(
        2, 200, "orange: what a plain row gets wrong", anchor="start", role="alert"
    )
    return drawing.finish(
        "Two sentences in one row of the target",
        "The row holds das, stimmt, end, warum, question mark, end. Its sentence "
        "numbers are 1 1 1 2 2 2, its positions 0 1 2 0 1 2, and the decoder reads "
        "start, das, stimmt, start, warum, question mark.",
    )


@cache
def three_in_a_row() -> tuple[Batch, list[str]]:
    """A packed row of three short pairs, and what the decoder reads of it."""
    short = np.argsort(longer_side(pairs()), kind="stable")[[0, 60, 120]]
    some = np.isin(np.arange(len(pairs())), short)
    three = EncodedPairs(pairs().source.keep(some), pairs().target.keep(some))
    row = pack_pairs(three, row_length=64)
    batch = Batch(*both_sides(row, np.array([0])), packed=True)
    read = batch.decoder_input(bos_id=1)[0].tolist()
    of = tokenizer(800)
    return batch, ["⟨start⟩" if t == 1 else of.pieces([t])[0] for t in read]


def mask_drawing() -> Svg:
    """The decoder's mask of `three_in_a_row`: one triangle for each sentence."""
    batch, words = three_in_a_row()
    table = batch.target_mask[0, 0].float()
    cell, left, top = 14, 84, 14
    side = cell * len(words)
    drawing = Diagram(358, top + side + 34)
    drawing.grid(
        left + side / 2,
        top + side / 2,
        table,
        role="value",
        cell=cell,
        tall=cell,
        digits=None,
    )
    for row, word in enumerate(words):
        drawing.text(left - 6, top + cell * (row + 0.5), word, anchor="end")
    drawing.text(left + side / 2, top + side + 18, "keys: the same tokens, in order")
    return drawing.finish(
        "The decoder's mask for one row of three sentences",
        f"A square of {len(words)} queries and keys. Three triangles along the "
        "diagonal are filled, one for each sentence; all else is empty.",
    )


# What a packed row does to a model that is not told of it.


@cache
def one_pass_plans(seed: int) -> dict[str, Plan]:
    """One pass in about 16 pairs a step, for each of three ways."""
    found = plans(pairs(), seed, rows=16)
    return {
        "as they come": found["as they come"],
        "by tokens": found["by tokens"],
        EIGHT: eight_a_step(found["by tokens"], seed),
    }


@cache
def after_one_pass(way: str, seed: int) -> Transformer:
    """A small model after one pass over the pairs, in batches as planned."""
    plan = one_pass_plans(seed)[way]
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(
        vocab_size=800, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0
    )
    model = fast.accelerate(Transformer(config))
    optimizer = torch.optim.Adam(model.parameters())
    shuffled = np.random.default_rng(seed).permutation(len(plan))
    for step, batch in enumerate(shuffled, start=1):
        rate = 3e-3 * min(1, step / 100)  # chapter 14 says why it rises
        optimizer.param_groups[0]["lr"] = rate
        loss = loss_on(model, pairs(), plan[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def loss_on(model: Transformer, of: EncodedPairs, rows: Any) -> torch.Tensor:
    """Nats for each target token of a padded batch."""
    source, target = both_sides(of, rows)
    logits = model(source, shift_right(target, 1))
    return F.cross_entropy(logits.mT, target, ignore_index=0)


def loss_of(
    model: Transformer,
    of: EncodedPairs,
    *,
    start: bool = False,
    masks: bool = False,
    positions: bool = False,
) -> float:
    """The loss on rows, with those of the three repairs that are switched on."""
    source, target = both_sides(of, np.arange(len(of)))
    plain, apart = (Batch(source, target, packed=packed) for packed in (False, True))
    read = (apart if start else plain).decoder_input(bos_id=1)
    masked, placed = apart if masks else plain, apart if positions else plain
    with torch.no_grad():
        logits = model(
            source,
            read,
            source_mask=masked.source_mask,
            target_mask=masked.target_mask,
            memory_mask=masked.memory_mask,
            source_positions=placed.source_positions,
            target_positions=placed.target_positions,
        )
    return F.cross_entropy(logits.mT, target, ignore_index=0).item()


@cache
def trained() -> Transformer:
    """A small model that has seen each pair once, a pair in a row, in float64."""
    model = copy.deepcopy(after_one_pass("as they come", 0))
    return model.eval().double()  # in float64, equal means equal


REPAIRS = {
    "all three": {"start": True, "masks": True, "positions": True},
    "without the start": {"masks": True, "positions": True},
    "without the positions": {"start": True, "masks": True},
    "without the masks": {"start": True, "positions": True},
    "none": {},
}


@cache
def repairs() -> dict[str, float]:
    """The loss of 512 pairs: a pair a row, and packed with each set of repairs."""
    alone = first_pairs()
    packed = pack_pairs(alone, row_length=64)
    losses = {"a pair a row": loss_of(trained(), alone)}
    for name, switches in REPAIRS.items():
        losses[name] = loss_of(trained(), packed, **switches)
    return losses


def repairs_chart() -> alt.LayerChart:
    """The loss with each set of repairs as a bar."""
    losses = repairs()
    rows = [
        {"rows": name if not number else f"packed, {name}", "loss": round(loss, 4)}
        for number, (name, loss) in enumerate(losses.items())
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("loss:Q", title="nats for each token"),
        y=alt.Y(
            "rows:N",
            title=None,
            sort=[row["rows"] for row in rows],
            axis=alt.Axis(labelLimit=180),
        ),
        tooltip=["rows:N", "loss:Q"],
    )
    told = "; ".join(f"{row['rows']} {row['loss']:.2f}" for row in rows)
    bars = base.mark_bar(color=WEIGHT.mark, height=18)
    return alt.LayerChart(layer=[bars]).properties(
        width="container", height=190, description=f"Bars of the loss: {told}."
    )


# Padding against batch size.


@dataclass(frozen=True)
class Kept:
    """A way to fill rows: how many there are, and what their padding costs."""

    rows: int
    padding: Mapping[int, float]
    """The share of token slots that is padding, for each number of slots a batch."""
    scores: float
    """How many tokens each token is scored against, in the mean."""


@cache
def ways_to_fill() -> dict[str, Kept]:
    """A pair a row, and rows of 32, 64 and 128 tokens."""
    rows = {"a pair a row": pairs()}
    rows |= {f"rows of {n}": pack_pairs(pairs(), n) for n in (32, 64, 128)}
    found = {}
    for name, kept in rows.items():
        widths = lengths_of(kept)
        share = {b: TokenBatches(kept, b).padding_share() for b in BUDGETS}
        scores = float((widths**2).sum() / widths.sum())
        found[name] = Kept(len(kept), share, scores)
    return found


def padding_chart() -> alt.LayerChart:
    """The share of padding against the slots of a batch, for each way to fill rows."""
    rows = [
        {"slots of a batch, each side": slots_, "padding": share, "rows": name}
        for name, kept in ways_to_fill().items()
        for slots_, share in kept.padding.items()
    ]
    told = "; ".join(
        f"{name} {kept.padding[BUDGETS[0]]:.1%} to {kept.padding[BUDGETS[-1]]:.1%}"
        for name, kept in ways_to_fill().items()
    )
    chart = curves(
        rows,
        "slots of a batch, each side",
        "padding",
        "rows",
        description=f"Share of padding from the smallest batch to the largest: {told}.",
        log_x=True,
    )
    for layer in chart.layer:
        layer.encoding.x.axis = alt.Axis(values=list(BUDGETS), format=",")
        layer.encoding.y.axis = alt.Axis(format="%", tickCount=5)
        layer.encoding.y.scale = alt.Scale(zero=True)
    return chart


# One length a batch.

EIGHT = "by tokens, eight a step"


def eight_a_step(plan: Plan, seed: int) -> Plan:
    """Each batch in eight parts; a step takes eight parts of any batches."""
    parts = [part for batch in plan for part in np.array_split(batch, 8)]
    order = np.random.default_rng(seed).permutation(len(parts))
    steps = np.array_split(order, len(plan))
    return [np.concatenate([parts[p] for p in step]) for step in steps]


@cache
def one_pass() -> pd.DataFrame:
    """The loss on unseen pairs after one pass, by way and seed; steps and slots."""
    unseen, _ = encode_pairs(corpus().test, tokenizer(800))
    rows = []
    for seed in SEEDS:
        for way, plan in one_pass_plans(seed).items():
            model = after_one_pass(way, seed)
            with torch.no_grad():
                loss = loss_on(model, unseen, np.arange(len(unseen))).item()
            rows.append(
                {
                    "way": way,
                    "seed": seed,
                    "nats": loss,
                    "steps": len(plan),
                    "slots": int(slots(pairs(), plan).sum()),
                }
            )
    return pd.DataFrame(rows)


def span(way: str) -> str:
    """The lowest and the highest loss of a way."""
    found = one_pass().query("way == @way")["nats"]
    return f"{found.min():.2f} to {found.max():.2f}"


def one_pass_chart() -> alt.LayerChart:
    """The loss after one pass, a point for each seed."""
    table = one_pass()
    ways = list(dict.fromkeys(table["way"]))
    points = (
        alt.Chart(alt.Data(values=table.to_dict("records")))
        .mark_point(filled=True, size=100, color=WEIGHT.mark, opacity=0.7)
        .encode(
            x=alt.X(
                "nats:Q",
                title="nats for each unseen token",
                scale=alt.Scale(zero=False, padding=12),
            ),
            y=alt.Y("way:N", title=None, sort=ways, axis=alt.Axis(labelLimit=190)),
            tooltip=["way:N", "seed:O", alt.Tooltip("nats:Q", format=".3f")],
        )
    )
    told = "; ".join(f"{way} {span(way)}" for way in ways)
    return alt.LayerChart(layer=[points]).properties(
        width="container",
        height=130,
        description=f"Losses of three seeds for each way: {told}.",
    )


# The recorded runs.

RECORDS = {"sorted": "multi30k-en-de-sorted", "packed": "multi30k-en-de"}
LAST = 5000
"""Up to this step the learning rates of the recorded runs agree."""


@dataclass(frozen=True)
class Recorded:
    """Six recorded runs on real captions, sorted and packed."""

    history: pd.DataFrame
    """Validation losses up to `LAST`, by rows, seed and step."""
    ends: Mapping[str, Sequence[float]]
    """The last validation loss of each run."""
    tokens: Mapping[str, int]
    """Target tokens of a step."""
    steps: Mapping[str, int]

    @property
    def ahead(self) -> tuple[int, int]:
        """At how many checks every packed run is ahead of every sorted one; of all."""
        table = self.history.pivot_table(
            index="step", columns="rows", values="nats", aggfunc=["min", "max"]
        )
        ahead = table["max"]["packed"] < table["min"]["sorted"]
        return int(ahead.sum()), len(ahead)

    @property
    def means(self) -> pd.DataFrame:
        """Mean losses by step, a column for each kind of rows."""
        return self.history.pivot_table(index="step", columns="rows", values="nats")

    @property
    def reached(self) -> float:
        """After how many steps packed runs reach the sorted ones' loss at `LAST`."""
        mean = self.means
        steps = mean.index.to_numpy(dtype=float)
        goal = -mean["sorted"][LAST]
        return float(np.interp(goal, -mean["packed"].to_numpy(), steps))


@cache
def recorded() -> Recorded:
    """Read the six runs."""
    rows, tokens, steps = [], {}, {}
    ends: dict[str, list[float]] = {way: [] for way in RECORDS}
    for way, name in RECORDS.items():
        for seed in (1, 2, 3):
            log = load_record(f"{name}-{seed}")["log"]
            data = log[0]["data"]
            tokens[way] = round(data["target_tokens"] / data["batches"])
            ends[way].append(log[-1]["loss"])
            checks = [check for check in log if check["event"] == "validation"]
            steps[way] = max(check["step"] for check in checks)
            rows += [
                {
                    "rows": way,
                    "seed": seed,
                    "step": check["step"],
                    "nats": check["loss"],
                }
                for check in checks
                if check["step"] <= LAST
            ]
    return Recorded(pd.DataFrame(rows), ends, tokens, steps)


def recorded_chart() -> alt.LayerChart:
    """The six runs, from step 1,500 to `LAST`."""
    history = recorded().history
    late = history[history["step"] >= 1500]
    return curves(
        late.rename(columns={"nats": "nats for each token"}),
        "step",
        "nats for each token",
        "rows",
        description="Loss on the validation captions of Multi30k from step 1,500 to "
        "5,000, three seeds each. Both fall; the mean of the runs on packed rows lies "
        "below that of the runs on sorted batches at every check.",
    )
