"""Chapter 2, the first attention: its drawings, experiments and claim (§1, §2)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from aiayn import additive_attention, shift_right, sinusoidal_positional_encoding
from aiayn.data.grammar import GrammarSample, generate
from aiayn_book import settle
from aiayn_book.colours import KEY, NEUTRAL, QUERY, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import attention_map, curves
from aiayn_book.recurrent import RecurrentTranslator
from aiayn_book.svg import Svg

SEEDS = (0, 1, 2)
PAD, BOS, UNKNOWN = 0, 1, 3

# The three words that the chapter works out by hand.
THREE = ((1.0, 13.0), (0.0, 0.0), (-1.0, 26.0))
W = math.log(3) / 2
V = 2 * math.log(3)


def bahdanau_step(*, phone: bool = False) -> Svg:
    """One step of the decoder: state, scores, weights over annotations, context."""
    words = ["I", "have", "read", "the", "book"]
    scores = [-1.0, 0.5, 3.0, -1.0, 0.5]
    annotations = torch.tensor(
        [
            [-0.6, 1.1, 0.4, -0.9],
            [0.5, -0.4, 1.2, 0.7],
            [1.7, 0.9, -1.5, 0.6],
            [-0.3, -0.8, 0.6, 0.2],
            [0.4, -1.3, -0.7, 1.0],
        ]
    )
    weights = torch.tensor(scores).softmax(dim=0)
    context, state = weights @ annotations, torch.tensor([0.8, -1.2, 0.5, 1.4])

    drawing = Diagram(360, 486) if phone else Diagram(690, 404)
    middle, step, foot = (176, 68, 466) if phone else (312, 82, 384)
    columns = drawing.tokens(middle, foot, words, step=step)
    rise = {"h": 68, "line": 124, "e": 158, "softmax": 190, "a": 222, "c": 318}
    if not phone:
        rise["c"] = 310
    y = {name: foot - height for name, height in rise.items()}
    half = 26 if phone else 30
    for x, word, score, bars in zip(columns, words, scores, annotations, strict=True):
        drawing.arrow((x, foot - 13), (x, y["h"] + 26), width=1.2)
        drawing.bars(x, y["h"], bars, role="key", width=2 * half, height=44, limit=2)
        if word != words[-1]:  # the two networks read in opposite directions
            ends = x + half + 2, x + step - half - 2
            drawing.arrow((ends[0], y["h"] - 9), (ends[1], y["h"] - 9), width=1)
            drawing.arrow((ends[1], y["h"] + 9), (ends[0], y["h"] + 9), width=1)
        drawing.arrow((x, y["h"] - 24), (x, y["e"] + 15), role="key")
        drawing.arrow((x - 14, y["line"]), (x - 14, y["e"] + 15), role="query")
        shown = f"{score:.1f}".replace("-", "−")
        drawing.box(x, y["e"], shown, width=52, height=26)
        drawing.arrow((x, y["e"] - 14), (x, y["a"] + 16), width=1.2)
    drawing.grid(middle, y["a"], weights[None], cell=step)
    for x, weight in zip(columns, weights.tolist(), strict=True):
        thick = 1 + 7 * weight
        drawing.arrow(
            (x, y["a"] - 15),
            (middle, y["c"] + 40),
            role="value",
            head=False,
            width=thick,
        )
    drawing.arrow((middle, y["c"] + 40), (middle, y["c"] + 24), role="value", width=3)
    drawing.bars(middle, y["c"], context, role="value", width=84, height=40, limit=2)
    if phone:
        _decoder_above(drawing, middle, y["line"], columns[0], state)
    else:
        _decoder_beside(drawing, y, columns[0], state)
    return drawing.finish(
        "One step of Bahdanau's decoder",
        "Five English words, each with an annotation made by a network that reads "
        "forwards and one that reads backwards. The decoder's state and each "
        "annotation give a score, a softmax makes weights of the scores, and the mean "
        "of the annotations under these weights is the context: 83 percent of it is "
        "the annotation of read. Context, state and the previous word Buch give the "
        "next word, gelesen.",
    )


def _decoder_beside(
    drawing: Diagram, y: Mapping[str, float], first: float, state: Tensor
) -> None:
    """The decoder at the right of the words, and the names of the rows at the left."""
    rows = {
        "h": "annotations hⱼ",
        "e": "scores eⱼ",
        "a": "weights αⱼ",
        "c": "context c",
    }
    for name, label in rows.items():
        drawing.text(2, y[name], label, anchor="start")
    drawing.text(2, y["softmax"], "softmax", anchor="start", italic=True)
    drawing.text(2, y["a"] - 46, "weighted mean", anchor="start", italic=True)
    at = 600
    drawing.bars(at, y["line"], state, role="query", width=64, height=44, limit=2)
    drawing.text(at, y["line"] + 36, "state sₜ₋₁", role="query")
    drawing.arrow(
        (at - 36, y["line"]), (first - 14, y["line"]), role="query", head=False
    )
    drawing.box(at, y["c"], "decoder's GRU", width=124)
    drawing.arrow((at, y["line"] - 26), (at, y["c"] + 16), role="query")
    drawing.box(at + 50, y["c"] + 70, "Buch", width=60, height=26)
    drawing.arrow((at + 50, y["c"] + 57), (at + 50, y["c"] + 16))
    drawing.arrow((312 + 48, y["c"]), (at - 63, y["c"]), role="value")
    drawing.arrow((at, y["c"] - 15), (at, 38))
    drawing.box(at, 24, "gelesen", width=84, height=26, role="weight")


def _decoder_above(
    drawing: Diagram, middle: float, line: float, first: float, state: Tensor
) -> None:
    """The decoder above the context, for phones."""
    drawing.text(2, 148, "context c", anchor="start")
    drawing.text(2, 204, "weights αⱼ", anchor="start")
    drawing.text(74, 276, "softmax", italic=True)
    drawing.text(68, 331, "score")
    drawing.text(74, 362, "hⱼ", role="key")
    drawing.arrow((middle, 122), (middle, 102), role="value")
    drawing.box(middle, 86, "decoder's GRU", width=120)
    drawing.box(44, 86, "Buch", width=56, height=26)
    drawing.arrow((73, 86), (middle - 61, 86))
    drawing.bars(306, 86, state, role="query", width=60, height=40, limit=2)
    drawing.text(306, 54, "state sₜ₋₁", role="query")
    drawing.arrow((274, 86), (middle + 62, 86), role="query")
    down = 354
    drawing.arrow(
        (338, 86),
        (down, 86),
        (down, line),
        (first - 14, line),
        role="query",
        head=False,
    )
    drawing.arrow((middle, 70), (middle, 40))
    drawing.box(middle, 24, "gelesen", width=84, height=26, role="weight")


def attend_by_hand(state: float, squash: Callable[[float], float] = math.tanh):
    """The weights of the three words, by the chapter's table."""
    exponentials = [math.exp(V * squash(W * state + W * h[0])) for h in THREE]
    return [part / sum(exponentials) for part in exponentials]


