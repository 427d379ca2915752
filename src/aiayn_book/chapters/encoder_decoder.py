"""Chapter 10, encoder and decoder: its drawings, measurements and claims (§3, §3.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import (
    Encoder,
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
    causal_mask,
    padding_mask,
    shift_right,
)
from aiayn.model import SinusoidalPositionalEncoding, TokenEmbedding
from aiayn_book import settle
from aiayn_book.colours import NEUTRAL, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.svg import Svg

# Drawings: the two stacks, a decoder layer, the memory.


def one_memory(layers: int = 6) -> Svg:
    """Both stacks, unrolled: every decoder layer reads the encoder's last output."""
    drawing = Diagram(338, 486)
    left, right, bus = 76, 262, 166
    heights = [426 - 58 * number for number in range(layers)]
    for x, name in ((left, "source"), (right, "target")):
        drawing.text(x, 470, f"{name} + positions")
        drawing.arrow((x, 459), (x, heights[0] + 15))
    for number, y in enumerate(heights):
        label = f"layer {number + 1}"
        drawing.box(left, y, label, width=112)
        drawing.box(right, y, label, width=112, role="weight")
        if number:
            below = heights[number - 1] - 15
            drawing.arrow((left, below), (left, y + 15))
            drawing.arrow((right, below), (right, y + 15), role="query")
        for shift, role in ((-5, "key"), (5, "value")):
            drawing.arrow((bus - shift, y + shift), (206, y + shift), role=role)
    top = heights[-1]
    drawing.box(left, top - 74, "memory z", width=112, height=34, role="key")
    drawing.arrow((left, top - 15), (left, top - 57))
    for shift, role in ((-5, "key"), (5, "value")):
        level = top - 74 + shift
        line = (left + 56, level), (bus - shift, level), (bus - shift, heights[0])
        drawing.arrow(*line, role=role, head=False)
    drawing.arrow((right, top - 15), (right, top - 58))
    drawing.text(right, top - 70, "next-token scores")
    drawing.text(left, 14, "encoder", bold=True)
    drawing.text(right, 14, "decoder", bold=True)
    return drawing.finish(
        "Six decoder layers read one memory",
        "Two columns of six layers, read upwards. The sixth encoder layer gives the "
        "memory. From the memory, a line of keys and a line of values lead to each of "
        "the six decoder layers. No other line leaves the encoder.",
    )


def three_sublayers() -> Svg:
    """One decoder layer, with three target tokens and three source tokens."""
    drawing = Diagram(360, 414)
    columns, rows = [176, 246, 316], [216, 244, 272]
    begin, after_self, after_cross, end = 356, 284, 150, 84
    drawing.tokens(246, 390, ["‹s›", "die", "Katze"], step=70)
    for y, word in zip(rows, ["the", "cat", "sleeps"], strict=True):
        drawing.box(52, y, word, width=84, height=24, role="key")
    drawing.text(52, 194, "memory", role="key")
    for place, x in enumerate(columns):
        drawing.arrow((x, 376), (x, begin + 5), head=False)
        for earlier in columns[: place + 1]:
            line = (earlier, begin - 5), (x, after_self + 7)
            drawing.arrow(*line, role="weight", width=1.2)
        for y in rows:
            line = (96, y), (x, after_cross + 7)
            drawing.arrow(*line, role="weight", head=False, width=1)
        drawing.arrow((x, after_self - 5), (x, after_cross + 7), width=1.2)
        drawing.arrow((x, after_cross - 5), (x, end + 18), width=1.2)
        drawing.box(x, end + 4, "network", width=62, height=26)
        drawing.arrow((x, end - 9), (x, 44))
        for y in (begin, after_self, after_cross):
            drawing.dot(x, y, radius=4)
    steps = [(324, "1. self-attention"), (158, "2. cross-attention")]
    for y, words in [*steps, (end + 4, "3. feed-forward")]:
        drawing.text(8, y, words, anchor="start", bold=True)
    drawing.text(246, 30, "one vector for each target token")
    return drawing.finish(
        "The three sub-layers of a decoder layer",
        "Read upwards. Three target tokens each get lines from themselves and from the "
        "target tokens before them: self-attention. Then each gets a line from each "
        "of the three vectors of the memory: cross-attention. Then each goes through "
        "the same network by itself: feed-forward.",
    )


