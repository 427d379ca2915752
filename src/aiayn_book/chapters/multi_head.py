"""Chapter 5, multi-head attention: its drawings, its task, its claims (§3.2.2, §2)."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import altair as alt
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from aiayn import MultiHeadAttention, scaled_dot_product_attention
from aiayn_book import paper, settle
from aiayn_book.chapters import variations
from aiayn_book.colours import ALERT, NEUTRAL, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.power import smallest_effect
from aiayn_book.svg import Svg

DRAWERS = 8
"""How many drawers the task has, and as many letters."""
WIDTH = 2 * DRAWERS
"""d_model of the task: an entry is a drawer and a letter, each one-hot."""
SEEDS = (0, 1, 2)
ONE_ORDER = 1 / 8 + 7 / 8 / 2
"""Right answers of a layer that knows each pair and always gives one order."""

Draw = Callable[[int, torch.Generator], tuple[Tensor, Tensor, Tensor]]
Reading = Callable[[Tensor], Tensor]


# The key picture: Figure 2 of the paper, right, with two heads and three words.


class _Parts(NamedTuple):
    """Every matrix of a multi-head attention of three words, width 8, two heads."""

    x: Tensor
    projected: list[Tensor]
    weights: Tensor
    contexts: Tensor
    concatenated: Tensor
    W_O: Tensor
    output: Tensor


def _three_words() -> _Parts:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(3, 8, generator=generator)
    W_Q, W_K, W_V, W_O = torch.randn(4, 8, 8, generator=generator) / 8**0.5
    projected = [x @ W_Q, x @ W_K, x @ W_V]
    halves = (matrix.unflatten(1, (2, 4)).transpose(0, 1) for matrix in projected)
    contexts, weights = scaled_dot_product_attention(*halves)  # (2 heads, 3, …)
    concatenated = contexts.transpose(0, 1).flatten(1)
    return _Parts(
        x, projected, weights, contexts, concatenated, W_O, concatenated @ W_O
    )


_CELL, _TALL = 7, 13


def _matrix(
    drawing: Diagram,
    x: float,
    y: float,
    table: Tensor,
    name: str,
    *,
    role: str = "neutral",
    cut: bool = False,
    limit: float | None = None,
) -> None:
    """A matrix without numbers, its name above it and its shape below."""
    limit = limit or table.abs().max().item()
    look: Any = {"role": role, "negative": role, "cell": _CELL, "tall": _TALL}
    look |= {"limit": limit, "digits": None}
    if cut:
        shift = _CELL * table.size(1) / 4 + 3
        left, right = table.chunk(2, dim=1)
        drawing.grid(x - shift, y, left, **look)
        drawing.grid(x + shift, y, right, **look)
    else:
        drawing.grid(x, y, table, **look)
    half = _TALL * len(table) / 2
    coloured = None if role == "neutral" else role
    drawing.text(x, y - half - 11, name, role=coloured, bold=True)
    drawing.text(x, y + half + 12, f"{len(table)}×{table.size(1)}", small=True)


def _head(drawing: Diagram, left: float, top: float, parts: _Parts, head: int) -> None:
    """One head in its frame: queries, keys, weights, values, context."""
    drawing.frame(left, top, 240, 116)
    side = ("left", "right")[head]
    drawing.text(left + 10, top + 13, f"head {head + 1}", anchor="start", bold=True)
    drawing.text(left + 230, top + 13, f"{side} halves", anchor="end", italic=True)
    q, k, v = (matrix.chunk(2, dim=1)[head] for matrix in parts.projected)
    weights = parts.weights[head]
    y = top + 66
    _matrix(drawing, left + 24, y, q, "q", role="query")
    _matrix(drawing, left + 64, y, k.mT, "kᵀ", role="key")
    drawing.arrow((left + 80, y), (left + 102, y))
    _matrix(drawing, left + 121, y, weights, "weights", role="weight", limit=1)
    drawing.text(left + 142, y, "·")
    _matrix(drawing, left + 165, y, v, "v", role="value")
    drawing.text(left + 186, y, "=")
    _matrix(drawing, left + 209, y, parts.contexts[head], "context", role="value")


def split_attend_concatenate(*, phone: bool = False) -> Svg:
    """The right half of the paper's Figure 2, as matrices with their shapes."""
    parts = _three_words()
    drawing = Diagram(360, 566) if phone else Diagram(690, 306)
    names = zip("QKV", ("query", "key", "value"), parts.projected, strict=True)
    if phone:
        _matrix(drawing, 44, 56, parts.x, "x")
        drawing.arrow((78, 56), (118, 56))
        drawing.text(98, 42, "W")
        for place, (name, role, table) in enumerate(names):
            _matrix(drawing, 156 + 80 * place, 56, table, name, role=role, cut=True)
        drawing.text(8, 110, "1. project, 2. split", anchor="start", italic=True)
        drawing.arrow((196, 98), (196, 126))
        _head(drawing, 60, 132, parts, 0)
        _head(drawing, 60, 262, parts, 1)
        drawing.text(8, 400, "3. attend", anchor="start", italic=True)
        drawing.arrow((180, 382), (180, 412), (70, 412), (70, 440))
        below: Any = (70, 176, 288, 496)
        drawing.text(70, 554, "4. concatenate", italic=True)
        drawing.text(232, 554, "5. project", italic=True)
    else:
        _matrix(drawing, 80, 142, parts.x, "x")
        for row, word in enumerate(("cat", "drinks", "milk")):
            drawing.text(46, 142 + _TALL * (row - 1), word, anchor="end")
        for place, (name, role, table) in enumerate(names):
            y = 52 + 90 * place
            drawing.arrow((112, 142), (136, y), role=role)
            _matrix(drawing, 170, y, table, f"{name} = x W_{name}", role=role, cut=True)
        drawing.arrow((206, 112), (221, 76))
        drawing.arrow((206, 172), (221, 208))
        _head(drawing, 224, 10, parts, 0)
        _head(drawing, 224, 146, parts, 1)
        drawing.arrow((467, 76), (484, 112))
        drawing.arrow((467, 208), (484, 172))
        below = (520, 592, 660, 142)
        for x, step in (
            (124, "1. project"),
            (218, "2. split"),
            (344, "3. attend"),
            (498, "4. concatenate"),
            (614, "5. project"),
        ):
            drawing.text(x, 290, step, italic=True)
    concatenated, matrix, output, y = below
    _matrix(
        drawing, concatenated, y, parts.concatenated, "concat", role="value", cut=True
    )
    drawing.text((concatenated + matrix) / 2 + 2, y, "·")
    _matrix(drawing, matrix, y, parts.W_O, "W_O")
    drawing.text((matrix + output) / 2, y, "=")
    _matrix(drawing, output, y, parts.output, "output")
    return drawing.finish(
        "Split, attend, concatenate, project",
        "Three words of eight numbers each are projected to Q, K and V, of three rows "
        "and eight columns. Each is cut into a left half for head 1 and a right half "
        "for head 2. Each head makes its own three by three weights and a context of "
        "three by four. The two contexts side by side are three by eight; times W_O, "
        "eight by eight, they give the output, three by eight.",
    )


