"""Chapter 12, why self-attention: its counts, timings, paths, drawings and claims.

Paper: §4, Table 1.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from aiayn import scaled_dot_product_attention
from aiayn.data import Tokenizer, load_corpus
from aiayn.model import MultiHeadAttention, TransformerConfig
from aiayn_book import paper
from aiayn_book.claims import settle
from aiayn_book.colours import SERIES, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.power import mean_and_error, smallest_effect
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

Layer = Callable[..., Any]

# Networks of dots: rows are layers, the lowest row is the input.

RECURRENCE, CONVOLUTION, ATTENTION = "Recurrence", "Convolution, k = 3", "Attention"


def _network(
    drawing: Diagram,
    x0: float,
    bottom: float,
    top: float,
    layers: Sequence[Iterable[int]],
    path: Sequence[int],
    *,
    words: int,
    step: float,
) -> None:
    """A stack: light edges to the words at the given offsets, and one strong path."""
    rise = (bottom - top) / len(layers)
    for level, offsets in enumerate(layers):
        y = bottom - level * rise
        for here, offset in product(range(words), offsets):
            if 0 <= here - offset < words:
                ends = (x0 + step * (here - offset), y), (x0 + step * here, y - rise)
                drawing.arrow(*ends, role="neutral", head=False, width=0.7)
    points = [(x0 + step * at, bottom - i * rise) for i, at in enumerate(path)]
    drawing.arrow(*points, role="weight", head=False, width=3)
    for level, word in product(range(len(layers) + 1), range(words)):
        on_path = level < len(path) and path[level] == word
        role = "weight" if on_path else "neutral"
        drawing.dot(x0 + step * word, bottom - level * rise, role=role, radius=5.5)


def _panel(drawing: Diagram, kind: str, left: float, top: float) -> None:
    """One of the three layers over seven words, with its path and its costs."""
    words, step = 7, 29
    x0, upper, bottom = left + 22, top + 58, top + 178
    middle, last = left + 22 + 3 * step, x0 + 6 * step
    drawing.text(middle, top + 14, kind, bold=True)
    if kind == RECURRENCE:
        for word in range(words):
            x = x0 + step * word
            drawing.arrow((x, bottom), (x, upper), role="neutral", head=False, width=1)
            drawing.dot(x, bottom, role="neutral" if word else "weight", radius=5.5)
            drawing.dot(x, upper, role="weight", radius=5.5)
        ends = (x0, bottom), (x0, upper), (last, upper)
        drawing.arrow(*ends, role="weight", head=False, width=3)
        facts = "n · d²", "n = 7", "7 steps"
    elif kind == ATTENTION:
        _network(
            drawing,
            x0,
            bottom,
            upper,
            [range(-6, 7)],
            [0, 6],
            words=words,
            step=step,
        )
        facts = "n² · d", "1", "1 layer"
    else:
        _network(
            drawing,
            x0,
            bottom,
            upper,
            [range(3)] * 3,
            [0, 2, 4, 6],
            words=words,
            step=step,
        )
        facts = "k · n · d²", "1", "3 layers"
    drawing.text(x0 - 6, bottom + 19, "first word", anchor="start", role="weight")
    drawing.text(last + 6, upper - 19, "last word", anchor="end", role="weight")
    names = "multiplications, a layer", "one after another", "longest path"
    for row, (name, fact) in enumerate(zip(names, facts, strict=True)):
        y = top + 224 + 22 * row
        drawing.text(x0 - 12, y, name, anchor="start")
        drawing.text(last + 12, y, fact, anchor="end", bold=True)


def three_layers(*, phone: bool = False) -> Svg:
    """Recurrence, convolution and attention: what waits, and how far a signal goes."""
    drawing = Diagram(340, 880) if phone else Diagram(700, 286)
    for number, kind in enumerate((RECURRENCE, CONVOLUTION, ATTENTION)):
        at = (56, 296 * number) if phone else (4 + 238 * number, 0)
        _panel(drawing, kind, *at)
    return drawing.finish(
        "Three ways to connect seven words",
        "The path from the first word to the last is marked. Recurrence: a row of "
        "words below a row of states; the path goes up once and then along all states, "
        "seven steps, one after another. Convolution of width 3: three layers, and "
        "the path moves two words to the right in each. Attention: every word is "
        "connected to every other, and the path is one line.",
    )


def stacks(*, phone: bool = False) -> Svg:
    """Nine words: contiguous and dilated convolutions, and restricted attention."""
    kinds = [
        ("Contiguous, k = 3: four layers", [range(3)] * 4, [0, 2, 4, 6, 8]),
        ("Dilated by 1 and 3: two layers", [range(3), range(0, 7, 3)], [0, 2, 8]),
        ("Attention, r = 5: four layers", [range(-2, 3)] * 4, [0, 2, 4, 6, 8]),
    ]
    drawing = Diagram(340, 600) if phone else Diagram(700, 190)
    for number, (name, levels, path) in enumerate(kinds):
        left, top = (70, 205 * number) if phone else (12 + 238 * number, 0)
        drawing.text(left + 100, top + 12, name, bold=True)
        _network(drawing, left + 4, top + 178, top + 44, levels, path, words=9, step=24)
    ways = "; ".join(
        f"{name}, by {', '.join(str(b - a) for a, b in pairwise(path))} words"
        for name, _, path in kinds
    )
    return drawing.finish(
        "Three stacks over nine words",
        f"The marked path from the first word to the last moves to the right. {ways}.",
    )


def jumps_drawing() -> list[Svg]:
    """The model of jumps: 16 words back in one jump, 15 words back in four."""
    panels = []
    for distance, count in ((16, "one jump"), (15, "four jumps")):
        drawing = Diagram(330, 224)
        drawing.text(178, 12, f"{distance} words back: {count}", bold=True)
        at, path = 16 - distance, [16 - distance]
        for back in (1, 2, 4, 8, 16):
            at += back if distance & back else 0
            path.append(at)
        step, x0, bottom, rise = 16, 44, 184, 29
        for level in range(6):
            y = bottom - level * rise
            if level:
                drawing.text(34, y + rise / 2, f"{2 ** (level - 1)}", anchor="end")
            for word in range(17):
                strong = path[level] == word
                drawing.dot(
                    x0 + step * word,
                    y,
                    role="weight" if strong else "neutral",
                    radius=4.5 if strong else 2,
                )
        points = [(x0 + step * w, bottom - i * rise) for i, w in enumerate(path)]
        drawing.arrow(*points, role="weight", head=False, width=3)
        drawing.text(points[0][0] - 6, 207, "letter", anchor="start", role="weight")
        drawing.text(x0 + 16 * step, 207, "last position", anchor="end")
        panels.append(
            drawing.finish(
                f"{distance} words back takes {count}",
                "Five layers, which can go 1, 2, 4, 8 and 16 words back, or stay. "
                f"The marked path covers {distance} words in {count}.",
            )
        )
    return panels


def products_by_hand() -> list[Svg]:
    """Which matrices meet for three words of two numbers each."""
    # A row: where it stands, its cells' size, its count, and three matrices.
    attention = [
        (
            72,
            20,
            "9 scores · 2 = 18",
            [("queries", 3, 2, "query"), ("keys", 2, 3, "key"), ("", 3, 3, "weight")],
        ),
        (
            188,
            20,
            "6 numbers · 3 = 18",
            [
                ("weights", 3, 3, "weight"),
                ("values", 3, 2, "value"),
                ("", 3, 2, "neutral"),
            ],
        ),
    ]
    matrix = [
        (
            64,
            20,
            "recurrence: 3 words · 4 = 12",
            [
                ("state", 1, 2, "neutral"),
                ("matrix", 2, 2, "key"),
                ("", 1, 2, "neutral"),
            ],
        ),
        (
            184,
            16,
            "convolution: 3 words · 12 = 36",
            [
                ("three words", 1, 6, "neutral"),
                ("kernel", 6, 2, "key"),
                ("", 1, 2, "neutral"),
            ],
        ),
    ]
    panels = []
    for title, rows in (
        ("Self-attention: words by words", attention),
        ("A state, or k words, by a matrix", matrix),
    ):
        drawing = Diagram(336, 262)
        drawing.text(168, 12, title, bold=True)
        for y, cell, count, grids in rows:
            total = cell * sum(columns for _, _, columns, _ in grids)
            left = 168 - (total + 2 * 44) / 2
            for sign, (name, height, columns, role) in zip("×= ", grids, strict=True):
                x = left + cell * columns / 2
                table = torch.full((height, columns), 0.45)
                drawing.grid(x, y, table, role=role, cell=cell, tall=cell, digits=None)
                if name:
                    drawing.text(x, y - cell * height / 2 - 11, name)
                left += cell * columns + 44
                if sign != " ":
                    drawing.text(left - 22, y, sign)
            below = y + cell * max(height for _, height, _, _ in grids) / 2 + 15
            drawing.text(168, below, count, bold=True)
        panels.append(
            drawing.finish(
                title,
                "Matrix products as shaded rectangles, with their multiplications: "
                f"{rows[0][2]}; {rows[1][2]}.",
            )
        )
    return panels


def schedule(words: int = 6) -> list[Svg]:
    """Which product can run when: a column is a step in time, a row is a word."""
    names = ["project", "score", "mix", "project"]
    panels = []
    for attention in (True, False):
        drawing = Diagram(334, 236)
        steps = 4 if attention else words
        name = (
            f"Attention: {steps} steps" if attention else f"Recurrence: {steps} steps"
        )
        drawing.text(167, 12, name, bold=True)
        for word in range(words):
            y = 46 + 25 * word
            drawing.text(52, y, f"word {word + 1}", anchor="end")
            for step in range(steps):
                x = 80 + 45 * step
                if attention or step == word:
                    role = "weight" if attention or step else "key"
                    drawing.box(x, y, "", width=40, height=19, role=role)
                elif step == 0:
                    drawing.box(x, y, "", width=40, height=19, role="key")
            if not attention and word:
                x = 80 + 45 * word
                start, corner, head = (x - 25, y - 25), (x, y - 25), (x, y - 10)
                drawing.arrow(start, corner, head, role="weight", width=2)
        if attention:
            for step, label in enumerate(names):
                drawing.text(80 + 45 * step, 196, label)
        else:
            drawing.text(62, 196, "blue: input products", anchor="start", role="key")
        drawing.axis((60, 212), (326, 212))
        drawing.text(326, 226, "time, without limits on processors", anchor="end")
        panels.append(
            drawing.finish(
                name,
                f"A grid of {words} words by steps in time. "
                + (
                    "In each of the four steps, project, score, mix and project, all "
                    "words have a product at the same time."
                    if attention
                    else "All input products run in the first step. After it, the "
                    "state of each word waits for the state of the word before it."
                ),
            )
        )
    return panels


# The layers, as Table 1 counts them.


def attention_core(x: Tensor) -> Tensor:
    """Self-attention without projections: the words are queries, keys and values."""
    return scaled_dot_product_attention(x, x, x)[0]


def recurrence_core(x: Tensor, matrix: Tensor) -> Tensor:
    """A recurrence whose only product is that of the state."""
    state, states = torch.zeros_like(x[:1]), []
    for word in x.split(1):
        state = torch.tanh(word + state @ matrix)
        states.append(state)
    return torch.cat(states)


def convolution(x: Tensor, kernel: Tensor, dilation: int = 1) -> Tensor:
    """A convolution that looks back; the kernel is (d, d, k), the words (n, d)."""
    before = dilation * (kernel.size(2) - 1)
    padded = F.pad(x.T[None], (before, 0))
    return F.conv1d(padded, kernel, dilation=dilation)[0].T


def restricted_core(x: Tensor, r: int) -> Tensor:
    """Attention to the r words around each query, computed for these alone."""
    inside = F.pad(torch.ones(len(x)), (r // 2, r // 2)).unfold(0, r, 1) > 0
    windows = F.pad(x, (0, 0, r // 2, r // 2)).unfold(0, r, 1)  # (n, d, r)
    near_by = windows.mT  # (n, r, d)
    mask = inside[:, None]  # (n, 1 query, r keys)
    return scaled_dot_product_attention(x[:, None], near_by, near_by, mask)[0][:, 0]


def multiplications(layer: Layer, *inputs: Any) -> int:
    """How many multiplications the matrix products of a layer take."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(*inputs)
    return counter.get_total_flops() // 2