def along_the_tanh(states: Sequence[int] = (0, 3)) -> list[Svg]:
    """Where three keys lie on the tanh, for two states of the decoder."""
    panels = []

    def place(x: float) -> tuple[float, float]:
        return 165 + 48 * x, 92 - 62 * math.tanh(x)

    for state in states:
        drawing = Diagram(330, 226)
        drawing.text(165, 12, f"state s = {state}", role="query", bold=True)
        drawing.axis(
            (21, 92),
            (313, 92),
            [((x + 3) / 6, str(x).replace("-", "−")) for x in (-2, -1, 1, 2)],
        )
        drawing.text(318, 76, "Ws + Uhⱼ", anchor="end", italic=True)
        line = [place(x / 10) for x in range(-30, 31)]
        drawing.arrow(*line, head=False)
        for word, (first, _) in zip(("1st", "2nd", "3rd"), THREE, strict=True):
            x, y = place(W * (state + first))
            drawing.dot(x, y, role="key")
            beside = state == 0  # where the curve is steep
            at = (x + 20, y + 11) if beside else (x, y - 15)
            drawing.text(*at, word, role="key")
        drawing.text(40, 186, "weights", anchor="start")
        weights = torch.tensor(attend_by_hand(state))
        drawing.grid(
            200, 192, weights[None], cell=60, tall=28, columns=["1st", "2nd", "3rd"]
        )
        panels.append(
            drawing.finish(
                f"Three keys on the tanh, state {state}",
                "The curve of the tanh with three points, one for each word, and the "
                "three weights. At state 0 the points lie on the steep part and the "
                "weights are 0.69, 0.23 and 0.08; at state 3 they lie on the flat "
                "part and the weights are nearly equal.",
            )
        )
    return panels