def memory_grows() -> Svg:
    """Two sentences: the last state of a recurrent encoder, and the memory."""
    drawing = Diagram(360, 316)
    sentences = [["birds", "sing"], ["the", "cat", "drinks", "cold", "milk"]]
    generator = torch.Generator().manual_seed(3)
    drawing.text(142, 14, "memory: a vector for each token", bold=True)
    drawing.text(314, 14, "no attention", bold=True)
    for row, words in enumerate(sentences):
        top = 36 + 142 * row
        left = 4 + 28 * len(words)
        places = drawing.tokens(left, top + 104, words, step=56)
        for x in places:
            drawing.arrow((x, top + 90), (x, top + 60))
            vector = torch.randn(6, generator=generator)
            drawing.bars(x, top + 28, vector, role="key", width=46, height=52, limit=2)
        vector = torch.randn(6, generator=generator)
        drawing.bars(314, top + 28, vector, width=46, height=52, limit=2)
        drawing.arrow((places[-1] + 28, top + 104), (314, top + 104), (314, top + 60))
    return drawing.finish(
        "The memory grows with the sentence",
        "A sentence of two words has a memory of two vectors, a sentence of five words "
        "one of five. To the right of each stands the single vector that a recurrent "
        "encoder without attention passes on.",
    )


# The shapes of what flows.


def trace(model: Transformer, source: Tensor, target: Tensor) -> dict[str, list[Any]]:
    """The shapes of both sides, read off the tensors; those of the batch left out."""
    inner: list[Tensor] = []
    layers = model.encoder.layers[0], model.decoder.layers[0]
    handles = [
        layer.feed_forward.inner.register_forward_hook(lambda *io: inner.append(io[2]))
        for layer in layers
    ]
    with torch.no_grad():
        x = model.source_positions(model.embedding("source")(source))
        y = model.target_positions(model.embedding("target")(target))
        keys, _ = layers[0].self_attention.project_kv(x, x)
        memory = model.encode(source)
        hidden = model.decoder_hidden(source, target)
        weights = model.attention_weights(source, target)
        logits = model.logits(hidden)
    for handle in handles:
        handle.remove()
    found = {
        "encoder": [
            ("tokens", source),
            ("embedded, + positions", x),
            ("keys of the heads", keys),
            ("weights of the heads", weights.encoder[0]),
            ("inside a network", inner[0]),
            ("memory z", memory),
        ],
        "decoder": [
            ("tokens, shifted right", target),
            ("embedded, + positions", y),
            ("self-attention weights", weights.decoder[0]),
            ("cross-attention weights", weights.cross[0]),
            ("inside a network", inner[-1]),
            ("after six layers", hidden),
            ("scores", logits),
        ],
    }
    return {
        side: [(name, tuple(tensor.shape[1:])) for name, tensor in steps]
        for side, steps in found.items()
    }


def shapes_drawing(steps: Sequence[tuple[str, tuple[int, ...]]], side: str) -> Svg:
    """One side's tensors from bottom to top, as rectangles."""
    step = 60
    drawing = Diagram(338, step * len(steps) + 26)
    drawing.text(169, 12, side, bold=True)
    for number, (name, shape) in enumerate(steps):
        y = step * (len(steps) - number) - 8
        rows, columns = (*shape, 1) if len(shape) == 1 else shape[-2:]
        tall = 5 * rows
        wide = 5 * columns if columns <= 16 else 9 * torch.tensor(columns).log2().item()
        role = {"memory": "key", "weights": "weight"}
        chosen = next((r for part, r in role.items() if part in name), "neutral")
        drawing.text(4, y - 9, name, anchor="start")
        words = " × ".join(f"{size:,}" for size in shape)
        drawing.text(4, y + 10, words, anchor="start", small=True)
        drawing.box(186 + wide / 2, y, "", width=wide, height=tall, role=chosen)
        if number:
            drawing.arrow((174, y + step - 8), (174, y + 8), width=1)
    described = "; ".join(f"{name} {shape}" for name, shape in steps)
    return drawing.finish(f"Shapes: {side}", f"From bottom to top: {described}.")


# Eighteen attentions.

KINDS = ("encoder self", "decoder self", "cross")