def core_counts(n: int, d: int, k: int = 3, r: int = 3) -> dict[str, int]:
    """The four layers of Table 1, without projections."""
    x = torch.randn(n, d)
    return {
        "self-attention": multiplications(attention_core, x),
        "recurrent": multiplications(recurrence_core, x, torch.randn(d, d)),
        "convolutional": multiplications(convolution, x, torch.randn(d, d, k)),
        "restricted": multiplications(restricted_core, x, r),
    }


def table_1() -> pd.DataFrame:
    """Table 1 as the paper prints it."""
    columns = ["complexity per layer", "sequential operations", "longest path"]
    rows = {
        row.layer: (
            row.complexity,
            row.sequential_operations,
            row.maximum_path_length,
        )
        for row in paper.TABLE_1
    }
    return pd.DataFrame.from_dict(rows, "index", columns=columns)


def settle_complexity() -> None:
    """Settle that each term of the first column is right up to one constant.

    For the operations that the table means: a whole attention layer takes more, by what
    is asserted here.
    """
    constants: dict[str, set[float]] = {}
    for n, d, k, r in product((8, 16, 40), (16, 24, 64), (3, 5), (3, 7)):
        terms = n * n * d, n * d * d, k * n * d * d, r * n * d
        counts = core_counts(n, d, k, r)
        for (layer, count), term in zip(counts.items(), terms, strict=True):
            constants.setdefault(layer, set()).add(count / term)
        whole = multiplications(attention_layer(d), torch.randn(n, d))
        assert whole == counts["self-attention"] + 4 * n * d * d
    found = [f"{min(c):g} for {layer}" for layer, c in constants.items()]
    settle(
        "s4-complexity",
        holds=all(len(c) == 1 for c in constants.values()),
        expected="without projections, each count is the table's term times one "
        "constant",
        measured="over 36 sizes, the multiplications without projections and without "
        "the recurrent layer's input are the table's term times a constant: "
        f"{', '.join(found)}. It holds for these only: the four projections of §3.2.2 "
        "add 4nd² to attention, more than all the rest while n < 2d",
        scale="figures",
    )