# One head, one mean.

_VALUES = torch.tensor([[10.0, 0], [0, 0], [0, 10]])  # of the subject, verb, object


def two_sentences() -> list[Svg]:
    """Weights and answers of one head and of two, for both orders of a sentence."""
    panels = []
    strong = 20 * math.sqrt(2)
    queries = torch.tensor([[1.0, 1], [1, 0], [0, 1]]) * strong
    for sentence in ("cat drinks milk", "milk drinks cat"):
        words = sentence.split()
        values = torch.stack(
            [_VALUES[("cat", "drinks", "milk").index(word)] for word in words]
        )
        # The subject is the living one: the words fill the roles.
        keys = torch.tensor([[1.0, 0], [0, 0], [0, 1]])
        answers, weights = scaled_dot_product_attention(queries, keys, values)
        drawing = Diagram(338, 196)
        for place, (word, value) in enumerate(zip(words, values.tolist(), strict=True)):
            x = 118 + 58 * place
            drawing.box(x, 20, word, width=54, height=26)
            drawing.text(x, 46, f"({value[0]:.0f}, {value[1]:.0f})", role="value")
        drawing.text(312, 46, "answer", bold=True)
        rows = [(82, 0, "one head"), (136, 1, "head 1: who"), (170, 2, "head 2: what")]
        for y, row, name in rows:
            drawing.text(84, y, name, anchor="end")
            drawing.grid(176, y, weights[row : row + 1], cell=58, tall=30, digits=1)
            x_of, y_of = answers[row].tolist()
            drawing.text(312, y, f"({x_of:.0f}, {y_of:.0f})", role="value", bold=True)
        drawing.arrow((4, 109), (334, 109), head=False, width=0.8, dashed=True)
        panels.append(
            drawing.finish(
                f"The weights in: {sentence}",
                "One head gives one half to each noun, and its answer is (5, 5). "
                f"Head 1 gives all weight to {words[0]}, head 2 all to {words[2]}.",
            )
        )
    return panels


# Where and what.


def where_and_what() -> list[Svg]:
    """Two heads at the same or different positions, in the same or another subspace."""
    panels = []
    for title, second_row, verdicts in (
        ("At the same position", 0, ("the same head twice", "one head, wider v")),
        ("At different positions", 2, ("needs two heads", "needs two heads")),
    ):
        drawing = Diagram(338, 190)
        drawing.text(169, 12, title, bold=True)
        for middle, columns, name, verdict in (
            (112, 0, "same subspace", verdicts[0]),
            (268, 3, "different subspaces", verdicts[1]),
        ):
            drawing.text(middle, 40, name)
            look: Any = {"cell": 20, "tall": 30, "digits": None}
            rows = ("cat", "drinks", "milk") if middle == 112 else ()
            drawing.grid(middle, 102, torch.zeros(3, 6), rows=rows, **look)
            same = second_row == 0 and columns == 0
            first = "1 and 2" if same else "1"
            drawing.box(middle - 30, 72, first, width=54, height=24, role="weight")
            if not same:
                x, y = middle - 30 + 20 * columns, 72 + 30 * second_row
                drawing.box(x, y, "2", width=54, height=24, role="neutral")
            drawing.text(middle, 168, verdict, italic=True)
        panels.append(
            drawing.finish(
                title,
                "Two tables of three words by six numbers. Boxes show which word and "
                "which three numbers head 1 and head 2 take. Left, both take the same "
                f"numbers: {verdicts[0]}. Right, different ones: {verdicts[1]}.",
            )
        )
    return panels


# Counting the matrices.