@dataclass(frozen=True)
class Call:
    """One attention of one pass: where its inputs were made, and its mask."""

    kind: str
    """One of `KINDS`."""
    layer: int
    """From 1 on."""
    query: str
    key: str
    value: str
    allowed: Tensor
    """(queries, keys), true where a query may attend; of the last sentence."""


def attention_calls(model: nn.Module, source: Tensor, target: Tensor) -> list[Call]:
    """Run a model, and record what enters each of its attentions.

    Args:
        model: A `Transformer`, or the chapter's own; post-norm.
        source: (batch, source_length).
        target: (batch, target_length).
    """
    origin: dict[int, str] = {}
    kept: list[Tensor] = []  # or a later tensor could get an earlier one's id
    calls: list[Call] = []
    inputs = iter(["source", "target"])

    def made(tensor: Tensor, name: str) -> None:
        kept.append(tensor)
        origin[id(tensor)] = name

    def record(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, given: tuple[Any, ...]) -> None:
            side, _, number, what = name.split(".")
            kind = "cross" if what.startswith("cross") else f"{side} self"
            queries, keys, values, mask = given[:4]
            size = queries.size(0), queries.size(1), keys.size(1)
            allowed = mask.reshape(-1, mask.size(-2), mask.size(-1)).expand(size)[-1]
            places = [origin[id(tensor)] for tensor in (queries, keys, values)]
            calls.append(Call(kind, int(number) + 1, *places, allowed))

        return hook

    handles = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            handles.append(module.register_forward_pre_hook(record(name)))
        elif name == "dropout":
            handles.append(
                module.register_forward_hook(lambda *io: made(io[2], next(inputs)))
            )
        elif name.endswith("residual.norm"):
            side, _, number, what, _ = name.split(".")
            place = f"{side} layer {int(number) + 1}"
            if not what.startswith("feed"):
                place += f", {what.removesuffix('_residual').replace('_', '-')}"
            handles.append(
                module.register_forward_hook(
                    lambda *io, place=place: made(io[2], place)
                )
            )
    with torch.no_grad():
        model(source, target)
    for handle in handles:
        handle.remove()
    return calls


def calls_table(calls: Sequence[Call], layer: int) -> pd.DataFrame:
    """The attentions of one layer: where queries, keys and values were made."""
    rows = [
        [call.kind, call.query, call.key, call.value]
        for kind in KINDS
        for call in calls
        if (call.kind, call.layer) == (kind, layer)
    ]
    names = [row.pop(0) for row in rows]
    return pd.DataFrame(rows, index=names, columns=["queries", "keys", "values"])


def eighteen(calls: Sequence[Call]) -> Svg:
    """A small mask for each attention: three kinds, a column for each layer."""
    drawing = Diagram(360, 388)
    lines = {
        "encoder self": "all three: the encoder layer below",
        "decoder self": "all three: the decoder layer below",
        "cross": "self-attention below",
    }
    cell, top = 6, 0
    for kind in KINDS:
        name = f"{kind.capitalize()}-attention"
        drawing.text(4, top + 14, name, anchor="start", bold=True)
        words = f"queries: {lines[kind]}" if kind == "cross" else lines[kind]
        role = "query" if kind == "cross" else None
        drawing.text(4, top + 34, words, anchor="start", role=role)
        if kind == "cross":
            words = "keys, values: memory"
            drawing.text(216, top + 34, words, anchor="start", role="key")
        for call in (one for one in calls if one.kind == kind):
            x = 58 * call.layer - 26
            y = top + 74
            grid = call.allowed.float()
            drawing.grid(x, y, grid, cell=cell, tall=cell, digits=None, limit=1.2)
            drawing.text(x, top + 108, str(call.layer), small=True)
        top += 130
    return drawing.finish(
        "Eighteen attentions of three kinds",
        "Three rows of six small masks, one for each layer. Encoder: all rows, but not "
        "the last two columns, which are padding. Decoder: a lower triangle. Cross: "
        "five rows and seven columns, without the two of padding.",
    )


