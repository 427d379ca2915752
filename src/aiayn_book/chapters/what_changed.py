"""Chapter 21, what changed: the parts that later models exchanged, and what each gains.

Not in the paper: RMSNorm, gated feed-forward layers, rotary positions, shared keys,
attention by tiles, a single stack, and Muon. Each class says whose idea it was.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice, pairwise, product
from operator import attrgetter
from statistics import fmean
from typing import Any

import altair as alt
import pandas as pd
import torch
from pandas.io.formats.style import Styler
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from aiayn import (
    EncoderLayer,
    MultiHeadAttention,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    causal_mask,
    fast,
    padding_mask,
    scaled_dot_product_attention,
    shift_right,
    sinusoidal_positional_encoding,
)
from aiayn.data.grammar import generate
from aiayn.model import (
    KVCache,
    NoPositionalEncoding,
    PositionwiseFeedForward,
    ResidualNorm,
    split_heads,
)
from aiayn.training import TrainingConfig
from aiayn_book.colours import KEY, NEUTRAL, QUERY, WEIGHT, css_colour
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.power import mean_and_error, smallest_effect
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

# The parts that later models exchanged, and one function that exchanges them.

SIZES = {
    "d_model": 64,
    "d_ff": 128,
    "num_heads": 4,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.0,
}
ONE_STACK = {"num_encoder_layers": 5, "num_decoder_layers": 0}
"""As many weights in one stack as in two of two layers, if d_ff is twice d_model."""
PAD, BOS, EOS = range(3)


class RMSNorm(nn.Module):
    """Divides by the root of the mean square. Zhang and Sennrich (2019)."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """The same direction, with a mean square of 1, times the gain."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        scale = (mean_square + self.eps).rsqrt()
        return x * scale * self.gain


class GatedFeedForward(nn.Module):
    """A linear map whose output another linear map gates. Shazeer (2020): SwiGLU."""

    def __init__(
        self,
        d_model: int,
        width: int,
        activation: Callable[[Tensor], Tensor] = F.silu,
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, width, bias=False)
        self.value = nn.Linear(d_model, width, bias=False)
        self.outer = nn.Linear(width, d_model, bias=False)
        self.activation = activation
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor) -> Tensor:
        """Gate times value, at every position."""
        gate = self.activation(self.gate(x))
        hidden = gate * self.value(x)  # (..., width)
        return self.outer(hidden)


