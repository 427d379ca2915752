"""Chapter 13, data and batching: its pieces, vocabularies, batches and drawings.

Paper: §5.1.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from aiayn import (
    Tokenizer,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    fast,
    load_corpus,
    shift_right,
)
from aiayn.data import EncodedPairs, TokenBatches, encode_lines, encode_pairs
from aiayn_book import paper
from aiayn_book.claims import settle
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, VALUE, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.svg import Svg

Pair = tuple[str, str]
Plan = Sequence[np.ndarray]

WAYS = ("as they come", "sorted", "by tokens")
ROWS = 64
"""Pairs in a batch, on average."""
SIZES = (100, 200, 400, 800, 1600, 3200)
JOINT_SIZES = (200, 400, 800, 1600)

# The corpus, its vocabularies, its pairs as numbers.


@cache
def corpus() -> Any:
    """The sentence pairs of this chapter: 3,000 made by a grammar, 200 for the test."""
    return load_corpus("grammar", size=3000, held_out_size=200)


@cache
def lines() -> tuple[str, ...]:
    """The training sentences of both languages."""
    return (*corpus().train.source, *corpus().train.target)


@cache
def tokenizer(size: int) -> Tokenizer:
    """The library's joint vocabulary of that many entries."""
    return Tokenizer.train(lines(), size)


@cache
def alphabet() -> list[str]:
    """The characters of the corpus, the sign for a space included."""
    return [piece for piece in tokenizer(400).pieces(range(4, 400)) if len(piece) == 1]


@cache
def pairs(size: int = 800) -> EncodedPairs:
    """The training pairs as numbers."""
    return encode_pairs(corpus().train, tokenizer(size))[0]


def mean_tokens(side: str, of: Tokenizer) -> float:
    """Tokens of a test sentence, without the end token."""
    encoded = encode_lines(getattr(corpus().test, side), of)
    return float(encoded.lengths.mean()) - 1


# Byte-pair encoding: the notebook shows the same three functions.


def merge(symbols: Sequence[str], pair: Pair) -> list[str]:
    """Join the two symbols of a pair wherever they are neighbours."""
    merged, i = [], 0
    while i < len(symbols):
        found = tuple(symbols[i : i + 2]) == pair
        merged.append("".join(pair) if found else symbols[i])
        i += 1 + found
    return merged


def shorter_first(pair: Pair) -> tuple[int, str]:
    """The rule for ties: the shorter piece, then the first in the alphabet."""
    piece = "".join(pair)
    return len(piece), piece


def learn(
    words: Mapping[str, int],
    merges: int,
    tie: Callable[[Pair], Any] = shorter_first,
) -> list[tuple[Pair, int]]:
    """The merges of a text and how often each pair occurred."""
    spelled = {word: list(word) for word in words}
    learned: list[tuple[Pair, int]] = []
    while len(learned) < merges:
        counts: Counter[Pair] = Counter()
        for word, symbols in spelled.items():
            for pair in pairwise(symbols):
                counts[pair] += words[word]
        if not counts:
            break
        best = min(counts, key=lambda p: (-counts[p], tie(p)))
        learned.append((best, counts[best]))
        for word, symbols in spelled.items():
            spelled[word] = merge(symbols, best)
    return learned


def encode(word: str, rank: Mapping[Pair, int]) -> list[str]:
    """A word in pieces: the merges that apply, in the order of learning."""
    symbols = list(word)
    while found := set(pairwise(symbols)) & rank.keys():
        symbols = merge(symbols, min(found, key=rank.get))
    return symbols


def words_of(line: str) -> list[str]:
    """A sentence in words and signs, each with the mark of the space before it."""
    marked = "▁" + line.replace(" ", "▁")
    return re.findall(r"▁?\w+|▁?[^\w▁]+", marked)


TINY = {"▁her": 4, "▁here": 3, "▁there": 2}
"""The corpus whose merges are all written out."""


def states(words: Mapping[str, int]) -> list[dict[str, list[str]]]:
    """How each word is spelled before the first merge and after each."""
    spelled = {word: list(word) for word in words}
    found = [spelled]
    for pair, _ in learn(words, 99):
        spelled = {word: merge(symbols, pair) for word, symbols in spelled.items()}
        found.append(spelled)
    return found


# Drawings.

END = "end"


def _width(piece: str) -> float:
    return max(21, 8 * len(piece) + 9)


def _roomy(piece: str) -> float:
    """Wider still, where a row has few pieces."""
    return 9 * len(piece) + 19