def sub_layers(model: nn.Module, source: Tensor, target: Tensor) -> pd.DataFrame:
    """The sub-layers of the first layers, in the order in which they run."""
    rows: list[list[str]] = []
    handles = []
    for name, module in model.named_modules():
        side, _, place = name.partition(".layers.0.")
        if place in ("self_attention", "cross_attention", "feed_forward"):
            heads = str(getattr(module, "num_heads", "–"))
            row = [side, place.replace("_", "-"), heads]
            handles.append(
                module.register_forward_hook(lambda *io, row=row: rows.append(row))
            )
    with torch.no_grad():
        model(source, target)
    for handle in handles:
        handle.remove()
    columns = ["layer of the", "sub-layer", "heads"]
    return pd.DataFrame(rows, index=range(1, len(rows) + 1), columns=columns)


def alike(layers: Sequence[nn.Module]) -> bool:
    """Whether layers have the same shapes, and each has weights of its own."""
    shapes = [[tuple(p.shape) for p in layer.parameters()] for layer in layers]
    own = {p.data_ptr() for layer in layers for p in layer.parameters()}
    first, second = (next(iter(layer.parameters())) for layer in layers[:2])
    return (
        all(shape == shapes[0] for shape in shapes)
        and len(own) == sum(map(len, shapes))
        and not torch.equal(first, second)
    )


def settle_layers(model: nn.Module, calls: Sequence[Call], table: pd.DataFrame) -> None:
    """§3.1: what a layer of each side consists of, and where its inputs come from."""
    of = {kind: [call for call in calls if call.kind == kind] for kind in KINDS}
    names = {
        side: rows["sub-layer"].tolist() for side, rows in table.groupby("layer of the")
    }
    stacks = [list(getattr(model, side).layers) for side in ("encoder", "decoder")]
    settle(
        "s3.1-encoder",
        holds=len(stacks[0]) == len(of["encoder self"]) == 6
        and alike(stacks[0])
        and names["encoder"] == ["self-attention", "feed-forward"],
        expected="six layers of the same shapes: self-attention, feed-forward",
        measured=f"{len(stacks[0])} layers of the same shapes, each with weights of "
        f"its own; sub-layers {' and '.join(names['encoder'])}",
        scale="derivation",
    )
    cross = of["cross"]
    heads = set(table.loc[table["sub-layer"].str.contains("attention"), "heads"])
    last = "encoder layer 6"
    settle(
        "s3.1-decoder",
        holds=len(stacks[1]) == len(cross) == 6
        and alike(stacks[1])
        and names["decoder"] == ["self-attention", "cross-attention", "feed-forward"]
        and "1" not in heads
        and {call.key for call in cross} == {call.value for call in cross} == {last}
        and all(
            call.query == f"decoder layer {call.layer}, self-attention"
            for call in cross
        ),
        expected="one more sub-layer than the encoder's: multi-head attention with "
        "keys and values from z",
        measured=f"{len(names['decoder'])} sub-layers; {len(cross)} cross-attentions "
        f"of {heads.pop()} heads, keys and values from {last}, queries from the "
        "self-attention below",
        scale="derivation",
    )


@dataclass(frozen=True)
class MemoryTest:
    """How far the scores move when what the decoder is given changes."""

    words_hidden: float
    """All source words replaced beside the same memory."""
    memory_swapped: float
    """The memory of another sentence, beside these words."""
    to_the_other: float
    """From there to the scores of the other sentence as a whole."""


def memory_test(
    model: Transformer, source: Tensor, other: Tensor, target: Tensor
) -> MemoryTest:
    """Change the words beside the memory, then the memory beside the words."""
    with torch.no_grad():
        memory, other_memory = model.encode(source), model.encode(other)
        scores, others = model(source, target), model(other, target)
        hidden = model.decode(target, memory, torch.where(source != 0, 1, 0))
        swapped = model.decode(target, other_memory, source)

    def gap(one: Tensor, two: Tensor) -> float:
        return (one - two).abs().max().item()

    return MemoryTest(gap(hidden, scores), gap(swapped, scores), gap(swapped, others))


