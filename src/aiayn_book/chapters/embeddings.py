"""Chapter 8, embeddings: its drawings, its small trainings, the words of a trained one.

Paper: §3.4.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from statistics import mean
from typing import Any, Literal

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import (
    Tokenizer,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    load_corpus,
    shift_right,
)
from aiayn.data import Batch, TokenBatches, encode_pairs
from aiayn.data.grammar.nouns import NOUNS
from aiayn.model import NoPositionalEncoding, TokenEmbedding
from aiayn.model.layers import ResidualNorm
from aiayn.training import Trainer
from aiayn_book.claims import settle
from aiayn_book.colours import KEY, NEUTRAL, QUERY, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.live import load_live_model
from aiayn_book.plots import curves
from aiayn_book.power import mean_and_error, smallest_effect
from aiayn_book.svg import Svg

# The example by hand: six tokens, four numbers each, all of them a half.

WORDS = ("cat", "drinks", "milk", "Katze", "trinkt", "Milch")
MATRIX = 0.5 * torch.tensor(
    [
        [1.0, 1, -1, 1],
        [-1, 1, 1, 1],
        [1, -1, 1, 1],
        [1, 1, 1, -1],
        [-1, 1, -1, 1],
        [1, -1, -1, 1],
    ]
)
STATE = torch.tensor([-1.0, 1, -1, 1])
"""The decoder's output: mean 0 and variance 1, as a LayerNorm leaves it."""

_CELL, _TALL = 34, 25


def _halves(drawing: Diagram, x: float, y: float, picked: int | None) -> None:
    """The matrix with its words; all rows in full strength, or one of them."""
    strengths = torch.full((6, 1), 1.0 if picked is None else 0.2)
    if picked is not None:
        strengths[picked] = 1.0
    shade = {"cell": _CELL, "tall": _TALL, "limit": 1.3, "digits": None}
    drawing.grid(
        x, y, MATRIX * strengths, role="key", negative="neutral", rows=WORDS, **shade
    )
    for (i, j), number in zip(
        ((i, j) for i in range(6) for j in range(4)), MATRIX.flatten(), strict=True
    ):
        at = x + _CELL * (j - 1.5), y + _TALL * (i - 2.5)
        drawing.text(*at, "½" if number > 0 else "−½", bold=i == picked)


def _ones(drawing: Diagram, x: float, y: float, vector: Tensor, role: str) -> None:
    """A row of whole numbers under or above the matrix."""
    drawing.grid(
        x,
        y,
        vector[None],
        role=role,
        negative="neutral",
        cell=_CELL,
        tall=_TALL,
        limit=2.0,
        digits=0,
    )


def three_jobs(*, phone: bool = False) -> Svg:
    """The matrix in its three places: two look-ups, and the scores of all words."""
    return _three_jobs_narrow() if phone else _three_jobs_wide()


_TOLD = (
    "The same matrix of six rows and four columns appears in three places. For the "
    "source token cat its row is multiplied by √d_model, and with a position added it "
    "enters the encoder. For the target token Katze likewise, into the decoder. The "
    "decoder's output is multiplied with every row: the scores are 1, 1, −1, −1, 2 "
    "and 0, and the token trinkt has the highest."
)


def _three_jobs_wide() -> Svg:
    drawing = Diagram(690, 430)
    middle = 256
    drawing.frame(8, 157, 674, 193)
    drawing.text(252, 366, "one matrix E", bold=True)
    drawing.text(462, 366, "variance 1/d_model", italic=True)
    for x, row, stack in ((136, 0, "encoder"), (354, 3, "decoder")):
        drawing.box(x, 24, stack, width=120)
        drawing.plus(x, 66)
        drawing.arrow((x, 56), (x, 41))
        drawing.arrow((x - 44, 66), (x - 11, 66), role="query")
        drawing.text(x - 50, 66, "position", anchor="end", role="query")
        _ones(drawing, x, 108, 2 * MATRIX[row], "key")
        drawing.arrow((x, 94), (x, 77), role="key")
        drawing.arrow((x, 178), (x, 123), role="key", width=2.4)
        drawing.text(x + 12, 141, "× √d_model", anchor="start", bold=True)
        _halves(drawing, x, middle, row)
        drawing.arrow((x, 379), (x, 336), role="key")
        drawing.box(x, 394, WORDS[row], width=84, role="key")
    drawing.arrow((197, 24), (292, 24))
    drawing.text(244, 12, "output", italic=True)
    drawing.arrow((415, 24), (572, 24), (572, 88))
    drawing.text(500, 12, "output x", italic=True)
    _ones(drawing, 572, 108, STATE, "value")
    drawing.arrow((572, 123), (572, 178), role="value", width=2.4)
    drawing.text(584, 141, "x · each row", anchor="start", bold=True)
    _halves(drawing, 572, middle, None)
    for row, score in enumerate((MATRIX @ STATE).tolist()):
        y = middle + _TALL * (row - 2.5)
        words = f"{score:.0f}".replace("-", "−")
        drawing.text(661, y, words, role="weight", bold=score == 2)
    drawing.text(661, 170, "score", role="weight")
    drawing.arrow((572, 336), (572, 379), role="weight")
    drawing.text(584, 366, "softmax", anchor="start", italic=True)
    drawing.box(572, 394, "trinkt", width=84, role="weight")
    for x, job in (
        (136, "1. embed the source"),
        (354, "2. embed the target"),
        (572, "3. score the next token"),
    ):
        drawing.text(x, 421, job, bold=True)
    return drawing.finish("One matrix, three jobs", _TOLD)