def query_chart() -> alt.LayerChart:
    """Weights of three keys under three additive scores; a slider moves the query."""
    asks = alt.param(
        name="asks",
        value=1.5,
        bind=alt.binding_range(min=-6, max=6, step=0.5, name="Query Ws "),
    )
    options = ["one unit", "two units", "no tanh"]
    form = alt.param(
        name="form",
        value=options[0],
        bind=alt.binding_radio(options=options, name="Score "),
    )
    inner = "(asks + datum.k)"

    def tanh(x: str) -> str:
        return f"(1 - 2 / (exp(2 * ({x})) + 1))"

    two = f"({tanh(inner + ' + 1')} - {tanh(inner + ' - 1')})"
    score = (
        f"form == 'one unit' ? {tanh(inner)} : form == 'two units' ? {two} : {inner}"
    )
    keys = [{"key": name, "k": k} for name, k in (("+1", 1), ("0", 0), ("−1", -1))]
    base = (
        alt.Chart(alt.Data(values=keys))
        .transform_calculate(up=f"exp(2 * ({score}))")
        .transform_joinaggregate(total="sum(up)")
        .transform_calculate(weight="datum.up / datum.total")
        .encode(
            x=alt.X("key:N", title="key Uh", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("weight:Q", title="weight", scale=alt.Scale(domain=[0, 1])),
        )
    )
    label = alt.Text("weight:Q", format=".2f")
    layers = [
        base.mark_bar(color=WEIGHT.mark),
        base.mark_text(dy=-8).encode(text=label),
    ]
    return (
        alt.LayerChart(layer=layers)
        .add_params(asks, form)
        .properties(
            width="container",
            height=200,
            description="Bars of the weights of three keys, plus one, zero and minus "
            "one. A slider moves the query. With one hidden unit the first key always "
            "has the largest weight, and far to either side the three are equal. With "
            "two units the query decides which key has the largest weight. Without "
            "the tanh the bars do not depend on the query.",
        )
    )


MOVING = {"perfect", "modal", "future", "separable"}
ARTICLES = {"der", "die", "das", "den", "dem"}
ARTICLES |= {"ein", "eine", "einen", "einem", "einer"}


@dataclass
class Sentences:
    """Short pairs of the book's grammar in which a part of the verb moves."""

    train: list[GrammarSample]
    test: list[GrammarSample]
    words: list[str]
    source: Tensor
    """The training sentences' English tokens: (pairs, length)."""
    target: Tensor
    """Their German tokens."""
    x: Tensor
    """The test sentences' English tokens."""
    y: Tensor
    """Their German tokens."""
    gold: Tensor
    """Which German position renders which English one: (pairs, target, source)."""

    @property
    def paired(self) -> Tensor:
        """German words that have a partner: (pairs, target)."""
        return self.gold.any(dim=-1)

    def correct(self, guess: Tensor) -> Tensor:
        """Where the guessed source position, (pairs, target), is a partner."""
        return self.gold.gather(2, guess[:, :, None])[:, :, 0]

    def lengths(self, side: str) -> Tensor:
        """How many words each test sentence has: (pairs, 1)."""
        return torch.tensor([[len(getattr(s, side))] for s in self.test])


def short_sentences() -> Sentences:
    """Sentences of at most eight tokens a side, to train on and to test."""

    def short(split: str, count: int) -> list[GrammarSample]:
        return [
            s
            for s in generate(count, seed=2, split=split)
            if max(len(s.source_tokens), len(s.target_tokens)) <= 8 and s.tags & MOVING
        ]

    train, test = short("train", 8000), short("test", 1000)
    seen = {word for s in train for word in s.source_tokens + s.target_tokens}
    words = ["<pad>", "<s>", "</s>", "<unk>", *sorted(seen)]
    number = {word: i for i, word in enumerate(words)}

    def rows(samples: list[GrammarSample], side: str) -> Tensor:
        tokens = [[*getattr(s, side), "</s>"] for s in samples]
        numbers = [[number.get(word, UNKNOWN) for word in row] for row in tokens]
        return pad_sequence([torch.tensor(n) for n in numbers], batch_first=True)

    x, y = rows(test, "source_tokens"), rows(test, "target_tokens")
    gold = torch.zeros(len(test), y.size(1), x.size(1), dtype=torch.bool)
    for k, sample in enumerate(test):
        for i, j in sample.alignment:
            gold[k, j, i] = True
    source, target = rows(train, "source_tokens"), rows(train, "target_tokens")
    return Sentences(train, test, words, source, target, x, y, gold)


def weights_on_test(model: RecurrentTranslator, data: Sentences) -> Tensor:
    """The attention of each German position: (pairs, target, source)."""
    with torch.no_grad():
        return model.attention_weights(data.x, shift_right(data.y, BOS))


def right_next_words(model: RecurrentTranslator, data: Sentences) -> float:
    """How often the most probable next word is right, with teacher forcing."""
    with torch.no_grad():
        best = model(data.x, shift_right(data.y, BOS)).argmax(dim=-1)
    return (best == data.y)[data.y != PAD].float().mean().item()


def agreement(maps: Sequence[Tensor], data: Sentences) -> pd.DataFrame:
    """How often the gold partner is found: a row for each guess.

    The columns are all words with a partner, those whose partner stands at the same
    position, and the others.
    """
    n, m = data.lengths("source_tokens"), data.lengths("target_tokens")
    j = torch.arange(data.y.size(1))[None]
    same = data.correct(j.minimum(n - 1))
    diagonal = data.correct(((j + 0.5) * n / m).long().minimum(n - 1))
    guesses: dict[str, Tensor] = {
        f"attention, seed {seed}": data.correct(weights.argmax(dim=-1))
        for seed, weights in enumerate(maps)
    }
    guesses |= {"same position": same, "diagonal": diagonal}
    guesses["chance"] = data.gold.sum(dim=-1) / n
    paired = data.paired
    groups = {
        "all words": paired,
        "same position": paired & same,
        "moved": paired & ~same,
    }
    return pd.DataFrame(
        {
            group: {k: g[where].float().mean().item() for k, g in guesses.items()}
            for group, where in groups.items()
        }
    )


def agreement_chart(table: Any) -> alt.Chart:
    """The shares of `agreement` as points."""
    kinds = ["attention", "same position", "diagonal", "chance"]
    rows = [
        {"guess": str(name).partition(",")[0], "words": group, "share": share}
        for group in table
        for name, share in table[group].items()
    ]
    colours = [WEIGHT.mark, NEUTRAL.mark, KEY.mark, QUERY.mark]
    shapes = ["circle", "square", "diamond", "cross"]
    legend = alt.Legend(title=None, orient="bottom", columns=2)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=110, opacity=0.9)
        .encode(
            x=alt.X(
                "share:Q",
                title="partner found",
                axis=alt.Axis(format="%", grid=True),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("words:N", title=None, sort=None, axis=alt.Axis(grid=True)),
            color=alt.Color(
                "guess:N",
                scale=alt.Scale(domain=kinds, range=colours),
                legend=legend,
            ),
            shape=alt.Shape(
                "guess:N",
                scale=alt.Scale(domain=kinds, range=shapes),
                legend=legend,
            ),
            tooltip=["guess:N", "words:N", alt.Tooltip("share:Q", format=".0%")],
        )
        .properties(
            width="container",
            height=170,
            description="For all words, words whose partner stands at the same "
            "position, and words that moved: how often attention in three trainings, "
            "the same position, the diagonal, and chance find the gold partner. Among "
            "words that moved, attention is far ahead of the rest.",
        )
    )