def settle_memory(model: Transformer, source: Tensor, target: Tensor) -> None:
    """§3: z is the encoder's output, and all that the decoder reads of the source."""
    real = source != 0
    other = torch.where(real, source.roll(1, dims=1).clamp(min=4) + 1, 0)
    found = memory_test(model, source, other, target)
    with torch.no_grad():
        memory, whole = model.encode(source), model(source, target)
        cache = model.init_decode(source)
        steps = [model.decode_step(token, cache) for token in target.T]
    apart = (torch.stack(steps, dim=1) - whole).abs().max().item()
    width = model.config.d_model
    settle(
        "s3-encoder-decoder",
        holds=memory.shape == (*source.shape, width)
        and found.words_hidden < 1e-4  # float32: another order of sums
        and found.to_the_other < 1e-4
        and found.memory_swapped > 0.1
        and apart < 1e-3,
        expected="z is the encoder's output, a vector for each source token, and "
        "all that the decoder reads of the source; it writes one by one",
        measured=f"tokens of shape {tuple(source.shape)} become a z of shape "
        f"{tuple(memory.shape)}; with the source's words hidden from the decoder its "
        f"scores move by {found.words_hidden:.1g}, with another sentence's z by "
        f"{found.memory_swapped:.1g}, and they are then that sentence's; written one "
        f"token at a time, they differ by {apart:.1g}",
        scale="derivation",
    )


# Every parameter counted.

PARTS = {  # a part: what stands in its parameters' names
    "feed-forward": ("feed_forward.",),
    "encoder self-attention": ("encoder.", "self_attention."),
    "decoder self-attention": ("decoder.", "self_attention."),
    "cross-attention": ("cross_attention.",),
    "embedding matrix": ("embeddings.",),
    "LayerNorms": ("norm.",),
}


def census(config: TransformerConfig) -> dict[str, int]:
    """How many parameters each kind of part holds; nothing is allocated."""
    with torch.device("meta"):
        model = Transformer(config)
    return {
        part: sum(
            parameter.numel()
            for name, parameter in model.named_parameters()
            if all(words in name for words in marks)
        )
        for part, marks in PARTS.items()
    }


def census_chart() -> alt.LayerChart:
    """The base model's parts, with a slider for the vocabulary."""
    vocabulary = alt.param(
        name="vocabulary",
        value=37_000,
        bind=alt.binding_range(min=1000, max=100_000, step=1000, name="V "),
    )
    found = census(TransformerConfig.base())
    width = TransformerConfig.base().d_model
    rows = [
        {
            "part": part,
            "fixed": 0 if part == "embedding matrix" else count / 1e6,
            "each": width / 1e6 if part == "embedding matrix" else 0,
        }
        for part, count in found.items()
    ]
    base = (
        alt.Chart(alt.Data(values=rows))
        .transform_calculate(millions="datum.fixed + datum.each * vocabulary")
        .encode(
            x=alt.X(
                "millions:Q",
                title="millions of parameters",
                scale=alt.Scale(domain=[0, 60]),
            ),
            y=alt.Y("part:N", title=None, sort=list(found)),
        )
    )
    bars = base.mark_bar().encode(
        color=alt.when("datum.each > 0")
        .then(alt.value(WEIGHT.mark))
        .otherwise(alt.value(NEUTRAL.mark))
    )
    numbers = base.mark_text(align="left", dx=4).encode(
        text=alt.Text("millions:Q", format=".1f")
    )
    return (
        alt.layer(bars, numbers)
        .add_params(vocabulary)
        .properties(
            width="container",
            height=190,
            description="A bar for each kind of part of the base model, in millions of "
            "parameters. The feed-forward networks have 25, the embedding matrix 19 "
            "for a vocabulary of 37,000, each of the three kinds of attention 6, and "
            "all LayerNorms together less than a tenth. A slider sets the vocabulary.",
        )
    )


# Another machine: one stack that reads source and target as one sequence.


def prefix_mask(source_length: int, target_length: int) -> Tensor:
    """Everyone sees the whole source, and of the target what is not later."""
    mask = causal_mask(source_length + target_length)
    mask[:, :source_length] = True
    return mask


class OneStack(nn.Module):
    """An encoder with any mask, and the scores of an output layer on top."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.positions = SinusoidalPositionalEncoding(config.d_model)
        self.layers = Encoder(config)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The scores (batch, length, vocab)."""
        states, _ = self.layers(self.positions(self.embedding(tokens)), mask)
        return self.embedding.logits(states)