def turn(x: Tensor, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Rotate each pair of neighbouring numbers by its position's angle."""
    pairs = x.unflatten(-1, (-1, 2))
    first, second = pairs.unbind(-1)  # (..., length, d_k / 2)
    number = torch.arange(first.size(-1), dtype=torch.float64)
    speed = base ** (-number / len(number))
    position = torch.arange(start, start + x.size(-2))
    angle = position[:, None] * speed  # (length, d_k / 2)
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    turned = [first * cos - second * sin, first * sin + second * cos]
    return torch.stack(turned, dim=-1).flatten(-2)


class Rotary(MultiHeadAttention):
    """Queries and keys are rotated before they meet. Su and others (2021)."""

    def attention(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As in every attention, after the rotation."""
        start = keys.size(2) - queries.size(2)  # with a cache
        queries, keys = turn(queries, start), turn(keys)
        rest = values, mask, need_weights
        return super().attention(queries, keys, *rest)


class Grouped(MultiHeadAttention):
    """Several query heads share a key and a value head. Ainslie and others (2023)."""

    def __init__(self, d_model: int, num_heads: int, groups: int = 1) -> None:
        super().__init__(d_model, num_heads)
        self.groups, width = groups, groups * self.d_k
        self.key_projection = nn.Linear(d_model, width, bias=False)
        self.value_projection = nn.Linear(d_model, width, bias=False)
        for projection in (self.key_projection, self.value_projection):
            nn.init.xavier_uniform_(projection.weight)

    def project_kv(
        self, key: Tensor | None, value: Tensor | None, cache: KVCache | None = None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the groups; only these are cached."""
        if key is None:
            return cache.keys, cache.values
        keys = split_heads(self.key_projection(key), self.groups)
        values = split_heads(self.value_projection(value), self.groups)
        return (keys, values) if cache is None else cache.append(keys, values)

    def attention(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As in every attention, with each group's keys and values repeated."""
        share = self.num_heads // self.groups
        keys = keys.repeat_interleave(share, dim=1)
        values = values.repeat_interleave(share, dim=1)
        return super().attention(queries, keys, values, mask, need_weights)


class RotaryGrouped(Rotary, Grouped):
    """Rotated queries and keys, the latter shared."""


class DecoderOnly(Transformer):
    """Source and target are one sequence, in one stack. Liu and others (2018)."""

    def decoder_hidden(self, source: Tensor, target: Tensor) -> Tensor:
        """The states at the target's positions."""
        tokens = torch.cat([source, target], dim=1)
        embed = self.embedding("target")
        x = self.target_positions(embed(tokens))
        length = tokens.size(1)
        mask = causal_mask(length) & padding_mask(tokens, 0)
        x, _ = self.encoder(self.dropout(x), mask)
        return x[:, source.size(1) :]


def exchange(
    model: nn.Module, old: type, new: Callable[[Any], nn.Module], where: str = ""
) -> nn.Module:
    """Replace every part of one class, if `where` stands in its name."""
    for parent in list(model.modules()):
        for name, part in list(parent.named_children()):
            if type(part) is old and where in name:
                setattr(parent, name, new(part))
    return model


def parameters(model: nn.Module) -> int:
    """How many numbers training moves."""
    return sum(p.numel() for p in model.parameters())


def paper(**changes: Any) -> Transformer:
    """The paper's model, small."""
    return Transformer(TransformerConfig(**(SIZES | changes)))


def single(**changes: Any) -> DecoderOnly:
    """One stack with as many weights."""
    return DecoderOnly(TransformerConfig(**(SIZES | ONE_STACK | changes)))


def with_rms(model: nn.Module) -> nn.Module:
    """RMSNorm for every LayerNorm."""
    return exchange(model, nn.LayerNorm, lambda old: RMSNorm(*old.weight.shape))


def with_gates(model: nn.Module) -> nn.Module:
    """SwiGLU of two thirds of the width for every feed-forward layer."""

    def new(old: PositionwiseFeedForward) -> GatedFeedForward:
        width = round(old.inner.out_features * 2 / 3)
        return GatedFeedForward(old.inner.in_features, width)

    return exchange(model, PositionwiseFeedForward, new)


def with_attention(
    model: nn.Module, kind: type[MultiHeadAttention], where: str = "", **options: int
) -> nn.Module:
    """Another attention, with fresh weights, for every one of the paper's."""

    def new(old: MultiHeadAttention) -> MultiHeadAttention:
        return kind(old.query_projection.in_features, old.num_heads, **options)

    return exchange(model, MultiHeadAttention, new, where)


def with_rotary(
    model: nn.Module, kind: type[MultiHeadAttention] = Rotary, **options: int
) -> nn.Module:
    """Rotated self-attention, and nothing is added to the embeddings any more."""
    with_attention(model, kind, "self_attention", **options)
    old, new = SinusoidalPositionalEncoding, NoPositionalEncoding
    return exchange(model, old, lambda _: new())


def _modern(**vocabulary: int) -> nn.Module:
    model = single(norm="pre", d_ff=160, **vocabulary)
    return with_gates(with_rms(with_rotary(model, RotaryGrouped, groups=2)))


VARIANTS: dict[str, Callable[..., nn.Module]] = {
    "the paper": paper,
    "pre-norm": lambda **v: paper(norm="pre", **v),
    "RMSNorm": lambda **v: with_rms(paper(**v)),
    "SwiGLU": lambda **v: with_gates(paper(**v)),
    "rotary": lambda **v: with_rotary(paper(**v)),
    "2 key heads": lambda **v: with_attention(paper(d_ff=176, **v), Grouped, groups=2),
    "1 key head": lambda **v: with_attention(paper(d_ff=200, **v), Grouped, groups=1),
    "decoder only": single,
    "all together": _modern,
}
"""The paper's model and eight others of nearly its size, by name."""


def sizes() -> dict[str, int]:
    """The parameters of each variant."""
    words = len(sentences().vocabulary)
    return {name: parameters(new(vocab_size=words)) for name, new in VARIANTS.items()}


# Train them all.

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Sentences:
    """Short sentences of the book's grammar, with their translations, as numbers."""

    vocabulary: list[str]
    training: list[Batch]
    held_out: list[Batch]
    example: tuple[str, str]


@cache
def sentences(drawn: int = 60_000, common: int = 300, held_out: int = 300) -> Sentences:
    """Sentences of at most seven frequent words, in batches of one source length."""
    found = [
        sample
        for sample in generate(drawn, seed=21)
        if sample.kind == "simple" and len(sample.source_tokens) <= 7
    ]
    uses = Counter(w.lower() for s in found for w in s.source_tokens)
    frequent = {word for word, _ in uses.most_common(common)}
    found = [s for s in found if frequent.issuperset(map(str.lower, s.source_tokens))]
    words = {w for s in found for w in s.source_tokens + s.target_tokens}
    vocabulary = ["<pad>", "<s>", "</s>", *sorted(words)]
    number = {word: i for i, word in enumerate(vocabulary)}

    def encode(words: Sequence[str]) -> Tensor:
        return torch.tensor([*(number[word] for word in words), EOS])

    def batches(samples: list[Any], size: int) -> list[Batch]:
        lengths = attrgetter("source_tokens"), attrgetter("target_tokens")
        ordered = sorted(samples, key=lambda s: [len(side(s)) for side in lengths])
        result = []
        for _, group in groupby(ordered, lambda s: len(s.source_tokens)):
            for part in batched(group, size):
                sides = [[encode(side(s)) for s in part] for side in lengths]
                source, target = (pad_sequence(s, batch_first=True) for s in sides)
                result.append((source, target))
        return result

    return Sentences(
        vocabulary,
        batches(found[held_out:], 16),
        batches(found[:held_out], held_out),
        (found[0].source, found[0].target),
    )


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items; the last may be shorter."""
    items = iter(items)
    while part := list(islice(items, size)):
        yield part


def _loss_sum(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    logits = model(source, shift_right(target, BOS)).flatten(0, 1)
    return F.cross_entropy(logits, target.flatten(), ignore_index=PAD, reduction="sum")


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Nats a token, on sentences that no training shows."""
    pairs = sentences().held_out
    total = sum(_loss_sum(model, *pair).item() for pair in pairs)
    return total / sum(int((target != PAD).sum()) for _, target in pairs)


def train(
    name: str, seed: int, rate: float = 4e-3, steps: int = 800, every: int = 100
) -> list[tuple[int, float]]:
    """Train a variant, on the batches that all of a seed get; (step, held-out loss)."""
    words = sentences()
    draw = random.Random(seed)  # the same batches for every variant
    checks = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = fast.accelerate(VARIANTS[name](vocab_size=len(words.vocabulary)))
        optimizer = torch.optim.Adam(model.parameters(), rate, (0.9, 0.98), fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, rate, steps, pct_start=0.2, cycle_momentum=False
        )
        for step in range(1, steps + 1):
            source, target = draw.choice(words.training)
            loss = _loss_sum(model, source, target) / (target != PAD).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % every == 0:
                checks.append((step, held_out_loss(model)))
    return checks


# The two blocks, side by side.

_PITCH, _CENTRE, _LANE, _NOTES = 160, 112, 26, 190


def blocks() -> list[Svg]:
    """The block of 2017 and the block of today, with numbers where they differ."""
    old = _block(
        "2017",
        pre=False,
        norm=("LayerNorm", [(1, "after the sum"), (2, "subtracts the mean")]),
        attention=("Self-attention", [(4, "one key for each"), (0, "query head")]),
        network=("Feed-forward", [(5, "ReLU")]),
        position=[(3, "adds positions once")],
        stacks=[(6, "two stacks: encoder"), (0, "and decoder")],
    )
    new = _block(
        "today",
        pre=True,
        norm=("RMSNorm", [(1, "before a sub-layer"), (2, "and only divides")]),
        attention=(
            "Causal self-\nattention",
            [(3, "rotates q and k"), (4, "shares keys")],
        ),
        network=("Feed-forward", [(5, "gated: SwiGLU")]),
        position=[],
        stacks=[(6, "one stack")],
    )
    return [old, new]


def _block(
    year: str,
    *,
    pre: bool,
    norm: tuple[str, list[tuple[int, str]]],
    attention: tuple[str, list[tuple[int, str]]],
    network: tuple[str, list[tuple[int, str]]],
    position: list[tuple[int, str]],
    stacks: list[tuple[int, str]],
) -> Svg:
    """One block from the bottom up; what differs between the two has a number."""
    height, x = 2 * _PITCH + 190, _CENTRE
    drawing = Diagram(338, height)
    drawing.text(6, 14, year, anchor="start", bold=True)
    drawing.text(x, height - 14, "tokens")
    drawing.arrow((x, height - 24), (x, height - 38))
    drawing.box(x, height - 53, "Embedding", width=116)
    base = height - 112  # where the block begins
    drawing.arrow((x, height - 68), (x, base + 4), head=False)
    _notes(drawing, height - 53, stacks)
    if position:
        drawing.plus(x, height - 88)
        _notes(drawing, height - 88, position)
        drawing.arrow((_NOTES - 12, height - 88), (x + 9, height - 88))
    drawing.frame(8, base - 2 * _PITCH - 6, 204 - 30, 2 * _PITCH + 12)
    for level, (label, notes) in enumerate((attention, network)):
        split = base - _PITCH * level
        box, plus = split - (76 if pre else 40), split - (118 if pre else 82)
        norms = split - (32 if pre else 116)
        below = norms + 13 if pre else box + 22
        drawing.arrow((x, split + 4), (x, below))
        role = "value" if level else "weight"
        drawing.box(x, box, label, width=116, height=44, role=role)
        drawing.arrow((x, box - 22), (x, plus + 9))
        drawing.plus(x, plus)
        drawing.arrow(
            (x, split), (_LANE, split), (_LANE, plus), (x - 9, plus), width=2.4
        )
        if not pre:
            drawing.arrow((x, plus - 9), (x, norms + 13))
        above = plus - 9 if pre else norms - 13
        drawing.arrow((x, above), (x, split - _PITCH + 4), head=False)
        drawing.box(x, norms, norm[0], width=116, height=26)
        if pre:
            drawing.arrow((x, norms - 13), (x, box + 22))
        _notes(drawing, norms, norm[1])
        _notes(drawing, box, notes)
    top = base - 2 * _PITCH
    drawing.arrow((x, top + 4), (x, top - 26))
    drawing.text(x + 12, top - 18, "to the next block", anchor="start")
    changed = [words for _, words in (*norm[1], *attention[1], *network[1], *position)]
    return drawing.finish(
        f"The block of {year}",
        f"From the bottom up: embedding, {'' if pre else 'plus positions, '}then "
        f"attention and a feed-forward layer, each with a residual arrow around it and "
        f"{'an RMSNorm before' if pre else 'a LayerNorm after'} it. Marked: "
        f"{'; '.join(changed)}; {' '.join(words for _, words in stacks)}.",
    )


def _notes(drawing: Diagram, y: float, notes: list[tuple[int, str]]) -> None:
    """Numbered words to the right of a part."""
    for line, (number, words) in enumerate(notes):
        down = y + 20 * (line - (len(notes) - 1) / 2)
        if number:
            _disc(drawing, _NOTES, down, number)
        drawing.text(_NOTES + 13, down, words, anchor="start", role="alert")


def _disc(drawing: Diagram, x: float, y: float, number: int) -> None:
    """A number in a circle."""
    drawing.parts.append(
        f'<circle cx="{x:g}" cy="{y:g}" r="9" style="fill: none; '
        f'stroke: {css_colour("alert")}; stroke-width: 1.5"/>'
    )
    drawing.text(x, y, str(number), role="alert")


# Remove one part at a time: what a machine without it cannot learn.

LETTERS, DIGITS, START = 8, 7, 1
"""Letters are the tokens from 2 on, the two digits those from 10 and from 17 on."""
SKILLS = {"fetch": [0], "reverse": [1, 2, 3, 4], "add": [5]}
"""Which positions of the target ask for what."""
REMOVED = (
    "nothing",
    "feed-forward",
    "residuals",
    "norms",
    "positions",
    "cross-attention",
)


def draw_sums(count: int, generator: torch.Generator | None = None) -> Batch:
    """Four letters and two digits; fetch a digit, reverse the letters, add modulo 7."""

    def draw(tokens: int, width: int) -> Tensor:
        return torch.randint(tokens, (count, width), generator=generator)

    letters, p, q = draw(LETTERS, 4) + 2, draw(DIGITS, 1), draw(DIGITS, 1)
    source = torch.cat([letters, 10 + p, 17 + q], dim=1)
    answers = 10 + p, letters.flip(1), 10 + (p + q) % DIGITS
    return source, torch.cat(answers, dim=1)


class Silent(nn.Module):
    """A sub-layer whose update is zero."""

    def forward(self, x: Tensor, *rest: Any) -> Any:
        """Zeros, and no weights where an attention was."""
        nothing = torch.zeros_like(x)
        return (nothing, None) if rest else nothing


class NoResidual(nn.Module):
    """Only the sub-layer's output goes on."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Any]) -> Any:
        """As in `ResidualNorm`, without the sum."""
        update, weights = sublayer(x)
        return self.norm(update), weights


def remove(model: nn.Module, part: str) -> nn.Module:
    """Put something in a part's place that does nothing."""
    if part == "feed-forward":
        exchange(model, PositionwiseFeedForward, lambda _: Silent())
    if part == "residuals":
        exchange(model, ResidualNorm, lambda old: NoResidual(old.norm))
    if part == "norms":
        exchange(model, nn.LayerNorm, lambda _: nn.Identity())
    if part == "positions":
        exchange(model, SinusoidalPositionalEncoding, lambda _: NoPositionalEncoding())
    if part == "cross-attention":
        exchange(model, MultiHeadAttention, lambda _: Silent(), "cross_attention")
    return model


def learn_without(part: str, seed: int, steps: int = 300) -> dict[str, float]:
    """The share of right answers, by skill, of a model trained without a part."""
    sizes = SIZES | {"d_model": 32, "d_ff": 64}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1, "vocab_size": 24}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = remove(Transformer(TransformerConfig(**sizes)), part)
        fast.accelerate(model)
        adam = torch.optim.Adam(model.parameters(), 1e-2, fused=True)
        for step in range(steps):
            rate = 1e-2 * min(1, (step + 1) / 30) * (1 - step / steps)
            adam.param_groups[0]["lr"] = rate
            source, target = draw_sums(32)
            logits = model(source, shift_right(target, START))
            adam.zero_grad()
            F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
            adam.step()
        source, target = draw_sums(500, torch.Generator().manual_seed(10))
        with torch.no_grad():
            answer = model(source, shift_right(target, START)).argmax(dim=-1)
    hits = (answer == target).float()
    return {skill: hits[:, at].mean().item() for skill, at in SKILLS.items()}


@cache
def without(seeds: int = 3) -> dict[str, dict[str, list[float]]]:
    """Shares of right answers by removed part and skill, one for each seed."""
    found = {part: [learn_without(part, s) for s in range(seeds)] for part in REMOVED}
    return {
        part: {skill: [run[skill] for run in runs] for skill in SKILLS}
        for part, runs in found.items()
    }


def by_striking_off() -> float:
    """Reverse without positions, by the letters that are left: the best there is."""
    total = 0.0
    for letters in product(range(LETTERS), repeat=4):
        left = [max(Counter(letters[i:]).values()) / (4 - i) for i in range(4)]
        total += sum(left) / 4
    return total / LETTERS**4


def without_map(found: Mapping[str, Mapping[str, Sequence[float]]]) -> Svg:
    """Rows are what was removed, columns the skills; a cell is the mean of seeds."""
    drawing = Diagram(350, 250)
    table = [[fmean(found[part][skill]) for skill in SKILLS] for part in REMOVED]
    rows = ["nothing removed", *(f"no {part}" for part in REMOVED[1:])]
    drawing.grid(240, 136, table, cell=68, tall=34, rows=rows, columns=list(SKILLS))
    return drawing.finish(
        "Which part for which skill",
        "A table of shares of right answers. "
        + "; ".join(
            f"{row}: "
            + ", ".join(f"{s} {v:.2f}" for s, v in zip(SKILLS, line, strict=True))
            for row, line in zip(rows, table, strict=True)
        )
        + ".",
    )


# Positions that rotate.


def scores_at_offset(offset: int, positions: int = 1000) -> dict[str, float]:
    """How far the scores of two words at one distance lie apart, over all positions."""
    generator = torch.Generator().manual_seed(3)
    words = torch.randn(2, 1, 64, generator=generator, dtype=torch.float64)
    q, k = words.expand(2, positions, 64)
    p = sinusoidal_positional_encoding(positions, 64).double()
    apart = {}
    for name, (query, key) in {
        "rotated": (turn(q), turn(k)),
        "added": (q + p, k + p),
    }.items():
        scores = (query[offset:] * key[:-offset]).sum(dim=-1)
        apart[name] = (scores.max() - scores.min()).item()
    return apart


DEGREES, OF_QUERY, OF_KEY = 30, 20, 80
"""What one position turns in the chart, and where query and key point at first."""


def turning_arrows() -> alt.HConcatChart:
    """A query and a key as arrows, and their score by position; two sliders."""
    at = {"scale": alt.Scale(domain=[-1.5, 1.5]), "axis": None}

    def arrow(words: str, degrees: str, colour: str, dash: list[int], dy: int) -> Any:
        end = alt.Chart(alt.Data(values=[{"label": words}])).transform_calculate(
            x=f"cos(({degrees}) * PI / 180)",
            y=f"sin(({degrees}) * PI / 180)",
            far_x="datum.x * 1.3",
            far_y="datum.y * 1.3",
        )
        line = end.mark_rule(color=colour, strokeWidth=4, strokeDash=dash)
        text = end.mark_text(fontStyle="italic", dy=dy)
        return line.encode(
            x=alt.X("x:Q", **at),
            y=alt.Y("y:Q", **at),
            x2=alt.datum(0),
            y2=alt.datum(0),
        ) + text.encode(
            x=alt.X("far_x:Q", **at), y=alt.Y("far_y:Q", **at), text="label:N"
        )

    def slider(name: str, words: str, value: int, low: int, high: int) -> Any:
        bind = alt.binding_range(min=low, max=high, step=1, name=words)
        return alt.param(name=name, value=value, bind=bind)

    rim = (
        alt.Chart(alt.sequence(0, 361, 10, as_="angle"))
        .transform_calculate(
            x="cos(datum.angle * PI / 180)", y="sin(datum.angle * PI / 180)"
        )
        .mark_line(color=NEUTRAL.mark, strokeWidth=1)
        .encode(x=alt.X("x:Q", **at), y=alt.Y("y:Q", **at), order="angle:Q")
    )
    of_key = f"{OF_KEY} + position * {DEGREES}"
    of_query = f"{OF_QUERY} + (position + offset) * {DEGREES}"
    arrows = rim + arrow("key", of_key, KEY.mark, [1, 0], dy=0)
    arrows += arrow("query", of_query, QUERY.mark, [7, 6], dy=0)
    query_at, key_at = f"(datum.n + offset) * {DEGREES}", f"datum.n * {DEGREES}"
    added = [  # the four terms; the paper's layout has the sine first
        f"cos({OF_QUERY - OF_KEY} * PI / 180)",
        f"sin(({OF_QUERY} * PI / 180) + ({key_at}) * PI / 180)",
        f"sin(({OF_KEY} * PI / 180) + ({query_at}) * PI / 180)",
        f"cos(offset * {DEGREES} * PI / 180)",
    ]
    both = (
        alt.Chart(alt.Data(values=[{"n": n} for n in range(13)]))
        .transform_calculate(
            rotated=f"cos(({OF_QUERY - OF_KEY} + offset * {DEGREES}) * PI / 180)",
            added=" + ".join(added),
        )
        .transform_fold(["rotated", "added"], as_=["positions", "score"])
    )
    names = ["rotated", "added"]
    colours = alt.Scale(domain=names, range=[WEIGHT.mark, NEUTRAL.mark])
    dashes = alt.Scale(domain=names, range=[[1, 0], [4, 3]])
    colour = alt.Color("positions:N", scale=colours, title=None)
    x = alt.X("n:Q", title="position of the key")
    y = alt.Y("score:Q", scale=alt.Scale(domain=[-4, 4]))
    lines = both.mark_line().encode(
        x=x,
        y=y,
        color=colour,
        strokeDash=alt.StrokeDash("positions:N", scale=dashes, title=None),
    )
    here = both.transform_filter("datum.n == position")
    dots = here.mark_circle(size=110, opacity=1).encode(x=x, y=y, color=colour)
    values = (
        here.transform_filter("datum.positions == 'rotated'")
        .mark_text(dy=18)
        .encode(x=x, y=y, text=alt.Text("score:Q", format=".2f"))
    )
    return (
        alt.hconcat(
            arrows.properties(width=120, height=130),
            (lines + dots + values).properties(width=140, height=140),
            spacing=6,
        )
        .add_params(
            slider("position", "Position of the key", 3, 0, 12),
            slider("offset", "Query: positions after the key", 1, -6, 6),
        )
        .properties(
            description="Left: a query and a key as arrows. Right: their score over "
            "the position of the key, at a fixed offset. Where arrows are rotated the "
            "line is flat; where sinusoids are added it swings.",
        )
    )


class LookBack(nn.Module):
    """One encoder layer without a mask, to name the token one position back."""

    def __init__(self, tokens: int = 20) -> None:
        super().__init__()
        config = TransformerConfig(**(SIZES | {"num_heads": 2}))
        self.embed = nn.Embedding(tokens, 64)
        self.positions = SinusoidalPositionalEncoding(64)
        self.layer = EncoderLayer(config)
        self.out = nn.Linear(64, tokens)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores at each position."""
        return self.out(self.layer(self.positions(self.embed(tokens)))[0])


ASKED = torch.arange(64) % 4 != 3
"""Training asks at all positions but 3, 7, 11, …"""


def look_back(rotary: bool, seed: int, steps: int = 250) -> dict[int, Tensor]:
    """Train at lengths 8 to 16; right answers at positions 1, 2, … of 16 and of 64."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = with_rotary(LookBack()) if rotary else LookBack()
        optimizer = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
        for _ in range(steps):
            length = int(torch.randint(8, 17, ()))
            tokens = torch.randint(20, (32, length))
            at = torch.arange(1, length)[ASKED[1:length]]
            scores = model(tokens)[:, at].flatten(0, 1)
            optimizer.zero_grad()
            F.cross_entropy(scores, tokens[:, at - 1].flatten()).backward()
            optimizer.step()
        right = {}
        for length in (16, 64):
            tokens = torch.randint(20, (200, length))
            with torch.no_grad():
                answer = model(tokens).argmax(dim=-1)
            right[length] = (answer[:, 1:] == tokens[:, :-1]).float().mean(dim=0)
    return right


@cache
def look_backs(seeds: int = 3) -> dict[str, list[dict[int, Tensor]]]:
    """All runs, by the kind of positions."""
    ways = {"sinusoids": False, "rotary": True}
    return {n: [look_back(way, s) for s in range(seeds)] for n, way in ways.items()}


def looked_back() -> dict[str, dict[str, list[float]]]:
    """Shares of right answers where training asked, where it did not, and beyond."""
    asked = ASKED[1:16]
    return {
        name: {
            "asked": [run[16][asked].mean().item() for run in runs],
            "never asked": [run[16][~asked].mean().item() for run in runs],
            "beyond": [run[64][15:].mean().item() for run in runs],
        }
        for name, runs in look_backs().items()
    }


def look_back_chart() -> alt.LayerChart:
    """Right answers at each position of sequences of 64 tokens."""
    rows = [
        {"position": at, "right": share, "positions": name, "seed": seed}
        for name, runs in look_backs().items()
        for seed, run in enumerate(runs)
        for at, share in enumerate(run[64].tolist(), start=1)
    ]
    return curves(
        rows,
        "position",
        "right",
        "positions",
        description="Share of right answers at each position of sequences of 64 "
        "tokens, three seeds each. Both are mostly right up to about position 10. "
        "Beyond 15 the curve of sinusoids lies near the bottom, that of rotary "
        "positions far above it.",
    )


# Recorded: German captions with sinusoids and with rotary positions.

FALLING = 4000
"""From this step on the learning rates of the two recipes differ."""
_CAPTIONS = {
    "sinusoids": ("multi30k-en-de", (1, 2, 3)),
    "rotary": ("multi30k-en-de-rotary", (1, 2, 3, 4)),
}


@dataclass(frozen=True)
class Captions:
    """Seven recorded trainings, three with sinusoids and four with rotary positions."""

    history: pd.DataFrame
    """A row for each check: positions, seed, step, nats a token."""
    lead: dict[int, float]
    """By how many nats the mean of the rotary runs is ahead, by step."""
    ahead: tuple[int, int]
    """At how many checks every rotary run was ahead of every other, and of how many."""
    bleu: dict[str, list[float]]
    """Scores on the test set of 2016."""
    steps: dict[str, int]
    """How long each was trained."""
    differ: set[str]
    """The settings in which they differ."""


@cache
def captions() -> Captions:
    """What the records say."""
    points, chosen, bleu, steps = [], {}, {}, {}
    for way, (name, seeds) in _CAPTIONS.items():
        runs = [load_record(f"{name}-{seed}") for seed in seeds]
        config = TrainingConfig.from_dict(runs[0]["config"]).as_dict()
        chosen[way] = config | config.pop("model")
        steps[way] = config["steps"]
        bleu[way] = [run["test"]["bleu"] for run in runs]
        points += [
            [way, run["config"]["seed"], check["step"], check["loss"]]
            for run in runs
            for check in run["log"]
            if check["event"] == "validation"
        ]
    history = pd.DataFrame(points, columns=["positions", "seed", "step", "loss"])
    both = history.pivot_table(
        index="step", columns="positions", values="loss", aggfunc=list
    ).dropna()
    apart = both["rotary"].map(max) < both["sinusoids"].map(min)
    lead = both["sinusoids"].map(fmean) - both["rotary"].map(fmean)
    one, other = chosen.values()
    differ = {name for name in one if one[name] != other[name]} - {"output"}
    return Captions(
        history,
        {int(step): float(nats) for step, nats in lead.items()},
        (int(apart.sum()), len(apart)),
        bleu,
        steps,
        differ,
    )


def captions_chart() -> alt.LayerChart:
    """Validation loss from step 1,500 on."""
    history = captions().history
    history = history[history["step"] >= 1500]
    return curves(
        history.rename(columns={"loss": "nats a token"}),
        "step",
        "nats a token",
        "positions",
        description="Loss on the validation captions of Multi30k from step 1,500 on, "
        "three or four seeds. Both fall; at every step at which both were checked, "
        "every rotary run lies below every run with sinusoids.",
    )


# Shared keys: who shares with whom, and what the cache takes.


def cache_bytes(
    layers: int, key_heads: int, d_k: int, tokens: int, a_number: int = 2
) -> int:
    """Keys and values of so many tokens, at two bytes a number."""
    return layers * 2 * key_heads * d_k * tokens * a_number


# Attention by tiles: what is ever held.


def tiled_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    tile: int = 64,
) -> Tensor:
    """Equation (1), a tile of keys at a time. Dao and others (2022)."""
    shape = (*query.shape[:-1], 1)  # (..., queries, 1)
    largest = query.new_full(shape, -1e30)
    total = context = query.new_zeros(shape)
    query = query / query.size(-1) ** 0.5
    for start in range(0, key.size(-2), tile):
        now = slice(start, start + tile)
        scores = query @ key[..., now, :].mT  # (..., tile)
        if mask is not None:
            scores.masked_fill_(~mask[..., now], -torch.inf)
        new = largest.maximum(scores.amax(-1, keepdim=True))
        shrink = (largest - new).exp()
        weights = (scores - new).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        part = weights @ value[..., now, :]
        context = context * shrink + part  # (..., d_v)
        largest = new
    return context / total.clamp(min=1e-30)  # zeros: saw none


class _Largest(TorchDispatchMode):
    """Watches how large a tensor ever is."""

    most = 0  # bytes

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for part in output if isinstance(output, tuple) else [output]:
            if isinstance(part, torch.Tensor):
                self.most = max(self.most, part.untyped_storage().nbytes())
        return output


def kept_for_backward(attend: Callable[..., Any], *inputs: Tensor) -> int:
    """Bytes that autograd keeps for the backward pass, each storage once."""
    kept = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # held, so none is reused
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        attend(*(x.requires_grad_() for x in inputs))
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def _again(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keeps the inputs only; the backward pass computes the tiles once more."""
    return checkpoint(tiled_attention, q, k, v, use_reentrant=False)


ATTENTIONS: dict[str, Callable[..., Any]] = {
    "equation (1)": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
    "tiles": tiled_attention,
    "tiles, computed twice": _again,
    "PyTorch, fused": F.scaled_dot_product_attention,
}


@cache
def memory() -> pd.DataFrame:
    """MiB of one head of width 64: the largest tensor, and what training keeps."""
    rows = []
    for name, attend in ATTENTIONS.items():
        for n in (512, 1024, 2048):
            qkv = [torch.randn(1, 1, n, 64) for _ in range(3)]
            with torch.no_grad(), _Largest() as largest:
                attend(*qkv)
            kept = kept_for_backward(attend, *qkv)
            rows.append([name, n, largest.most / 2**20, kept / 2**20])
    return pd.DataFrame(rows, columns=["attention", "tokens", "largest", "kept"])


def memory_chart() -> alt.LayerChart:
    """What training keeps, by length."""
    names = {"kept": "MiB kept for training"}
    return curves(
        memory().rename(columns=names),
        "tokens",
        "MiB kept for training",
        "attention",
        description="Memory that is kept for the backward pass, for 512, 1024 and 2048 "
        "tokens, on a logarithmic axis. Equation (1) and plain tiles grow fourfold "
        "with each doubling, and tiles lie above; tiles computed twice and PyTorch's "
        "fused kernel double and lie far below.",
        log_y=True,
    )


# What each change gained, from the record.


@dataclass(frozen=True)
class Gain:
    """A variant beside the paper's model, each at the better of two learning rates."""

    rate: float
    """Its better learning rate, by the first two seeds."""
    logs: dict[int, list[float]]
    """ln(its loss / the paper's loss), a number for each seed, by step."""
    by_rate: dict[float, list[float]]
    """Its loss at the end, a number for each seed, by learning rate."""

    def ratio(
        self, step: int = 800, seeds: int | None = None
    ) -> tuple[float, float, float]:
        """The loss as a multiple of the paper's; two standard errors below and above.

        The mean over the first so many seeds, or over all, is the geometric one.
        """
        mean, error = mean_and_error(self.logs[step][:seeds])
        low, high = mean - 2 * error, mean + 2 * error
        return math.exp(mean), math.exp(low), math.exp(high)

    def verdict(self, step: int = 800, seeds: int | None = None) -> str:
        """By the rule of two standard errors."""
        _, low, high = self.ratio(step, seeds)
        if low <= 1 <= high:
            return "within noise"
        return "better" if high < 1 else "worse"

    def detects(self, step: int = 800) -> float:
        """The smallest relative change that would mostly have been found."""
        _, error = mean_and_error(self.logs[step])
        return math.expm1(smallest_effect(error))


@cache
def gains() -> dict[str, Gain]:
    """By variant; the first two seeds choose the rate, at which all seeds count."""
    runs = pd.DataFrame(load_record("changes")["runs"])
    checks: dict[str, dict[float, list[dict[int, float]]]] = defaultdict(dict)
    for (name, rate), part in runs.groupby(["variant", "rate"], sort=False):
        checks[name][rate] = [dict(one) for one in part.sort_values("seed").validation]
    end = max(checks["the paper"][0.004][0])
    found, papers = {}, []
    for name, by_rate in checks.items():
        ends = {rate: [one[end] for one in seeds] for rate, seeds in by_rate.items()}
        first = {rate: fmean(losses[:2]) for rate, losses in ends.items()}
        rate = min(first, key=first.__getitem__)
        papers = papers or by_rate[rate]
        pairs = list(zip(by_rate[rate], papers, strict=True))
        logs = {
            step: [math.log(a[step] / b[step]) for a, b in pairs] for step in papers[0]
        }
        found[name] = Gain(rate, logs, ends)
    return found


def gains_chart(steps: Sequence[int] = (300, 800)) -> alt.LayerChart:
    """The loss as a multiple of the paper's: seeds, mean, and two standard errors."""
    dots, means = [], []
    for name, gain in gains().items():
        if name == "the paper":
            continue
        for step in steps:
            when = {"variant": name, "after": f"{step} steps"}
            ratio, low, high = gain.ratio(step)
            means.append(when | {"ratio": ratio, "low": low, "high": high})
            dots += [
                when | {"ratio": math.exp(one), "seed": seed}
                for seed, one in enumerate(gain.logs[step], start=1)
            ]
    names = [f"{step} steps" for step in steps]
    order = [name for name in gains() if name != "the paper"]
    y = alt.Y("variant:N", sort=order, title=None)
    shift = alt.YOffset("after:N", sort=names)
    colour = alt.Color(
        "after:N",
        title="after",
        scale=alt.Scale(domain=names, range=[NEUTRAL.mark, KEY.mark]),
    )
    scale = alt.Scale(type="log", domain=[0.55, 6])
    axis = alt.Axis(values=[0.6, 0.8, 1, 1.5, 2, 3, 4, 6])
    title = "loss, as a multiple of the paper's"
    x = alt.X("ratio:Q", title=title, scale=scale, axis=axis)
    line = alt.Chart(alt.Data(values=[{"ratio": 1}]))
    one = line.mark_rule(strokeDash=[4, 4], color=NEUTRAL.mark).encode(x=x)
    base = alt.Chart(alt.Data(values=dots)).encode(y=y, yOffset=shift, color=colour)
    whole = alt.Chart(alt.Data(values=means)).encode(y=y, yOffset=shift, color=colour)
    bars = whole.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
    )
    marks = whole.mark_tick(thickness=3, size=12).encode(x=x)
    points = base.mark_circle(size=28, opacity=0.55).encode(
        x=x, tooltip=["variant:N", "after:N", "seed:Q", "ratio:Q"]
    )
    return alt.LayerChart(layer=[one, bars, points, marks]).properties(
        width="container",
        height=38 * len(order),
        description="For each of eight variants, its loss as a multiple of the paper's "
        "after 300 and after 800 steps: a dot for each seed, a tick at the mean, a "
        "line of two standard errors on each side, and a dashed line at 1. Pre-norm "
        "and all changes together lie below 1; RMSNorm and SwiGLU lie around it, and "
        "so do rotary positions after 800 steps; shared keys and the single stack lie "
        "above.",
    )


def rates_chart() -> alt.LayerChart:
    """The loss at the end by variant, at both learning rates."""
    rows = [
        {"variant": name, "rate": f"{rate:.3f}", "loss": loss, "seed": seed}
        for name, gain in gains().items()
        for rate, losses in gain.by_rate.items()
        for seed, loss in enumerate(losses, start=1)
    ]
    names = list(dict.fromkeys(row["rate"] for row in rows))
    order = list(gains())
    ticks = [0.1, 0.2, 0.5, 1, 2, 5]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "loss:Q",
            title="loss at the end, nats a token",
            scale=alt.Scale(type="log", domain=[0.1, 5]),
            axis=alt.Axis(values=ticks),
        ),
        y=alt.Y("variant:N", sort=order, title=None),
        color=alt.Color(
            "rate:N",
            title="learning rate",
            scale=alt.Scale(domain=names, range=[KEY.mark, QUERY.mark]),
        ),
        shape=alt.Shape(
            "rate:N",
            title="learning rate",
            scale=alt.Scale(domain=names, range=["circle", "triangle-up"]),
        ),
        tooltip=["variant:N", "rate:N", "seed:Q", "loss:Q"],
    )
    marks = base.mark_point(filled=True, size=50, opacity=0.7)
    return alt.LayerChart(layer=[marks]).properties(
        width="container",
        height=34 * len(order),
        description="For the paper's model and eight variants, the loss at the end at "
        "two learning rates, of five seeds at the better one and of two at the other, "
        "on a logarithmic axis. At twice the rate the losses of most variants are "
        "several times as large; those of pre-norm and of all changes together hardly "
        "move.",
    )