# Whole layers, with their projections.


def attention_layer(d: int) -> Layer:
    """One head of width d with its four projections."""
    layer = MultiHeadAttention(d, num_heads=1)
    return lambda x: layer(x[None], x[None], x[None], need_weights=True)


def recurrent_layer(d: int, cell: Callable[..., nn.Module]) -> Layer:
    """A recurrent layer, step by step, with PyTorch's own cell."""
    layer = cell(d, d, bias=False)

    def run(x: Tensor) -> None:
        state = None
        for word in x.split(1):
            state = layer(word, state)

    return run


def layer_counts(n: int, d: int) -> dict[str, int]:
    """Multiplications of four whole layers."""
    x = torch.randn(n, d)
    cells = {"plain RNN": nn.RNNCell, "GRU": nn.GRUCell, "LSTM": nn.LSTMCell}
    return {"self-attention": multiplications(attention_layer(d), x)} | {
        name: multiplications(recurrent_layer(d, cell), x)
        for name, cell in cells.items()
    }


def settle_costs(d: int = 32) -> None:
    """Settle the factor k and n < d by the table's terms, as the paper argues.

    The table of the text stands on whole layers, and is asserted here.
    """
    factors = {}
    whole = layer_counts(16, d)
    for k in (1, 3, 5, 9):
        counts = core_counts(16, d, k)
        factors[k] = counts["convolutional"] / counts["recurrent"]
        for name, divisor in (("plain RNN", 2), ("GRU", 6), ("LSTM", 8)):
            assert counts["convolutional"] * divisor == k * whole[name]
    settle(
        "s4-convolution-cost",
        holds=all(factor == k for k, factor in factors.items()),
        expected="by the table's terms, a convolution takes k times the recurrent "
        "product",
        measured="against one d × d product for each word, a convolution takes "
        + ", ".join(f"{factor:g} (k = {k})" for k, factor in factors.items())
        + " times as many multiplications; but a whole GRU takes 6 such products, so "
        "that k = 3 costs half a GRU",
        scale="figures",
    )
    lengths = [1, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 128]
    cheaper: dict[str, list[int]] = {"plain RNN": [], "GRU": [], "LSTM": []}
    by_terms, by_core = [], []
    for n in lengths:
        counts, core = layer_counts(n, d), core_counts(n, d)
        if core["self-attention"] < 2 * core["recurrent"]:  # its term counts twice
            by_terms.append(n)
        if core["self-attention"] < core["recurrent"]:
            by_core.append(n)
        for name, found in cheaper.items():
            if counts["self-attention"] < counts[name]:
                found.append(n)
        at_d = n != d or counts["self-attention"] == counts["GRU"]
        assert at_d, "equal at n = d, the text says"
    assert by_core == [n for n in lengths if 2 * n < d]
    assert cheaper["GRU"] == [n for n in lengths if n < d]
    assert cheaper["LSTM"] == [n for n in lengths if n < 2 * d]
    settle(
        "s4-n-below-d",
        holds=by_terms == [n for n in lengths if n < d],
        expected="by the table's terms, n²d is less than nd² exactly if n < d",
        measured=f"d = {d}: by the terms, less up to n = {by_terms[-1]}; by the "
        f"products behind them, up to n = {by_core[-1]}; by whole layers, less than a "
        f"GRU up to n = {cheaper['GRU'][-1]} and equal at n = {d}, less than an LSTM "
        f"up to n = {cheaper['LSTM'][-1]}, and less than a plain RNN at "
        f"{len(cheaper['plain RNN'])} lengths",
        scale="figures",
    )


FORMULAS = {  # multiplications a word
    "attention, in the table": "datum.n * d",
    "recurrence, in the table": "d * d",
    "attention layer": "4 * d * d + 2 * datum.n * d",
    "plain RNN": "2 * d * d",
    "GRU": "6 * d * d",
    "LSTM": "8 * d * d",
}


def cost_chart() -> alt.LayerChart:
    """Multiplications a word over the length, with a slider for the width."""
    width = alt.param(
        name="d",
        value=512,
        bind=alt.binding_range(min=64, max=1024, step=64, name="Width d "),
    )
    names, keys = list(FORMULAS), list("abcefg")
    legend = alt.Legend(columns=1, title=None, symbolSize=300, labelLimit=250)
    colours = [SERIES[i].mark for i in (0, 1, 0, 2, 1, 3)]
    dashes = [[3, 3], [3, 3], [1, 0], [8, 3], [1, 0], [8, 2, 2, 2]]
    values = [{"key": k, "layer": name} for k, name in zip(keys, names, strict=True)]
    found = alt.LookupData(data=alt.Data(values=values), key="key", fields=["layer"])
    points = [{"n": 2 ** (i / 2)} for i in range(6, 27)]
    lines = (
        alt.Chart(alt.Data(values=points))
        .transform_calculate(**dict(zip(keys, FORMULAS.values(), strict=True)))
        .transform_fold(keys, as_=["key", "multiplications"])
        .transform_lookup(lookup="key", from_=found)
        .mark_line()
        .encode(
            x=alt.X("n:Q", title="words n", scale=alt.Scale(type="log", base=2)),
            y=alt.Y(
                "multiplications:Q",
                title="multiplications a word",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~s"),
            ),
            color=alt.Color(
                "layer:N",
                scale=alt.Scale(domain=names, range=colours),
                legend=legend,
            ),
            strokeDash=alt.StrokeDash(
                "layer:N",
                scale=alt.Scale(domain=names, range=dashes),
                legend=legend,
            ),
        )
    )
    mark = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(n="d")
        .mark_rule(strokeDash=[2, 4])
        .encode(x="n:Q")
    )
    return (
        alt.layer(lines, mark)
        .add_params(width)
        .properties(
            width="container",
            height=300,
            description="Multiplications a word over the length, both logarithmic. "
            "The table's term for attention is a rising line that crosses the "
            "recurrent one at n = d. The whole attention layer is flat at first, "
            "always above a plain RNN, crosses the GRU at n = d and the LSTM at "
            "n = 2d. A slider sets d.",
        )
    )


# Is n below d in translation?

SMALL_WIDTH = 96
"""d_model of chapter 16's model."""


def grammar_lengths() -> Tensor:
    """How many pieces each sentence of the book's grammar has, end token included."""
    text = load_corpus("grammar", size=1000, held_out_size=10).train
    lines = [*text.source, *text.target]
    tokenizer = Tokenizer.train(lines, vocab_size=400)
    return torch.tensor([len(tokenizer.encode(line)) + 1 for line in lines])