def twenty_five_and_four(num_heads: int = 8) -> list[Svg]:
    """The matrices of the formula, and the four in which they are stored."""
    kinds = [("W_Q", "query"), ("W_K", "key"), ("W_V", "value")]
    panels = []
    for stored in (False, True):
        drawing = Diagram(338, 232)
        count = 4 if stored else 3 * num_heads + 1
        where = "as stored" if stored else "in the formula"
        drawing.text(169, 12, f"{count} matrices {where}", bold=True)
        for row, (name, role) in enumerate(kinds):
            y = 56 + 64 * row
            step = 7 if stored else 16
            for head in range(num_heads):
                x = 112 + step * (head - (num_heads - 1) / 2)
                one = torch.full((1, 1), 0.45)
                drawing.grid(x, y, one, role=role, cell=7, tall=52, digits=None)
            drawing.text(36, y, name, anchor="end", role=role, bold=True)
            if row == 2:
                size = "512×512" if stored else f"{num_heads} × 512×64"
                drawing.text(112, y + 42, size, small=True)
        block = torch.full((num_heads, 1), 0.45)
        drawing.grid(264, 120, block, role="neutral", cell=56, tall=7, digits=None)
        drawing.text(264, 80, "W_O", bold=True)
        drawing.text(264, 162, "512×512", small=True)
        panels.append(
            drawing.finish(
                f"{count} matrices {where}",
                f"W_Q, W_K and W_V as {num_heads} narrow matrices each, "
                f"{'joined to one square' if stored else 'apart'}, and W_O, a square.",
            )
        )
    return panels


# The task: two drawers, two letters, in order.