def _three_jobs_narrow() -> Svg:
    drawing = Diagram(360, 470)
    x = 134
    drawing.text(4, 12, "1, 2: embed source and target", anchor="start", bold=True)
    _halves(drawing, x, 108, None)
    for row, stack in ((0, "encoder"), (3, "decoder")):
        y = 108 + _TALL * (row - 2.5)
        drawing.arrow((x + 70, y), (x + 92, y), role="key", width=2.4)
        drawing.text(x + 96, y, "× √d_model", anchor="start", bold=True)
        drawing.text(x + 96, y + 18, "+ position", anchor="start", role="query")
        drawing.text(x + 96, y + 36, f"→ {stack}", anchor="start")
    drawing.text(4, 216, "3: score the next token", anchor="start", bold=True)
    drawing.text(58, 244, "state x", anchor="end", role="value")
    _ones(drawing, x, 244, STATE, "value")
    drawing.arrow((x, 259), (x, 278), role="value", width=2.4)
    drawing.text(x + 12, 268, "x · each row", anchor="start", bold=True)
    _halves(drawing, x, 356, None)
    for row, score in enumerate((MATRIX @ STATE).tolist()):
        y = 356 + _TALL * (row - 2.5)
        words = f"{score:.0f}".replace("-", "−")
        drawing.text(232, y, words, role="weight", bold=score == 2)
    drawing.text(232, 272, "score", role="weight")
    y = 356 + _TALL * 1.5
    drawing.arrow((248, y), (284, y), role="weight")
    drawing.box(322, y, "trinkt", width=70, role="weight")
    drawing.text(4, 456, "one matrix E, entries of variance 1/d_model", anchor="start")
    return drawing.finish("One matrix, three jobs", _TOLD)


def two_products() -> list[Svg]:
    """The two products by hand: along the rows, and along the columns."""
    look_up = Diagram(330, 240)
    look_up.text(165, 12, "look up: o E", bold=True)
    look_up.text(96, 38, "token", italic=True)
    one_hot = torch.zeros(6, 1)
    one_hot[3] = 1
    look_up.grid(96, 126, one_hot, role="query", cell=30, tall=_TALL, digits=0)
    for row in range(6):
        if row != 3:
            look_up.text(96, 126 + _TALL * (row - 2.5), "0")
    for row, word in enumerate(WORDS):
        look_up.text(70, 126 + _TALL * (row - 2.5), word, anchor="end")
    _numbers(look_up, 222, 126)
    look_up.text(130, 126, "×")
    look_up.arrow((222, 204), (222, 216), role="key")
    _fractions(look_up, 222, 229, MATRIX[3], "key")
    look_up.text(148, 229, "sum", anchor="end", italic=True)
    score = Diagram(330, 240)
    score.text(165, 12, "score: x Eᵀ", bold=True)
    score.text(58, 42, "state x", anchor="end", role="value")
    _ones(score, 134, 42, STATE, "value")
    score.text(134, 66, "×")
    for row, word in enumerate(WORDS):
        score.text(58, 152 + _TALL * (row - 2.5), word, anchor="end")
    _numbers(score, 134, 152)
    for row, number in enumerate((MATRIX @ STATE).tolist()):
        y = 152 + _TALL * (row - 2.5)
        score.arrow((208, y), (248, y), role="weight")
        words = f"{number:.0f}".replace("-", "−")
        score.text(268, y, words, role="weight", bold=True)
    score.text(268, 66, "score", italic=True)
    return [
        look_up.finish(
            "A look-up as a product",
            "A column of six numbers, zero but for a one at Katze, beside the matrix. "
            "Each row is multiplied by its number and the rows are added: what remains "
            "is the row of Katze.",
        ),
        score.finish(
            "Scores as a product",
            "The state of four numbers above the matrix. Each row is multiplied with "
            "it, number by number, and added up: the scores of the six words are 1, 1, "
            "−1, −1, 2 and 0.",
        ),
    ]