def _pieces(
    drawing: Diagram,
    left: float,
    y: float,
    pieces: Iterable[str],
    roles: Mapping[str, str] | None = None,
    width: Callable[[str], float] = _width,
) -> float:
    """Pieces as boxes from left to right; returns where they end."""
    for piece in pieces:
        wide = width(piece)
        role = (roles or {}).get(piece, "neutral")
        drawing.box(left + wide / 2, y, piece, width=wide - 3, height=24, role=role)
        left += wide
    return left


SENTENCES = ("She laughed.", "We wait.", "The boy is sad.")
"""Of the first figure: one of them holds a word that is spelled in pieces."""


def rectangle(size: int = 800) -> tuple[list[list[str]], list[list[int]]]:
    """The pieces of `SENTENCES`, and the rectangle of their numbers."""
    of = tokenizer(size)
    numbers = [[*of.encode(line), of.eos_id] for line in SENTENCES]
    pieces = [[*of.pieces(row[:-1]), END] for row in numbers]
    widest = max(map(len, numbers))
    filled = [row + [of.pad_id] * (widest - len(row)) for row in numbers]
    return pieces, filled


def from_sentences_to_tensor(*, phone: bool = False) -> Svg:
    """Sentences, pieces, numbers: the rectangle that a model reads."""
    pieces, numbers = rectangle()
    drawing = Diagram(344, 436) if phone else Diagram(700, 150)
    places = ((4, 14), (4, 156), (4, 306)) if phone else ((4, 14), (140, 14), (450, 14))
    titles = "sentences", "pieces", "numbers: one tensor, 3 × 7"
    for (x, y), title in zip(places, titles, strict=True):
        drawing.text(x, y, title, anchor="start", bold=True)
    if phone:
        drawing.arrow((40, 122), (40, 142))
        drawing.arrow((40, 270), (40, 292))
        drawing.text(52, 132, "1. cut into pieces", anchor="start", italic=True)
        drawing.text(52, 281, "2. fill up a rectangle", anchor="start", italic=True)
    else:
        drawing.text(140, 136, "1. cut into pieces", anchor="start", italic=True)
        drawing.text(450, 136, "2. fill up a rectangle", anchor="start", italic=True)
        for x in (112, 422):
            drawing.arrow((x, 72), (x + 18, 72))
    for row, line in enumerate(SENTENCES):
        down = 30 + 30 * row
        drawing.text(places[0][0], places[0][1] + down, line, anchor="start")
        x, y = places[1]
        _pieces(drawing, x, y + down, pieces[row], width=_roomy)
        x, y = places[2]
        for column, number in enumerate(numbers[row]):
            at = x + 18 + 35 * column
            padded = number == 0
            drawing.box(
                at,
                y + down,
                str(number),
                width=34,
                height=27,
                role="alert" if padded else "weight",
            )
    last = places[2]
    if phone:
        drawing.text(
            last[0], 424, "orange: padding, the number 0", anchor="start", role="alert"
        )
    else:
        drawing.text(696, 136, "0: padding", anchor="end", role="alert")
    return drawing.finish(
        "From three sentences to one tensor",
        "Three sentences of different length are cut into pieces, of which frequent "
        "words are one and rare words several, with an end after each. Each piece is "
        "then a number of a rectangle with three rows and seven columns; the free "
        "slots of the two shorter rows are filled with the number 0, padding.",
    )


def every_merge() -> Svg:
    """The tiny corpus before the first merge and after each."""
    merges = learn(TINY, 99)
    drawing = Diagram(352, 50 + 38 * (len(merges) + 1))
    lefts, letter = (92, 168, 259), 15
    for left, (word, times) in zip(lefts, TINY.items(), strict=True):
        drawing.text(left, 12, f"{word[1:]} × {times}", anchor="start", bold=True)
    for step, spelled in enumerate(states(TINY)):
        y, new = 44 + 38 * step, ""
        if step:
            (one, other), times = merges[step - 1]
            drawing.text(2, y - 8, f"{step}. {one}+{other}", anchor="start", small=True)
            drawing.text(2, y + 8, f"   {times} times", anchor="start", small=True)
            new = one + other
        else:
            drawing.text(2, y, "characters", anchor="start", small=True)
        for left, symbols in zip(lefts, spelled.values(), strict=True):
            _pieces(
                drawing,
                left,
                y,
                symbols,
                {new: "weight"},
                lambda piece: letter * len(piece),
            )
    told = "; ".join(
        f"merge {step} joins {one} and {other}, {times} times"
        for step, ((one, other), times) in enumerate(merges, 1)
    )
    return drawing.finish(
        "Every merge of a tiny corpus",
        "Three words as rows of boxes, first one box for each character. In each line "
        f"below, two neighbouring boxes have become one: {told}. At the end each word "
        "is one box.",
    )