def length_chart(lengths: Tensor) -> alt.LayerChart:
    """A histogram of sentence lengths, with a rule at the width."""
    values, counts = lengths.unique(return_counts=True)
    share = counts / counts.sum()
    rows = [
        {"pieces": n, "share": s}
        for n, s in zip(values.tolist(), share.tolist(), strict=True)
    ]
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=SERIES[0].mark, width=3)
        .encode(
            x=alt.X(
                "pieces:Q",
                title="pieces in a sentence, n",
                scale=alt.Scale(domain=[0, 104], nice=False),
            ),
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%", tickCount=4)),
            tooltip=["pieces:Q", alt.Tooltip("share:Q", format=".1%")],
        )
    )
    rule = (
        alt.Chart(alt.Data(values=[{"pieces": SMALL_WIDTH}]))
        .mark_rule(strokeDash=[4, 4], color=SERIES[1].mark, strokeWidth=2.5)
        .encode(x="pieces:Q")
    )
    name = (
        alt.Chart(alt.Data(values=[{"pieces": SMALL_WIDTH, "text": "d = 96"}]))
        .mark_text(align="right", dx=-6, color=SERIES[1].mark)
        .encode(x="pieces:Q", y=alt.value(12), text="text:N")
    )
    return alt.layer(bars, rule, name).properties(
        width="container",
        height=200,
        description=f"Histogram of sentence lengths from {int(lengths.min())} to "
        f"{int(lengths.max())} pieces. A rule marks the width, 96, far to the right.",
    )


def settle_lengths(lengths: Tensor) -> None:
    """Settle that sentences are mostly shorter than the representation is wide."""
    record = load_record("multi30k-en-de")
    config, data = record["config"], record["log"][0]["data"]
    limit, width = config["max_length"], config["model"]["d_model"]
    kept, all_pairs = data["pairs"], data["pairs"] + data["too_long"]
    share = (lengths < SMALL_WIDTH).float().mean().item()
    gum = load_record("parsing")["lengths"]["gum"]
    # Markov's inequality: a share of at most mean / 512 has 512 pieces or more.
    prose = 2 * gum["words"] / TransformerConfig().d_model
    settle(
        "s4-n-is-below-d",
        holds=min(share, kept / all_pairs, 1 - prose) > 0.9 and limit <= width,
        expected="more than nine sentences in ten have n < d",
        measured=f"of the grammar's sentences {share:.0%} are shorter than that "
        f"model's d = {SMALL_WIDTH} (the longest has {int(lengths.max())} tokens); of "
        f"the captions of Multi30k {kept / all_pairs:.0%} have at most {limit} pieces, "
        f"which is that model's d (in German "
        f"{data['target_tokens'] / kept:.1f} on average); in English prose of many "
        f"kinds (GUM, chapter 19) a sentence has {gum['words']:.1f} words on average, "
        f"so that at most {prose:.0%} can have base's 512 pieces, with two for each "
        "word. The paper's own corpus, WMT, was not counted",
        sample=f"{len(lengths):,} sentences of a grammar, {all_pairs:,} captions, "
        f"{gum['sentences']:,} sentences of prose",
        detects="more than one sentence in ten with n ≥ d",
    )


# Sequential depth: the longest way through the graph that autograd records.

PRODUCTS = ("Mm", "Bmm", "Addmm", "Convolution")


def products_between(
    output: Tensor, start: Tensor, choose: Callable[..., float]
) -> float:
    """Matrix products on the longest (max) or shortest (min) way from start to output.

    PyTorch records for each result what it was made from; this walks back along it.
    """
    no_way = -math.inf if choose is max else math.inf
    seen: dict[Any, float] = {}

    def walk(node: Any) -> float:
        if hasattr(node, "variable"):  # an input, or a weight
            return 0 if node.variable is start else no_way
        if node not in seen:
            ways = [walk(to) for to, _ in node.next_functions if to]
            own = node.name().startswith(PRODUCTS)
            seen[node] = own + choose(ways, default=no_way)
        return seen[node]

    return walk(output.grad_fn)


def near(n: int, r: int) -> Tensor:
    """A mask, true where a key is one of the r words around the query."""
    assert r % 2, "a centred window has an odd number of words"
    position = torch.arange(n)
    return (position[:, None] - position).abs() <= r // 2