def _numbers(drawing: Diagram, x: float, y: float) -> None:
    """The matrix, without words and without a marked row."""
    drawing.grid(
        x,
        y,
        MATRIX,
        role="key",
        negative="neutral",
        cell=_CELL,
        tall=_TALL,
        limit=1.3,
        digits=None,
    )
    for i in range(6):
        _halves_of(drawing, x, y + _TALL * (i - 2.5), MATRIX[i])


def _fractions(drawing: Diagram, x: float, y: float, row: Tensor, role: str) -> None:
    """One row of halves as cells."""
    drawing.grid(
        x,
        y,
        row[None],
        role=role,
        negative="neutral",
        cell=_CELL,
        tall=22,
        limit=1.3,
        digits=None,
    )
    _halves_of(drawing, x, y, row)


def _halves_of(drawing: Diagram, x: float, y: float, row: Tensor) -> None:
    for j, number in enumerate(row.tolist()):
        drawing.text(x + _CELL * (j - 1.5), y, "½" if number > 0 else "−½")


# What the shared matrix learns from.

JOBS: tuple[Literal["source", "target", "output"], ...] = ("source", "target", "output")


VOCABULARY_OF_TWELVE = (
    *("pad", "start", "end", "the", "cat", "drinks", "milk", "dog"),
    *("die", "Katze", "trinkt", "Milch"),
)


def rows_that_move(gradients: Sequence[Tensor]) -> Svg:
    """How far one step moves each row, by job and in all; one scale.

    Args:
        gradients: of the matrices of source, target and output, (12, d_model) each.
    """
    words = VOCABULARY_OF_TWELVE
    jobs = torch.stack(list(gradients))  # (3, words, d_model)
    norms = torch.cat([jobs, jobs.sum(0, keepdim=True)]).norm(dim=-1).T  # (words, 4)
    tall = 24
    drawing = Diagram(360, 56 + tall * len(words))
    drawing.text(208, 12, "norm of the gradient", italic=True)
    drawing.grid(
        208,
        46 + tall * len(words) / 2,
        norms,
        role="key",
        cell=62,
        tall=tall,
        limit=norms.max().item(),
        rows=words,
        columns=[*JOBS, "shared"],
    )
    return drawing.finish(
        "Which rows move",
        "One row for each word of a small vocabulary, and four columns: the gradient "
        "from the source, from the target, from the output, and of the shared matrix. "
        "Source and target are empty for all words that do not occur there; the output "
        "and the shared column have a number in every row.",
    )


def with_equal_weights(vocab_size: int) -> tuple[Transformer, Transformer]:
    """Two small models with the same numbers: one shared matrix, and three of them."""

    def make(tied: bool) -> Transformer:
        return Transformer(
            TransformerConfig.tiny(
                vocab_size=vocab_size,
                d_model=16,
                d_ff=32,
                dropout=0.0,
                tie_embeddings=tied,
            )
        )

    one, three = make(True), make(False)
    state = dict(one.state_dict())
    matrix = state.pop("embeddings.shared.weight")
    three.load_state_dict(state | {f"embeddings.{job}.weight": matrix for job in JOBS})
    return one, three


# Models that have not learned anything, and how they differ.

VOCABULARY, WIDTH = 1000, 64
Sharing = Literal["one matrix", "output apart", "three matrices"]


@dataclass(frozen=True)
class Start:
    """How the matrices begin, and which jobs share one."""

    std: float = WIDTH**-0.5
    factor: float = math.sqrt(WIDTH)
    sharing: Sharing = "one matrix"


STARTS = {
    "as in the paper": Start(),
    "variance 1": Start(std=1.0),
    "no factor": Start(factor=1.0),
    "output apart": Start(sharing="output apart"),
    "three matrices": Start(sharing="three matrices"),
}
BEGINNINGS = ("as in the paper", "variance 1", "no factor")
SHARINGS = ("as in the paper", "output apart", "three matrices")


def untrained(
    start: Start,
    seed: int,
    *,
    layers: int = 1,
    norm: Literal["post", "pre"] = "post",
    positions: bool = True,
) -> Transformer:
    """A model with random weights, 64 wide, whose matrices begin as they should."""
    torch.manual_seed(seed)
    model = Transformer(
        TransformerConfig.tiny(
            vocab_size=VOCABULARY,
            d_model=WIDTH,
            d_ff=4 * WIDTH,
            dropout=0.0,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            norm=norm,
            tie_embeddings=start.sharing == "one matrix",
        )
    )
    if start.sharing == "output apart":
        model.embeddings["target"] = model.embeddings["source"]
    for embedding in dict.fromkeys(map(model.embedding, JOBS)):
        nn.init.normal_(embedding.weight, std=start.std)
        if start.factor != math.sqrt(WIDTH):
            embedding.forward = _looked_up(embedding, start.factor)
    if not positions:
        model.source_positions = model.target_positions = NoPositionalEncoding()
    return model