@dataclass
class Example:
    """The sentence whose map is drawn."""

    chart: alt.LayerChart
    seed: int
    source: str
    target: str


def example_map(maps: Sequence[Tensor], data: Sentences) -> Example:
    """A perfect of six English words, and the first model that finds its participle."""
    known = set(data.words)
    k = next(
        k
        for k, s in enumerate(data.test)
        if "perfect" in s.tags
        and len(s.source_tokens) == 6
        and {*s.source_tokens, *s.target_tokens} <= known
    )
    sample = data.test[k]
    verb = len(sample.target_tokens) - 2  # the participle, before the full stop
    finds = [data.correct(m.argmax(dim=-1))[k, verb].item() for m in maps]
    seed = finds.index(True) if True in finds else 0
    columns = [*sample.source_tokens, "</s>"]
    chart = attention_map(
        maps[seed][k, : len(sample.target_tokens), : len(columns)],
        sample.target_tokens,
        columns,
        description="Attention of a small recurrent translator, a row for each "
        "German word and a column for each English one, with frames at the gold "
        "alignment. The participle at the end of the German sentence attends to "
        "the English verb. Some words attend to the right of their frame.",
        gold=[(j, i) for i, j in sample.alignment],
    )
    return Example(chart, seed, sample.source, sample.target)


