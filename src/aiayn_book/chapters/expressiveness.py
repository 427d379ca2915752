"""Appendix *What a Transformer can express*: tasks learned, weights set by hand."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from aiayn import (
    Transformer,
    TransformerConfig,
    causal_mask,
    fast,
    greedy_search,
    padding_mask,
    shift_right,
    sinusoidal_positional_encoding,
)
from aiayn.data.grammar import GrammarSample, generate
from aiayn.parsing import linearise
from aiayn_book.colours import KEY, QUERY
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import attention_map
from aiayn_book.scaling import LanguageModel
from aiayn_book.svg import Svg

PAD, BOS, EOS = range(3)
SEEDS = (0, 1, 2)


# One class, several models.


class Classifier(Transformer):
    """The encoder without a mask; classes are words, scored at the first position."""

    if TYPE_CHECKING:  # one text, not two
        __call__: Callable[..., Tensor]  # pyright: ignore[reportIncompatibleVariableOverride]

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  (one text, not two)
        self, tokens: Tensor
    ) -> Tensor:
        """Score the vocabulary once for each text."""
        return self.logits(self.encode(tokens)[:, 0])


def stacks(encoder: int, decoder: int, vocab_size: int = 100) -> TransformerConfig:
    """A small model with so many layers in each stack."""
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=64,
        d_ff=128,
        num_heads=4,
        num_encoder_layers=encoder,
        num_decoder_layers=decoder,
        dropout=0.0,
        norm="pre",
    )


def depends_on_the_last() -> dict[str, list[float]]:
    """For three fresh models: which outputs change with the last of six input words."""
    torch.manual_seed(0)
    text, target = torch.randint(3, 100, (1, 6)), torch.randint(3, 100, (1, 4))
    changed = text.clone()
    changed[:, -1] = 2
    translator = Transformer(stacks(2, 2))
    models: dict[str, Callable[..., Tensor]] = {
        "translator, parser": lambda words: translator(words, target),
        "language model": LanguageModel(stacks(2, 0)),
        "classifier": lambda words: classifier(words)[:, None],
    }
    classifier = Classifier(stacks(2, 0))
    found = {}
    for name, model in models.items():
        with torch.no_grad():
            gap = (model(text) - model(changed))[0].abs().amax(dim=-1)
        found[name] = gap.gt(1e-6).float().tolist()
    return found


def who_sees_the_last() -> Svg:
    """The outputs of each model, filled where they depend on the last input word."""
    drawing = Diagram(360, 178)
    drawing.text(2, 16, "input", anchor="start")
    words = drawing.tokens(242, 16, ["w₁", "w₂", "w₃", "w₄", "w₅", "w₆"], step=36)
    drawing.box(words[-1], 16, "w₆", width=30, height=26, role="weight")
    for row, (name, outputs) in enumerate(depends_on_the_last().items()):
        y = 64 + 44 * row
        drawing.text(2, y, name, anchor="start")
        middle = 134 + 18 * len(outputs)
        drawing.grid(middle, y, [outputs], cell=36, tall=26, digits=None)
    return drawing.finish(
        "Which outputs depend on the last word",
        "Six input words, of which the last is marked. All four outputs of a "
        "translator depend on it; of a language model's six only the last; and the "
        "one output of a classifier.",
    )


@cache
def drawn() -> list[GrammarSample]:
    """Sentences of the book's grammar, with trees and translations."""
    return generate(20_000, seed=23)