def draw(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random drawers, and two of them that are wanted.

    Returns:
        The query (batch, 1, 16): first drawer, second drawer, each one-hot; the
        entries (batch, 8, 16): drawer, letter; the two letters (batch, 2).
    """
    n = DRAWERS
    letters = torch.randint(n, (batch, n), generator=generator)
    return _task(letters, generator)


def draw_distinct(
    batch: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """The same, but each letter lies in exactly one drawer."""
    shape = batch, DRAWERS
    letters = torch.rand(shape, generator=generator).argsort(dim=-1)
    return _task(letters, generator)


def _task(letters: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    n, one_hot = DRAWERS, torch.eye(DRAWERS)
    order = torch.rand(letters.shape, generator=generator).argsort(dim=-1)
    wanted = order[:, :2]  # two different drawers
    drawers = one_hot.expand(len(letters), n, n)
    entries = torch.cat([drawers, one_hot[letters]], dim=-1)
    query = one_hot[wanted].flatten(1)[:, None]  # (batch, 1, 16)
    return query, entries, letters.gather(1, wanted)


@cache
def held_out(distinct: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """2,000 draws on which every layer is measured."""
    generator = torch.Generator().manual_seed(2017)
    return (draw_distinct if distinct else draw)(2000, generator)


def side_by_side(output: Tensor) -> Tensor:
    """The output's 16 numbers as scores: eight for the first answer, then eight."""
    return output.squeeze(1).unflatten(-1, (2, DRAWERS))


def in_turn(output: Tensor) -> Tensor:
    """The same 16 numbers, numbered for the first and the second answer in turn."""
    return output.squeeze(1).unflatten(-1, (DRAWERS, 2)).mT


def new_layer(seed: int, num_heads: int, **widths: int) -> MultiHeadAttention:
    """A multi-head attention of the task's width."""
    torch.manual_seed(seed)
    return MultiHeadAttention(WIDTH, num_heads, **widths)


class WithHiddenLayer(nn.Module):
    """An attention with a small feed-forward network behind it."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.attention = attention
        parts = nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH)
        self.behind = nn.Sequential(*parts)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, None]:
        """The network's output, and no weights."""
        return self.behind(self.attention(query, key, value)[0]), None


def train(
    layer: nn.Module,
    seed: int,
    *,
    reading: Reading = side_by_side,
    answers: int = 2,
    draw: Draw = draw,
) -> Any:
    """400 steps of Adam on the cross-entropy of the letters, each on 128 new draws.

    Args:
        layer: it is called with (query, entries, entries).
        seed: of the draws.
        reading: which of the 16 outputs scores which letter of which answer.
        answers: 2, or 1: then only the first letter counts.
        draw: the task.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(400):
        query, entries, target = draw(128, generator)
        scores = reading(layer(query, entries, entries)[0])[:, :answers]
        loss = F.cross_entropy(scores.mT, target[:, :answers])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer.eval()


@torch.no_grad()
def letter_scores(
    layer: nn.Module,
    reading: Reading = side_by_side,
    drawn: tuple[Tensor, ...] | None = None,
) -> Tensor:
    """The scores of the letters (2,000, 2 answers, 8 letters)."""
    query, entries, _ = drawn or held_out()
    return reading(layer(query, entries, entries)[0])


def right(
    layer: nn.Module,
    reading: Reading = side_by_side,
    drawn: tuple[Tensor, ...] | None = None,
) -> Tensor:
    """Which letters are right: (2,000, 2)."""
    drawn = drawn or held_out()
    return letter_scores(layer, reading, drawn).argmax(dim=-1) == drawn[2]


def both_right(layers: Sequence[nn.Module], **options: Any) -> list[float]:
    """For each layer, how often both letters are right."""
    found = (right(layer, **options).all(-1) for layer in layers)
    return [one.float().mean().item() for one in found]


def first_right(layers: Sequence[nn.Module]) -> list[float]:
    """For each layer, how often the first letter is right."""
    return [right(layer)[:, 0].float().mean().item() for layer in layers]


def wanted_drawers() -> Tensor:
    """The two drawers of each held-out query: (2,000, 2)."""
    return held_out()[0].view(-1, 2, DRAWERS).argmax(dim=-1)


def both_orders(layers: Sequence[nn.Module]) -> list[float]:
    """How often a layer is right before and after the two letters change places.

    Only draws with two different letters count.
    """
    query, entries, target = held_out()
    at = wanted_drawers()
    partner = torch.arange(DRAWERS).repeat(len(at), 1)
    partner = partner.scatter(1, at, at.flip(1))[:, :, None].expand(-1, -1, DRAWERS)
    places, letters = entries.split(DRAWERS, dim=-1)
    swapped = torch.cat([places, letters.gather(1, partner)], dim=-1)
    exchanged = query, swapped, target.flip(1)
    differ = target[:, 0] != target[:, 1]
    shares = []
    for layer in layers:
        good = right(layer).all(-1) & right(layer, drawn=exchanged).all(-1)
        shares.append(good[differ].float().mean().item())
    return shares


def pair_known(layers: Sequence[nn.Module]) -> list[float]:
    """How often an answer's two best letters are the wanted ones, in any order."""
    target = held_out()[2]
    differ = target[:, 0] != target[:, 1]
    pair = target[differ].sort(dim=-1).values[:, None]
    shares = []
    for layer in layers:
        best = letter_scores(layer)[differ].topk(2).indices.sort(dim=-1).values
        shares.append((best == pair).all(-1).all(-1).float().mean().item())
    return shares


def one_letter_twice(layers: Sequence[nn.Module]) -> list[float]:
    """How often one letter is given as both answers, where the two differ."""
    target = held_out()[2]
    differ = target[:, 0] != target[:, 1]
    shares = []
    for layer in layers:
        first, second = letter_scores(layer)[differ].argmax(dim=-1).unbind(dim=1)
        shares.append((first == second).float().mean().item())
    return shares


@torch.no_grad()
def weight_on_wanted(
    layer: MultiHeadAttention, drawn: tuple[Tensor, ...] | None = None
) -> Tensor:
    """Each head's mean weight on the first and on the second drawer: (heads, 2)."""
    query, entries, _ = drawn or held_out()
    _, weights = layer(query, entries, entries, need_weights=True)
    at = query.view(-1, 2, DRAWERS).argmax(dim=-1)[:, None, None]
    picked = weights.gather(3, at.expand(-1, weights.size(1), -1, -1))
    return picked[:, :, 0].mean(dim=0)


def shown(shares: Sequence[float]) -> str:
    """The lowest and the highest share of several seeds.

    >>> shown([0.254, 0.3, 0.263]), shown([1.0, 1.0])
    ('25.4% to 30.0%', '100.0%')
    """
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return low if low == high else f"{low} to {high}"


def accuracy_charts(
    scores: Mapping[str, Sequence[float]], orders: Mapping[str, Sequence[float]]
) -> list[alt.LayerChart]:
    """Both letters right, and right in both orders, for each kind of layer."""
    names = list(scores)
    charts = []
    for found, title, dashed in (
        (scores, "both letters right", ONE_ORDER),
        (orders, "right in both orders of the letters", 0.0),
    ):
        rows = [
            {"layer": name, "seed": seed, "share": round(share, 4)}
            for name in names
            for seed, share in enumerate(found[name])
        ]
        base = alt.Chart(alt.Data(values=rows))
        points = base.mark_point(
            size=90, filled=True, color=WEIGHT.mark, opacity=0.7
        ).encode(
            x=alt.X(
                "share:Q",
                title=title,
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
            ),
            y=alt.Y("layer:N", title=None, sort=names, axis=alt.Axis(labelLimit=130)),
            tooltip=["layer:N", "seed:O", alt.Tooltip("share:Q", format=".1%")],
        )
        layers = [points]
        if dashed:
            rule = alt.Chart(alt.Data(values=[{"share": dashed}]))
            rule = rule.mark_rule(color=ALERT.mark, strokeDash=[6, 4], strokeWidth=2)
            layers.insert(0, rule.encode(x="share:Q"))
        told = "; ".join(f"{name} {shown(found[name])}" for name in names)
        charts.append(
            alt.LayerChart(layer=layers).properties(
                width="container",
                height=130,
                description=f"Share of draws, {title}: {told}.",
            )
        )
    return charts


def one_query_map(
    one: MultiHeadAttention, hidden: WithHiddenLayer, two: MultiHeadAttention
) -> Svg:
    """The weights of one query, drawers 3 and 6, in each head of three layers."""
    one_hot = torch.eye(DRAWERS)
    ask = torch.cat([one_hot[2], one_hot[5]])[None, None]
    entries = held_out()[1][:1]
    with torch.no_grad():
        maps = [
            layer(ask, entries, entries, need_weights=True)[1][0, :, 0]
            for layer in (one, hidden.attention, two)
        ]
    table = torch.cat(maps)
    table = table.masked_fill(table < 0.05, 0.0)
    drawing = Diagram(360, 164)
    cell, left, top = 33, 90, 36
    drawing.text(left + 4 * cell, 10, "drawer", italic=True)
    drawing.grid(
        left + 4 * cell,
        top + 60,
        table,
        cell=cell,
        tall=30,
        rows=["1 head", "1 + hidden", "2: head 1", "2: head 2"],
        columns=[str(drawer + 1) for drawer in range(DRAWERS)],
    )
    for drawer in (2, 5):
        drawing.frame(left + cell * drawer - 2, top - 18, cell + 4, 142)
    return drawing.finish(
        "The weights of one query",
        "Weights over eight drawers for a query that wants drawers 3 and 6. The only "
        "head has about half on each. Before a hidden layer, one head has clearly more "
        "on one of them. Of two heads, each attends to one drawer.",
    )


class OwnPart(NamedTuple):
    """How the two heads of a layer share the query."""

    shares: list[float]
    """Of each head's score matrix for drawers, how much lies in its main part."""
    parts: list[int]
    """Each head's main part: 0 is the first drawer, 1 the second."""
    peaks: float
    """How often both heads peak at the drawer that their part names."""


@torch.no_grad()
def own_part(layer: MultiHeadAttention) -> OwnPart:
    """Which part of the query each head reads.

    The scores are x_q W_Q W_Kᵀ x_k. Of that 16 × 16 matrix, the columns for the drawers
    count, less what is added to all keys alike, which changes no weight.
    """
    W_Q = layer.query_projection.weight.T.unflatten(1, (2, -1))
    W_K = layer.key_projection.weight.T.unflatten(1, (2, -1))
    forms = torch.einsum("qhd,khd->hqk", W_Q, W_K)[:, :, :DRAWERS]
    forms = forms - forms.mean(dim=-1, keepdim=True)  # (heads, 16, 8)
    size = forms.square().unflatten(1, (2, DRAWERS)).sum(dim=(2, 3))
    share = size / size.sum(dim=-1, keepdim=True)  # (heads, first or second)
    query, entries, _ = held_out()
    _, weights = layer(query, entries, entries, need_weights=True)
    peak = weights[:, :, 0].argmax(dim=-1)  # (2000, heads)
    mine = share.argmax(dim=-1)
    hits = (peak == wanted_drawers()[:, mine]).all(dim=-1).float().mean().item()
    return OwnPart(share.amax(dim=-1).tolist(), mine.tolist(), hits)


# Concatenating is adding.


def sum_of_blocks() -> Svg:
    """The concatenation times W_O, cut into heads, as a sum over the heads."""
    parts = _three_words()
    drawing = Diagram(360, 308)
    look: Any = {"cell": 9, "tall": 12, "digits": None}

    def put(x: float, y: float, table: Tensor, head: int, role: str = "") -> None:
        role = role or ("weight", "neutral")[head]
        limit = table.abs().max().item()
        drawing.grid(x, y, table, role=role, negative=role, limit=limit, **look)

    first, second = parts.contexts
    above, below = parts.W_O.split(4)
    drawing.text(60, 16, "concat", bold=True)
    put(41, 82, first, 0)
    put(79, 82, second, 1)
    drawing.text(60, 112, "3×8", small=True)
    drawing.text(116, 82, "·")
    drawing.text(172, 16, "W_O", bold=True)
    put(172, 57, above, 0)
    put(172, 107, below, 1)
    drawing.text(172, 142, "8×8", small=True)
    drawing.text(230, 82, "=")
    put(290, 82, parts.output, 0, "value")
    drawing.text(290, 52, "output", bold=True, role="value")
    drawing.text(290, 112, "3×8", small=True)
    for y, context, block, head in ((202, first, above, 0), (272, second, below, 1)):
        drawing.text(16, y, "=" if head == 0 else "+")
        put(60, y, context, head)
        drawing.text(106, y, "·")
        put(172, y, block, head)
        drawing.text(230, y, "=")
        put(290, y, context @ block, 0, "value")
        drawing.text(60, y - 30, f"head {head + 1}", bold=True)
    return drawing.finish(
        "Concatenate and project, as a sum",
        "The concatenation of two contexts times W_O equals the context of head 1 "
        "times the upper four rows of W_O plus the context of head 2 times the lower "
        "four rows. Both products have the shape of the output, three by eight.",
    )


@torch.no_grad()
def right_without(layer: MultiHeadAttention, head: int) -> list[float]:
    """How often each answer is right if one head's block of W_O is zero."""
    W = layer.output_projection.weight  # (16, heads * d_v)
    kept = W.clone()
    W[:, head * layer.d_v : (head + 1) * layer.d_v] = 0
    shares = right(layer).float().mean(dim=0).tolist()
    W.copy_(kept)
    return shares


def without_output_projection(
    seed: int, reading: Reading, *, kept: bool = False
) -> Any:
    """Two heads, trained without W_O (or with it) under a numbering of the outputs."""
    layer = new_layer(seed, num_heads=2)
    if not kept:
        layer.output_projection = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    return train(layer, seed, reading=reading)


def numberings(results: Mapping[str, tuple[str, str]]) -> list[Svg]:
    """Which head owns which output without W_O, in two numberings of the outputs.

    Args:
        results: by numbering, how often both are right with W_O and without it.
    """
    panels = []
    for name, (kept, left_out) in results.items():
        order = [0] * 8 + [1] * 8 if name == "side by side" else [0, 1] * 8
        drawing = Diagram(338, 176)
        drawing.text(169, 12, f"The two answers {name}", bold=True)
        for place, answer in enumerate(order):
            x = 19 + 20 * place
            role = ("weight", "neutral")[answer]
            drawing.box(x, 54, str(answer + 1), width=18, height=26, role=role)
        drawing.arrow((169, 34), (169, 74), head=False, dashed=True)
        for x, head in ((89, 1), (249, 2)):
            drawing.text(x, 88, f"written by head {head}", italic=True)
        drawing.text(120, 124, "with W_O", anchor="end")
        drawing.text(132, 124, kept, anchor="start", bold=True)
        drawing.text(120, 150, "without W_O", anchor="end")
        drawing.text(132, 150, left_out, anchor="start", bold=True)
        panels.append(
            drawing.finish(
                f"Answers {name}",
                "Sixteen outputs with the number of the answer that they belong to. "
                "Without W_O the left eight are head 1's and the right eight head 2's. "
                f"Both right with W_O: {kept}; without: {left_out}.",
            )
        )
    return panels


# The same cost.

HEADS = (1, 2, 4, 8, 16, 32)


class Cost(NamedTuple):
    """What one multi-head attention of width 512 costs, by its number of heads."""

    words: int
    """In each of four sentences."""
    products: dict[int, int]
    """Operations in matrix products, counted."""
    softmax: dict[int, int]
    """Operations in softmaxes, five for each weight."""
    milliseconds: dict[int, float]
    """The median of several runs, on this machine."""

    def total(self, num_heads: int) -> float:
        """All operations, as a multiple of one head's."""
        one = self.products[1] + self.softmax[1]
        return (self.products[num_heads] + self.softmax[num_heads]) / one

    def time(self, num_heads: int) -> float:
        """The time, as a multiple of one head's."""
        return self.milliseconds[num_heads] / self.milliseconds[1]


@torch.no_grad()
def cost(words: int, repeats: int, heads: Sequence[int] = HEADS) -> Cost:
    """Count and time the attention of four sentences.

    All numbers of heads are timed in turn, so that a slow moment hits them alike.
    """
    x = torch.randn(4, words, 512)
    layers = {h: MultiHeadAttention(512, h).eval() for h in heads}
    products = {}
    for h, layer in layers.items():
        with FlopCounterMode(display=False) as counter:
            layer(x, x, x)
        products[h] = counter.get_total_flops()
    measured: dict[int, list[float]] = {h: [] for h in heads}
    for _ in range(repeats + 1):
        for h, layer in layers.items():
            began = time.perf_counter()
            layer(x, x, x)
            measured[h].append(1000 * (time.perf_counter() - began))
    return Cost(
        words,
        products,
        {h: 5 * 4 * h * words**2 for h in heads},
        {h: sorted(times[1:])[repeats // 2] for h, times in measured.items()},
    )


def cost_chart(short: Cost, long: Cost) -> alt.LayerChart:
    """Operations and times against the number of heads."""
    series = {
        f"operations, {short.words} words": short.total,
        f"time, {short.words} words": short.time,
        f"time, {long.words} words": long.time,
    }
    rows = [
        {"heads": h, "what": name, "times": round(of(h), 3)}
        for name, of in series.items()
        for h in short.products
    ]
    names = list(series)
    colours = alt.Scale(domain=names, range=[NEUTRAL.mark, WEIGHT.mark, ALERT.mark])
    dashes = alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 2]])
    legend = alt.Legend(columns=1)
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("heads:O", title="number of heads", axis=alt.Axis(labelAngle=0)),
            y=alt.Y(
                "times:Q",
                title="multiple of one head's",
                scale=alt.Scale(domainMin=0),
            ),
            color=alt.Color("what:N", title=None, scale=colours, legend=legend),
            strokeDash=alt.StrokeDash(
                "what:N", title=None, scale=dashes, legend=legend
            ),
            tooltip=["what:N", "heads:O", alt.Tooltip("times:Q", format=".2f")],
        )
    )
    return alt.LayerChart(layer=[line]).properties(
        width="container",
        height=220,
        description="Against the number of heads, from 1 to 32: the operations stay "
        f"level. The time for {short.words} words rises to {short.time(32):.2f} times "
        f"that of one head, and for {long.words} words to {long.time(32):.2f} times.",
    )