def articles(maps: Sequence[Tensor], data: Sentences) -> pd.DataFrame:
    """How often articles, ends and other words find their partner, seed by seed.

    The last column is the share of the articles without a find that attend to the
    word after their partner.
    """
    names = ["articles", "end of sentence", "other words"]
    kind = torch.full(data.y.shape, -1)
    for k, sample in enumerate(data.test):
        for place, word in enumerate(sample.target_tokens):
            if data.paired[k, place]:
                article, end = word.lower() in ARTICLES, word in ".?"
                kind[k, place] = 0 if article else 1 if end else 2
    last = torch.where(data.gold, torch.arange(data.x.size(1)), -1).amax(dim=-1)
    found = {}
    for seed, weights in enumerate(maps):
        best = weights.argmax(dim=-1)
        hit = data.correct(best)
        missed = (kind == 0) & ~hit
        found[f"seed {seed}"] = {
            name: hit[kind == i].float().mean().item() for i, name in enumerate(names)
        } | {"missed: next word": (best == last + 1)[missed].float().mean().item()}
    return pd.DataFrame(found).T


def off_by_one(maps: Sequence[Tensor], data: Sentences) -> pd.DataFrame:
    """How often partners are found if each row is read as the next word's."""
    rows = {}
    for seed, weights in enumerate(maps):
        best = weights.argmax(dim=-1)
        after = data.correct(best.roll(-1, dims=1))
        rows[f"seed {seed}"] = {
            "gold found": data.correct(best)[data.paired].float().mean().item(),
            "off by one": after[data.paired].float().mean().item(),
        }
    return pd.DataFrame(rows).T


def sensitivity(
    layer: Callable[[Tensor], Tensor], x: Tensor, tries: int = 8, size: float = 1e-4
) -> Tensor:
    """Row i: which share of the movement of vector i each word causes.

    Each word's vector is nudged in a random direction, and each output's movement is
    measured: (outputs, words), rows sum to one.

    Args:
        layer: (batch, words, d) → (batch, words, d').
        x: (words, d), in float64.
        tries: how many directions are averaged.
        size: how long a nudge is.
    """
    words, width = x.shape
    push = torch.randn(tries, words, width, dtype=x.dtype)
    moved = x.repeat(tries, words, 1, 1)  # (tries, nudged word, words, d)
    each = torch.arange(words)
    moved[:, each, each] += size * F.normalize(push, dim=-1)
    with torch.no_grad():
        change = layer(moved.flatten(0, 1)) - layer(x[None])
    change = change.norm(dim=-1).unflatten(0, (tries, words))
    change = change.mean(dim=0).T  # (outputs, words)
    return change / change.sum(dim=-1, keepdim=True)


def flagged(
    batch: int, length: int, generator: torch.Generator, distance: int | None = None
) -> tuple[Tensor, Tensor]:
    """Rows of letters, one of them flagged, and which one that is."""
    x = torch.randint(8, (batch, length), generator=generator)
    d = torch.randint(1, length, (batch,), generator=generator)
    d = d if distance is None else torch.full((batch,), distance)
    every, at = torch.arange(batch), length - 1 - d
    letter = x[every, at].clone()
    x[every, at] += 8  # the flag: another symbol for the same letter
    return x, letter


DISTANCES = (1, 8, 19, 40, 100)