def quarters(source_length: int = 3, target_length: int = 3) -> Svg:
    """The prefix model's mask, cut into the masks of encoder and decoder."""
    mask = prefix_mask(source_length, target_length).float()
    words = ["the", "cat", "sleeps", "‹s›", "die", "Katze"]
    cell, tall = 42, 30
    drawing = Diagram(360, 286)
    left, top, gap = 62, 52, 10
    halves = slice(0, source_length), slice(source_length, None)
    for i, rows in enumerate(halves):
        for j, columns in enumerate(halves):
            part = mask[rows, columns]
            x = left + cell * 1.5 + j * (3 * cell + gap)
            y = top + tall * 1.5 + i * (3 * tall + gap)
            drawing.grid(
                x,
                y,
                part,
                cell=cell,
                tall=tall,
                digits=None,
                limit=1.4,
                rows=[] if j else words[rows],
                columns=[] if i else words[columns],
            )
    names = [("encoder", "never"), ("cross-attention", "decoder's own")]
    for i, pair in enumerate(names):
        for j, name in enumerate(pair):
            x = left + cell * 1.5 + j * (3 * cell + gap)
            drawing.text(x, (16, 262)[i], name, bold=True)
    return drawing.finish(
        "One mask in four quarters",
        "A mask of three source words and three target words. Source to source: full. "
        "Source to target: empty. Target to source: full. Target to target: a lower "
        "triangle.",
    )


TOKENS, LENGTH, START = 10, 5, 1  # tokens 2 to 11; 0 is padding
TINY = TransformerConfig(
    vocab_size=TOKENS + 2,
    d_model=32,
    d_ff=64,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)
MODELS = ("encoder–decoder", "prefix model", "language model")


def pairs(
    n: int, generator: torch.Generator | None = None, length: int = LENGTH
) -> tuple[Tensor, Tensor]:
    """Sources, and targets: reversed, each token replaced by another."""
    x = torch.randint(TOKENS, (n, length), generator=generator)
    return x + 2, (x.flip(1) + 3) % TOKENS + 2


def learner(kind: str) -> nn.Module:
    """One of `MODELS`, with two layers in all."""
    if kind == "encoder–decoder":
        sizes = TINY.__dict__ | {"num_encoder_layers": 1, "num_decoder_layers": 1}
        return Transformer(TransformerConfig(**sizes))
    return OneStack(TINY)


def target_scores(model: nn.Module, kind: str, x: Tensor, y: Tensor) -> Tensor:
    """The scores of all that a model predicts: the target, or source and target."""
    read = shift_right(y, START)
    if kind == "encoder–decoder":
        return model(x, read)
    causal, n = kind == "language model", x.size(1)
    mask = causal_mask(n + y.size(1)) if causal else prefix_mask(n, y.size(1))
    scores = model(torch.cat([x, read], dim=1), mask)
    return scores if causal else scores[:, n:]


def reversal_loss(model: nn.Module, kind: str, x: Tensor, y: Tensor) -> Tensor:
    """The mean loss; a language model is asked for the source's tokens as well."""
    wanted = y
    if kind == "language model":
        start = torch.full((len(y), 1), START)
        wanted = torch.cat([x[:, 1:], start, y], dim=1)
    logits = target_scores(model, kind, x, y)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def learn_reversal(
    kind: str, seed: int, steps: int = 200, every: int = 20
) -> list[dict[str, Any]]:
    """Train one model; the share of right tokens on the way, of 500 pairs."""
    torch.manual_seed(seed)
    model = learner(kind)
    adam = torch.optim.Adam(model.parameters(), 1e-2, fused=True)
    x, y = pairs(500, torch.Generator().manual_seed(10))
    rows = []
    for step in range(steps):
        warm, left = min(1, (step + 1) / 30), 1 - step / steps
        adam.param_groups[0]["lr"] = 1e-2 * warm * left
        loss = reversal_loss(model, kind, *pairs(32))
        adam.zero_grad()
        loss.backward()
        adam.step()
        if (step + 1) % every == 0:
            with torch.no_grad():
                scores = target_scores(model, kind, x, y)[:, -LENGTH:]
            right = (scores.argmax(dim=-1) == y).float().mean().item()
            rows.append({"model": kind, "seed": seed, "step": step + 1, "right": right})
    return rows