# Too many heads.


def heads_charts(scores: Mapping[int, Sequence[float]]) -> list[alt.LayerChart]:
    """Accuracy against the number of heads here, and BLEU in the paper's table."""
    here = [
        {"heads": f"{h}×{WIDTH // h}", "y": round(share, 4), "seed": seed}
        for h, shares in scores.items()
        for seed, share in enumerate(shares)
    ]
    rows = {1: "A h=1", 4: "A h=4", 8: "base", 16: "A h=16", 32: "A h=32"}
    there = [
        {"heads": f"{h}×{512 // h}", "y": paper.TABLE_3[row].bleu, "seed": 0}
        for h, row in rows.items()
    ]
    charts = []
    for found, title, domain, form, told in (
        (
            here,
            "both letters right",
            [0, 1],
            "%",
            "It is low with one head, near one with two, four and eight, and lower "
            "again with sixteen heads of width one.",
        ),
        (
            there,
            "BLEU, the paper's rows (A)",
            [24.5, 26],
            ".1f",
            "; ".join(f"{one['heads']}: {one['y']}" for one in there) + ".",
        ),
    ):
        axis = alt.Axis(labelAngle=0, labelOverlap=False)
        base = alt.Chart(alt.Data(values=found)).encode(
            x=alt.X("heads:O", sort=None, title="heads × width of each", axis=axis)
        )
        y = alt.Axis(format=form, tickCount=5)
        scale = alt.Scale(domain=domain)
        runs = base.mark_point(size=60, color=WEIGHT.mark, filled=True).encode(
            y=alt.Y("y:Q", title=title, axis=y, scale=scale),
            tooltip=["heads:O", alt.Tooltip("y:Q", title=title)],
        )
        means = base.mark_line(color=WEIGHT.mark).encode(
            y=alt.Y("mean(y):Q", title=title, axis=y, scale=scale)
        )
        charts.append(
            alt.LayerChart(layer=[means, runs]).properties(
                width="container",
                height=210,
                description=f"{title}, against the number of heads. {told}",
            )
        )
    return charts