def train_to_remember(seed: int, steps: int = 400) -> dict[int, float]:
    """A GRU's share of right answers, by how many letters follow the flagged one."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    embed, out = nn.Embedding(16, 16), nn.Linear(16, 8)
    read = nn.GRU(16, 16, batch_first=True)
    model = nn.ModuleList([embed, read, out])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(steps):
        x, letter = flagged(64, 20, generator)
        learn(optimizer, F.cross_entropy(out(read(embed(x))[1][0]), letter))
    shares = {}
    for distance in DISTANCES:
        x, letter = flagged(1000, distance + 1, generator, distance)
        with torch.no_grad():
            best = out(read(embed(x))[1][0]).argmax(dim=-1)
        shares[distance] = (best == letter).float().mean().item()
    return shares


def learn(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Recall(nn.Module):
    """Reads words, each a name with a letter, and is asked for the letter of one."""

    def __init__(self, attend: bool, d: int = 32) -> None:
        super().__init__()
        self.name = nn.Embedding(36, d)
        self.letter = nn.Embedding(4, d)
        self.read = nn.GRU(d, d, batch_first=True)
        self.W = nn.Linear(d, d, bias=False)
        self.U = nn.Linear(d, d, bias=False)
        self.v = nn.Parameter(torch.randn(d) / d**0.5)
        self.out, self.attend = nn.Linear(d, 4), attend

    def forward(self, names: Tensor, letters: Tensor, asked: Tensor) -> Tensor:
        words = self.name(names) + self.letter(letters)
        h, last = self.read(words)
        query = self.name(asked)[:, None]  # (batch, 1, d)
        if not self.attend:  # the question is one more word
            return self.out(self.read(query, last)[1][0])
        q, k = self.W(query), self.U(h)
        found, _ = additive_attention(q, k, h, self.v)
        return self.out(found[:, 0])


def questions(
    batch: int, length: int, generator: torch.Generator
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
    """Names, letters and the name asked for; the answer; how many words ago it was."""
    names = torch.rand(batch, 36, generator=generator).argsort(dim=1)
    names = names[:, :length]
    letters = torch.randint(4, (batch, length), generator=generator)
    at = torch.randint(length, (batch,), generator=generator)
    every = torch.arange(batch)
    asked, answer = names[every, at], letters[every, at]
    return (names, letters, asked), answer, length - at


def train_recall(
    make: Callable[[bool], nn.Module], attend: bool, seed: int, steps: int = 600
) -> list[tuple[int, int, float]]:
    """Train on 1 to 12 words; the shares right by number of words and distance.

    Returns:
        Rows of the number of words, the largest distance of a band of four, and the
        share of right answers in it.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = make(attend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(steps):
        length = int(torch.randint(1, 13, (), generator=generator))
        given, answer, _ = questions(64, length, generator)
        learn(optimizer, F.cross_entropy(model(*given), answer))
    found = []
    for length in (4, 12, 36):
        given, answer, distance = questions(4000, length, generator)
        with torch.no_grad():
            right = model(*given).argmax(dim=-1) == answer
        for band in range(4, length + 1, 4):
            within = (distance > band - 4) & (distance <= band)
            found.append((length, band, right[within].float().mean().item()))
    return found


KINDS = {"attention": True, "last state": False}


def recall(make: Callable[[bool], nn.Module]) -> pd.DataFrame:
    """Both models in three seeds: model, seed, words, distance, share right."""
    rows = [
        (kind, seed, *row)
        for kind, attend in KINDS.items()
        for seed in SEEDS
        for row in train_recall(make, attend, seed)
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "words", "distance", "right"])


def share_right(table: Any, model: str, words: int, distance: int = 0):
    """The shares of `recall` of one model, seed by seed; 0 is the mean of all bands."""
    rows = table[(table["model"] == model) & (table["words"] == words)]
    if distance:
        rows = rows[rows["distance"] == distance]
    return rows.groupby("seed")["right"].mean().tolist()


def recall_charts(table: Any) -> list[alt.LayerChart]:
    """By distance among 36 words, and by number of words for the last four."""
    far = table[table["words"] == 36].rename(columns={"right": "share right"})
    near = table[table["distance"] == 4].rename(columns={"right": "share right"})
    told = "With attention the line is flat near one. With the last state alone "
    charts = [
        curves(
            far.rename(columns={"distance": "distance, among 36 words"}),
            "distance, among 36 words",
            "share right",
            "model",
            description=f"{told}it lies between one quarter, which is chance, and "
            "one half, higher for the nearest words.",
        ),
        curves(
            near.rename(columns={"words": "words read, the last four asked"}),
            "words read, the last four asked",
            "share right",
            "model",
            description=f"{told}it falls as more words are read before.",
        ),
    ]
    for chart in charts:
        for layer in chart.layer:
            layer.encoding.y.scale = alt.Scale(domain=[0, 1])
    return charts