PHRASE = "frisches Fleisch"


def cuts() -> dict[str, list[str]]:
    """The pieces of `PHRASE`, from characters to the largest vocabulary."""
    marked = "▁" + PHRASE.replace(" ", "▁")
    found = {f"{len(alphabet()) + 4}": list(marked)}
    for size in SIZES:
        of = tokenizer(size)
        found[f"{size:,}"] = of.pieces(of.encode(PHRASE))
    return found


def phrase_in_pieces() -> Svg:
    """One phrase, cut with ever larger vocabularies."""
    found = cuts()
    drawing = Diagram(356, 34 + 34 * len(found))
    drawing.text(2, 12, "entries", anchor="start", bold=True)
    drawing.text(354, 12, "tokens", anchor="end", bold=True)
    for row, (size, pieces) in enumerate(found.items()):
        y = 42 + 34 * row
        drawing.text(44, y, size, anchor="end", small=True)
        _pieces(drawing, 54, y, pieces, width=lambda piece: 16 * len(piece))
        drawing.text(354, y, str(len(pieces)), anchor="end", small=True)
    told = "; ".join(f"{size} entries: {len(cut)}" for size, cut in found.items())
    return drawing.finish(
        "One phrase, seven vocabularies",
        f"The phrase {PHRASE} as rows of boxes, one box for each token. {told}.",
    )


SIX = (2, 9, 3, 8, 4, 10)
"""The lengths of the example by hand."""


def padding_by_hand(lengths: Sequence[int] = SIX, rows: int = 2) -> int:
    """Token slots that are padding if so many neighbours share a batch."""
    groups = [lengths[i : i + rows] for i in range(0, len(lengths), rows)]
    return sum(len(group) * max(group) - sum(group) for group in groups)