def _looked_up(embedding: TokenEmbedding, factor: float) -> Any:
    """A look-up with another factor than √d_model."""
    return lambda tokens: F.embedding(tokens, embedding.weight) * factor


@dataclass(frozen=True)
class Material:
    """The grammar's sentences as the small models read them."""

    tokenizer: Tokenizer
    batches: TokenBatches

    @property
    def first(self) -> Batch:
        return next(iter(self.batches.epoch(0)))


@cache
def material() -> Material:
    """8,000 pairs of the embedded grammar, English to German, 1,000 tokens."""
    text = load_corpus("grammar", size=8000, held_out_size=1).train
    tokenizer = Tokenizer.train(chain(text.source, text.target), VOCABULARY)
    pairs, _ = encode_pairs(text, tokenizer)
    return Material(tokenizer, TokenBatches(pairs, 768, seed=8))


@dataclass(frozen=True)
class FirstWords:
    """What an untrained model says about a batch."""

    loss: float
    repeats: float
    """How often the likeliest next token is the one just read."""


def first_words(model: Transformer, batch: Batch | None = None) -> FirstWords:
    """The loss, and how often the model repeats the token that it just read."""
    batch = batch or material().first
    read, real = shift_right(batch.target, 1), batch.target != 0
    with torch.no_grad():
        logits = model(batch.source, read)[real]
    loss = F.cross_entropy(logits, batch.target[real]).item()
    same = logits.argmax(dim=-1) == read[real]
    return FirstWords(loss, same.double().mean().item())


@cache
def mean_first_words(start: Start, seeds: int = 5, **options: Any) -> FirstWords:
    """The mean over several draws of the weights."""
    found = [first_words(untrained(start, seed, **options)) for seed in range(seeds)]
    return FirstWords(mean(f.loss for f in found), mean(f.repeats for f in found))


# The way out: how large the logits are.


