"""Appendix *Before the paper*: what existed in 2017, and what its parts do (§1, §2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig, scaled_dot_product_attention
from aiayn_book import settle
from aiayn_book.chapters.first_attention import SEEDS, learn, sensitivity
from aiayn_book.colours import KEY, QUERY
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.svg import Svg


@dataclass(frozen=True)
class Work:
    """A model of the years before, and what it is made of."""

    arxiv: str
    """The number on the arXiv, which begins with year and month."""
    name: str
    recurrence: str
    """``yes``, ``in rounds``, or nothing."""
    convolution: bool
    cross: bool
    """Whether one sequence attends to another, or to a memory."""
    self_attention: str
    """What the authors call it; nothing if there is none."""
    writes: bool
    """Whether its output is a sequence."""
    task: str = ""

    @property
    def month(self) -> str:
        """``2014-09`` for 1409.0473."""
        return f"20{self.arxiv[:2]}-{self.arxiv[2:4]}"


WORKS = (
    Work("1409.0473", "Bahdanau et al.", "yes", False, True, "", True),
    Work("1503.08895", "Memory networks", "in rounds", False, True, "", False),
    Work(
        "1601.06733",
        "Cheng et al.",
        "yes",
        False,
        True,  # in their §4, for two sequences
        "intra-attention",
        False,
        "reading",
    ),
    Work(
        "1606.01933",
        "Parikh et al.",
        "",
        False,
        True,
        "intra-sentence attention",
        False,
        "entailment",
    ),
    Work("1610.10099", "ByteNet", "", True, False, "", True),
    Work(
        "1703.03130",
        "Lin et al.",
        "yes",
        False,
        False,
        "self-attention",
        False,
        "sentence vectors",
    ),
    Work("1705.03122", "ConvS2S", "", True, True, "", True),
    Work(
        "1705.04304",
        "Paulus et al.",
        "yes",
        False,
        True,
        "intra-attention",
        True,
        "summaries",
    ),
    Work("1706.03762", "Transformer", "", False, True, "self-attention", True),
)


COLUMNS = {
    "recurrent network": "neutral",
    "convolution": "neutral",
    "attention to another sequence": "key",
    "self-attention": "query",
    "output is a sequence": "value",
}


def has(work: Work) -> list[bool]:
    """Which of `COLUMNS` a work has."""
    return [
        work.recurrence == "yes",
        work.convolution,
        work.cross,
        bool(work.self_attention),
        work.writes,
    ]


def what_each_had() -> Svg:
    """The works of `WORKS` by date, with a dot for what each has."""
    top = 24 * len(COLUMNS) + 26
    drawing = Diagram(360, top + 28 * len(WORKS))
    places = [232 + 28 * i for i in range(len(COLUMNS))]
    for row, (x, name) in enumerate(zip(places, COLUMNS, strict=True)):
        y = 14 + 24 * (len(COLUMNS) - 1 - row)
        drawing.text(x - 12, y, name, anchor="end", role=COLUMNS[name])
        drawing.arrow((x - 8, y), (x, y), (x, top - 12), head=False, width=0.8)
    for row, work in enumerate(sorted(WORKS, key=lambda one: one.month)):
        y = top + 6 + 28 * row
        drawing.text(2, y, work.month, anchor="start", small=True)
        last = work.name == "Transformer"
        drawing.text(70, y, work.name, anchor="start", bold=last)
        for x, there, role in zip(places, has(work), COLUMNS.values(), strict=True):
            if there:
                drawing.dot(x, y, role=role, radius=8)
            else:
                drawing.arrow((x - 4, y), (x + 4, y), head=False, width=1)
    return drawing.finish(
        "What each model had",
        "Nine models from September 2014 to June 2017. Recurrent are Bahdanau et al., "
        "Cheng et al., Lin et al. and Paulus et al.; ByteNet and ConvS2S are made of "
        "convolutions. Self-attention have Cheng et al., Parikh et al., Lin et al., "
        "Paulus et al. and the Transformer. The Transformer is the only one with "
        "neither recurrence nor convolution whose output is a sequence.",
    )


Form = Callable[[Tensor], Tensor]


def linked(form: Form, words: int = 6, width: int = 8) -> Tensor:
    """Which words each result depends on: (results, words), true or false."""
    generator = torch.Generator().manual_seed(6)
    h = torch.randn(words, width, generator=generator, dtype=torch.float64)
    slopes: Any = torch.autograd.functional.jacobian(form, h)
    return slopes.abs().sum(dim=(1, 3)) > 1e-12  # less is rounding


def link_maps(links: Mapping[str, Tensor]) -> Svg:
    """A small map for each form: which words its results depend on."""
    side, drawing = 14, Diagram(360, 246)
    for place, (name, table) in enumerate(links.items()):
        x, top = 62 + 118 * (place % 3), 34 + 122 * (place // 3)
        drawing.text(x, top - 18, name, bold=True)
        y = top + side * len(table) / 2
        drawing.grid(x, y, table.float(), cell=side, tall=side, digits=None)
    drawing.text(298, 158, "rows: results")
    drawing.text(298, 178, "columns: words")
    return drawing.finish(
        "Which words each result depends on",
        "Five maps of results and words. Those of Cheng and of Paulus are filled "
        "below the diagonal, those of Parikh and of Vaswani are full squares, and "
        "that of Lin has three full rows.",
    )


def settle_used_before(links: Mapping[str, Tensor]) -> None:
    """§2: self-attention had served in four tasks; here are their dates and forms."""
    before = [w for w in WORKS if w.self_attention and w.name != "Transformer"]
    forms = ", ".join(
        f"{work.name} {table.sum()} of {table.numel()}"
        for work in before
        for table in [links[work.name.split()[0]]]
    )
    months = sorted(work.month for work in before)
    settle(
        "s2-used-before",
        holds=None,
        expected="four papers before June 2017, each with an attention of a sequence "
        "to itself",
        measured=f"{len(before)} papers from {months[0]} to {months[-1]}; the forms, "
        f"rebuilt here, link positions of one sequence: {forms}; the tasks "
        "themselves were not run",
    )


def questions_and_words() -> Svg:
    """Three fixed queries over a sentence, beside a query for each word."""
    words = ["the", "old", "key", "fits"]
    drawing = Diagram(360, 250)
    for at, name, queries in ((90, "Lin et al.", 2), (270, "self-attention", 4)):
        drawing.text(at, 12, name, bold=True)
        places = drawing.tokens(at, 230, words, step=43)
        span_of = [at + 43 * (i - (queries - 1) / 2) for i in range(queries)]
        for place, x in enumerate(span_of):
            drawing.box(x, 106, f"q{'₁₂₃₄'[place]}", width=36, height=26, role="query")
            drawing.arrow((x, 92), (x, 66))
            bars = [0.9 - 0.2 * place, 0.3 + 0.15 * place, 0.6]
            drawing.bars(x, 46, bars, role="value", width=34, height=32, limit=1)
            for word in places:
                drawing.arrow((word, 216), (x, 120), head=False, width=0.7)
    return drawing.finish(
        "Fixed queries, and a query for each word",
        "Left: two learned queries attend to four words, and two vectors come out. "
        "Right: each of the four words has a query, and four vectors come out.",
    )


def fresh_annotations(d: int = 16) -> Form:
    """A bidirectional GRU as it begins, in float64: (batch, words, d) → (…, 2 d)."""
    gru = nn.GRU(d, d, batch_first=True, bidirectional=True).double()
    return lambda x: gru(x)[0]


def fresh_self_attention(d: int = 16) -> Form:
    """One self-attention with random weights and without positions."""
    Q, K, V = (torch.randn(3, d, d) / d**0.5).double()
    return lambda x: scaled_dot_product_attention(x @ Q, x @ K, x @ V)[0]


LAYERS: dict[str, Callable[[], Form]] = {
    "annotation": fresh_annotations,
    "self-attention": fresh_self_attention,
}


@dataclass
class Reach:
    """What moves each kind of vector."""

    rows: list[dict[str, Any]]
    own: dict[str, list[float]]
    """The share of the word itself, by seed."""
    beyond: dict[str, list[float]]
    """The share of words more than five positions away, by seed."""
    even: float
    """What that would be if all words counted alike."""

    @property
    def chart(self) -> alt.LayerChart:
        """The shares by distance."""
        return curves(
            self.rows,
            "distance in words",
            "share of the movement",
            "vector",
            log_y=True,
            description="The share that one word at a given distance has in the "
            "movement of a vector, on a logarithmic scale. For the annotation of an "
            "untrained GRU it falls by orders of magnitude within some ten words. For "
            "self-attention it is level beyond distance zero.",
        )


def reach(words: int = 24, seeds: int = 5) -> Reach:
    """Nudge one word after the other, and see what moves; nothing is trained."""
    apart = (torch.arange(words)[:, None] - torch.arange(words)).abs()
    found = Reach([], {}, {}, (apart > 5).sum().item() / words**2)
    for name, make in LAYERS.items():
        found.own[name], found.beyond[name] = [], []
        for seed in range(seeds):
            torch.manual_seed(seed)
            felt = sensitivity(make(), torch.randn(words, 16).double())
            found.rows += [
                {
                    "vector": name,
                    "seed": seed,
                    "distance in words": d,
                    "share of the movement": felt[apart == d].mean().item(),
                }
                for d in range(20)
            ]
            found.own[name].append(felt.diagonal().mean().item())
            found.beyond[name].append((felt[apart > 5].sum() / words).item())
    return found


SENTENCE = [
    *("the", "key", "that", "the", "children", "found"),
    *("in", "the", "old", "garden", "is", "small"),
]


def embedded_sentence() -> Tensor:
    """A random vector for each word of `SENTENCE`, the same for the same word."""
    torch.manual_seed(3)
    vectors = {word: torch.randn(16).double() for word in dict.fromkeys(SENTENCE)}
    return torch.stack([vectors[word] for word in SENTENCE])


def one_word_chart() -> alt.Chart:
    """What moves one word's annotation, and its self-attention output."""
    embedded = embedded_sentence()
    felt = {name: sensitivity(make(), embedded) for name, make in LAYERS.items()}
    state = alt.param(
        name="state",
        value=11,
        bind=alt.binding_range(min=1, max=12, step=1, name="Vector of word "),
    )
    labels = [f"{i + 1} {word}" for i, word in enumerate(SENTENCE)]
    rows = [
        {
            "vector": name,
            "state": i + 1,
            "word": labels[j],
            "share": round(table[i, j].item(), 4),
        }
        for name, table in felt.items()
        for i in range(len(SENTENCE))
        for j in range(len(SENTENCE))
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .transform_filter("datum.state == state")
        .mark_bar()
        .encode(
            y=alt.Y("word:N", title=None, sort=labels),
            yOffset=alt.YOffset("vector:N", sort=list(LAYERS)),
            x=alt.X("share:Q", title="share", axis=alt.Axis(format="%")),
            color=alt.Color(
                "vector:N",
                title=None,
                scale=alt.Scale(domain=list(LAYERS), range=[KEY.mark, QUERY.mark]),
                legend=alt.Legend(symbolType="square"),
            ),
            tooltip=["vector:N", "word:N", alt.Tooltip("share:Q", format=".1%")],
        )
        .add_params(state)
        .properties(
            width="container",
            height=320,
            description="Two bars for each word of a sentence of twelve: how much it "
            "moves a chosen word's annotation, and its self-attention output. The "
            "annotation depends on itself and its neighbours, the self-attention "
            "output on all words.",
        )
    )