def fit(wanted: Tensor, d_k: int, tries: int = 32) -> tuple[Tensor, Tensor]:
    """Free queries and keys, fitted to wanted weights by gradient descent.

    Args:
        wanted: (queries, keys), each row a distribution.
        d_k: the width of queries and keys.
        tries: starts, of which the best is returned.

    Returns:
        The weights, and for each query whether at most a tenth of its weight is
        misplaced.
    """
    torch.manual_seed(0)
    Q = torch.randn(tries, len(wanted), d_k, requires_grad=True)
    K = torch.randn(tries, wanted.size(1), d_k, requires_grad=True)
    optimizer = torch.optim.Adam([Q, K], lr=0.1)
    logs = torch.zeros(())
    for _ in range(1000):
        logs = (Q @ K.mT / math.sqrt(d_k)).log_softmax(dim=-1)
        loss = -(wanted * logs).sum(dim=-1).mean(dim=-1)  # (tries,)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    weights = logs.detach().exp()
    good = (weights - wanted).abs().sum(dim=-1) / 2 < 0.1
    best = good.sum(dim=-1).argmax()
    return weights[best], good[best]


def narrow_heads() -> dict[tuple[int, int], list[float]]:
    """How often both are right, by the number of heads and the width of their keys."""
    found = {}
    for heads, d_k, d_v in ((2, 1, 8), (2, 2, 8), (16, 2, 1)):
        layers = [train(new_layer(s, heads, d_k=d_k, d_v=d_v), s) for s in SEEDS]
        found[heads, d_k] = both_right(layers)
    return found