def classify(seed: int, steps: int = 120) -> tuple[float, float]:
    """Train a classifier of constructions: held-out accuracy, and the best guess's."""
    samples = drawn()[:6000]
    kinds = sorted({sample.kind for sample in samples})
    lexicon = sorted({word for s in samples for word in s.source_tokens})
    number = {word: i for i, word in enumerate(["", "<s>", *kinds, *lexicon])}
    rows = [[BOS, *(number[word] for word in s.source_tokens)] for s in samples]
    texts = pad_sequence(list(map(torch.tensor, rows)), batch_first=True)
    kind_of = torch.tensor([number[sample.kind] for sample in samples])
    torch.manual_seed(seed)
    model = fast.accelerate(Classifier(stacks(2, 0, len(number))))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, fused=True)
    for _ in range(steps):
        batch = torch.randint(1000, 6000, (32,))
        loss = F.cross_entropy(model(_cut(texts[batch])), kind_of[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        answer = model(texts[:1000]).argmax(dim=-1)
    right = (answer == kind_of[:1000]).float().mean().item()
    return right, (kind_of[:1000].bincount().max() / 1000).item()


def _cut(rows: Tensor) -> Tensor:
    """Without the columns that are padding in all rows; it stands at the end."""
    return rows[:, : int((rows != PAD).any(dim=0).sum())]


# Five tasks.


@dataclass(frozen=True)
class Tasks:
    """Five tasks with one vocabulary; the first word of a source names its task."""

    pairs: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]
    words: list[str]
    data: dict[str, tuple[Tensor, Tensor]]

    def text(self, row: Iterable[int]) -> str:
        """The words of a row of numbers."""
        return " ".join(self.words[i] for i in row if i > EOS)


@cache
def five_tasks() -> Tasks:
    """Strings of letters, and short sentences of common words."""
    simple = [s for s in drawn() if s.kind == "simple" and len(s.source_tokens) <= 7]
    uses = Counter(word for s in simple for word in s.source_tokens)
    common = {word for word, _ in uses.most_common(300)}
    simple = [s for s in simple if common.issuperset(s.source_tokens)]
    draw = random.Random(23)
    letters = (draw.choices("abcdefgh", k=draw.randint(3, 6)) for _ in range(5000))
    strings = list(dict.fromkeys(map(tuple, letters)))[: len(simple)]
    pairs = {
        "copy": [(x, x) for x in strings],
        "reverse": [(x, x[::-1]) for x in strings],
        "sort": [(x, tuple(sorted(x))) for x in strings],
        "translate": [(s.source_tokens, s.target_tokens) for s in simple],
        "parse": [(s.source_tokens, tuple(linearise(s.source_tree))) for s in simple],
    }
    tokens = {word for p in pairs.values() for pair in p for word in sum(pair, ())}
    words = ["<pad>", "<s>", "</s>", *pairs, *sorted(tokens)]
    number = {word: i for i, word in enumerate(words)}

    def rows(sequences: Iterable[Sequence[str]]) -> Tensor:
        coded = [[*(number[w] for w in words), EOS] for words in sequences]
        return pad_sequence(list(map(torch.tensor, coded)), batch_first=True)

    data = {
        task: (rows((task, *x) for x, _ in p), rows(y for _, y in p))
        for task, p in pairs.items()
    }
    return Tasks(pairs, words, data)


# Translating and parsing are harder, so they get two turns of seven each.
TURNS = ("copy", "translate", "reverse", "parse", "sort", "translate", "parse")
HELD_OUT, STEPS, RATE = 300, 700, 4e-3


def train_five(tasks: Tasks, seed: int, steps: int = STEPS) -> Transformer:
    """One model for all five: each step is a batch of one task."""
    torch.manual_seed(seed)
    model = fast.accelerate(Transformer(stacks(2, 2, len(tasks.words))))
    optimizer = torch.optim.Adam(model.parameters(), RATE, (0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, steps, pct_start=0.2, cycle_momentum=False
    )
    for step in range(steps):
        source, target = tasks.data[TURNS[step % len(TURNS)]]
        rows = torch.randint(HELD_OUT, len(source), (32,))
        source, target = _cut(source[rows]), _cut(target[rows])
        logits = model(source, shift_right(target, BOS)).flatten(0, 1)
        loss = F.cross_entropy(logits, target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def exact(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Which answers are right word for word: (answers,).

    A greedy search generates the right answer if and only if, after each right
    beginning, the right word is the best. One pass with the answer as input tests that.
    """
    best = model(source, shift_right(target, BOS)).argmax(dim=-1)
    return ((best == target) | (target == PAD)).all(dim=1)


def exact_rates(models: Sequence[Transformer], tasks: Tasks) -> dict[str, list[float]]:
    """The share of held-out answers without any error: by task, one for each seed."""
    return {
        task: [
            exact(model, source[:HELD_OUT], target[:HELD_OUT]).float().mean().item()
            for model in models
        ]
        for task, (source, target) in tasks.data.items()
    }


def search_agrees(model: Transformer, tasks: Tasks, task: str = "translate") -> bool:
    """Whether a greedy search is right exactly where `exact` says so."""
    source, target = (side[:40] for side in tasks.data[task])
    found = greedy_search(model, source, bos_id=BOS, eos_id=EOS)
    wanted = [row[row > EOS].tolist() for row in target]
    agree = [h.tokens == w for h, w in zip(found, wanted, strict=True)]
    return agree == exact(model, source, target).tolist()


def mistakes(model: Transformer, tasks: Tasks) -> pd.DataFrame:
    """The first wrong answer of each task."""
    rows = {}
    for sides in tasks.data.values():
        source, target = (side[:HELD_OUT] for side in sides)
        wrong = int(exact(model, source, target).int().argmin())
        asked = source[wrong : wrong + 1]
        (found,) = greedy_search(model, asked, bos_id=BOS, eos_id=EOS)
        given = tasks.text(asked[0].tolist())
        answers = tasks.text(found.tokens), tasks.text(target[wrong].tolist())
        rows[given] = answers
    return pd.DataFrame.from_dict(rows, "index", columns=["generated", "wanted"])


def rates_chart(rates: dict[str, list[float]]) -> alt.LayerChart:
    """Exact-match rates: dots for seeds, marks for means."""
    rows = [
        {"task": task, "share": share}
        for task, seeds in rates.items()
        for share in seeds
    ]
    scale = alt.Scale(domain=[0, 1])
    axis = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".0%")
    title = "answers without any error"
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("task:N", sort=list(rates), title=None)
    )
    return alt.LayerChart(
        layer=[
            base.mark_tick(color=KEY.mark, thickness=3, size=22).encode(
                x=alt.X(
                    "share:Q", aggregate="mean", title=title, scale=scale, axis=axis
                )
            ),
            base.mark_circle(color=QUERY.mark, size=60, opacity=1).encode(
                x=alt.X("share:Q", title=title, scale=scale, axis=axis)
            ),
        ]
    ).properties(
        width="container",
        height=190,
        description="The share of answers without any error, for five tasks and three "
        "seeds each. Copying and sorting are highest, at about nine tenths; "
        "translating is lowest, at about a third.",
    )


# Weights by hand.

CLOCKS = 16
POSITIONS = sinusoidal_positional_encoding(64, 2 * CLOCKS).double()
WORDS = 6  # 0 is padding, 1 a start, 2 to 5 are words
LENGTHS = {
    "word": WORDS,
    "position": 2 * CLOCKS,
    "mirror": 2 * CLOCKS,
    "previous": WORDS,
    "answer": WORDS,
}
WIDTH = sum(LENGTHS.values())
AT: dict[str, slice] = {}
"""Which dimensions each compartment has."""
for _name, _length in LENGTHS.items():
    _start = max((part.stop for part in AT.values()), default=0)
    AT[_name] = slice(_start, _start + _length)
ONE = torch.eye(WORDS).double()
STRONG = 500.0
LONGEST = 6


@torch.no_grad()
def blank(kind: type[Transformer], encoder: int, decoder: int) -> Any:
    """A model of zeros, but for the compartments of its embeddings and its output.

    LayerNorm does the same to all vectors: the mirror keeps their mean the same, and
    as sin² + cos² = 1, their standard deviation is the same, too.
    """
    config = TransformerConfig(
        vocab_size=WORDS,
        d_model=WIDTH,
        d_ff=1,
        num_heads=1,
        d_k=2 * CLOCKS,
        d_v=WORDS,
        num_encoder_layers=encoder,
        num_decoder_layers=decoder,
        dropout=0.0,
        positions="learned",
        max_length=len(POSITIONS),
        tie_embeddings=False,
    )
    model: Any = kind(config).double().eval()
    for name, weights in model.named_parameters():
        weights.fill_(1.0 if name.endswith("norm.weight") else 0.0)
    for use in ("source", "target"):
        model.embedding(use).weight[:, AT["word"]] = ONE / WIDTH**0.5
    for positions in (model.source_positions, model.target_positions):
        positions.table[:, AT["position"]] = POSITIONS
        positions.table[:, AT["mirror"]] = -POSITIONS
    model.output_weight[:, AT["answer"]] = ONE
    return model


def turn(steps: int, reflect: bool = False) -> Tensor:
    """The matrix that moves a position by some steps, perhaps after a reflection."""
    clocks = torch.arange(CLOCKS).double()
    angles = steps / 10_000 ** (clocks / CLOCKS)
    sin, cos = angles.sin(), angles.cos()
    sign = -1 if reflect else 1  # of each sine that comes in
    blocks = [[sign * cos, sin], [-sign * sin, cos]]
    blocks = torch.stack([torch.stack(row) for row in blocks])
    return torch.block_diag(*blocks.permute(2, 0, 1))


@torch.no_grad()
def fetch(attention: Any, matrix: Tensor, into: str) -> None:
    """Let a head fetch the word at the position that the matrix computes."""
    query = attention.query_projection.weight
    key = attention.key_projection.weight
    for half, sign in (("position", 0.5), ("mirror", -0.5)):
        query[:, AT[half]] = sign * STRONG * matrix
        key[:, AT[half]] = sign * torch.eye(2 * CLOCKS).double()
    attention.value_projection.weight[:, AT["word"]] = ONE
    attention.output_projection.weight[AT[into]] = ONE


def by_arithmetic(matrix: Tensor) -> Transformer:
    """A model of one layer that answers with the word its matrix asks for."""
    model = blank(Transformer, 1, 1)
    fetch(model.decoder.layers[0].cross_attention, matrix, "answer")
    return model


@torch.no_grad()
def induction(clock: int = 8) -> LanguageModel:
    """A language model that completes patterns: after A, what followed A before."""
    model = blank(LanguageModel, 2, 0)
    back, match = (layer.self_attention for layer in model.encoder.layers)
    fetch(back, turn(-1), "previous")
    query = match.query_projection.weight
    key = match.key_projection.weight
    query[:WORDS, AT["word"]] = STRONG * ONE  # who follows this word?
    key[:WORDS, AT["previous"]] = ONE  # I follow that one
    # sin(wj) cos(wi) - cos(wj) sin(wi) = sin(w(j - i)): near ones first
    for half, sign in (("position", 0.5), ("mirror", -0.5)):
        sine = AT[half].start + 2 * clock
        query[WORDS, sine + 1] = sign * STRONG
        key[WORDS, sine] = sign
        query[WORDS + 1, sine] = -sign * STRONG
        key[WORDS + 1, sine + 1] = sign
    match.value_projection.weight[:, AT["word"]] = ONE
    match.output_projection.weight[AT["answer"]] = ONE
    return model


def every_input(length: int) -> Tensor:
    """All texts of four words of a length."""
    return torch.tensor(list(product(range(2, WORDS), repeat=length)))


@torch.no_grad()
def answers(model: Transformer, source: Tensor, wanted: Tensor) -> Tensor:
    """Which words are right, each after the right ones before it."""
    may = padding_mask(source, PAD)  # padding on the left is meant
    logits = model(source, shift_right(wanted, BOS), source_mask=may)
    return logits.argmax(dim=-1) == wanted


def all_right(model: Transformer, reverse: bool) -> tuple[bool, int]:
    """Whether every input up to `LONGEST` words is copied or reversed; how many."""
    right, count = True, 0
    for length in range(1, LONGEST + 1):
        x = every_input(length)
        source = F.pad(x, (LONGEST - length, 0), value=PAD) if reverse else x
        right &= bool(answers(model, source, x.flip(1) if reverse else x).all())
        count += len(x)
    return right, count


def padded_on_the_right(reverser: Transformer) -> list[list[float]]:
    """For each length, the share of right words at each position."""
    shares = []
    for length in range(1, LONGEST + 1):
        x = every_input(length)
        source = F.pad(x, (0, LONGEST - length), value=PAD)
        shares.append(answers(reverser, source, x.flip(1)).double().mean(0).tolist())
    return shares


def slowly(row: Sequence[int]) -> list[int]:
    """What followed the latest earlier occurrence of each word; 0 if there is none."""
    wanted = [0] * len(row)
    for i, word in enumerate(row):
        for j in range(i):
            if row[j] == word:
                wanted[i] = row[j + 1]
    return wanted


def follows(model: LanguageModel, words: Tensor) -> tuple[int, int]:
    """How many repetitions are completed, of how many."""
    text = F.pad(words, (1, 0), value=BOS)
    wanted = torch.tensor([slowly(row) for row in text.tolist()])
    with torch.no_grad():
        best = model(text).argmax(dim=-1)
    asked = wanted > 0
    return int((best == wanted)[asked].sum()), int(asked.sum())


# Drawings.


def two_heads() -> Svg:
    """How two layers complete a pattern."""
    drawing = Diagram(360, 252)
    for y, name in ((232, "words"), (150, "layer 1"), (78, "layer 2"), (22, "output")):
        drawing.text(2, y, name, anchor="start", italic=True)
    places = drawing.tokens(206, 232, ["A", "B", "C", "A"], step=78)
    for x, note in zip(places, ["start", "after A", "after B", "after C"], strict=True):
        drawing.box(x, 150, note, width=70, height=28, role="key")
    for x, after in pairwise(places):
        drawing.arrow((x, 218), (after - 8, 166), role="key")
    drawing.box(306, 78, "what follows A?", width=106, height=28, role="query")
    drawing.arrow((places[-1], 134), (places[-1], 94), head=False, dashed=True)
    drawing.arrow((252, 84), (places[1] + 22, 134), role="query")
    drawing.arrow((places[1], 134), (places[1], 22), (282, 22), role="value")
    drawing.box(306, 22, "B", width=44, height=28, role="value")
    return drawing.finish(
        "Two heads complete a pattern",
        "Four words, A B C A. In layer 1 each position notes the word before it: the B "
        "is after A. In layer 2 the last A asks which position follows an A, finds the "
        "B, and its word becomes the output.",
    )


def reflected_and_turned() -> Svg:
    """One clock: position 1, reflected to −1, turned on by five steps to 4."""
    drawing = Diagram(360, 178)
    radius, top = 44, 74
    for x, position, words in ((62, 1, "1"), (180, -1, "−1"), (298, 4, "4")):
        circle = [math.tau * k / 48 for k in range(49)]
        points = [
            (x + radius * math.sin(a), top - radius * math.cos(a)) for a in circle
        ]
        drawing.arrow(*points, head=False, width=1)
        for k in range(12):
            a = math.tau * k / 12
            at = x + radius * math.sin(a), top - radius * math.cos(a)
            drawing.dot(*at, radius=2)
        a = math.tau * position / 12
        tip = x + 36 * math.sin(a), top - 36 * math.cos(a)
        drawing.arrow((x, top), tip, role="query", width=3)
        drawing.text(x, 140, f"position {words}")
    for x, name in ((121, "reflect"), (239, "turn by 5")):
        drawing.arrow((x - 11, top), (x + 11, top))
        drawing.text(x, 166, name, italic=True)
    return drawing.finish(
        "Reflect, then turn",
        "Three clocks with twelve marks. The hand stands at mark 1; reflected, it "
        "stands at mark −1; turned on by five steps, it stands at mark 4, since "
        "5 − 1 = 4.",
    )


def compartments() -> Svg:
    """A vector of the model by hand, part by part."""
    drawing = Diagram(360, 150)
    model = blank(LanguageModel, 1, 0)
    tokens = torch.tensor([[2, 3, 4, 5]])
    with torch.no_grad():
        x = model.source_positions(model.embedding("source")(tokens))[0, 3]
    left = 2.0
    roles = ("value", "key", "key", "neutral", "query")
    for (name, part), role in zip(AT.items(), roles, strict=True):
        wide = 100 if part.stop - part.start > WORDS else 52
        middle = left + wide / 2
        drawing.frame(left, 30, wide, 76)
        drawing.bars(middle, 68, x[part], role=role, width=wide - 8, height=66, limit=1)
        drawing.text(middle, 16, "before" if name == "previous" else name, role=role)
        drawing.text(middle, 122, str(part.stop - part.start), small=True)
        left += wide
    drawing.text(2, 142, "numbers in each part", anchor="start", italic=True)
    return drawing.finish(
        "Compartments",
        "A vector of 82 numbers in five parts: the word as a one among six numbers, "
        "the position as 32 sines and cosines, the same with the opposite sign, and "
        "two parts of six zeros, for the word before and for the answer.",
    )


def right_padding(shares: list[list[float]]) -> Svg:
    """The shares of right words by length and position."""
    drawing = Diagram(360, 52 + 32 * len(shares))
    drawing.text(86, 16, "position", anchor="end")
    for position in range(LONGEST):
        drawing.text(117 + 42 * position, 16, str(position))
    for row, values in enumerate(shares):
        y = 46 + 32 * row
        drawing.text(86, y, f"length {row + 1}", anchor="end")
        middle = 96 + 21 * len(values)
        drawing.grid(middle, y, [values], cell=42, tall=28)
    return drawing.finish(
        "Padding on the right",
        "Shares of right words, by the length of the input and the position. Lengths 1 "
        "and 6 are right everywhere. In lengths 3 to 5 position 0 is right, and of the "
        "others at most a part.",
    )


NAMES = ("", "start", "A", "B", "C", "D")
SHOWN = (1, 2, 3, 4, 2, 5, 3, 2)


def induction_map(inductor: LanguageModel) -> alt.LayerChart:
    """Where the second layer attends in ``start A B C A D B A``."""
    tokens = torch.tensor([SHOWN])
    with torch.no_grad():
        x = inductor.source_positions(inductor.embedding("source")(tokens))
        mask = causal_mask(tokens.size(1))
        _, maps = inductor.encoder(x, mask, need_weights=True)
    labels = [NAMES[i] for i in SHOWN]
    return attention_map(
        maps[1][0, 0],
        labels,
        labels,
        description="Weights of the second layer, eight queries and eight keys. The "
        "second A attends to the B that followed the first A, the third A to the D "
        "that followed the second, and the second B to the C after the first. Words "
        "that are new attend mostly to themselves.",
        gold=[(4, 2), (6, 3), (7, 5)],
    )
