"""Chapter 21, what changed: the parts that later models exchanged, and what each gains.

Not in the paper: RMSNorm, gated feed-forward layers, rotary positions, shared keys,
attention by tiles, a single stack, and Muon. Each class says whose idea it was.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice, pairwise
from operator import attrgetter
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from aiayn import (
    MultiHeadAttention,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    causal_mask,
    fast,
    padding_mask,
    shift_right,
)
from aiayn.data.grammar import generate
from aiayn.model import (
    KVCache,
    NoPositionalEncoding,
    PositionwiseFeedForward,
    split_heads,
)
from aiayn.training import orthogonalized
from aiayn_book.chapters.optimizer import (
    WIDTH,
    Sorter,
    draw_digits,
    fresh,
    losses_of,
)
from aiayn_book.plots import curves
from aiayn_book.records import load_record

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
        return x * (mean_square + self.eps).rsqrt() * self.gain


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
        hidden = self.activation(self.gate(x)) * self.value(x)
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
        return super().attention(queries, keys, values, mask, need_weights)


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
        x = self.target_positions(self.embedding("target")(tokens))
        mask = causal_mask(tokens.size(1)) & padding_mask(tokens, PAD)
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


# Muon, an optimizer for matrices.


def polynomial(values: Tensor, times: int) -> Tensor:
    """Jordan's polynomial, applied several times to singular values."""
    for _ in range(times):
        values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
    return values


def polynomial_chart() -> alt.LayerChart:
    """What becomes of a singular value."""
    values = torch.logspace(-4, 0, 300, dtype=torch.float64)
    rows = [
        {"before": before, "after": after, "applied": f"{times} times"}
        for times in (0, 1, 2, 4)
        for before, after in zip(
            values.tolist(), polynomial(values, times).tolist(), strict=True
        )
    ]
    return curves(
        rows,
        "before",
        "after",
        "applied",
        description="Singular value after the polynomial against the one before, from "
        "a ten-thousandth to 1 on a logarithmic axis. Applied once, the curve has "
        "hardly left the bottom at a hundredth. Applied four times it rises steeply up "
        "to a hundredth and then stays in a band around 1.",
        log_x=True,
    )


@cache
def gradient_spectra() -> dict[str, Tensor]:
    """Singular values, the largest being 1, of gradients and of two steps.

    The gradients are those of the square matrices of a fresh post-norm model, three
    draws; each value is (matrices, WIDTH).
    """
    weights = {name: w.requires_grad_() for name, w in fresh("post", 1).items()}
    batch = draw_digits(64, 1, 3, torch.Generator().manual_seed(2))
    loss = losses_of(Sorter("post"), weights, *batch)
    gradients = torch.autograd.grad(loss.sum(), list(weights.values()))
    pairs = zip(weights, gradients, strict=True)
    square = torch.cat([g for name, g in pairs if name.endswith("_projection.weight")])
    steps = {
        "the gradient": square,
        "Adam's first step": square.sign(),
        "Muon's": orthogonalized(square),
    }
    spectra = {name: torch.linalg.svdvals(step) for name, step in steps.items()}
    return {name: s / s[:, :1] for name, s in spectra.items()}


def strong_directions() -> dict[str, float]:
    """How many directions get at least half of what the first gets, on average."""
    return {
        name: (s > 0.5).double().sum(dim=1).mean().item()
        for name, s in gradient_spectra().items()
    }


def spectra_chart() -> alt.LayerChart:
    """The median singular values of gradients, and of the steps made of them."""
    rows = [
        {"direction": number, "singular value": value, "of": name}
        for name, s in gradient_spectra().items()
        for number, value in enumerate(s.median(dim=0).values.tolist(), start=1)
    ]
    return curves(
        rows,
        "direction",
        "singular value",
        "of",
        description=f"Singular values of {WIDTH} directions, the largest being 1, "
        "median over the projection matrices of a fresh model. Those of the gradient "
        "fall off steeply, those of Adam's first step less so, and those of Muon's "
        "step far more slowly.",
    )


# The recorded trainings of this book's grammar.

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