_ELSEWHERE = {
    "pre-norm": (
        "one more norm on top",
        "deep stacks train without a warm-up (Xiong and others, 2020)",
    ),
    "RMSNorm": (
        "nothing; half of LayerNorm's parameters",
        "equal quality in less time (Zhang and Sennrich, 2019)",
    ),
    "SwiGLU": (
        "a third matrix, so a narrower layer",
        "a slightly lower loss at equal size (Shazeer, 2020)",
    ),
    "rotary": (
        "a rotation in every layer",
        "faster training (Su and others, 2021)",
    ),
    "2 key heads": (
        "half of the keys; half of the cache",
        "nearly the same quality, faster writing (Ainslie and others, 2023)",
    ),
    "1 key head": (
        "a quarter of the keys; a quarter of the cache",
        "a little quality for much faster writing (Shazeer, 2019)",
    ),
    "decoder only": (
        "the source is read from left to right",
        "one model for every task that is text (Radford and others, 2018)",
    ),
    "all together": (
        "all of the above, with 2 key heads",
        "the block of Llama 2 (Touvron and others, 2023)",
    ),
}
"""What each change costs, and what its authors reported."""


def one_table() -> Styler:
    """Change by change: cost, gain here, and what its authors reported."""
    rows = {}
    for name, (cost, elsewhere) in _ELSEWHERE.items():
        ratio, low, high = gains()[name].ratio()
        here = f"× {ratio:.2f} ({low:.2f} to {high:.2f}): {gains()[name].verdict()}"
        rows[name] = [cost, here, elsewhere]
    rows["attention by tiles"] = [
        "in training, scores computed twice",
        "the same numbers",
        "several times faster on a GPU (Dao and others, 2022)",
    ]
    rows["cache"] = [
        "memory for each token",
        "the same numbers",
        "",
    ]
    columns = ["what it costs", "loss here", "reported elsewhere"]
    table = pd.DataFrame.from_dict(rows, "index", columns=columns)
    left = {"text-align": "left", "vertical-align": "top"}
    return table.rename_axis("change").style.set_properties(**left)


