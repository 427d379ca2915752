"""Chapter 11, how the decoder writes: its translator, its measurements, its drawings.

The notebook shows the loop, the cached step and the loss. Here is what surrounds them:
the training of the small translator, the experiments on mistakes and on time, and every
picture.

Paper: §3, §3.1, §6.1.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from aiayn import Transformer, TransformerConfig, shift_right
from aiayn.data.grammar import GrammarSample, generate
from aiayn_book import settle
from aiayn_book.colours import NEUTRAL, QUERY
from aiayn_book.diagrams import Diagram
from aiayn_book.explorables import decoder_stepper
from aiayn_book.explorables.base import Explorable
from aiayn_book.plots import curves
from aiayn_book.svg import Svg

PAD, BOS, EOS = range(3)
HELD_OUT = 500
ROUNDING = 1e-10
"""More than rounding in float64 changes the logits of the small model."""

SENTENCE = "The grandmother lost this letter ."
"""The example of the chapter: six words in German."""
TRANSLATION = "Die Großmutter hat diesen Brief verloren ."


# The translator


@dataclass
class Translator:
    """A trained model, its vocabulary, and the sentences that it has not seen."""

    vocabulary: list[str]
    training: list[GrammarSample]
    held_out: list[GrammarSample]
    model: Transformer | None = None
    number: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.number = {word: token for token, word in enumerate(self.vocabulary)}

    def encode(self, words: Sequence[str]) -> Tensor:
        """The tokens of a sentence, and the end token: (length,)."""
        return torch.tensor([*(self.number[word] for word in words), EOS])

    def in_words(self, tokens: Any) -> list[str]:
        """The words that tokens stand for."""
        return [self.vocabulary[int(token)] for token in tokens]

    def batch(self, samples: Sequence[GrammarSample]) -> tuple[Tensor, Tensor]:
        """Sources and targets, padded: each (sentences, length)."""
        sources = [self.encode(sample.source_tokens) for sample in samples]
        targets = [self.encode(sample.target_tokens) for sample in samples]
        return (
            pad_sequence(sources, batch_first=True, padding_value=PAD),
            pad_sequence(targets, batch_first=True, padding_value=PAD),
        )

    @cached_property
    def _held_out_batch(self) -> tuple[Tensor, Tensor]:
        return self.batch(self.held_out)

    @property
    def sources(self) -> Tensor:
        """The held-out sources: (sentences, length)."""
        return self._held_out_batch[0]

    @property
    def targets(self) -> Tensor:
        """The held-out targets: (sentences, length)."""
        return self._held_out_batch[1]

    @cached_property
    def references(self) -> list[list[int]]:
        """The held-out targets without their end tokens."""
        return [self.encode(s.target_tokens).tolist()[:-1] for s in self.held_out]


def sentence_pairs(drawn: int = 12_000, held_out: int = HELD_OUT) -> Translator:
    """Short sentences of few different words, for a model that is not trained yet."""
    samples = generate(drawn, seed=11, kinds=("simple",))
    short = [sample for sample in samples if len(sample.source_tokens) <= 9]
    uses = Counter(word.lower() for s in short for word in s.source_tokens)
    common = {word for word, _ in uses.most_common(300)}
    kept = [s for s in short if common.issuperset(map(str.lower, s.source_tokens))]
    words = {word for s in kept for word in s.source_tokens + s.target_tokens}
    vocabulary = ["<pad>", "<s>", "</s>", *sorted(words)]
    return Translator(vocabulary, kept[held_out:], kept[:held_out])


def train_translator(steps: int = 700, drawn: int = 12_000) -> Translator:
    """A Transformer of two layers on each side, trained with teacher forcing."""
    translator = sentence_pairs(drawn)
    sizes = {"d_model": 64, "d_ff": 128, "num_heads": 4}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    config = TransformerConfig(len(translator.vocabulary), **sizes, **layers)
    model = Transformer(config)
    by_length = sorted(
        translator.training, key=lambda s: (len(s.source_tokens), len(s.target_tokens))
    )
    starts = range(0, len(by_length), 64)
    batches = [translator.batch(by_length[i : i + 64]) for i in starts]
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=steps, pct_start=0.1, cycle_momentum=False
    )
    for _ in range(steps):
        source, target = random.choice(batches)
        logits = model(source, shift_right(target, BOS))
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    translator.model = model.eval().requires_grad_(False)
    return translator


# Training beside inference


def training_beside_inference(
    read: Sequence[str], predicted: Sequence[str]
) -> list[Svg]:
    """Two panels: all rows in one pass, and one pass after another.

    Args:
        read: What the decoder reads, the start token first.
        predicted: The next token at each position, the end token last.
    """
    return [_rows(read, predicted, training=True), _rows(read, predicted)]


_PITCH, _CELL, _GRID_LEFT = 34, 17, 94


def _rows(read: Sequence[str], predicted: Sequence[str], training: bool = False) -> Svg:
    count = len(read)
    drawing = Diagram(width=336, height=80 + _PITCH * count)
    centre = _GRID_LEFT + _CELL * count / 2
    right = _GRID_LEFT + _CELL * count + 25
    name = "Training: one pass" if training else "Inference: a pass for each token"
    drawing.text(centre, 12, name, bold=True)
    drawing.text(84, 36, "reads", anchor="end", italic=True)
    drawing.text(right, 36, "predicts", anchor="start", italic=True)
    heights = [60 + _PITCH * row for row in range(count)]
    own = "value" if training else "query"
    for row, y in enumerate(heights):
        for column in range(count if training else row + 1):
            allowed = column <= row
            drawing.grid(
                _GRID_LEFT + _CELL * (column + 0.5),
                y,
                [[0.75 if allowed else 0.12]],
                role="weight" if allowed else "alert",
                cell=_CELL,
                tall=_CELL,
                digits=None,
            )
        drawing.text(84, y, read[row], anchor="end", role=own if row else None)
        drawing.arrow((right - 22, y), (right - 6, y))
        role = None if training else "query"
        drawing.text(right, y, predicted[row], anchor="start", role=role)
        if not training and row + 1 < count:
            gap = y + _PITCH / 2
            corners = (right + 20, y + 9), (right + 20, gap), (76, gap)
            drawing.arrow(*corners, (76, heights[row + 1] - 9), role="query", width=1.2)
    if training:
        drawing.frame(2, 46, 332, _PITCH * count - 6)
    y = 60 + _PITCH * count - 6
    drawing.grid(18, y, [[0.75]], cell=14, tall=14, digits=None)
    drawing.text(30, y, "attends to", anchor="start")
    if training:
        drawing.grid(112, y, [[0.12]], role="alert", cell=14, tall=14, digits=None)
        drawing.text(124, y, "hidden by the causal mask", anchor="start")
    else:
        drawing.arrow((106, y), (126, y), role="query")
        drawing.text(132, y, "its prediction is read next", anchor="start")
    described = (
        "The decoder reads the right translation, shifted by one position, and "
        "predicts the next word at every position in one pass; a triangular mask "
        "hides the later positions"
        if training
        else "A row for each pass. Each reads the start token and the words predicted "
        "so far, and an arrow leads from each predicted word to the next row, where it "
        "is read"
    )
    return drawing.finish(name, f"{described}. {count} rows, from {read[0]} on.")


def most_attended(
    translator: Translator, source: Tensor, read: Tensor, step: int
) -> tuple[str, float]:
    """The source word that a step attends to most: the word and its weight.

    The weight is the mean over the heads of the last layer; steps count from 1.
    """
    cross = translator.model.attention_weights(source, read).cross[-1]
    weights = cross[0].mean(dim=0)[step - 1]  # (source_length,)
    word = translator.vocabulary[source[0, weights.argmax()]]
    return word, weights.max().item()


def stepper(translator: Translator, source: Tensor, read: Tensor) -> Explorable:
    """Every step of the example, to be clicked through."""
    model = translator.model
    weights = model.attention_weights(source, read)
    inputs = translator.in_words(read[0])
    outputs = [*inputs[1:], "</s>"]
    return decoder_stepper(
        translator.in_words(source[0]),
        inputs,
        outputs,
        to_source=torch.cat(weights.cross),  # (layers, heads, steps, source)
        to_read=torch.cat(weights.decoder),  # (layers, heads, steps, steps)
        probabilities=model(source, read)[0].softmax(dim=-1),
        vocabulary=translator.vocabulary,
        step=min(6, len(outputs)),
        title="Each step adds one row and one word",
        description="Buttons and a slider set the step. Shown are the tokens read so "
        "far, the four most probable next tokens, and two tables with a row for each "
        "step made: attention to the source words, and attention to the tokens read.",
    )


# The start token


def first_words(
    translator: Translator,
    starts: Sequence[str] = ("<s>", "</s>", "<pad>", ".", "nicht"),
) -> dict[str, float]:
    """How often the first predicted word is right, for each token read first."""
    shares = {}
    for start in starts:
        begin = torch.full((len(translator.sources), 1), translator.number[start])
        logits = translator.model(translator.sources, begin)[:, 0]
        right = logits.argmax(dim=-1) == translator.targets[:, 0]
        shares[start] = right.float().mean().item()
    return shares


def bars(
    shares: dict[str, float], x: str, y: str, description: str, fmt: str = ".0%"
) -> alt.LayerChart:
    """A level bar for each name, with its number."""
    rows = [{"name": name, "value": value} for name, value in shares.items()]
    most = max(shares.values())
    top = 1.0 if fmt.endswith("%") else 1.2 * most
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("name:N", title=y, sort=None),
        x=alt.X(
            "value:Q",
            title=x,
            scale=alt.Scale(domain=[0, top]),
            axis=alt.Axis(format="%" if fmt.endswith("%") else "~g"),
        ),
    )
    text = alt.Text("value:Q", format=fmt)
    numbers = base.mark_text(align="left", dx=5).encode(text=text)
    return (base.mark_bar(color=QUERY.mark) + numbers).properties(
        width="container", height=32 * len(rows), description=description
    )


# What each layer is given


def one_step() -> Svg:
    """Where the queries, keys and values of one step come from, in two layers."""
    drawing = Diagram(width=360, height=500)
    left, right = 72, 272
    for y, label in (
        (462, "source"),
        (412, "encoder layer 1"),
        (362, "encoder layer 2"),
    ):
        drawing.box(left, y, label, width=124)
    drawing.box(left, 292, "memory", width=124, role="key")
    drawing.text(left, 264, "(n, d_model)", small=True)
    for start, end in ((447, 428), (397, 378), (347, 308)):
        drawing.arrow((left, start), (left, end))
    drawing.box(right, 462, "embedding + position", width=160)
    drawing.text(right, 488, "(t, d_model)", small=True)
    for layer, top in ((1, 300), (2, 140)):
        drawing.frame(184, top, 174, 134)
        drawing.text(186, top - 10, f"layer {layer}", anchor="start", italic=True)
        drawing.box(right, top + 112, "self-attention", width=140, role="weight")
        drawing.box(right, top + 67, "cross-attention", width=140, role="weight")
        drawing.box(right, top + 22, "feed-forward", width=140)
        drawing.arrow((right, top + 97), (right, top + 83), role="query", width=2)
        drawing.text(right + 14, top + 90, "Q", role="query", bold=True)
        drawing.arrow((right, top + 52), (right, top + 38))
        for shift, role in ((-3, "key"), (3, "value")):
            corner, level = 156 - shift, top + 67 + shift
            start, end = (134, 292 + shift), (200, level)
            path = start, (corner, 292 + shift), (corner, level), end
            drawing.arrow(*path, role=role, width=1.6)
        drawing.text(164, top + 52, "K", role="key", bold=True, anchor="start")
        drawing.text(178, top + 52, "V", role="value", bold=True, anchor="start")
        foot = top + 112 + 16
        drawing.arrow((right, foot + (19 if layer == 1 else 47)), (right, foot))
        for shift, name, role in (
            (14, "Q", "query"),
            (28, "K", "key"),
            (42, "V", "value"),
        ):
            drawing.text(right + shift, foot + 14, name, role=role, bold=True)
    drawing.box(right, 84, "logits", width=140)
    drawing.text(right, 58, "(t, vocabulary)", small=True)
    drawing.arrow((right, 147), (right, 100))
    drawing.arrow((right, 46), (right, 32))
    drawing.text(right, 18, "last row: next word")
    return drawing.finish(
        "One step of a decoder with two layers",
        "The source goes through both encoder layers; the last one's output is the "
        "memory. In each decoder layer, self-attention takes queries, keys and values "
        "from the layer below, and cross-attention takes its queries from "
        "self-attention and its keys and values from the same memory. The last row of "
        "the logits gives the next word.",
    )


def attention_inputs(model: Transformer, source: Tensor, read: Tensor) -> pd.DataFrame:
    """Which tensor each projection of each decoder attention was given, by hooks."""
    memory = model.encode(source)
    made, table = [(memory, "memory")], {}

    def note(path: str, output: Tensor, given: Tensor) -> None:
        _, layer, part, kind = path.split(".")
        part = part.removesuffix("_residual").replace("_", "-")
        if kind == "norm":  # what a sub-layer passes on
            made.append((output, f"layer {int(layer) + 1}, after {part}"))
            return
        origin = "embedding + position"
        for tensor, name in made:  # a view has the address of its tensor
            if tensor.data_ptr() == given.data_ptr():
                origin = name
        row = table.setdefault((f"layer {int(layer) + 1}", part), {})
        row[kind.removesuffix("_projection")] = f"{origin} {tuple(given.shape[1:])}"

    watched = ("query_projection", "key_projection", "value_projection", ".norm")
    hooks = [
        module.register_forward_hook(
            lambda _, inputs, output, path=path: note(path, output, *inputs[:1])
        )
        for path, module in model.decoder.named_modules()
        if path.endswith(watched) and path.count(".") == 3
    ]
    model.decode(read, memory, source)
    for hook in hooks:
        hook.remove()
    columns = ["query", "key", "value"]
    return pd.DataFrame.from_dict(table, "index")[columns]


# Three ways, one answer


def rows_computed(read: Sequence[str]) -> list[Svg]:
    """Two panels: the positions that each step computes, without and with a cache."""
    return [_computed(read, cached=False), _computed(read, cached=True)]


def _computed(read: Sequence[str], cached: bool) -> Svg:
    count = len(read)
    drawing = Diagram(width=330, height=92 + 26 * count)
    computed = count if cached else count * (count + 1) // 2
    name = "With a cache" if cached else "Without a cache"
    drawing.text(190, 12, f"{name}: {computed} positions", bold=True)
    left, cell = 92, 26
    drawing.text(84, 38, "step reads", anchor="end", italic=True)
    for step in range(count):
        drawing.text(left + cell * (step + 0.5), 38, f"{step + 1}")
        y = 64 + 26 * step
        drawing.text(84, y, read[step], anchor="end")
        for position in range(step + 1):
            fresh = position == step or not cached
            drawing.grid(
                left + cell * (position + 0.5),
                y,
                [[0.75 if fresh else 0.2]],
                role="weight" if fresh else "key",
                cell=cell,
                tall=22,
                digits=None,
            )
    y = 76 + 26 * count
    drawing.grid(110, y, [[0.75]], cell=14, tall=14, digits=None)
    drawing.text(122, y, "computed", anchor="start")
    if cached:
        drawing.grid(206, y, [[0.2]], role="key", cell=14, tall=14, digits=None)
        drawing.text(218, y, "kept keys, values", anchor="start")
    return drawing.finish(
        name,
        f"A row for each of {count} steps, a column for each position read. "
        + (
            "Each step computes only the newest position; the others are kept"
            if cached
            else "Each step computes every position read so far"
        )
        + f": {computed} in all.",
    )


def settle_one_at_a_time(
    translator: Translator,
    double: Transformer,
    source: Tensor,
    read: Tensor,
    by_steps: Tensor,
    gaps: dict[str, float],
) -> None:
    """Exchange each word that was read, and see which logits change."""
    expected = ["<s>", *TRANSLATION.split()]
    assert translator.in_words(read[0]) == expected, "the text expects another output"
    at_once = double(source, read)[0]
    before, after = [], []
    for position in range(1, read.size(1)):
        changed = read.clone()
        changed[0, position] = translator.number["Hund"]
        moved = (double(source, changed)[0] - at_once).abs().amax(dim=-1)
        before += moved[:position].tolist()
        after += moved[position:].tolist()
    settle(
        "s3-one-at-a-time",
        holds=len(by_steps) == read.size(1)
        and max(*gaps.values(), *before) < ROUNDING < min(after),
        expected="one pass for each symbol; each written word changes all later logits "
        "and no earlier one",
        measured=f"{len(by_steps)} symbols in {len(by_steps)} passes, whose logits "
        f"differ from those of one pass by at most {max(gaps.values()):.1g}; an "
        f"exchanged word changes earlier logits by {max(before):.1g}, later ones by at "
        f"least {min(after):.2g}",
        scale="derivation",
    )


def state_changes(
    model: Transformer, source: Tensor, read: Tensor
) -> dict[str, list[list[float]]]:
    """How much each earlier state changes when one more token is read.

    Returns:
        For the encoder and for the decoder a row for each added token: the relative
        changes of the states before it.
    """

    def changes(states: Callable[[int], Tensor], length: int) -> list[list[float]]:
        rows = []
        for k in range(1, length):
            old, new = states(k)[0], states(k + 1)[0, :k]
            rows.append(((new - old).norm(dim=-1) / old.norm(dim=-1)).tolist())
        return rows

    return {
        "encoder": changes(lambda k: model.encode(source[:, :k]), source.size(1)),
        "decoder": changes(
            lambda k: model.decoder_hidden(source, read[:, :k]), read.size(1)
        ),
    }


def changed_states(
    changes: dict[str, list[list[float]]],
    source_words: Sequence[str],
    read_words: Sequence[str],
) -> list[Svg]:
    """Two panels: what one more token changes in the encoder and in the decoder."""
    words = {"encoder": source_words, "decoder": read_words}
    return [_changed(side, changes[side], words[side]) for side in words]


def _changed(side: str, rows: list[list[float]], words: Sequence[str]) -> Svg:
    count = len(rows)
    drawing = Diagram(width=336, height=68 + 26 * count)
    left, cell = 96, 34
    title = f"{side.capitalize()}: change of earlier states"
    drawing.text(180, 12, title, bold=True)
    drawing.text(88, 38, "added", anchor="end", italic=True)
    for column in range(count):
        drawing.text(left + cell * (column + 0.5), 38, f"{column + 1}")
    for step, row in enumerate(rows):
        y = 64 + 26 * step
        drawing.text(88, y, words[step + 1], anchor="end")
        width = cell * len(row)
        drawing.grid(left + width / 2, y, [row], cell=cell, tall=24)
    largest = max(max(row) for row in rows)
    if largest < ROUNDING:
        drawing.text(left + cell * 5.5, 77, "no change", italic=True)
    return drawing.finish(
        title,
        f"A row for each added token, a column for each state before it. The largest "
        f"relative change is {largest:.2g}.",
    )


# Time


def seconds(function: Callable[[], Any]) -> float:
    """How long one call takes."""
    begin = perf_counter()
    function()
    return perf_counter() - begin


def step_by_step(model: Transformer, source: Tensor, read: Tensor) -> None:
    """Decode without a cache: step t computes t positions."""
    memory = model.encode(source)
    for end in range(1, read.size(1) + 1):
        model.decode(read[:, :end], memory, source)


def with_cache(model: Transformer, source: Tensor, read: Tensor) -> None:
    """Decode with a cache: each step computes one position."""
    cache = model.init_decode(source)
    for tokens in read.T:
        model.decode_step(tokens, cache)


def time_per_token(
    translator: Translator,
    lengths: Sequence[int] = (8, 16, 32, 64, 128),
    sentences: int = 8,
    rounds: int = 3,
) -> dict[tuple[str, int], float]:
    """Milliseconds per token, with and without a cache, for outputs of each length."""
    model, some = translator.model, translator.sources[:sentences]
    tokens = torch.randint(
        EOS + 1, len(translator.vocabulary), (sentences, max(lengths))
    )
    ways = {"with a cache": with_cache, "without": step_by_step}
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for m in lengths:
            for name, way in ways.items():
                spent = seconds(lambda way=way, m=m: way(model, some, tokens[:, :m]))
                taken.setdefault((name, m), []).append(1000 * spent / m)
    return {key: median(values) for key, values in taken.items()}


def time_chart(times: dict[tuple[str, int], float]) -> alt.LayerChart:
    """Time per token over the length of the output."""
    rows = [
        {"tokens written": m, "ms per token": value, "decoding": name}
        for (name, m), value in times.items()
    ]
    return curves(
        rows,
        "tokens written",
        "ms per token",
        "decoding",
        log_x=True,
        description="Milliseconds per token over the length of the output, from 8 to "
        "128 tokens, with a cache and without one.",
    )


# Exposure bias


def blocks(count: int, size: int = 100) -> Tensor:
    """The block of sentences that each sentence belongs to."""
    return torch.arange(count) // size


def after_a_mistake(
    translator: Translator, distances: Sequence[int] = (1, 2, 3, 4)
) -> list[dict[str, Any]]:
    """Accuracy some words after one wrong word, all other words being right.

    The wrong word is the most probable wrong one, or a random German word. Each is put
    at every position in turn, in all held-out sentences.

    Returns:
        A row for each kind of mistake, distance and block of 100 sentences.
    """
    model, targets = translator.model, translator.targets
    memory, given = model.encode(translator.sources), shift_right(targets, BOS)
    wrong = model.decode(given, memory, translator.sources)
    wrong = wrong.scatter(2, targets[..., None], -math.inf)
    wrong[..., : EOS + 1] = -math.inf  # a word, not a mark
    german = torch.tensor(sorted(set(targets.unique().tolist()) - {PAD, EOS}))
    mistakes = {
        "no mistake": given[:, 1:],
        "the model's own": wrong.argmax(dim=-1)[:, :-1],
        "a random word": german[torch.randint(len(german), given[:, 1:].shape)],
    }
    block = blocks(len(targets))
    hits: dict[tuple[str, int, int], list[Tensor]] = {}
    for name, words in mistakes.items():
        for position in range(1, targets.size(1)):
            changed = given.clone()
            changed[:, position] = words[:, position - 1]
            logits = model.decode(changed, memory, translator.sources)
            right = logits.argmax(dim=-1) == targets
            for distance in distances:
                at = position + distance - 1
                if at >= targets.size(1):
                    continue
                for b in block.unique().tolist():
                    rows = (block == b) & (targets[:, at] != PAD)
                    hits.setdefault((name, distance, b), []).append(right[rows, at])
    return [
        {
            "words after the mistake": distance,
            "share right": torch.cat(values).float().mean().item(),
            "mistake": name,
            "block": b,
        }
        for (name, distance, b), values in hits.items()
    ]


def mistake_chart(rows: list[dict[str, Any]]) -> alt.LayerChart:
    """Accuracy over the distance from the mistake."""
    distance = "words after the mistake"
    chart = curves(
        rows,
        distance,
        "share right",
        "mistake",
        seed="block",
        description="Share of right words one to four words after a mistake, for no "
        "mistake, a mistake of the model's own and a random word, each with its range "
        "over five blocks of 100 sentences.",
    )
    whole = sorted({row[distance] for row in rows})
    for layer in chart.layer:
        layer.encoding.x.axis = alt.Axis(values=whole, format="d")
    return chart


# Greedy search on a table

TREE = {
    "<s>": {"Der": 0.6, "Ein": 0.4},
    "Der": {"Hund": 0.4, "Hase": 0.35, "Fuchs": 0.25},
    "Ein": {"Hund": 0.9, "Fuchs": 0.1},
}
"""Probabilities of the next word; what is not named is followed by the end."""


def greedy_chart() -> alt.LayerChart:
    """The five sentences of the table, with a slider for the first word."""
    p = alt.param(
        name="p",
        value=TREE["<s>"]["Der"],
        bind=alt.binding_range(min=0.3, max=0.9, step=0.01, name="p(Der) "),
    )
    leaves = [
        {
            "sentence": f"{first} {second}",
            "first": first,
            "q": q,
            "best": q == max(TREE[first].values()),
        }
        for first in ("Der", "Ein")
        for second, q in TREE[first].items()
    ]
    base = (
        alt.Chart(alt.Data(values=leaves))
        .transform_calculate(
            p="datum.q * (datum.first == 'Der' ? p : 1 - p)",
            greedy="datum.best && (datum.first == 'Der') == (p >= 0.5)",
        )
        .encode(y=alt.Y("sentence:N", title=None, sort=None))
    )
    scale = alt.Scale(domain=[0, 1])
    level = base.mark_bar().encode(
        x=alt.X("p:Q", title="probability of the sentence", scale=scale),
        color=alt.condition(
            "datum.greedy", alt.value(QUERY.mark), alt.value(NEUTRAL.mark)
        ),
    )
    labels = (
        base.transform_calculate(
            text="format(datum.p, '.2f') + (datum.greedy ? '  greedy' : '')"
        )
        .mark_text(align="left", dx=4)
        .encode(x="p:Q", text="text:N")
    )
    return (
        (level + labels)
        .add_params(p)
        .properties(
            width="container",
            height=28 * 5,
            description="Five sentences as bars, with a slider for the probability of "
            "Der. At 0.6, Der Hund, which greedy search writes, has 0.24, and Ein Hund "
            "has 0.36.",
        )
    )


# Ways to get it wrong


def cached_greedy(
    model: Transformer, sources: Tensor, limit: int = 20, stuck: bool = False
) -> list[list[int]]:
    """Greedy decoding with a cache; `stuck` gives every token the position 0."""
    cache = model.init_decode(sources)
    tokens = torch.full((len(sources),), BOS)
    written = []
    for _ in range(limit):
        if stuck:
            cache.length = 0
        tokens = model.decode_step(tokens, cache).argmax(dim=-1)
        written.append(tokens)
    return [_until_end(row) for row in torch.stack(written, dim=1).tolist()]


def _until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


def pitfalls(translator: Translator, source: Tensor, read: Tensor) -> pd.DataFrame:
    """Two mistakes in decoding, each as outputs show it and as a test shows it."""
    model, sources = translator.model, translator.sources
    reference = model(source, read)[0]

    def right(outputs: list[list[int]]) -> str:
        pairs = zip(outputs, translator.references, strict=True)
        return f"{sum(a == b for a, b in pairs) / len(outputs):.0%}"

    def gap(stuck: bool) -> str:
        cache, rows = model.init_decode(source), []
        for tokens in read.T:
            if stuck:
                cache.length = 0
            rows.append(model.decode_step(tokens, cache)[0])
        return f"{(torch.stack(rows) - reference).abs().max().item():.1g}"

    table = {}
    for name, stuck, training in (
        ("as it should be", False, False),
        ("position stuck at 0", True, False),
        ("dropout left on", False, True),
    ):
        model.train(training)
        first, second = (cached_greedy(model, sources, stuck=stuck) for _ in range(2))
        same = sum(a == b for a, b in zip(first, second, strict=True)) / len(first)
        table[name] = {
            "translated exactly": right(first),
            "same output twice": f"{same:.0%}",
            "logits off by": gap(stuck),
        }
        model.eval()
    return pd.DataFrame.from_dict(table, "index")


def elements(caches: Sequence[Any]) -> int:
    """How many numbers are in the caches of a decoder's layers."""
    return sum(
        part.keys.numel() + part.values.numel() for cache in caches for part in cache
    )