def train_tie(
    kind: str, d: int, seed: int, steps: int = 250
) -> tuple[float, tuple[nn.ModuleList, Tensor, Tensor, Tensor]]:
    """Train a look-up of a letter by its name, through entries of d numbers.

    Args:
        kind: ``tied`` (key = value = h), ``Bahdanau's`` (the key is h, projected), or
            ``untied`` (key and value have d numbers each, of the whole entry).
        d: the width.
        seed: of the weights and the data.
        steps: of the training.

    Returns:
        The share right; and model, queries, values and logits of the test.
    """
    torch.manual_seed(seed)
    squeeze, query = nn.Linear(24, d), nn.Linear(16, d)
    key = nn.Linear(24 if kind == "untied" else d, d)
    model = nn.ModuleList([squeeze, query, key, nn.Linear(d, 8)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, fused=True)

    def look_up(batch: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        names = torch.rand(batch, 16).argsort(dim=1)[:, :8]
        letters = torch.randint(8, (batch, 8))
        one_hot = F.one_hot(names, 16).float()
        entry = torch.cat([one_hot, F.one_hot(letters, 8)], dim=-1)
        v = squeeze(entry)  # (batch, 8, d)
        k = v if kind == "tied" else key(entry if kind == "untied" else v)
        asks = query(one_hot[:, :1])  # for the first name
        context, _ = scaled_dot_product_attention(asks, k, v)
        return asks, v, model[3](context[:, 0]), letters[:, 0]

    for _ in range(steps):
        _, _, scores, answer = look_up(64)
        learn(optimizer, F.cross_entropy(scores, answer))
    asks, v, scores, answer = look_up(2000)
    right = (scores.argmax(dim=-1) == answer).float().mean().item()
    return right, (model, asks, v, scores)


WIDTHS = (2, 4, 6, 8)
TIES = ("tied", "Bahdanau's", "untied")


@dataclass
class Ties:
    """Three ways to make key and value, at several widths."""

    rows: list[dict[str, Any]]

    def shares(self, kind: str, width: int) -> list[float]:
        """Right answers, by seed."""
        return [
            row["share right"]
            for row in self.rows
            if row["key and value"] == kind and row["width d"] == width
        ]

    def enough(self, kind: str) -> int:
        """The first width at which more than 90 % are right, on average."""
        return next(d for d in WIDTHS if sum(self.shares(kind, d)) > 0.9 * len(SEEDS))

    @property
    def chart(self) -> alt.LayerChart:
        """The shares by width."""
        chart = curves(
            self.rows,
            "width d",
            "share right",
            "key and value",
            description="Share right against width, three seeds, 250 steps of "
            "training. Untied keys and values reach one at width four, the tied ones "
            "at about twice that width, and Bahdanau's lie between.",
        )
        for layer in chart.layer:
            layer.encoding.x.axis = alt.Axis(values=list(WIDTHS), format="d")
        return chart


def ties() -> Ties:
    """Train all of them in three seeds."""
    return Ties(
        [
            {
                "width d": d,
                "key and value": kind,
                "seed": seed,
                "share right": train_tie(kind, d, seed)[0],
            }
            for kind in TIES
            for d in WIDTHS
            for seed in SEEDS
        ]
    )


def longer() -> dict[str, list[float]]:
    """The narrow ones after a thousand steps: shares right, by seed."""
    return {
        name: [train_tie(kind, d, seed, steps=1000)[0] for seed in SEEDS]
        for name, kind, d in (
            ("one vector, width 4", "Bahdanau's", 4),
            ("untied, width 2", "untied", 2),
        )
    }


def folded_away(seed: int = 0, d: int = 4) -> float:
    """The largest change of a logit when U moves from the keys to the query.

    With a dot product, a trained model of Bahdanau's kind is a tied one: the query
    takes the key's matrix, and the key's bias adds the same to every score.
    """
    _, (model, asks, v, scores) = train_tie("Bahdanau's", d, seed)
    with torch.no_grad():
        _, _, key, out = model
        folded = asks @ key.get_parameter("weight")  # key = value = v from here on
        context, _ = scaled_dot_product_attention(folded, v, v)
        return (out(context[:, 0]) - scores).abs().max().item()


def settle_with_recurrence() -> None:
    """§1: attention had mostly been used with a recurrent network."""
    others = [w for w in WORKS[:-1] if w.cross or w.self_attention]
    alone = [work.name for work in others if work.recurrence != "yes"]
    settle(
        "s1-with-recurrence",
        holds=None,
        expected="few models with attention and without a recurrent network before "
        "this paper",
        measured=f"{len(alone)} of the {len(others)} earlier ones that we chose for "
        "Figure A.1 have none: "
        + ", ".join(alone)
        + "; all others cannot be counted here",
    )


def shares_of_parameters() -> dict[str, float]:
    """What the base model's layers consist of, by its kinds of sub-layers."""
    with torch.device("meta"):  # shapes only: nothing is allocated
        base = Transformer(TransformerConfig(vocab_size=37000))
    parts = {"self_attention.": 0, "cross_attention.": 0, "feed_forward.": 0}
    for name, parameter in base.named_parameters():
        for part in parts:
            parts[part] += parameter.numel() if part in name else 0
    total = sum(parts.values())
    return {
        part.strip(".").replace("_", "-"): count / total
        for part, count in parts.items()
    }


def parameters_drawing() -> Svg:
    """The shares of `shares_of_parameters` as one bar."""
    drawing = Diagram(360, 92)
    left, wide = 10.0, 340
    roles = ("query", "key", "neutral")
    for (name, share), role in zip(shares_of_parameters().items(), roles, strict=True):
        part = wide * share
        drawing.box(
            left + part / 2, 34, f"{share:.0%}", width=part, height=40, role=role
        )
        middle = left + part / 2
        words = name.replace("-attention", "-\nattention").split("\n")
        for line, word in enumerate(words):
            drawing.text(middle, 66 + 16 * line, word, role=role)
        left += part
    return drawing.finish(
        "The parameters of the layers",
        "A bar in three parts: self-attention 29 percent, cross-attention 14 percent, "
        "feed-forward 57 percent.",
    )


def settle_first() -> None:
    """§2: whether it was the first can only be said of the works that it cites."""
    same = [w for w in WORKS[:-1] if w.writes and not (w.recurrence or w.convolution)]
    said = ", ".join(f"{n} {share:.0%}" for n, share in shares_of_parameters().items())
    settle(
        "s2-first",
        holds=None,
        expected="no earlier model from sequence to sequence without recurrence and "
        "without convolution",
        measured=f"{len(same) or 'none'} among the models that the paper cites and "
        f"that stand in Figure A.1; priority cannot be computed. Of base's "
        f"sub-layers: {said}",
    )


def largest_change(layer: Form, still: int = 5, tries: int = 20) -> float:
    """How far a word's vector moves, relatively, when all other words are shuffled."""
    x = embedded_sentence()
    torch.manual_seed(1)
    others = [i for i in range(len(x)) if i != still]
    most = 0.0
    for _ in range(tries):
        order = torch.arange(len(x))
        order[others] = torch.tensor(others)[torch.randperm(len(others))]
        with torch.no_grad():
            before, after = layer(x[None])[0, still], layer(x[order][None])[0, still]
        most = max(most, ((after - before).norm() / before.norm()).item())
    return most