def six_sentences() -> list[Svg]:
    """Six sentences, two in a batch: as they come, and sorted."""
    panels = []
    for title, lengths in (("as they come", SIX), ("sorted", sorted(SIX))):
        drawing = Diagram(300, 214)
        drawing.text(4, 12, title, anchor="start", bold=True)
        side = 22
        for row, length in enumerate(lengths):
            y = 42 + 26 * row + 8 * (row // 2)
            widest = max(lengths[row - row % 2 : row - row % 2 + 2])
            for column in range(widest):
                token = column < length
                drawing.box(
                    16 + side * column,
                    y,
                    "" if token else "0",
                    width=side - 2,
                    height=22,
                    role="weight" if token else "alert",
                )
            drawing.text(24 + side * widest, y, str(length), anchor="start")
        wasted = padding_by_hand(lengths)
        total = sum(lengths) + wasted
        label = f"{total} slots, {wasted} of them padding"
        drawing.text(298, 12, label, anchor="end")
        panels.append(
            drawing.finish(
                f"Six sentences, two in a batch, {title}",
                f"Three rectangles of two rows. The lengths are {list(lengths)}; of "
                f"{total} token slots, {wasted} are padding.",
            )
        )
    return panels


def staircase(batches: int = 8) -> Svg:
    """Sorted lengths, cut into batches: the ranges add up to the whole range."""
    lengths = np.sort(longer_side(pairs()))
    drawing = Diagram(356, 282)
    left, bottom, top, right = 44, 236, 44, 348
    low, high = int(lengths.min()), int(lengths.max())

    def at(index: float, length: float) -> tuple[float, float]:
        x = left + (right - left) * index / len(lengths)
        return x, bottom - (bottom - top) * (length - low) / (high - low)

    for batch, rows in enumerate(np.array_split(np.arange(len(lengths)), batches)):
        first, last = int(rows[0]), int(rows[-1]) + 1
        short, long = lengths[first], lengths[last - 1]
        (x0, y0), (x1, y1) = at(first, short), at(last, long)
        role = ("weight", "neutral")[batch % 2]
        middle, height = (y0 + y1) / 2, max(2, y0 - y1)
        width = x1 - x0 - 2
        drawing.box((x0 + x1) / 2, middle, "", width=width, height=height, role=role)
        drawing.arrow((left - 8, y0), (left - 8, y1), role=role, head=False, width=5)
    chosen = np.linspace(0, len(lengths) - 1, 120).astype(int)
    line = [at(int(i), int(lengths[i])) for i in chosen]
    drawing.arrow(*line, head=False, width=2)
    ticks = [(0.0, "shortest"), (1.0, "longest")]
    drawing.axis((left, bottom + 10), (right, bottom + 10))
    drawing.text(left, bottom + 28, ticks[0][1], anchor="start")
    drawing.text(right, bottom + 28, ticks[1][1], anchor="end")
    drawing.text((left + right) / 2, bottom + 28, "sentence pairs, sorted")
    drawing.text(left - 16, bottom, str(low), anchor="end")
    drawing.text(left - 16, top, str(high), anchor="end")
    drawing.text(4, 14, "tokens of the longer side", anchor="start", italic=True)
    return drawing.finish(
        "The ranges of sorted batches add up to the range of the corpus",
        f"A rising curve of lengths from {low} to {high} is cut into {batches} "
        "batches. Each batch is a box as high as its range of lengths. Beside the "
        "axis the ranges are stacked, one above the other, without an overlap.",
    )


# Vocabularies.


def distinct_words() -> list[dict[str, Any]]:
    """How many different words the first sentences hold, in each language."""
    rows = []
    for name, side in (("English", "source"), ("German", "target")):
        seen: set[str] = set()
        for number, line in enumerate(getattr(corpus().train, side), 1):
            seen |= set(re.findall(r"\w+", line))
            if number % 100 == 0:
                rows.append(
                    {
                        "sentences": number,
                        "different words": len(seen),
                        "language": name,
                    }
                )
    return rows


def unseen_share(side: str) -> float:
    """The share of test sentences with a word that the training text lacks."""
    known = {w for line in getattr(corpus().train, side) for w in words(line)}
    test = getattr(corpus().test, side)
    return sum(not known >= set(words(line)) for line in test) / len(test)


def words(line: str) -> list[str]:
    """The words of a sentence, without signs."""
    return re.findall(r"\w+", line)


def word_growth() -> alt.LayerChart:
    """Different words against sentences read."""
    rows = distinct_words()
    last = {row["language"]: row["different words"] for row in rows}
    return curves(
        rows,
        "sentences",
        "different words",
        "language",
        description="Two rising curves that flatten but do not level off. After "
        f"3,000 sentences English has {last['English']} words and German "
        f"{last['German']}.",
    )


@cache
def lengths_by_size() -> dict[int, tuple[float, float]]:
    """Tokens of a test sentence, English and German, for each size of vocabulary."""
    sizes = (len(alphabet()) + 4, *SIZES)
    return {
        size: (
            mean_tokens("source", tokenizer(size)),
            mean_tokens("target", tokenizer(size)),
        )
        for size in sizes
    }


def length_chart() -> alt.LayerChart:
    """Tokens of a sentence against the size of the vocabulary."""
    rows = [
        {"entries": size, "tokens in a sentence": tokens, "language": name}
        for size, both in lengths_by_size().items()
        for name, tokens in zip(("English", "German"), both, strict=True)
    ]
    first, *_, last = lengths_by_size().values()
    chart = curves(
        rows,
        "entries",
        "tokens in a sentence",
        "language",
        description="Two falling curves on a logarithmic axis, German above English. "
        f"They fall from {first[0]:.0f} and {first[1]:.0f} tokens to {last[0]:.0f} "
        f"and {last[1]:.0f}, steeply at first.",
        log_x=True,
    )
    _ticks(chart, [100, 200, 400, 800, 1600, 3200])
    return chart


def _ticks(chart: Any, values: Sequence[float]) -> None:
    """Put ticks at these values of every layer's horizontal axis."""
    for layer in chart.layer:
        layer.encoding.x.axis = alt.Axis(values=list(values), format=",")


def rarely_used(size: int, times: int = 10) -> float:
    """The share of entries that the whole training text uses less often than that."""
    tokens = encode_lines(lines(), tokenizer(size)).tokens
    used = np.bincount(tokens, minlength=size)
    return float((used[4:] < times).mean())


@cache
def multiplications_per_token() -> tuple[int, int]:
    """What the base model's layers take for a source token, and for a target token.

    Every entry of a matrix multiplies once. The keys and values of cross-attention are
    made from source tokens.
    """
    with torch.device("meta"):  # shapes without memory
        base = Transformer(TransformerConfig())
    encoder, decoder = map(_entries, (base.encoder, base.decoder))
    across = sum(
        _entries(layer.cross_attention.key_projection)
        + _entries(layer.cross_attention.value_projection)
        for layer in base.decoder.layers
    )
    return encoder + across, decoder - across


def _entries(part: nn.Module) -> int:
    """Of all matrices in it."""
    return sum(weight.numel() for weight in part.parameters() if weight.dim() == 2)


def cost(size: int, source: float, target: float) -> tuple[float, float]:
    """Multiplications for a pair, about: of the layers, and of the softmax.

    Every target token also passes once through a row of weights for each entry.
    Attention's scores are left out: at these lengths they are about a hundredth.
    """
    of_source, of_target = multiplications_per_token()
    return source * of_source + target * of_target, target * size * 512


def costs(beyond: Sequence[int] = (6400, 12800, 37_000, 100_000)) -> dict[str, Any]:
    """Both costs by size; beyond the measured sizes the length stays as it is."""
    found = dict(lengths_by_size())
    whole = found[SIZES[-1]]
    found |= dict.fromkeys(beyond, whole)
    return {size: cost(size, *both) for size, both in found.items()}


def equal_at() -> int:
    """The size at which softmax and layers cost the same, for sides of equal length."""
    return sum(multiplications_per_token()) // 512


def cost_chart() -> alt.LayerChart:
    """Multiplications for a pair of sentences: layers, softmax, both."""
    rows = []
    for size, (layers, softmax) in costs().items():
        for part, value in (
            ("layers", layers),
            ("scores", softmax),
            ("together", layers + softmax),
        ):
            rows.append({"entries": size, "millions": value / 1e6, "part": part})
    chart = curves(
        [{**row, "millions of multiplications": row["millions"]} for row in rows],
        "entries",
        "millions of multiplications",
        "part",
        description="Three curves on a logarithmic axis of entries. The layers' cost "
        "falls steeply up to 3,200 entries and is level after that. That of the scores "
        "is near zero at first and rises steeply at the right. Their sum falls, "
        "and rises again beyond 3,200 entries.",
        log_x=True,
    )
    _ticks(chart, [100, 1000, 10_000, 100_000])
    return chart


@cache
def joint_and_apart() -> list[dict[str, Any]]:
    """Tokens of a test pair: one vocabulary of V entries, or two of V / 2.

    Each is learned from three random halves of the training text.
    """
    english, german = corpus().train.source, corpus().train.target
    draw = np.random.default_rng(13)
    rows = []
    for seed in range(3):
        half = draw.permutation(len(english))[: len(english) // 2]
        en, de = ([text[i] for i in half] for text in (english, german))
        for size in JOINT_SIZES:
            both = Tokenizer.train([*en, *de], size)
            one, other = (Tokenizer.train(text, size // 2) for text in (en, de))
            for kind, first, second in (
                ("one, joint", both, both),
                ("two of half the size", one, other),
            ):
                tokens = mean_tokens("source", first) + mean_tokens("target", second)
                rows.append(
                    {
                        "entries in all": size,
                        "tokens in a pair": tokens,
                        "vocabulary": kind,
                        "seed": seed,
                    }
                )
    return rows


def joint_saves(size: int) -> list[float]:
    """By how much the joint vocabulary shortens a pair, for each half of the text."""
    by_kind: dict[str, list[float]] = {}
    for row in joint_and_apart():
        if row["entries in all"] == size:
            by_kind.setdefault(row["vocabulary"], []).append(row["tokens in a pair"])
    joint, apart = by_kind.values()
    return [1 - a / b for a, b in zip(joint, apart, strict=True)]


def span(values: Sequence[float]) -> str:
    """The lowest and the highest of shares, in per cent."""
    low, high = f"{min(values):.0%}", f"{max(values):.0%}"
    return low if low == high else f"{low} to {high}"


def joint_chart() -> alt.LayerChart:
    """Tokens of a pair for one vocabulary and for two."""
    chart = curves(
        joint_and_apart(),
        "entries in all",
        "tokens in a pair",
        "vocabulary",
        description="Two falling curves on a logarithmic axis of entries. The joint "
        "vocabulary lies below two of half the size at every size, and the gap "
        "narrows to the right.",
        log_x=True,
    )
    _ticks(chart, JOINT_SIZES)
    return chart


GROUPS = {
    "English only": KEY,
    "German only": QUERY,
    "both": VALUE,
    "mostly one": WEIGHT,
    "unused": NEUTRAL,
}


def shared_pieces(size: int = 800) -> dict[str, dict[str, Any]]:
    """Which language uses a piece: how many entries, what share of all tokens."""
    of = tokenizer(size)
    use = np.stack(
        [
            np.bincount(encode_lines(text, of).tokens, minlength=size)[4:]
            for text in (corpus().train.source, corpus().train.target)
        ]
    )  # (2 languages, pieces)
    lesser = use.min(axis=0) / use.sum(axis=0).clip(1)
    groups = (
        (use[0] > 0) & (use[1] == 0),
        (use[1] > 0) & (use[0] == 0),
        lesser >= 0.1,
        (lesser > 0) & (lesser < 0.1),
        use.sum(axis=0) == 0,
    )
    names = np.array(of.pieces(range(4, size)))
    found = {}
    for name, group in zip(GROUPS, groups, strict=True):
        often = sorted(np.flatnonzero(group), key=lambda i: -use[:, i].sum())
        found[name] = {
            "entries": int(group.sum()) / len(names),
            "tokens": float(use[:, group].sum() / use.sum()),
            "frequent": names[often[:8]].tolist(),
        }
    return found


def shared_chart() -> alt.Chart:
    """The entries of a joint vocabulary, and the tokens of the text, by language."""
    rows = [
        {
            "of all": f"of all {what}",
            "used by": name,
            "share": group[what],
            "order": order,
            "for example": " ".join(group["frequent"]),
        }
        for order, (name, group) in enumerate(shared_pieces().items())
        for what in ("entries", "tokens")
    ]
    told = ", ".join(
        f"{name} {group['entries']:.0%} of entries and {group['tokens']:.0%} of tokens"
        for name, group in shared_pieces().items()
    )
    scale = alt.Scale(
        domain=list(GROUPS), range=[colour.mark for colour in GROUPS.values()]
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "share:Q",
                title=None,
                axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("of all:N", title=None, axis=alt.Axis(labelLimit=120)),
            color=alt.Color(
                "used by:N",
                scale=scale,
                legend=alt.Legend(title=None, symbolType="square", columns=3),
            ),
            order="order:Q",
            tooltip=[
                "used by:N",
                alt.Tooltip("share:Q", format=".0%"),
                "for example:N",
            ],
        )
        .properties(
            width="container",
            height=120,
            description=f"Two bars, each divided by who uses the pieces: {told}.",
        )
    )


def words_in_both() -> set[str]:
    """Words that stand in both languages' training text."""
    english, german = (
        {word for line in text for word in words(line)}
        for text in (corpus().train.source, corpus().train.target)
    )
    return english & german


def implied_entries() -> tuple[float, float]:
    """The sizes of vocabulary for which base has the 65 million parameters of Table 3.

    Its parameters are printed in whole millions, so there is a lowest and a highest.
    """
    with torch.device("meta"):
        base = Transformer(TransformerConfig())
    printed = paper.TABLE_3["base"].parameters_in_millions * 1e6
    total = sum(weight.numel() for weight in base.parameters())
    rest = total - paper.BASE.vocabulary_en_de * 512
    low, high = ((printed + half - rest) / 512 for half in (-5e5, 5e5))
    return low, high


def settle_vocabulary(differences: int) -> None:
    """§5.1: the sizes of data and vocabulary, which only WMT 2014 could repeat."""
    low, high = implied_entries()
    settle(
        "s5.1-vocabulary",
        holds=None,
        expected="en-de: 4.5 million pairs, about 37,000 entries for both "
        "languages; en-fr: 36 million, 32,000",
        measured="not repeated, it needs WMT 2014. The row base of Table 3 "
        f"implies {low:,.0f} to {high:,.0f} entries. On "
        f"{len(corpus().train.source):,} pairs of a grammar we learned a "
        f"vocabulary of 400 twice, with {differences} differences",
    )


# Batches.


def lengths_of(of: EncodedPairs) -> np.ndarray:
    """Tokens of every pair: (2 sides, pairs)."""
    return np.stack([of.source.lengths, of.target.lengths])


def longer_side(of: EncodedPairs) -> np.ndarray:
    """Tokens of the longer side of every pair."""
    return lengths_of(of).max(axis=0)


def budget(of: EncodedPairs, rows: int = ROWS) -> int:
    """Token slots on a side that hold so many pairs on average."""
    return int(rows * longer_side(of).mean())


def plans(of: EncodedPairs, seed: int, rows: int = ROWS) -> dict[str, Plan]:
    """Which pairs stand together in a batch, for each of the three ways."""
    lengths = lengths_of(of)
    longer, gap = lengths.max(axis=0), lengths[0] - lengths[1]
    shuffled = np.random.default_rng(seed).permutation(len(of))
    turn = np.where(longer % 2, 1, -1)  # rising and falling
    in_order = np.lexsort((shuffled, turn * gap, longer))  # last key first
    cut = range(rows, len(of), rows)
    by_tokens = TokenBatches(of, budget(of, rows), seed=seed).plan(0)
    found = np.split(shuffled, cut), np.split(in_order, cut), by_tokens
    return dict(zip(WAYS, found, strict=True))


def slots(of: EncodedPairs, plan: Plan) -> np.ndarray:
    """Token slots of each batch, both sides, padding included."""
    lengths = lengths_of(of)
    sizes = [len(rows) * lengths[:, rows].max(axis=1).sum() for rows in plan]
    return np.array(sizes)


def padding(of: EncodedPairs, way: str, seeds: Sequence[int] = range(3)) -> list[float]:
    """The share of all token slots that is padding, for each seed."""
    real = lengths_of(of).sum()
    return [1 - real / slots(of, plans(of, seed)[way]).sum() for seed in seeds]


def batch_chart() -> alt.LayerChart:
    """What each batch holds, the three ways side by side on one scale."""
    of, rows, middles, told = pairs(), [], [], []
    longer, gap, at = longer_side(of), 6, 0
    for way, plan in plans(of, 0).items():
        if way != WAYS[0]:
            plan = sorted(plan, key=lambda batch: longer[batch].max())
        sizes = slots(of, plan).tolist()
        for number, (batch, size) in enumerate(zip(plan, sizes, strict=True)):
            held = int(lengths_of(of)[:, batch].sum())
            for what, low, high in (("tokens", 0, held), ("padding", held, size)):
                rows.append(
                    {
                        "from": at + number,
                        "to": at + number + 0.85,
                        "low": low,
                        "high": high,
                        "slots": what,
                        "number": high - low,
                        "pairs": len(batch),
                        "way": way,
                    }
                )
        middles.append(at + len(plan) // 2)
        at += len(plan) + gap
        told.append(
            f"{way}, {padding(of, way, [0])[0]:.0%} padding, largest {max(sizes):,}"
        )
    names = (
        f"{json.dumps(dict(zip(map(str, middles), WAYS, strict=True)))}[datum.value]"
    )
    colours = [WEIGHT.mark, f"{ALERT.mark}80"]  # half opaque, so paler too
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=alt.X(
                "from:Q",
                title="batches",
                scale=alt.Scale(domain=[-2, at - gap + 2], nice=False),
                axis=alt.Axis(values=middles, labelExpr=names, ticks=False, grid=False),
            ),
            x2="to:Q",
            y=alt.Y("low:Q", title="token slots", axis=alt.Axis(tickCount=4)),
            y2="high:Q",
            color=alt.Color(
                "slots:N",
                scale=alt.Scale(domain=["tokens", "padding"], range=colours),
                legend=alt.Legend(title=None, symbolType="square"),
            ),
            tooltip=["way:N", "pairs:Q", "slots:N", "number:Q"],
        )
    )
    return alt.LayerChart(layer=[bars]).properties(
        width="container",
        height=240,
        description="A bar for each batch, tokens below and padding above, in three "
        f"groups: {'; '.join(told)} slots.",
    )


def settle_batches(seeds: Sequence[int] = range(3)) -> None:
    """§5.1: pairs of similar length, and batches that are about full.

    *About* is the gap between the text's 25,000 tokens and the 8 × 4,096 of the
    authors' code. Lengths are *similar* if a batch spans on average at most R / B.
    """
    of = pairs()
    longer, limit = longer_side(of), budget(of)
    room = 1 - paper.BASE.tokens_per_batch / (4096 * paper.BASE.gpus)
    held, spans, most = [], [], 0
    for seed in seeds:
        plan = TokenBatches(of, limit, seed=seed).plan(0)
        sides = np.array([lengths_of(of)[:, rows].sum(axis=1) for rows in plan])
        held.append(sides.mean(axis=0) / limit)  # source, target
        spans.append(np.mean([np.ptp(longer[rows]) for rows in plan]))
        most = max(most, *(longer[rows].max() * len(rows) for rows in plan))
        bound = np.ptp(longer) / len(plan)
    share = np.array(held)
    settle(
        "s5.1-batches",
        holds=bool(
            most <= limit
            and share.min() > 1 - room
            and max(spans) <= float(bound)
            and TrainingConfig().tokens_per_batch == paper.BASE.tokens_per_batch
        ),
        expected="no batch above the limit, on average at least "
        f"{1 - room:.0%} of it real tokens on either side, and a mean span of "
        f"at most {bound:.2f} tokens",
        measured=f"with a limit of {limit} tokens, batches hold "
        f"{share[:, 0].mean():.0%} of this limit in real tokens of the source and "
        f"{share[:, 1].mean():.0%} in those of the target; lengths within a batch span "
        f"{np.mean(spans):.2f} tokens on average, those of the corpus "
        f"{np.ptp(longer)}; three seeds. The default limit is "
        f"{TrainingConfig().tokens_per_batch:,} tokens",
        scale="derivation",
    )


# Time.


def first_pairs(count: int = 512) -> EncodedPairs:
    """The first pairs of the corpus."""
    few = np.arange(len(pairs())) < count
    return EncodedPairs(pairs().source.keep(few), pairs().target.keep(few))


def predicted(of: EncodedPairs, seeds: Sequence[int]) -> dict[str, list[float]]:
    """How much faster a way must be if time is in proportion to token slots."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in seeds:
        total = {n: slots(of, p).sum() for n, p in plans(of, seed).items()}
        for way in WAYS:
            found[way].append(float(total[WAYS[0]] / total[way]))
    return found


def both_sides(of: EncodedPairs, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The source and the target of a batch, padded."""
    return of.source.padded(rows, 0), of.target.padded(rows, 0)


def seconds(model: Transformer, of: EncodedPairs, plan: Plan) -> float:
    """The processor's time for one pass of training, after a batch to warm up."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batches = [both_sides(of, rows) for rows in plan]
    begin = 0.0
    for number, (source, target) in enumerate([batches[0], *batches]):
        if number == 1:
            begin = time.process_time()
        logits = model(source, shift_right(target, 1))
        loss = F.cross_entropy(logits.mT, target, ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - begin


def measured(of: EncodedPairs, seeds: Sequence[int]) -> dict[str, list[float]]:
    """How much faster each way is by the clock, in real tokens a second."""
    model = Transformer(TransformerConfig.tiny(vocab_size=800))
    fast.accelerate(model)  # the same computation, in less time
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in seeds:
        took = {n: seconds(model, of, p) for n, p in plans(of, seed).items()}
        for way in WAYS:
            found[way].append(took[WAYS[0]] / took[way])
    return found


def speed_chart(
    counted: Mapping[str, Sequence[float]], timed: Mapping[str, Sequence[float]]
) -> alt.LayerChart:
    """The predicted gain as a line, the measured ones as points."""
    ways = list(WAYS)
    points = [
        {"way": way, "gain": gain, "seed": seed, "what": "measured"}
        for way in ways
        for seed, gain in enumerate(timed[way])
    ]
    lines_ = [
        {"way": way, "gain": float(np.median(counted[way])), "what": "predicted"}
        for way in ways
    ]
    scale = alt.Scale(
        domain=["predicted", "measured"], range=[NEUTRAL.mark, WEIGHT.mark]
    )
    colour = alt.Color(
        "what:N", scale=scale, legend=alt.Legend(title=None, symbolType="square")
    )
    x = alt.X(
        "gain:Q",
        title="tokens a second, as they come = 1",
        scale=alt.Scale(zero=True),
    )
    y = alt.Y("way:N", title=None, sort=ways, axis=alt.Axis(labelLimit=130))
    bars = (
        alt.Chart(alt.Data(values=lines_))
        .mark_bar(height=22, opacity=0.5)
        .encode(x=x, y=y, color=colour)
    )
    dots = (
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=90)
        .encode(
            x=x,
            y=y,
            color=colour,
            tooltip=["way:N", "seed:O", alt.Tooltip("gain:Q", format=".2f")],
        )
    )
    told = "; ".join(f"{way} {np.median(counted[way]):.2f}" for way in ways)
    return alt.LayerChart(layer=[bars, dots]).properties(
        width="container",
        height=150,
        description=f"Predicted gains as bars: {told}. The measured gains, points, lie "
        "near the ends of the bars.",
    )