# Muon, in recorded trainings of this book's grammar.

_NAMES = {
    ("adam", 0.5): "Adam, half the rate",
    ("adam", 1.0): "Adam",
    ("muon", 1.0): "Muon and Adam",
}


@cache
def optimizer_runs() -> pd.DataFrame:
    """Nine recorded trainings: three ways to move the weights, three seeds each."""
    runs = pd.DataFrame(load_record("optimizers")["runs"])
    choices = zip(runs.optimizer, runs.learning_rate_scale, strict=True)
    runs["moved by"] = [_NAMES[choice] for choice in choices]
    return runs


def optimizer_table() -> pd.DataFrame:
    """Shortest time, lowest and highest loss, and the share of exact sentences."""
    return optimizer_runs().groupby("moved by", sort=False).agg(
        seconds=("seconds", "min"),
        least=("loss", "min"),
        most=("loss", "max"),
        exact=("exact", "mean"),
    ).round({"seconds": 0, "least": 3, "most": 3, "exact": 3})  # fmt: skip


def met(checks: Sequence[Sequence[float]], wanted: float) -> float:
    """The step, between two checks, at which the loss has come down to one wanted."""
    for (before, high), (after, low) in pairwise(checks):
        if low <= wanted:
            return before + (high - wanted) / (high - low) * (after - before)
    raise ValueError(f"The loss never came down to {wanted}.")