def layers(d: int = 16) -> dict[str, Layer]:
    """The four layers of Table 1, with their input or output projections."""
    generator = torch.Generator().manual_seed(12)
    W_Q, W_K, W_V, W_O, W_in, U = (
        torch.randn(d, d, generator=generator) / d**0.5 for _ in range(6)
    )
    kernel = torch.randn(d, d, 3, generator=generator) / (3 * d) ** 0.5

    def attend(x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = x @ W_Q, x @ W_K, x @ W_V
        return scaled_dot_product_attention(q, k, v, mask)[0] @ W_O

    return {
        "self-attention": attend,
        "recurrent": lambda x: recurrence_core(x @ W_in, U),
        "convolutional": lambda x: convolution(x, kernel),
        "restricted": lambda x: attend(x, near(len(x), 5)),
    }


def sequential_depth(layer: Layer, n: int, d: int = 16) -> int:
    """Products on the critical path: the longest way from the first word."""
    words = [torch.randn(1, d, requires_grad=True) for _ in range(n)]
    return int(products_between(layer(torch.cat(words)), words[0], max))


def shortest_way(kind: str, n: int, distance: int, d: int = 16) -> int:
    """Products on the shortest way to the last word from one some words before it."""
    words = [torch.randn(1, d) for _ in range(n)]
    start = words[n - 1 - distance].requires_grad_()
    if kind == "recurrent":
        W_in, U = torch.randn(d, d), torch.randn(d, d)
        last = torch.zeros(1, d)
        for word in words:
            last = torch.tanh(word @ W_in + last @ U)
    else:
        last = layers(d)[kind](torch.cat(words))[-1]
    return int(products_between(last, start, min))


def settle_sequential(
    depth: Mapping[str, Sequence[int]], lengths: Sequence[int]
) -> None:
    """Settle that only the recurrent layer's critical path grows with the length."""
    constant = all(min(d) == max(d) for name, d in depth.items() if name != "recurrent")
    rest = [d - n for d, n in zip(depth["recurrent"], lengths, strict=True)]
    settle(
        "s4-sequential",
        holds=constant and min(rest) == max(rest),
        expected="the same sequential depth at every length, but n and a constant for "
        "the recurrent layer",
        measured="products that must wait for each other, from "
        f"n = {lengths[0]} to n = {lengths[-1]}: "
        + ", ".join(f"{name} {d[0]} to {d[-1]}" for name, d in depth.items()),
        scale="derivation",
    )


def settle_parallel(d: int = 16) -> None:
    """Settle how much of the work could be done at once, and how that grows."""
    gain = {}
    for name in ("self-attention", "recurrent"):
        layer = layers(d)[name]
        few, many = (
            multiplications(layer, torch.randn(n, d)) / sequential_depth(layer, n, d)
            for n in (8, 64)
        )
        gain[name] = many / few
    settle(
        "s1-parallel",
        holds=gain["self-attention"] >= 8 and gain["recurrent"] < 2,
        expected="eight times as many words: at least eight times as much at once for "
        "attention, and less than twice for recurrence",
        measured="with eight times as many words, all known beforehand as in training, "
        "one layer's work divided by its sequential depth: "
        f"attention {gain['self-attention']:.1f} times as much, recurrence "
        f"{gain['recurrent']:.2f} times",
        scale="derivation",
    )


# By the clock.


def seconds(functions: Mapping[str, Callable[[], Any]], rounds: int = 7) -> dict:
    """The fastest of interleaved rounds; the first round only warms up.

    Whatever else runs on a machine makes a round slower, never faster.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    with torch.inference_mode():
        for _ in range(rounds + 1):
            for name, function in functions.items():
                begin = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - begin)
    return {name: min(taken[1:]) for name, taken in times.items()}


def clock(d: int, batch: int, n: int) -> float:
    """Time of an attention layer divided by the time of PyTorch's GRU."""
    x = torch.randn(batch, n, d)
    gru = nn.GRU(d, d, batch_first=True, bias=False)
    weights = [torch.randn(d, d) / d**0.5 for _ in range(4)]

    def attention() -> Tensor:
        q, k, v = (x @ weight for weight in weights[:3])
        return scaled_dot_product_attention(q, k, v)[0] @ weights[3]

    functions = {"attention": attention, "GRU": lambda: gru(x)}
    taken = seconds(functions, rounds=11 if x.numel() < 2**17 else 5)
    return taken["attention"] / taken["GRU"]


def clock_table() -> pd.DataFrame:
    """The ratio of times over lengths, for two widths and two batches."""
    rows = []
    for d, batch in product((64, 256), (1, 16)):
        name = f"d = {d}, {batch} sentence{'s' * (batch > 1)}"
        for n in (32, 64, 128, 256, 512, 1024, 2048):
            if batch * n * max(n, 4 * d) <= 2**22:  # so that it stays quick
                rows.append((n, clock(d, batch, n), name, d))
    columns = ["words n", "time, attention / GRU", "layer", "d"]
    return pd.DataFrame(rows, columns=columns)


def _with_rule_at_one(chart: alt.Chart) -> alt.LayerChart:
    """A chart of ratios, with a dashed line where both sides are equal."""
    one = alt.Chart(alt.Data(values=[{"y": 1}])).mark_rule(strokeDash=[4, 4])
    return alt.layer(chart, one.encode(y="y:Q")).properties(
        width="container", height=260, description=chart.description
    )


def clock_chart(times: pd.DataFrame) -> alt.LayerChart:
    """The ratio over the length, with a rule where both take the same time."""
    chart = curves(
        times,
        "words n",
        "time, attention / GRU",
        "layer",
        description="Time of an attention layer divided by the time of a GRU, over the "
        "number of words, both logarithmic, for two widths and two batch sizes. The "
        "lines rise with the length; those with sixteen sentences lie higher.",
        log_x=True,
        log_y=True,
    )
    return _with_rule_at_one(chart)


def at_equal_counts(times: pd.DataFrame) -> list[float]:
    """The ratios at n = d, where the counts of both layers are equal."""
    return times[times["words n"] == times["d"]]["time, attention / GRU"].tolist()


def crossing(lengths: Sequence[float], ratios: Sequence[float]) -> float | None:
    """Where the ratio passes 1 for good, a straight line between lengths."""
    pairs = list(zip(lengths, ratios, strict=True))
    below = [i for i, (_, ratio) in enumerate(pairs) if ratio < 1]
    if not below or below[-1] == len(pairs) - 1:
        return None
    (n0, r0), (n1, r1) = pairs[below[-1]], pairs[below[-1] + 1]
    return n0 * (n1 / n0) ** (math.log(1 / r0) / math.log(r1 / r0))


def square_table(d: int = 64) -> pd.DataFrame:
    """Time of an encoder layer's n² part, divided by the rest's, over the length."""
    weights = [torch.randn(d, d) / d**0.5 for _ in range(4)]
    up, down = torch.randn(d, 4 * d) / d**0.5, torch.randn(4 * d, d) / d**0.5

    def ratio(n: int) -> float:
        x = torch.randn(n, d)

        def the_rest() -> Tensor:
            for weight in weights:
                x @ weight
            return torch.relu(x @ up) @ down

        taken = seconds({"square": lambda: attention_core(x), "rest": the_rest}, 5)
        return taken["square"] / taken["rest"]

    rows = []
    for n in (32, 64, 128, 256, 512, 1024):
        rows += [(n, n / (6 * d), "by the count"), (n, ratio(n), "by the clock")]
    return pd.DataFrame(rows, columns=["words n", "n² part / rest", "measure"])


def square_chart(shares: pd.DataFrame) -> alt.LayerChart:
    """The n² part relative to the rest, with a rule where they are equal."""
    chart = curves(
        shares,
        "words n",
        "n² part / rest",
        "measure",
        description="The n² part of an encoder layer divided by its other products, "
        "over the number of words, both logarithmic. By the count it is a straight "
        "line that crosses one at 6d. By the clock it rises likewise.",
        log_x=True,
        log_y=True,
    )
    return _with_rule_at_one(chart)


def half_time(shares: pd.DataFrame) -> str:
    """Where the times of both parts are equal, in words."""
    run = shares[shares["measure"] == "by the clock"]
    met = crossing(run["words n"].tolist(), run["n² part / rest"].tolist())
    return f"near n = {met:.0f}" if met else "at no length up to 1024"


# Memory.


class Attend(MultiHeadAttention):
    """Self-attention step by step, as in equation (1)."""

    def forward(self, x: Tensor) -> Any:
        """The context and the weights."""
        return super().forward(x, x, x, need_weights=True)


class Fused(Attend):
    """The same by PyTorch's fused kernel, which does not keep the weights."""

    def attention(self, queries: Tensor, keys: Tensor, values: Tensor, *_: Any) -> Any:
        """The context alone."""
        return F.scaled_dot_product_attention(queries, keys, values), None


def stored_numbers(layer: nn.Module, x: Tensor) -> int:
    """How many numbers a layer keeps for its backward pass, without its weights.

    A hook sees each tensor that is saved; each storage counts once.
    """
    own = {p.untyped_storage().data_ptr() for p in layer.parameters()}
    sizes = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes() // x.element_size()
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(pack, lambda tensor: tensor):
        output = layer(x)
    del output
    return sum(sizes.values())


def memory_table(d: int = 64) -> pd.DataFrame:
    """Stored activations per token, in units of d, over the length."""
    modules = {
        "attention, 8 heads": Attend(d, 8),
        "attention, 1 head": Attend(d, 1),
        "attention, 8 heads, fused": Fused(d, 8),
        "GRU": nn.GRU(d, d, batch_first=True, bias=False),
    }
    rows = [
        (n, stored_numbers(m, torch.randn(1, n, d, requires_grad=True)) / (n * d), name)
        for name, m in modules.items()
        for n in (100, 200, 400, 800)
    ]
    columns = ["words n", "stored per token, in units of d", "layer"]
    return pd.DataFrame(rows, columns=columns)


def memory_chart(stored: pd.DataFrame) -> alt.LayerChart:
    """Stored activations per token over the length."""
    return curves(
        stored,
        "words n",
        "stored per token, in units of d",
        "layer",
        description="Stored activations per token over the number of words, both "
        "logarithmic. The GRU's line and that of the fused attention are level. "
        "Attention with one head rises, and with eight heads rises far above it.",
        log_x=True,
        log_y=True,
    )


# Path lengths.


def ends_meet(layer: Layer, n: int, depth: int, d: int = 8) -> bool:
    """Whether the last word's output depends on the first word after some layers."""
    x = torch.randn(n, d, dtype=torch.float64)
    y = x.requires_grad_()
    for level in range(depth):
        y = layer(y, level)
    (slope,) = torch.autograd.grad(y[-1].sum(), x)  # (n, d)
    return bool(slope[0].any())


def layers_to_meet(layer: Layer, n: int) -> int:
    """The smallest depth at which the two ends of the sentence are connected."""
    return next(L for L in range(1, n) if ends_meet(layer, n, L))


STACKS = (
    ("self-attention", 0),
    ("restricted attention", 5),
    ("convolution", 3),
    ("dilated convolution", 3),
)


def stack_of(kind: str, size: int = 0, d: int = 8) -> Layer:
    """A layer of random weights, called with the words and its level in the stack."""
    generator = torch.Generator().manual_seed(12)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    # Small, so that scores do not grow with the depth until a weight is exactly 0.
    W_Q, W_K, W_V, W_O = (draw(d, d) / d for _ in range(4))
    kernel = draw(d, d, size) / (size * d) ** 0.5 if "convolution" in kind else None

    def attend(x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = x @ W_Q, x @ W_K, x @ W_V
        return scaled_dot_product_attention(q, k, v, mask)[0] @ W_O

    return {
        "self-attention": lambda x, _: attend(x),
        "restricted attention": lambda x, _: attend(x, near(len(x), size)),
        "convolution": lambda x, _: convolution(x, kernel),
        "dilated convolution": lambda x, level: convolution(x, kernel, size**level),
    }[kind]


def layers_for(n: int, reach: int) -> int:
    """Layers that join the ends if each moves a word on by some positions."""
    return math.ceil((n - 1) / reach)


def layers_if_dilated(n: int, k: int) -> int:
    """Layers of a dilated stack: the smallest L with kᴸ ≥ n, in whole numbers."""
    depth = 1
    while k**depth < n:
        depth += 1
    return depth


def path_table(lengths: Sequence[int] = (9, 20, 40)) -> pd.DataFrame:
    """Measured path lengths between the two ends, for each kind of layer."""
    rows = {"recurrence": [shortest_way("recurrent", n, n - 1) for n in lengths]}
    for kind, size in STACKS:
        name = f"{kind}, {size} wide" if size else kind
        rows[name] = [layers_to_meet(stack_of(kind, size), n) for n in lengths]
    columns = [f"n = {n}" for n in lengths]
    return pd.DataFrame.from_dict(rows, "index", columns=columns)


def settle_paths() -> None:
    """Settle the third column of the table, and what §2 and §4 say of it."""
    sizes = list(product((11, 20, 41), (3, 5, 9)))

    def measured(kind: str) -> dict[tuple[int, int], int]:
        return {(n, k): layers_to_meet(stack_of(kind, k), n) for n, k in sizes}

    near_by, plain = measured("restricted attention"), measured("convolution")
    wide = measured("dilated convolution")
    as_predicted = all(near_by[n, r] == layers_for(n, (r - 1) // 2) for n, r in sizes)
    ratios = [depth / (n / r) for (n, r), depth in near_by.items()]
    settle(
        "s4-restricted",
        holds=as_predicted,
        expected="2(n − 1)/(r − 1) layers, rounded up, which is of order n/r",
        measured=f"exactly that at {len(sizes)} sizes: {min(ratios):.1f} to "
        f"{max(ratios):.1f} times n/r, since a centred window reaches only half its "
        "size to each side",
        scale="derivation",
    )
    in_line = all(plain[n, k] == layers_for(n, k - 1) for n, k in sizes)
    in_powers = all(wide[n, k] == layers_if_dilated(n, k) for n, k in sizes)
    settle(
        "s4-convolution-stack",
        holds=min(plain.values()) > 1 and in_line and in_powers,
        expected="one layer does not join the ends; contiguous kernels need "
        "(n − 1)/(k − 1) layers and dilated ones logₖ n, rounded up",
        measured=f"exactly that at {len(sizes)} sizes; n = 41 and k = 3: "
        f"{plain[41, 3]} contiguous layers or {wide[41, 3]} dilated ones",
        scale="derivation",
    )
    lengths = (4, 10, 40)
    attention = [layers_to_meet(stack_of("self-attention"), n) for n in lengths]
    recurrence = [shortest_way("recurrent", n, n - 1) for n in lengths]
    apart = sum(_unconnected(kind, 20, size) for kind, size in STACKS)
    settle(
        "s4-path-length",
        holds=max(attention) == 1
        and recurrence == list(lengths)
        and apart == 0
        and in_powers
        and as_predicted,
        expected="1 for attention, n for recurrence, logₖ n for dilated kernels, "
        "2(n − 1)/(r − 1) for restricted attention",
        measured=f"steps between the two ends of 40 words: attention {attention[-1]}, "
        f"recurrence {recurrence[-1]}; of 41 words: {wide[41, 3]} with dilated kernels "
        f"of width 3, {plain[41, 3]} with contiguous ones, which the table leaves "
        f"out, {near_by[41, 5]} with attention to 5 words; of 20 words, {apart} pairs "
        "are then not connected",
        scale="derivation",
    )
    distances = (1, 4, 16, 63)
    operations = {
        kind: [shortest_way(kind, 64, distance) for distance in distances]
        for kind in ("self-attention", "recurrent")
    }
    between = operations["recurrent"]
    settle(
        "s2-constant-operations",
        holds=min(operations["self-attention"]) == max(operations["self-attention"])
        and between[-1] - between[0] == 62,
        expected="as many matrix products between two words at any distance; in a "
        "recurrence one more for each word between them",
        measured="matrix products between two words at distances "
        f"{_listed(distances)}: attention {_listed(operations['self-attention'])}, "
        f"recurrence {_listed(between)}",
        scale="derivation",
    )


def _listed(numbers: Iterable[float]) -> str:
    """The numbers in a row, as one writes them."""
    return ", ".join(f"{number:g}" for number in numbers)


def _unconnected(kind: str, n: int, size: int) -> int:
    """Pairs that are not connected yet at the depth that joins the two ends."""
    layer = stack_of(kind, size)
    depth = layers_to_meet(layer, n)

    def stack(x: Tensor) -> Tensor:
        for level in range(depth):
            x = layer(x, level)
        return x.sum(dim=1)  # a number for each word

    x = torch.randn(n, 8, dtype=torch.float64)
    zero = (torch.autograd.functional.jacobian(stack, x) == 0).all(dim=-1)
    # A kernel that looks back is asked for the words before each word only.
    return int((zero.tril() if "conv" in kind else zero).sum())


def first_reached(kind: str, size: int, n: int = 17) -> Tensor:
    """After how many layers each output depends on each input; 0 means never."""
    layer = stack_of(kind, size)
    together, first = torch.eye(n).bool(), torch.zeros(n, n).int()
    for depth in range(1, n + 1):
        level = min(depth - 1, 3)  # further jumps leave the sentence anyhow
        jacobian = torch.autograd.functional.jacobian(
            lambda x, level=level: layer(x, level).sum(dim=1),
            torch.randn(n, 8, dtype=torch.float64),
        )
        direct = (jacobian != 0).any(dim=-1)  # in this layer alone
        together = (direct.float() @ together.float()) > 0
        first[together & (first == 0)] = depth
    return first


def reach_chart() -> alt.Chart:
    """A square of outputs by inputs, filled where one depends on the other."""
    names = ("self-attention", "restricted to 5", "convolution, 3", "dilated, 3")
    cells = [
        {"stack": name, "output": i, "input": j, "first": depth}
        for name, (kind, size) in zip(names, STACKS, strict=True)
        for i, row in enumerate(first_reached(kind, size).tolist())
        for j, depth in enumerate(row)
        if depth > 0
    ]
    depth = alt.param(
        name="depth",
        value=2,
        bind=alt.binding_range(min=1, max=16, step=1, name="Layers "),
    )
    stack = alt.param(
        name="stack",
        value="dilated, 3",
        bind=alt.binding_select(options=list(names), name="Stack "),
    )
    ticks = alt.Axis(labelAngle=0, values=[0, 4, 8, 12, 16])
    return (
        alt.Chart(alt.Data(values=cells))
        .transform_filter("datum.stack == stack")
        .mark_rect()
        .encode(
            x=alt.X("input:O", title="input word", axis=ticks),
            y=alt.Y("output:O", title="output word", axis=ticks),
            color=alt.condition(
                "datum.first <= depth",
                alt.value(WEIGHT.mark),
                alt.value("transparent"),
            ),
            tooltip=[
                "input:O",
                "output:O",
                alt.Tooltip("first:Q", title="reached after layers"),
            ],
        )
        .add_params(depth, stack)
        .properties(
            width=272,
            height=272,
            description="A square of 17 output words by 17 input words. Filled cells "
            "are pairs with a derivative that is not zero after the chosen number of "
            "layers. With two dilated layers of width 3 a band of nine words below the "
            "diagonal is filled, and the corner at the bottom left is empty. "
            "Self-attention fills all at one layer.",
        )
    )


# Is distance free?


def slopes_by_distance(kind: str, n: int = 65) -> Tensor:
    """Norms of the derivative of the last output, by the distance of the word."""
    x = torch.randn(1, n, 32, requires_grad=True)
    if kind == "GRU":
        last = nn.GRU(32, 32, batch_first=True)(x)[0][0, -1]
    else:
        last = Attend(32, 1)(x)[0][0, -1]
    direction = torch.randn(32)
    (slope,) = torch.autograd.grad(last @ direction, x)
    return slope[0].norm(dim=1).flip(0)


def gradients() -> pd.DataFrame:
    """Ten medians of thirty draws for each layer, at distances from 1 to 64."""
    rows = []
    for kind, seed in product(("self-attention", "GRU"), range(10)):
        torch.manual_seed(seed)
        draws = torch.stack([slopes_by_distance(kind) for _ in range(30)])
        middle = draws.median(dim=0).values
        for distance in (1, 2, 4, 8, 16, 32, 64):
            rows.append((distance, middle[distance].item(), kind, seed))
    return pd.DataFrame(rows, columns=["distance", "gradient", "layer", "seed"])


def far_to_near(found: pd.DataFrame) -> dict[str, float]:
    """The median gradient at distance 64, divided by that at distance 1."""
    middle = found.pivot_table("gradient", "layer", "distance", "median")
    return (middle[64] / middle[1]).to_dict()


def gradient_chart(found: pd.DataFrame) -> alt.LayerChart:
    """The gradient by distance."""
    chart = curves(
        found,
        "distance",
        "gradient",
        "layer",
        description="Norm of the derivative of the last output by the word at a "
        "distance, both logarithmic, ten medians of thirty draws. For attention it is "
        "level but for chance. For a GRU it begins higher and falls by many powers of "
        "ten.",
        log_x=True,
        log_y=True,
    )
    for layer in chart.layer:
        layer.encoding.y.axis = alt.Axis(format=".0e", tickCount=5)
    return chart


def growth_table() -> pd.DataFrame:
    """Path and work of attention and recurrence, relative to eight words."""
    rows = []
    for kind, n in product(("self-attention", "recurrent"), (8, 16, 32, 64)):
        rows += [
            (n, shortest_way(kind, n, n - 1), f"{kind}, path"),
            (n, core_counts(n, 16)[kind], f"{kind}, work"),
        ]
    growth = pd.DataFrame(rows, columns=["words n", "times as much", "what"])
    start = growth.groupby("what")["times as much"].transform("first")
    growth["times as much"] /= start
    return growth


def growth_chart(growth: pd.DataFrame) -> alt.LayerChart:
    """Path and work over the length."""
    return curves(
        growth,
        "words n",
        "times as much",
        "what",
        description="Path and work relative to 8 words, both logarithmic. Attention's "
        "path is level and its work grows with the square. The recurrent layer's path "
        "and work both grow in proportion to the words.",
        log_x=True,
        log_y=True,
    )


# Is a shorter path easier to learn?

WIDTH, LETTERS, MOST, SEEDS = 32, 8, 400, 5


class Jump(nn.Module):
    """A residual layer that sees its own position and one some words back."""

    def __init__(self, back: int) -> None:
        super().__init__()
        self.here = nn.Linear(WIDTH, WIDTH)
        self.there = nn.Linear(WIDTH, WIDTH, bias=False)
        self.back = back

    def forward(self, x: Tensor) -> Tensor:
        """The words (batch, n, WIDTH), moved on where that helps."""
        past = F.pad(x, (0, 0, self.back, 0))[:, : -self.back]
        return x + torch.relu(self.here(x) + self.there(past))


class Window(nn.Module):
    """Attention with a residual connection that sees some words back."""

    def __init__(self, length: int, back: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(WIDTH, 1)
        gap = torch.arange(length)[:, None] - torch.arange(length)
        self.mask = (gap >= 0) & (gap <= back)

    def forward(self, x: Tensor) -> Tensor:
        """The words (batch, n, WIDTH), each with what it attends to."""
        return x + self.attention(x, x, x, self.mask)[0]


def jump_layers() -> list[nn.Module]:
    """Five layers that go 1, 2, 4, 8 and 16 words back."""
    return [Jump(2**i) for i in range(5)]


def window_layers(path: int, distance: int = 12) -> list[nn.Module]:
    """Three layers of attention whose windows make the path one to three layers."""
    return [Window(distance + 1, distance // path) for _ in range(3)]


def steps_to_learn(
    make_layers: Callable[[], list[nn.Module]], distance: int, seed: int
) -> int:
    """Steps until five batches in a row are nine tenths right; `MOST` if never."""
    torch.manual_seed(seed)
    positions = 0.5 * torch.randn(distance + 1, WIDTH)
    embedding = nn.Embedding(2 * LETTERS, WIDTH)
    model = nn.Sequential(*make_layers(), nn.Linear(WIDTH, LETTERS))
    weights = [*embedding.parameters(), *model.parameters()]
    optimizer = torch.optim.Adam(weights, lr=3e-3, fused=True)
    in_a_row = 0
    for step in range(1, MOST + 1):
        x = torch.randint(LETTERS, 2 * LETTERS, (32, distance + 1))
        x[:, 0] = first = torch.randint(LETTERS, (32,))
        scores = model(embedding(x) + positions)[:, -1]
        optimizer.zero_grad()
        F.cross_entropy(scores, first).backward()
        optimizer.step()
        right = (scores.argmax(dim=-1) == first).float().mean()
        in_a_row = in_a_row + 1 if right >= 0.9 else 0
        if in_a_row == 5:
            return step
    return MOST


def single_jumps(distances: Sequence[int] = (1, 2, 4, 8)) -> tuple[int, int]:
    """The fewest and the most steps to learn one jump, each made by another layer.

    Here distance and layer change, and the path does not.
    """
    steps = [
        steps_to_learn(jump_layers, distance, seed)
        for distance, seed in product(distances, range(SEEDS))
    ]
    return min(steps), max(steps)


def learn() -> pd.DataFrame:
    """Steps to learn by path length, five seeds, for both families of models."""
    rows = []
    for distance in (16, 12, 14, 15):
        path = distance.bit_count()
        for seed in range(SEEDS):
            steps = steps_to_learn(jump_layers, distance, seed)
            rows.append((path, steps, "jumps", seed))
    for path, seed in product((1, 2, 3), range(SEEDS)):
        steps = steps_to_learn(lambda path=path: window_layers(path), 12, seed)
        rows.append((path, steps, "windows", seed))
    columns = ["path length", "steps to learn", "model", "seed"]
    return pd.DataFrame(rows, columns=columns)


def learn_chart(trials: pd.DataFrame) -> alt.LayerChart:
    """Steps of training over the path length."""
    chart = curves(
        trials,
        "path length",
        "steps to learn",
        "model",
        description="Steps of training over the length of the path, five seeds, for "
        "two families of models, jumps and windows. Both rise steeply.",
        log_y=True,
    )
    for layer in chart.layer:
        layer.encoding.x.axis = alt.Axis(values=[1, 2, 3, 4], format="d")
    return chart


def growth_per_layer(trials: pd.DataFrame, family: str) -> tuple[float, float]:
    """Slope of log₂(steps) over the path: its mean over the seeds, standard error."""
    slopes = []
    for _, run in trials[trials["model"] == family].groupby("seed"):
        x = torch.tensor(run["path length"].tolist()).double()
        y = torch.tensor(run["steps to learn"].tolist()).double().log2()
        x = x - x.mean()
        slopes.append(((x * y).sum() / (x * x).sum()).item())
    return mean_and_error(slopes)


def settle_short_paths(trials: pd.DataFrame) -> None:
    """Settle whether a shorter path is learned sooner, within each family."""
    found, errors, words = [], [], []
    for family in ("jumps", "windows"):
        slope, error = growth_per_layer(trials, family)
        runs = trials[trials["model"] == family].groupby("path length")[
            "steps to learn"
        ]
        means = runs.mean().tolist()
        found.append(slope > 2 * error and all(a < b for a, b in pairwise(means)))
        errors.append(error)
        each = ", ".join(
            f"{path}: {low}–{high}"
            for path, low, high in zip(
                runs.min().index, runs.min(), runs.max(), strict=True
            )
        )
        words.append(
            f"{family} {2**slope:.1f} times as many steps for each further step of the "
            f"path (by path length, {each})"
        )
    settle(
        "s4-short-paths",
        holds=all(found),
        expected="in both families the mean number of steps rises with each step of "
        "the path, and its slope is above two standard errors",
        measured=f"{'; '.join(words)}; {MOST} would mean not learned",
        sample=f"{SEEDS} seeds at each path length, two families of models, {WIDTH} "
        "wide (in the windows, the number of routes changes too)",
        detects=f"{2 ** smallest_effect(max(errors)):.2f} times as many steps for each "
        "further step of the path",
    )


# The separable convolution.


def separable(x: Tensor) -> Tensor:
    """A convolution of width n for each dimension, then a matrix for each word."""
    n, d = x.shape
    mixing, points = torch.randn(d, 1, n), torch.randn(d, d, 1)
    x = F.conv1d(F.pad(x.T, (n // 2, n // 2))[None], mixing, groups=d)
    return F.conv1d(x[..., :n], points)


def attention_and_feed_forward(x: Tensor) -> Tensor:
    """An attention layer, and a feed-forward layer with d_ff = 4d."""
    d = x.size(1)
    x = attention_layer(d)(x)[0][0]
    return torch.relu(x @ torch.randn(d, 4 * d)) @ torch.randn(4 * d, d)


def coefficients(layer: Layer) -> tuple[float, float, bool]:
    """a and b of a count a · n²d + b · nd², and whether other sizes have them, too."""

    def count(n: int, d: int) -> float:
        return multiplications(layer, torch.randn(n, d)) / (n * d)

    a, b = torch.linalg.solve(
        torch.tensor([[15.0, 8.0], [31.0, 8.0]]),
        torch.tensor([count(15, 8), count(31, 8)]),
    ).tolist()
    sizes = (15, 32), (63, 16), (7, 64)
    fits = all(abs(count(n, d) / (a * n + b * d) - 1) < 0.1 for n, d in sizes)
    return round(a, 2), round(b, 2), fits


def settle_separable() -> None:
    """Settle that the two have the same order, and say how their costs differ."""
    one, two = coefficients(separable), coefficients(attention_and_feed_forward)
    settle(
        "s4-separable",
        holds=one[2] and two[2] and min(*one[:2], *two[:2]) > 0,
        expected="both are a · n²d + b · nd² with constants above zero",
        measured="multiplications are a · n²d + b · nd², for the separable convolution "
        f"with a = {one[0]:g} and b = {one[1]:g}, for attention and feed-forward layer "
        f"with a = {two[0]:g} and b = {two[1]:g}: of one order, not of one cost",
        scale="derivation",
    )