def span(values: Any) -> str:
    """The lowest and the highest of shares, in per cent."""
    low, high = (f"{100 * one:.0f}" for one in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def settle_distance(table: Any, kept: Sequence[Mapping[int, float]]) -> None:
    """§1: with attention, words are related however far apart they stand."""
    far = table[table["words"] == 36]
    one, other = (
        far[far["model"] == kind].sort_values(["seed", "distance"]) for kind in KINDS
    )
    gain = one["right"].to_numpy() - other["right"].to_numpy()
    near, most = gain[one["distance"] == 4], gain[one["distance"] == 36]
    settle(
        "s1-distance",
        holds=bool(one["right"].min() >= 0.95),
        expected="with attention at least 95 % right in every band of four "
        "distances, up to three times the longest in training",
        measured="distances 1 to 36 in the input: with attention "
        f"{span(one['right'])}, without {span(other['right'])} (chance 25 %); gain "
        f"{span(near)} at the nearest four, {span(most)} at the farthest; without, the "
        f"last four of 4 words {span(share_right(table, 'last state', 4, 4))}, of 12 "
        f"words {span(share_right(table, 'last state', 12, 4))}; one flagged letter, "
        f"100 back, without: {span([shares[100] for shares in kept])}",
        sample=f"{one['seed'].nunique()} seeds, one recall task with a recurrent "
        "reader, bands of four distances",
        detects="fewer than 95 % right in any band in any seed",
    )


LETTERS, LENGTH, D = 8, 8, 32
WORDS, PLACED = "words", "words + positions"
VERSIONS = (
    ("GRU", "GRU"),
    (WORDS, "GRU"),
    (PLACED, "GRU"),
    (PLACED, WORDS),
    (PLACED, PLACED),
)


class Writer(nn.Module):
    """Bahdanau's model with two parts that can be replaced.

    Args:
        reader: where the annotations come from: a GRU, the word vectors, or these with
            positions.
        writer: where the decoder's state comes from: likewise, of the words before.
    """

    def __init__(self, reader: str, writer: str) -> None:
        super().__init__()
        self.reader, self.writer = reader, writer
        self.positions = sinusoidal_positional_encoding(LENGTH, D)
        self.embed = nn.Embedding(LETTERS + 1, D)  # one more: the start
        self.gru = nn.GRU(D, D // 2, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(2 * D, D)
        self.W = nn.Linear(D, D, bias=False)
        self.U = nn.Linear(D, D, bias=False)
        self.v = nn.Parameter(torch.randn(D) / D**0.5)
        hidden = nn.Linear(2 * D, 2 * D), nn.Tanh()
        self.out = nn.Sequential(*hidden, nn.Linear(2 * D, LETTERS))

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        """Logits of the letters; x and the letters before are (batch, LENGTH)."""
        h, s = self.embed(x), self.embed(before)
        if self.reader == "GRU":
            h = self.gru(h)[0]
        elif self.reader == PLACED:
            h = h + self.positions
        if self.writer == "GRU":
            return self._step_by_step(h, s)
        s = s + self.positions if self.writer == PLACED else s
        context, _ = additive_attention(self.W(s), self.U(h), h, self.v)
        return self.out(torch.cat([s, context], dim=-1))

    def _step_by_step(self, h: Tensor, words: Tensor) -> Tensor:
        s, keys, rows = torch.zeros_like(words[:, 0]), self.U(h), []
        for word in words.unbind(dim=1):
            query = self.W(s)[:, None]  # (batch, 1, D)
            context = additive_attention(query, keys, h, self.v)[0][:, 0]
            s = self.cell(torch.cat([word, context], dim=-1), s)
            rows.append(torch.cat([s, context], dim=-1))
        return self.out(torch.stack(rows, dim=1))


def letters(batch: int) -> tuple[Tensor, Tensor]:
    """Random letters to copy, and the letters that stand before each."""
    x = torch.randint(LETTERS, (batch, LENGTH))
    return x, F.pad(x[:, :-1], (1, 0), value=LETTERS)


def train_writer(
    reader: str, writer: str, seed: int, steps: int = 200
) -> tuple[Writer, float]:
    """Train a version to copy eight letters; how many of a new batch are right."""
    torch.manual_seed(seed)
    model = Writer(reader, writer)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(steps):
        x, before = letters(64)
        scores = model(x, before)
        learn(optimizer, F.cross_entropy(scores.flatten(0, 1), x.flatten()))
    x, before = letters(1000)
    with torch.no_grad():
        right = model(x, before).argmax(dim=-1) == x
    return model, right.float().mean().item()


Writers = dict[tuple[str, str], list[tuple[Writer, float]]]


def train_writers() -> Writers:
    """Every version in three seeds."""
    return {v: [train_writer(*v, seed) for seed in SEEDS] for v in VERSIONS}


@dataclass
class Bag:
    """What the version without the encoder's GRU still knows."""

    waiting: list[float]
    """How often its choice is a letter that is still to be written, by seed."""
    any_letter: float
    """How often a random letter of the source is."""
    moved: float
    """The largest change of a logit when the source is shuffled."""


def bag_of_letters(writers: Writers) -> Bag:
    """Without an encoder that knows order, the source is a bag."""
    torch.manual_seed(0)
    x, before = letters(1000)
    to_come = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu()

    def still_to_write(chosen: Tensor) -> float:
        same_letter = chosen[:, :, None] == x[:, None, :]
        return (same_letter & to_come).any(dim=-1).float().mean().item()

    waiting, moved = [], 0.0
    for model, _ in writers[WORDS, "GRU"]:
        with torch.no_grad():
            scores = model(x, before)
            change = model(x[:, torch.randperm(LENGTH)], before) - scores
        waiting.append(still_to_write(scores.argmax(dim=-1)))
        moved = max(moved, change.abs().max().item())
    any_letter = still_to_write(x.gather(1, torch.randint(LENGTH, x.shape)))
    return Bag(waiting, any_letter, moved)


def two_parts() -> Svg:
    """The two recurrent parts around Bahdanau's attention, which can be replaced."""
    drawing = Diagram(338, 300)
    columns = drawing.tokens(104, 280, ["c", "a", "b"], step=56)
    drawing.box(104, 222, "encoder's GRU", width=160, height=34, role="key")
    for x in columns:
        drawing.arrow((x, 266), (x, 240))
        drawing.arrow((x, 204), (x, 176), role="key")
    drawing.text(196, 188, "annotations", anchor="start", role="key")
    drawing.box(104, 158, "attention", width=160, height=34, role="weight")
    drawing.box(262, 92, "decoder's GRU", width=130, height=34, role="query")
    drawing.arrow((262, 110), (262, 158), (186, 158), role="query")
    drawing.text(270, 134, "state", anchor="start", role="query")
    drawing.arrow((104, 140), (104, 92), (196, 92), role="value")
    drawing.text(112, 76, "context", anchor="start", role="value")
    drawing.box(262, 24, "c", width=50, height=26)
    drawing.arrow((262, 74), (262, 38))
    drawing.text(228, 24, "writes", anchor="end")
    return drawing.finish(
        "Two recurrent parts",
        "The letters c, a, b pass through the encoder's GRU and become annotations. "
        "Attention compares them with the state of the decoder's GRU and returns a "
        "context, with which the decoder writes the next letter.",
    )


def parts_deleted(writers: Writers) -> Svg:
    """How many letters each version copies, a dot for each seed."""
    drawing = Diagram(338, 300)
    drawing.text(62, 14, "annotations", role="key")
    drawing.text(160, 14, "state", role="query")
    drawing.text(270, 14, "copied right")
    left, right = 222, 312
    short = {"GRU": "GRU", WORDS: "words", PLACED: "words +\npositions"}
    for row, ((reader, writer), runs) in enumerate(writers.items()):
        y = 50 + 48 * row
        drawing.box(62, y, short[reader], width=92, height=38, role="key")
        drawing.box(160, y, short[writer], width=92, height=38, role="query")
        drawing.arrow((left, y), (right, y), head=False, width=0.8)
        for _, share in runs:
            drawing.dot(left + (right - left) * share, y, role="weight")
    ticks = [(0.0, "0"), (0.5, "50 %"), (1.0, "100")]
    drawing.axis((left, 270), (right, 270), ticks)
    return drawing.finish(
        "Two parts deleted",
        "Five versions and the share of letters that each copies right, in three "
        "seeds: two GRUs, "
        + "; ".join(
            f"annotations {reader}, state {writer}: {span([s for _, s in runs])}"
            for (reader, writer), runs in writers.items()
        ),
    )


def what_remains() -> Svg:
    """Which parts give order and neighbourhood before the paper, and in it."""
    drawing = Diagram(360, 214)
    for x, head in ((176, "Bahdanau"), (296, "Transformer")):
        drawing.text(x, 14, head, bold=True)
    rows = [
        ("find a word", "attention", "attention", "weight"),
        ("know the order", "GRU", "positions", "query"),
        ("know the context", "GRU", "self-attention", "key"),
    ]
    for row, (job, before, after, role) in enumerate(rows):
        y = 56 + 56 * row
        drawing.text(2, y, job, anchor="start")
        drawing.box(176, y, before, width=92, height=36, role=role)
        drawing.arrow((223, y), (236, y))
        drawing.box(296, y, after, width=116, height=36, role=role)
    return drawing.finish(
        "Three jobs",
        "Finding a word is done by attention before the paper and in it. Order came "
        "from a recurrent network and comes from positions; context came from a "
        "recurrent network and comes from self-attention.",
    )