def excess(variance: float, draws: int = 400) -> float:
    """How far the loss lies above ln V if logits are independent and normal."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(draws, VOCABULARY, generator=generator) * math.sqrt(variance)
    return logits.logsumexp(dim=1).mean().item() - math.log(VOCABULARY)


VARIANCES = (1 / 16, 1 / 4, 1, 4, 16, 64)


@cache
def losses_at_the_start() -> list[dict[str, Any]]:
    """The first loss over the variance of a logit, by formula, draw and model."""
    rows = []
    for variance in VARIANCES:
        start = Start(std=math.sqrt(variance / WIDTH))
        model = mean_first_words(start).loss - math.log(VOCABULARY)
        found = {
            "half the variance": variance / 2,
            "random logits": excess(variance),
            "untrained models": model,
        }
        rows += [
            {"variance": variance, "excess": value, "how": how}
            for how, value in found.items()
        ]
    return rows


def first_loss_chart() -> alt.LayerChart:
    """The excess over ln V: the formula as a line, draws and models as points."""
    rows = losses_at_the_start()
    names = ["half the variance", "random logits", "untrained models"]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "variance:Q",
            title="variance of a logit, d_model · σ²",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(values=list(VARIANCES), format="~g"),
        ),
        y=alt.Y("excess:Q", title="first loss above ln V, nats"),
        color=alt.Color(
            "how:N",
            title=None,
            scale=alt.Scale(domain=names, range=[NEUTRAL.mark, KEY.mark, QUERY.mark]),
            legend=alt.Legend(columns=1),
        ),
    )
    formula = [
        {"variance": 2 ** (power / 4), "excess": 2 ** (power / 4 - 1), "how": names[0]}
        for power in range(-16, 25)
    ]
    line = base.properties(data=alt.Data(values=formula)).mark_line()
    points = base.transform_filter(f"datum.how != '{names[0]}'").mark_point(
        filled=True, size=110, opacity=1
    )
    points = points.encode(
        shape=alt.Shape(
            "how:N",
            title=None,
            scale=alt.Scale(domain=names, range=["circle", "circle", "square"]),
            legend=alt.Legend(columns=1),
        ),
        tooltip=["how:N", alt.Tooltip("excess:Q", format=".2f")],
    )
    large = f"datum.how == '{names[2]}' && datum.variance >= 1"
    numbers = base.transform_filter(large).mark_text(align="right", dx=-14, dy=-14)
    numbers = numbers.encode(text=alt.Text("excess:Q", format=".1f"))
    return alt.layer(line, points, numbers).properties(
        width="container",
        height=260,
        description="The first loss above ln V over the variance of a logit, from one "
        "sixteenth to 64. Up to a variance of 1, the line of half the variance, "
        "random logits and untrained models agree and are at most one half. At 64 "
        "the line is at 32, random logits below 20, and the models between.",
    )


# The way in: how large a token is beside its position.


def token_beside_position() -> alt.LayerChart:
    """Two points on a scale of sizes, with sliders for the width and the factor."""
    width = alt.param(
        name="log_width",
        value=9,
        bind=alt.binding_range(min=4, max=12, step=1, name="log₂ d_model "),
    )
    factor = alt.param(
        name="power",
        value=0.5,
        bind=alt.binding_range(min=0, max=1, step=0.1, name="exponent a "),
    )
    names = ["token", "position"]
    x = alt.X(
        "size:Q",
        title="size of an entry (root mean square)",
        scale=alt.Scale(type="log", domain=[0.01, 100]),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100], format="~g"),
    )
    points = (
        alt.Chart(alt.Data(values=[{"part": name} for name in names]))
        .transform_calculate(
            token="pow(2, log_width * (power - 0.5))",
            size="datum.part == 'token' ? datum.token : sqrt(0.5)",
        )
        .mark_point(filled=True, size=250, opacity=1)
        .encode(
            x=x,
            y=alt.Y("part:N", title=None, sort=names),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=names, range=[KEY.mark, QUERY.mark]),
                legend=None,
            ),
        )
        .add_params(width, factor)
    )
    one = (
        alt.Chart(alt.Data(values=[{"size": 1}]))
        .mark_rule(strokeDash=[4, 4], color=NEUTRAL.mark)
        .encode(x=x)
    )
    return alt.layer(points, one).properties(
        width="container",
        height=90,
        description="Two points on a logarithmic scale. A position's entries have "
        "root mean square 0.71. A token's have 1 with the paper's factor, for every "
        "width; without it they shrink as the width grows, to 0.04 at 512.",
    )


# What an untrained model says.


def echo(
    source: str = "The duck sleeps.", target: str = "Die Ente schläft.", seed: int = 0
) -> Svg:
    """A target as an untrained model reads it, and what it predicts at each token."""
    read, predicted = predictions(source, target, seed)
    drawing = Diagram(360, 178)
    drawing.text(180, 12, "most likely next token", italic=True)
    places = drawing.tokens(180, 136, read, step=70)
    drawing.text(180, 166, "what the decoder has just read", italic=True)
    drawing.box(180, 86, "untrained model", width=340)
    for x, heard, said in zip(places, read, predicted, strict=True):
        role = "weight" if heard == said else "neutral"
        drawing.arrow((x, 122), (x, 102))
        drawing.arrow((x, 70), (x, 56), role=role)
        drawing.text(x, 42, said, role=role, bold=heard == said)
    return drawing.finish(
        "An untrained model repeats",
        f"The decoder reads {', '.join(read)} and predicts {', '.join(predicted)}.",
    )


def predictions(source: str, target: str, seed: int) -> tuple[list[str], list[str]]:
    """What the decoder reads, and the likeliest next token at each of its tokens."""
    tokenizer = material().tokenizer
    ids = torch.tensor([tokenizer.encode(source)])
    read = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(target)]])
    with torch.no_grad():
        likeliest = untrained(STARTS["as in the paper"], seed)(ids, read).argmax(-1)
    heard, said = (
        [_shown(tokenizer, token) for token in tokens[0].tolist()]
        for tokens in (read, likeliest)
    )
    return heard, said


def _shown(tokenizer: Tokenizer, token: int) -> str:
    return {0: "pad", 1: "start", 2: "end"}.get(token) or tokenizer.decode([token])


SUBLAYERS = ("input", "self-attention", "cross-attention", "feed-forward")


def row_shares(layers: int = 1, norm: Literal["post", "pre"] = "post") -> list[float]:
    """The row's share of the variance, if every update has variance 1.

    The row has variance 1 and the position one half. A post-norm sub-layer divides the
    sum of state and update by its standard deviation; pre-norm only adds.
    """
    row, rest = 1.0, 0.5
    shares = [row / (row + rest)]
    for _ in range(3 * layers):
        rest += 1.0
        total = row + rest
        shares.append(row / total)
        if norm == "post":
            row, rest = row / total, rest / total
    return shares


def _decoder_states(model: Transformer, source: Tensor, read: Tensor) -> list[Tensor]:
    """The states after each sub-layer of the decoder."""
    states: list[Tensor] = []

    def keep(_module: nn.Module, _given: Any, returned: tuple[Tensor, Any]) -> None:
        states.append(returned[0])

    hooks = [
        part.register_forward_hook(keep)
        for part in model.decoder.modules()
        if isinstance(part, ResidualNorm)
    ]
    with torch.no_grad():
        model(source, read)
    for hook in hooks:
        hook.remove()
    return states


@cache
def measured_shares(seeds: int = 5) -> list[float]:
    """The squared cosine between state and row, after each sub-layer of the decoder."""
    batch = material().first
    read, real = shift_right(batch.target, 1), batch.target != 0
    found = []
    for seed in range(seeds):
        model = untrained(Start(), seed)
        row = model.embedding("target").weight[read] * math.sqrt(WIDTH)
        positions: Any = model.target_positions
        states = [row + positions.table[: read.size(1)]]
        states += _decoder_states(model, batch.source, read)
        cosines = [F.cosine_similarity(state, row, dim=-1)[real] for state in states]
        found.append([cosine.square().mean().item() for cosine in cosines])
    return [mean(shares) for shares in zip(*found, strict=True)]


def fading_row() -> Svg:
    """The row's share of the state's variance through one decoder layer."""
    drawing = Diagram(360, 232)
    left, width = 114, 136
    drawing.text(left + width / 2, 12, "share of the variance", italic=True)
    drawing.text(278, 12, "token", role="key", bold=True)
    drawing.text(278, 30, "rule", italic=True)
    drawing.text(330, 30, "measured", italic=True)
    named = (("token", "key"), ("position", "query"), ("updates", "neutral"))
    for number, (name, share, found) in enumerate(
        zip(SUBLAYERS, row_shares(), measured_shares(), strict=True)
    ):
        y = 58 + 40 * number
        drawing.text(left - 8, y, name, anchor="end")
        x = left
        parts = (share, share / 2, max(0.0, 1 - 1.5 * share))
        for (_, role), part in zip(named, parts, strict=True):
            if part:
                drawing.box(x + width * part / 2, y, "", width=width * part, role=role)
            x += width * part
        drawing.text(278, y, f"{share:.2f}", role="key")
        drawing.text(330, y, f"{found:.2f}", role="key", bold=True)
    for x, (name, role) in zip((122, 180, 240), named, strict=True):
        drawing.text(x, 218, name, role=role, bold=True)
    return drawing.finish(
        "How much of the state is still the token's own row",
        "Four bars, the input and the states after the three sub-layers. The token's "
        "share is two thirds at first and then 0.4, 0.2 and 0.1; the position's is "
        "half of that, and updates make the rest. Measured shares stand beside.",
    )


# Does it matter for training?

STEPS = 60


@cache
def train(name: str, seed: int, steps: int = STEPS) -> tuple[dict[str, Any], ...]:
    """Train one of `STARTS`; the loss is the mean over each five batches."""
    return tuple(_train(name, seed, steps))


def _train(name: str, seed: int, steps: int) -> Iterator[dict[str, Any]]:
    model, found = untrained(STARTS[name], seed), material()
    config = TrainingConfig.grammar(
        model=model.config,
        warmup_steps=60,
        label_smoothing=0.0,
        seed=seed,
        device="cpu",
        precision="fp32",
        learning_rate_scale=0.5,
        optimizer="adam",
    )
    trainer = Trainer(config, model, found.tokenizer.bos_id)
    epochs = (found.batches.epoch(100 * seed + number) for number in range(99))
    losses: list[float] = []
    for step, batch in enumerate(islice(chain.from_iterable(epochs), steps), start=1):
        _, loss, tokens = trainer.step(step, [batch]).tolist()
        losses.append(loss / tokens)
        if step % 5 == 0:
            recent = mean(losses[-5:])
            yield {"step": step, "loss": recent, "way": name, "seed": seed}


def train_all(names: Sequence[str], seeds: int = 3) -> list[dict[str, Any]]:
    """The curves of several starts, with the same batches for each seed."""
    runs = (train(name, seed) for name in names for seed in range(seeds))
    return [row for run in runs for row in run]


def learning_curves(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Loss per token over the step, three seeds each."""
    order = last_losses(rows).mean(axis=1).sort_values()
    ends = ", ".join(f"{way} {loss:.1f}" for way, loss in order.items())
    chart = curves(
        rows,
        "step",
        "loss",
        "way",
        log_y=True,
        description="Loss per token against the step. Means of the last ten steps: "
        f"{ends}.",
    )
    for layer in chart.layer:
        layer.encoding.y.axis = alt.Axis(values=[3, 4, 5, 7, 10, 20, 30], format="d")
        layer.encoding.y.title = "loss, nats per token"
    return chart