def reversal_chart(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """The share of right tokens over the steps, for three models."""
    return curves(
        rows,
        "step",
        "right",
        "model",
        description="The share of right target tokens over 200 training steps, for "
        "three models and three seeds each. All curves rise from about a tenth to "
        "nearly one.",
    )


# Weights set by hand.

WORDS, PLACES = TOKENS + 2, 6
WORD, PLACE = slice(0, WORDS), slice(WORDS, WORDS + PLACES)
ANSWER = slice(WORDS + PLACES, 2 * WORDS + PLACES)


@torch.no_grad()
def by_hand(move: Tensor, lexicon: Tensor, strength: float = 100.0) -> Transformer:
    """A Transformer that rearranges and replaces, with every parameter written down.

    Args:
        move: (positions, positions); ``move[j, i]`` is 1 where target position i shall
            read source position j.
        lexicon: (words, words); ``lexicon[t, s]`` is 1 where word s becomes word t.
        strength: How large the scores of attention are.
    """
    config = TransformerConfig(
        vocab_size=WORDS,
        d_model=ANSWER.stop,
        d_ff=1,
        num_heads=1,
        d_k=PLACES,
        d_v=WORDS,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.0,
        positions="learned",
        max_length=PLACES,
        tie_embeddings=False,
    )
    model = Transformer(config).double().eval()
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
    one_word, one_place = torch.eye(WORDS).double(), torch.eye(PLACES).double()
    words = model.embedding("source").weight
    words[:, WORD] = one_word / config.d_model**0.5  # the embedding multiplies by √d
    for positions in (model.source_positions, model.target_positions):
        positions.table[:, PLACE] = one_place
    cross = model.decoder.layers[0].cross_attention
    cross.query_projection.weight[:, PLACE] = strength * move.double()
    cross.key_projection.weight[:, PLACE] = one_place
    cross.value_projection.weight[:, WORD] = lexicon.double()
    cross.output_projection.weight[ANSWER] = one_word
    model.embedding("output").weight[:, ANSWER] = one_word
    return model


def written_by_hand(model: Transformer) -> list[str]:
    """The matrices that differ from zero."""
    return [
        name
        for name, parameter in model.named_parameters()
        if "norm" not in name and bool(parameter.any())
    ]


@torch.no_grad()
def write(model: Transformer, source: Tensor) -> Tensor:
    """Greedily, as many tokens as the source has."""
    written = torch.full((len(source), 1), START)
    for _ in range(source.size(1)):
        following = model(source, written)[:, -1].argmax(dim=-1)
        written = torch.cat([written, following[:, None]], dim=1)
    return written[:, 1:]


def lexicon() -> Tensor:
    """The replacement of `pairs` as a matrix: (to, from)."""
    table = torch.zeros(WORDS, WORDS)
    table[(torch.arange(TOKENS) + 3) % TOKENS + 2, torch.arange(TOKENS) + 2] = 1
    return table


def compartments() -> Svg:
    """How one attention reverses: by compartments of the vectors."""
    drawing = Diagram(360, 330)
    cell, first = 24, 128
    top = {"word": 3, "position": 3, "answer": 3}
    for number, name in enumerate(top):
        drawing.text(first + cell * (1.5 + 3 * number), 14, name, bold=True)
    drawing.text(4, 40, "memory", anchor="start", bold=True)
    eye = torch.eye(3)
    for row, word in enumerate("abc"):
        y = 66 + 32 * row
        drawing.text(4, y, f"{word}, position {row + 1}", anchor="start")
        vector = torch.cat([eye[row], eye[row], torch.zeros(3)])
        for part in range(3):
            role = ("value", "key", "neutral")[part]
            x = first + cell * (1.5 + 3 * part)
            numbers = vector[3 * part : 3 * part + 3][None]
            drawing.grid(x, y, numbers, role=role, cell=cell, tall=24, digits=None)
    drawing.text(4, 206, "target, position 1", anchor="start", bold=True)
    for y, name, answer in ((236, "before", [0, 0, 0]), (300, "after", [0, 0, 1])):
        drawing.text(4, y, name, anchor="start")
        for part, numbers in enumerate(([0, 0, 0], [1, 0, 0], answer)):
            role = ("value", "query", "value")[part]
            x = first + cell * (1.5 + 3 * part)
            drawing.grid(x, y, [numbers], role=role, cell=cell, tall=24, digits=None)
    at = first + cell * 3.5
    drawing.arrow((at, 222), (first + cell * 5.4, 146), role="query")
    drawing.arrow(
        (first + cell * 2.5, 144),
        (first + cell * 2.5, 268),
        (first + cell * 8.5, 268),
        (first + cell * 8.5, 285),
        role="value",
    )
    drawing.text(first + cell * 4.9, 186, "asks for 3", anchor="start", role="query")
    drawing.text(first + cell * 5.5, 254, "the value is copied", role="value")
    return drawing.finish(
        "Compartments of a vector",
        "Three memory vectors for a, b and c, each with a compartment for the word, "
        "one for the position and an empty one for the answer. The target vector of "
        "position 1 asks for position 3, and the word compartment of c is copied to "
        "its answer compartment.",
    )


# What a stack is depends on its mask.


def depends_on(mask: Tensor) -> Tensor:
    """Which inputs a fresh stack's states depend on: (states, inputs)."""
    torch.manual_seed(0)
    stack = OneStack(TINY).double()
    tokens = torch.arange(2, 2 + len(mask))[None]
    x = stack.positions(stack.embedding(tokens)).detach().requires_grad_()
    states, _ = stack.layers(x, mask)
    rows = []
    for state in states[0]:
        # Weighted: after a LayerNorm the plain sum of squares is constant.
        loss = state.square().mul(torch.arange(len(state))).sum()
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        rows.append(gradient[0].abs().sum(dim=-1) > 0)
    return torch.stack(rows)


def one_stack_three_models(length: int = 5) -> Svg:
    """What each output depends on, for three masks."""
    masks = {
        "no mask": (torch.ones(length, length, dtype=torch.bool), "BERT"),
        "causal": (causal_mask(length), "GPT"),
        "prefix of two": (prefix_mask(2, length - 2), "prefix model"),
    }
    drawing = Diagram(360, 176)
    for number, (name, (mask, known)) in enumerate(masks.items()):
        x = 62 + 118 * number
        drawing.text(x, 14, name, bold=True)
        table = depends_on(mask).float()
        drawing.grid(x, 86, table, cell=22, tall=22, digits=None, limit=1.2)
        drawing.text(x, 164, known, italic=True)
    return drawing.finish(
        "One stack, three models",
        "Three maps of five outputs and five inputs. Without a mask each output "
        "depends on all inputs. With a causal mask, on those up to itself. With a "
        "prefix of two, on the first two and on those up to itself.",
    )


# Three ways to get it wrong.


def _states(model: Transformer, source: Tensor) -> list[Tensor]:
    """What each encoder layer gives."""
    x, mask = model.source_positions(model.embedding("source")(source)), source != 0
    states = []
    for layer in model.encoder.layers:
        x, _ = layer(x, mask[:, None, None])
        states.append(x)
    return states


def _decoded(
    model: Transformer, target: Tensor, memories: Sequence[Tensor], mask: Tensor | None
) -> Tensor:
    """The scores if each decoder layer is given a memory of its own."""
    y = model.target_positions(model.embedding("target")(target))
    causal = causal_mask(target.size(1))
    for layer, memory in zip(model.decoder.layers, memories, strict=True):
        y, *_ = layer(y, memory, causal, mask)
    return model.logits(y)


@torch.no_grad()
def wrong_readings(layers: int = 2) -> pd.DataFrame:
    """Two mistakes that raise no error, and a right one beside them."""
    torch.manual_seed(0)
    model = Transformer(TINY).double().eval()
    x, y = torch.randint(2, 12, (1, 5)), torch.randint(2, 12, (1, 4))
    padded = F.pad(x, (0, 3))
    right, last = model(x, y), [_states(model, padded)[-1]] * layers
    found = {
        "layer i reads encoder layer i": _decoded(model, y, _states(model, x), None),
        "padding, and its mask": _decoded(model, y, last, padding_mask(padded, 0)),
        "padding, no mask in cross-attention": _decoded(model, y, last, None),
    }
    changes = {
        what: f"{(got - right).abs().max().item():.1g}" for what, got in found.items()
    }
    return pd.DataFrame({"largest change of a score": changes})


@torch.no_grad()
def queries_from_the_memory(source_length: int, target_length: int) -> str:
    """Cross-attention with its inputs exchanged: an error, or none."""
    layer = Transformer(TINY).decoder.layers[0]
    z, y = torch.randn(1, source_length, 32), torch.randn(1, target_length, 32)
    update, _ = layer.cross_attention(z, y, y)
    try:
        layer.cross_attention_residual(y, lambda _: (update, None))
    except RuntimeError:
        return "stops with an error"
    return "runs, and is wrong"