def all_pairs(keys: int) -> Tensor:
    """One query for each pair of keys, which wants half of each: (pairs, keys)."""
    pairs = list(combinations(range(keys), 2))
    wanted = torch.zeros(len(pairs), keys)
    for row, pair in enumerate(pairs):
        wanted[row, list(pair)] = 0.5
    return wanted


def fit_pairs(
    widths: Sequence[int] = (1, 2, 3, 4),
) -> dict[int, tuple[Tensor, Tensor]]:
    """All fifteen pairs of six keys, for several widths."""
    return {d_k: fit(all_pairs(6), d_k) for d_k in widths}


def pairs_chart(fits: Mapping[int, tuple[Tensor, Tensor]]) -> alt.LayerChart:
    """The fitted weights, with a slider for the width of the head."""
    width = alt.param(
        name="head_width",
        value=2,
        bind=alt.binding_range(min=1, max=4, step=1, name="Width dₖ "),
    )
    pairs = list(combinations("ABCDEF", 2))
    rows = [
        {
            "width": d_k,
            "pair": "".join(pair),
            "key": key,
            "weight": round(weight, 3),
            "wanted": key in pair,
        }
        for d_k, (weights, _) in fits.items()
        for pair, row in zip(pairs, weights.tolist(), strict=True)
        for key, weight in zip("ABCDEF", row, strict=True)
    ]
    base = (
        alt.Chart(alt.Data(values=rows))
        .transform_filter("datum.width == head_width")
        .encode(
            x=alt.X("key:N", title="key", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("pair:N", title="pair that the query wants"),
            tooltip=["pair:N", "key:N", alt.Tooltip("weight:Q", format=".2f")],
        )
    )
    scale = alt.Scale(domain=[0, 1], range=[0, 1], clamp=True)
    cells = base.mark_rect(color=WEIGHT.mark).encode(
        opacity=alt.Opacity("weight:Q", scale=scale, legend=None)
    )
    wanted = base.transform_filter("datum.wanted")
    frames = wanted.mark_rect(filled=False, stroke=ALERT.mark, strokeWidth=2)
    reached = {d_k: int(good.sum()) for d_k, (_, good) in fits.items()}
    told = ", ".join(f"{number} at width {d_k}" for d_k, number in reached.items())
    return (
        alt.LayerChart(layer=[cells, frames])
        .add_params(width)
        .properties(
            width="container",
            height=330,
            usermeta={"widest": 400},
            description="A map of fifteen queries, each wanting a pair of six keys, "
            f"with frames where the weight should be. Rows that are right: {told}.",
        )
    )


# Claims.


def _sample() -> str:
    return (
        f"one task, one attention read linearly, {len(SEEDS)} seeds, "
        f"{len(held_out()[2]):,} draws each"
    )


def settle_averaging(
    one: Sequence[float],
    alone: Sequence[float],
    known: Sequence[float],
    hidden: Sequence[float],
) -> None:
    """§2: one head finds a drawer, but of two it gives the mean.

    Args:
        one: both letters right with one head.
        alone: the first letter right with one head that was asked for one.
        known: the pair known, in any order, with one head.
        hidden: both letters right with one head and a hidden layer behind it.
    """
    noise = 3 * (0.25 / len(held_out()[2])) ** 0.5  # three standard errors, at most
    settle(
        "s2-averaging",
        holds=max(one) <= ONE_ORDER + noise
        and min(alone) >= 0.95
        and min(known) >= 0.95,
        expected="measured: one head finds one drawer (at least 95%), and of two it "
        "knows the pair (at least 95%) and not the order (at most 9/16 both right, as "
        "if it always gave one order)",
        measured=f"with one head, one look-up is right in {shown(alone)}; of two, "
        f"the pair is known in {shown(known)} and both are right in {shown(one)}; with "
        f"a hidden layer behind the head, in {shown(hidden)}",
        sample=_sample(),
        detects=f"{noise:.1%} more right answers than 9/16",
    )


def settle_heads(
    one: Sequence[float], two: Sequence[float], hidden: Sequence[float]
) -> None:
    """§2: two heads make up for it; so does a hidden layer behind one head."""
    settle(
        "s2-heads-counteract",
        holds=min(two) >= 0.95,
        expected="two heads, of half the width each, get both right in at least 95% "
        "for every seed",
        measured=f"both right with two heads in {shown(two)}, with one head in "
        f"{shown(one)}, with one head and a hidden layer behind it in {shown(hidden)}",
        sample=_sample(),
        detects="fewer than 95% right in any seed",
    )


def settle_one_head(orders: Mapping[str, Sequence[float]]) -> None:
    """§3.2.2: with one head, averaging inhibits this."""
    one, two, hidden = orders.values()
    settle(
        "s3.2.2-one-head-averages",
        holds=max(one) <= 0.05 and min(two) >= 0.95,
        expected="read linearly, one head is never right in both orders of a pair (at "
        "most 5%): that is what the algebra says, if weights depend on the drawers "
        "alone and all letters are read alike. Measured: two heads are right in both "
        "nearly always (at least 95%)",
        measured=f"pairs right in both orders: one head {shown(one)}, two heads "
        f"{shown(two)}; one head with a hidden layer behind it {shown(hidden)}",
        sample=_sample(),
        detects="5% of the pairs right in both orders in any seed",
    )


def settle_subspaces(layers: Sequence[MultiHeadAttention]) -> None:
    """§3.2.2: different subspaces, different positions."""
    found = [own_part(layer) for layer in layers]
    smallest = min(share for one in found for share in one.shares)
    peaks = [one.peaks for one in found]
    settle(
        "s3.2.2-subspaces",
        holds=smallest > 0.75
        and all(len(set(one.parts)) == 2 for one in found)
        and min(peaks) >= 0.95,
        expected="each head reads another part of the query (more than 3/4 of its "
        "score matrix for drawers, where 1/2 is chance and 1 all) and peaks at the "
        "drawer that this part names (at least 95% of queries)",
        measured=f"each head has at least {smallest:.0%} of its score matrix in its "
        "own part; both heads peak where they should in "
        f"{shown(peaks)} of the queries",
        sample=_sample(),
        detects="a head that has less than 3/4 of its score matrix in its part",
    )


def settle_equation(gaps: Mapping[str, float]) -> None:
    """§3.2.2: the formula, against how it is computed."""
    settle(
        "s3.2.2-equation",
        holds=max(gaps.values()) < 1e-12,  # float64 keeps about 16 digits
        expected="head after head, then concatenated and projected, is what the four "
        "fused products give",
        measured="from the loop over the heads differ, at most: "
        + ", ".join(f"{name} by {off:.0e}" for name, off in gaps.items()),
        scale="derivation",
    )


def settle_cost(short: Cost, long: Cost) -> None:
    """§3.2.2: about the cost of one head of full width."""
    same = short.products[8] == short.products[1]
    settle(
        "s3.2.2-same-cost",
        holds=same and short.total(8) < 1.05,
        expected="as many operations in products, less than 5% more with the softmax",
        measured=f"8 heads of 64 against 1 of 512, {short.words} words: products "
        f"{short.products[8] / short.products[1]:.3f} times, all operations "
        f"{short.total(8):.3f} times, time on this machine {short.time(8):.2f} times, "
        f"with {long.words} words {long.time(8):.2f} times",
        scale="derivation",
    )


def settle_beneficial(
    scores: Mapping[int, Sequence[float]], hidden: Sequence[float]
) -> None:
    """§3.2.2: several heads do better than one, here and in chapter 18's translators.

    Args:
        scores: both letters right, by the number of heads.
        hidden: the same with one head and a hidden layer behind it.
    """
    one, several = scores[1], [share for h in (2, 4, 8) for share in scores[h]]
    spread = max(one) - min(one)
    row = "A h=1"
    worse = variations.percent(variations.gap(row, "loss"))
    error = variations.error(row, "loss")
    settle(
        "s3.2.2-beneficial",
        holds=min(several) - max(one) > spread
        and variations.here(row, "loss") == "worse",
        expected="in this task, without a feed-forward layer, 2, 4 and 8 heads beat "
        "one wide head, by more than seeds differ; and in chapter 18's translators, "
        "which have such layers, one head has a higher perplexity than eight, by more "
        "than 2 SE",
        measured=f"both right: one head {shown(one)}; 2 to 8 heads "
        f"{shown(several)}; 16 heads of width 1 {shown(scores[16])}. But with a hidden "
        f"layer behind it, one head reaches {shown(hidden)}. Chapter 18's translators "
        f"with one head have a perplexity {worse:+.1%} beside those with eight, with a "
        f"standard error of {error:.1%}, and are {variations.here(row, 'bleu')} in "
        f"BLEU. In the paper: {paper.TABLE_3[row].bleu} BLEU with one head, "
        f"{paper.TABLE_3['base'].bleu} with eight",
        sample=f"{_sample()}; {variations.SAMPLE}",
        detects=f"a gain larger than the range of the seeds, {spread:.1%}; in "
        f"perplexity {variations.percent(smallest_effect(error)):.1%}",
    )