@dataclass(frozen=True)
class Needed:
    """The part of its training that Muon needs to get where Adam ends, by seed."""

    steps: list[float]
    time: list[float]


def needed() -> Needed:
    """By the validation loss of each seed, and by the ratio of the shortest times."""
    runs, table = optimizer_runs(), optimizer_table()
    seconds = table["seconds"]["Muon and Adam"] / table["seconds"]["Adam"]
    checks = [
        runs[runs["moved by"] == name].sort_values("seed").validation
        for name in ("Adam", "Muon and Adam")
    ]
    steps = [
        met(fast, slow[-1][1]) / fast[-1][0]
        for slow, fast in zip(*checks, strict=True)
    ]  # fmt: skip
    return Needed(steps, [float(part * seconds) for part in steps])


def optimizer_chart() -> alt.LayerChart:
    """Validation loss by step, for the three ways to move the weights."""
    runs = optimizer_runs()
    rows = [
        {"step": step, "loss": loss, "moved by": name, "seed": seed}
        for name, seed, checks in zip(
            runs["moved by"], runs.seed, runs.validation, strict=True
        )
        for step, loss in checks
    ]
    return curves(
        rows,
        "step",
        "loss",
        "moved by",
        description="Validation loss in nats a piece, on a logarithmic axis, against "
        "the optimizer step, for three ways to move the weights, three seeds each. "
        "From the second check on the loss with Muon is below both of Adam's.",
        log_y=True,
    )