@dataclass(frozen=True)
class Gap:
    """How far a way ends above the paper's, over paired seeds."""

    mean: float
    standard_error: float

    @property
    def detects(self) -> float:
        return smallest_effect(self.standard_error)


def last_losses(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The mean loss of the last ten steps: a row a way, a column a seed."""
    table = pd.DataFrame(rows)
    last = table[table.step > table.step.max() - 10]
    return last.groupby(["way", "seed"], sort=False).loss.mean().unstack("seed")


def gaps(rows: Sequence[Mapping[str, Any]]) -> dict[str, Gap]:
    """The last loss of each way minus that of the first one, paired by seed."""
    last = last_losses(rows)
    first, *others = dict.fromkeys(row["way"] for row in rows)
    return {
        way: Gap(*mean_and_error((last.loc[way] - last.loc[first]).tolist()))
        for way in others
    }


def first_is_best(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all seeds of the first way end below all seeds of the others."""
    last = last_losses(rows)
    first = rows[0]["way"]
    return bool(last.loc[first].max() < last.drop(first).min(axis=None))


def first_is_worst(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all seeds of the first way end above all seeds of the others."""
    last = last_losses(rows)
    first = rows[0]["way"]
    return bool(last.loc[first].min() > last.drop(first).max(axis=None))


# What a learned embedding looks like.


@dataclass(frozen=True)
class Words:
    """Rows of a matrix for words that are one token each."""

    english: dict[str, int]
    german: dict[str, int]
    before: Tensor
    """A matrix that has learned nothing, of the same size: (vocabulary, d_model)."""
    after: Tensor
    """That of the translator in the page, 8,000 steps."""

    def neighbours(self, matrix: Tensor, word: str, count: int = 3) -> list[str]:
        """The words of both languages whose rows have the largest cosine with its."""
        known = self.german | self.english
        names = [name for name in known if known[name] != known[word]]
        rows = F.normalize(matrix[[known[name] for name in names]], dim=1)
        cosines = rows @ F.normalize(matrix[known[word]], dim=0)
        return [names[i] for i in cosines.topk(count).indices.tolist()]

    def same_language(self, matrix: Tensor) -> float:
        """How often a word's nearest neighbour is of its own language."""
        both = self.english.keys() & self.german.keys()
        languages = [set(self.english) - both, set(self.german) - both]
        hits = [
            self.neighbours(matrix, word, 1)[0] in language
            for language in languages
            for word in language
        ]
        return mean(hits)

    def translation_ranks(self, matrix: Tensor) -> list[int]:
        """For each noun, how near its translation is among the German words, from 1."""
        names = list(self.german)
        rows = F.normalize(matrix[[self.german[name] for name in names]], dim=1)
        ranks = []
        for noun in NOUNS:
            if noun.singular in self.english and noun.german in self.german:
                row = F.normalize(matrix[self.english[noun.singular]], dim=0)
                cosines = rows @ row
                own = cosines[names.index(noun.german)]
                ranks.append(int((cosines > own).sum()) + 1)
        return ranks


TEN = ("dog", "cat", "horse", "mother", "king", "old", "drinks", "the", "is", "Hund")


@cache
def words() -> Words:
    """Words of the grammar that are one token of the translator in the page."""
    model, tokenizer = load_live_model()
    text = load_corpus("grammar", size=8000, held_out_size=1).train

    def one_token(sentences: Sequence[str]) -> dict[str, int]:
        cut = (sentence.rstrip(".?!").split() for sentence in sentences)
        names = dict.fromkeys(chain.from_iterable(cut))
        tokens = {name: tokenizer.encode(name) for name in names}
        ends = {tokenizer.bos_id, tokenizer.eos_id}
        inner = {n: [t for t in found if t not in ends] for n, found in tokens.items()}
        return {name: found[0] for name, found in inner.items() if len(found) == 1}

    after = model.output_weight.detach()
    torch.manual_seed(0)
    before = TokenEmbedding(*after.shape).weight.detach()
    return Words(one_token(text.source), one_token(text.target), before, after)


def neighbour_lists(chosen: Sequence[str] = TEN) -> list[Svg]:
    """The three nearest words of each chosen word, before and after training."""
    known, panels = words(), []
    for title, matrix in (("before", known.before), ("after", known.after)):
        drawing = Diagram(330, 40 + 25 * len(chosen))
        drawing.text(6, 14, f"{title} training", anchor="start", bold=True)
        drawing.arrow((6, 29), (324, 29), head=False, width=1)
        for number, word in enumerate(chosen):
            y = 46 + 25 * number
            drawing.text(6, y, word, anchor="start", role="key", bold=True)
            near = ", ".join(known.neighbours(matrix, word))
            drawing.text(74, y, near, anchor="start")
        panels.append(
            drawing.finish(
                f"Neighbours {title} training",
                "Each of ten words with the three words whose rows have the largest "
                f"cosine with its own, {title} training; for dog they are "
                f"{', '.join(known.neighbours(matrix, 'dog'))}.",
            )
        )
    return panels


GENDERS = {"m": "masculine (der)", "f": "feminine (die)", "n": "neuter (das)"}


def things() -> list[tuple[str, str]]:
    """English nouns of one token that are no persons, with the gender of the German."""
    return [
        (noun.singular, noun.gender)
        for noun in NOUNS
        if noun.singular in words().english and "person" not in noun.classes
    ]


@dataclass(frozen=True)
class Agreement:
    """How often the nearest noun has the same German gender."""

    found: int
    of: int
    expected: float
    """The share if the nearest noun were any other one."""

    @property
    def share(self) -> float:
        return self.found / self.of


def gender_agreement(matrix: Tensor) -> Agreement:
    """Compare each noun's German gender with that of its nearest noun."""
    names, genders = zip(*things(), strict=True)
    rows = F.normalize(matrix[[words().english[name] for name in names]], dim=1)
    cosines = rows @ rows.T
    nearest = cosines.fill_diagonal_(-2).argmax(dim=1).tolist()
    found = sum(genders[i] == genders[j] for i, j in enumerate(nearest))
    many = {gender: genders.count(gender) for gender in set(genders)}
    others = len(names) - 1
    expected = mean((many[gender] - 1) / others for gender in genders)
    return Agreement(found, len(names), expected)


LABELLED = (
    *("bear", "coffee", "hat"),  # masculine in German
    *("cat", "guitar", "story"),  # feminine
    *("book", "hotel"),  # neuter
)


def gender_maps() -> list[alt.LayerChart]:
    """The nouns in the plane of their two main directions, before and after."""
    names, genders = zip(*things(), strict=True)
    places = [words().english[name] for name in names]
    charts = []
    for title, matrix in (("before", words().before), ("after", words().after)):
        rows = F.normalize(matrix[places], dim=1)
        centred = rows - rows.mean(dim=0)
        _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
        share = (sizes[:2].square().sum() / sizes.square().sum()).item()
        points = [
            {"word": name, "gender": GENDERS[gender], "x": x, "y": y}
            for name, gender, (x, y) in zip(
                names, genders, (centred @ directions[:2].T).tolist(), strict=True
            )
        ]
        charts.append(_map(points, f"{title} training", share))
    return charts


def _map(points: list[dict[str, Any]], title: str, share: float) -> alt.LayerChart:
    domain, reach = list(GENDERS.values()), [-0.62, 0.62]
    bare = alt.Axis(labels=False, ticks=False, grid=False)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X(
            "x:Q",
            title=f"{title}: first direction",
            scale=alt.Scale(domain=reach),
            axis=bare,
        ),
        y=alt.Y(
            "y:Q", title="second direction", scale=alt.Scale(domain=reach), axis=bare
        ),
        color=alt.Color(
            "gender:N",
            title="German gender",
            scale=alt.Scale(domain=domain, range=[KEY.mark, QUERY.mark, VALUE.mark]),
            legend=alt.Legend(columns=1),
        ),
    )
    dots = base.mark_point(filled=True, size=70, opacity=0.9).encode(
        shape=alt.Shape(
            "gender:N",
            title="German gender",
            scale=alt.Scale(domain=domain, range=["circle", "square", "triangle-up"]),
            legend=alt.Legend(columns=1),
        ),
        tooltip=["word:N", "gender:N"],
    )
    chosen = f"indexof({list(LABELLED)}, datum.word) >= 0"
    labels = base.transform_filter(chosen).mark_text(dy=-11).encode(text="word:N")
    return alt.layer(dots, labels).properties(
        width="container",
        height=300,
        description=f"English nouns as points, {title}, in the plane of their two main "
        f"directions, which hold {share:.0%} of the variance. "
        + (
            "The three genders of the German words are mixed."
            if title.startswith("before")
            else "The three genders of the German words form three separate groups."
        ),
    )


# Counting.


def count(model: nn.Module) -> int:
    """How many parameters a model has."""
    return sum(weight.numel() for weight in model.parameters())


# The claims.


def settle_scale(embedding: nn.Module, d_model: int) -> None:
    """What is looked up is √d_model times the row."""
    weight: Any = embedding.weight
    looked_up = embedding(torch.arange(len(weight)))
    apart = (looked_up - weight * math.sqrt(d_model)).abs().max().item()
    settle(
        "s3.4-scale",
        holds=apart == 0,
        expected="what is looked up is √d_model times the row",
        measured="what is looked up differs from √d_model times the matrix's row by at "
        f"most {apart:.0f}, over {len(weight):,} tokens",
        scale="derivation",
    )


def settle_shared(shared: Transformer, apart: Transformer) -> None:
    """One tensor in three places, so that two matrices are saved."""
    same = (
        shared.embedding("source").weight
        is shared.embedding("target").weight
        is shared.output_weight
    )
    saved = count(apart) - count(shared)
    settle(
        "s3.4-shared",
        holds=same and saved == 2 * shared.output_weight.numel(),
        expected="one tensor in three places, so two matrices fewer",
        measured="the two embeddings and the output layer hold "
        f"{'one and the same tensor' if same else 'different tensors'}, which saves "
        f"{saved:,} parameters",
        scale="derivation",
    )
