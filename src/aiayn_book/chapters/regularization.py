"""Chapter 15, regularisation: its small trainings, its charts and its drawings.

A seed decides a model's first weights, its batches and what is dropped, so that two
runs of one seed differ in nothing but the setting that is compared.

Paper: §5.4; Table 3, row D.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import altair as alt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig, fast
from aiayn.data.grammar import generate
from aiayn.inference import evaluate_bleu, greedy_search
from aiayn.model import causal_mask, shift_right
from aiayn_book import paper
from aiayn_book.claims import settle
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.power import mean_and_error, power, smallest_effect
from aiayn_book.smoothing import smoothing_floor
from aiayn_book.svg import Svg

PAD, BOS, EOS = 0, 1, 2
STEPS, BATCH, RATE, WARMUP = 250, 24, 6e-3, 40
"""Of each training: its steps, its batch, the peak of its rate, its warm-up."""
FEW = 200
"""The small training set; the large one is the whole corpus."""
P = 0.2
"""The rate of dropout, where there is one."""
EPSILON = 0.1
"""The smoothing, where there is some; the paper's."""
SEEDS, THREE = range(100, 105), range(100, 103)
"""Smoothing is compared in five seeds, dropout and the warm-up in three."""
HALF_A_POINT = 0.5
"""The gain in BLEU that row D of the paper's Table 3 reports for smoothing."""

Pairs = tuple[Tensor, Tensor]


# The corpus: short sentences of the book's grammar, whole words in lower case.


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs as text and as rows of numbers."""

    words: tuple[str, ...]
    """The vocabulary; the first word has the number 3."""
    pairs: tuple[tuple[str, str], ...]
    """The training pairs, as text."""
    train: Pairs
    """Their sources and targets, padded: (pairs, longest)."""
    held_out: Pairs
    """Likewise, of pairs that no model trains on."""
    german: tuple[str, ...]
    """The held-out targets, as text."""

    @property
    def vocab_size(self) -> int:
        """All words, and padding, start and end."""
        return len(self.words) + 3

    @property
    def tokens(self) -> int:
        """Held-out tokens to predict."""
        return int((self.held_out[1] != PAD).sum())


def _short_pairs(count: int, split: str) -> list[list[list[str]]]:
    pairs = []
    for sample in generate(count, seed=15, split=split):
        if len(sample.source_tokens) <= 7:
            sides = sample.source_tokens, sample.target_tokens
            pairs.append([[word.lower() for word in side] for side in sides])
    return pairs


def _rows(sentences: Sequence[Sequence[str]], identity: dict[str, int]) -> Tensor:
    longest = max(map(len, sentences)) + 1
    rows = torch.full((len(sentences), longest), PAD)
    for row, sentence in zip(rows, sentences, strict=True):
        numbers = [*(identity[word] for word in sentence), EOS]
        row[: len(numbers)] = torch.tensor(numbers)
    return rows


@cache
def corpus() -> Corpus:
    """Some two thousand pairs of the 200 most frequent English words, and new ones."""
    pairs = _short_pairs(18_000, "train")
    counts = Counter(word for english, _ in pairs for word in english)
    frequent = {word for word, _ in counts.most_common(200)}
    pairs = [pair for pair in pairs if frequent.issuperset(pair[0])]
    words = sorted({word for pair in pairs for side in pair for word in side})
    held = [
        pair
        for pair in _short_pairs(3_500, "validation")
        if frequent.issuperset(pair[0]) and set(words).issuperset(pair[1])
    ]
    identity = {word: i for i, word in enumerate(words, start=3)}
    train, held_out = (
        tuple(_rows(side, identity) for side in zip(*these, strict=True))
        for these in (pairs, held)
    )
    return Corpus(
        tuple(words),
        tuple((" ".join(english), " ".join(german)) for english, german in pairs),
        train,  # pyright: ignore[reportArgumentType]
        held_out,  # pyright: ignore[reportArgumentType]
        tuple(" ".join(german) for _, german in held),
    )


def everything() -> int:
    """The number of all training pairs."""
    return len(corpus().pairs)


# A model and its training.


def predict(model: Transformer, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Logits (tokens, V) and labels (tokens,) of all that is not padding."""
    source, target = pairs
    real = target != PAD
    hidden = model.decoder_hidden(source, shift_right(target, BOS))
    return model.logits(hidden[real]), target[real]


def training_step(
    model: Transformer, optimizer: Any, pairs: Pairs, smoothing: float
) -> None:
    """One step on the smoothed loss of a batch."""
    logits, labels = predict(model, pairs)
    loss = F.cross_entropy(
        logits,
        labels,
        label_smoothing=smoothing,
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def loss_of(model: Transformer, pairs: Pairs, smoothing: float = 0.0) -> float:
    """The mean loss of a set of pairs, without dropout."""
    training = model.training
    model.eval()
    found = F.cross_entropy(*predict(model, pairs), label_smoothing=smoothing)
    model.train(training)
    return found.item()


def rate_at(step: int, warm_up: bool = True) -> float:
    """The learning rate; without warm-up it has its peak until the warm-up's end.

    This is chapter 14's *no warm-up*: the peak and the fall after it are the same.
    """
    growth = step / WARMUP if warm_up else 1.0
    return RATE * min(growth, (WARMUP / step) ** 0.5)


def new_model(dropout: float) -> Transformer:
    """One layer on each side, 64 wide."""
    sizes: Any = {"d_model": 64, "d_ff": 128, "num_heads": 4}
    layers: Any = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    config = TransformerConfig(corpus().vocab_size, **sizes, **layers, dropout=dropout)
    return fast.accelerate(Transformer(config))


@dataclass(frozen=True)
class Run:
    """A trained model, and its losses on the way."""

    model: Transformer
    curve: tuple[tuple[int, float, float], ...]
    """Step, loss on a hundred training pairs, loss on a hundred held-out pairs."""


def run(
    pairs: int,
    dropout: float = 0.0,
    smoothing: float = 0.0,
    warm_up: bool = True,
    seed: int = SEEDS[0],
) -> Run:
    """Train on the first so many pairs; every run is trained once."""
    return _trained(pairs, dropout, smoothing, warm_up, seed)


@cache
@torch.enable_grad()
def _trained(
    pairs: int, dropout: float, smoothing: float, warm_up: bool, seed: int
) -> Run:
    """The run of these settings; called by position, so that it is found again."""
    train, held_out = corpus().train, corpus().held_out
    known, new = ((s[0][:100], s[1][:100]) for s in (train, held_out))
    draw = torch.Generator().manual_seed(seed)
    curve = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = new_model(dropout)
        adam = torch.optim.Adam(
            model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        for step in range(1, STEPS + 1):
            adam.param_groups[0]["lr"] = rate_at(step, warm_up)
            rows = torch.randint(pairs, (BATCH,), generator=draw)
            training_step(model, adam, (train[0][rows], train[1][rows]), smoothing)
            # Curves are drawn of the trainings without smoothing.
            if smoothing == 0 and seed in THREE and step % (STEPS // 10) == 0:
                losses = (loss_of(model, known), loss_of(model, new))
                curve.append((step, *losses))
    return Run(model.eval(), tuple(curve))


# What smoothing changes.


def translations(model: Transformer, source: Tensor) -> list[str]:
    """What the model writes by greedy search, as text."""
    limits = {"bos_id": BOS, "eos_id": EOS, "max_length": 12}
    found = greedy_search(model, source, **limits)
    words = corpus().words
    return [" ".join(words[t - 3] for t in h.tokens if t > 2) for h in found]


MEASURES = ("loss", "confidence", "tokens right", "sentences right", "BLEU")


@torch.no_grad()
def token_scores(model: Transformer) -> dict[str, float]:
    """The first three of `MEASURES` on the held-out pairs; shares are in per cent."""
    logits, right = predict(model, corpus().held_out)
    confidence, choice = logits.softmax(dim=-1).max(dim=-1)
    return {
        "loss": F.cross_entropy(logits, right).item(),
        "confidence": 100 * confidence.mean().item(),
        "tokens right": 100 * (choice == right).float().mean().item(),
    }


def sentence_scores(model: Transformer) -> dict[str, float]:
    """The other two of `MEASURES`, on the held-out pairs."""
    written, german = translations(model, corpus().held_out[0]), corpus().german
    whole = [a == b for a, b in zip(written, german, strict=True)]
    return {
        "sentences right": 100 * sum(whole) / len(whole),
        "BLEU": evaluate_bleu(written, list(german)).score,
    }


@cache
def scored(pairs: int, smoothing: float, seed: int) -> dict[str, float]:
    """The score of a training without dropout."""
    model = run(pairs, smoothing=smoothing, seed=seed).model
    return token_scores(model) | sentence_scores(model)


def changes(pairs: int, measure: str) -> list[float]:
    """What smoothing changes in a measure, seed by seed."""
    return [
        scored(pairs, EPSILON, seed)[measure] - scored(pairs, 0.0, seed)[measure]
        for seed in SEEDS
    ]


def both_sizes(measure: str) -> list[float]:
    """The ten changes, of few pairs and of all."""
    return [c for pairs in (FEW, everything()) for c in changes(pairs, measure)]


def settle_smoothing() -> None:
    """Settle both claims of §5.4 about label smoothing."""
    pairs = everything()

    def told(measure: str, unit: str = "") -> str:
        mean, error = mean_and_error(changes(pairs, measure))
        return f"{mean:+.2f} ± {error:.2f}{unit}"

    worse, error = mean_and_error(changes(pairs, "loss"))
    drop, drop_error = mean_and_error(changes(pairs, "confidence"))
    few = changes(FEW, "loss")
    before, after = cost_of_smoothing(pairs)
    rest, rest_error = mean_and_error(after)
    in_paper = cost_in_the_paper(EPSILON)
    settle(
        "s5.4-smoothing-perplexity",
        holds=worse > 2 * error
        and drop < -2 * drop_error
        and rest + 2 * rest_error < sum(before) / len(before) / 2,
        expected="a higher plain loss and less confidence, beyond 2 standard errors, "
        "on held-out pairs, where over-fitting is small; and (asked for after the "
        "runs) one temperature for each model takes back more than half of the loss",
        measured=f"with {pairs:,} pairs, the loss changes by {told('loss', ' nats')} "
        "(an even distribution mixed in would cost at most "
        f"{-math.log(1 - EPSILON):.2f}) and the confidence by "
        f"{told('confidence', ' points')}. With {FEW} pairs, five seeds, the loss "
        f"changes by {sum(few) / len(few):+.2f} ({min(few):+.2f} to {max(few):+.2f}), "
        f"the other way. With the best temperatures {rest:+z.2f} ± {rest_error:.2f} "
        f"nats are left of {sum(before) / len(before):+.2f}",
        sample="five seeds of a model with one layer a side, paired, "
        f"{len(corpus().german)} held-out pairs",
        detects=f"{smallest_effect(error):.3f} nats and "
        f"{smallest_effect(drop_error):.2f} points of confidence; power at the "
        f"paper's {in_paper:.2f} nats {power(in_paper, error):.0%}",
    )
    better = {
        measure: mean_and_error(both_sizes(measure))
        for measure in ("tokens right", "BLEU", "sentences right")
    }
    (tokens, tokens_error), (bleu, bleu_error), _ = better.values()
    told_apart = smallest_effect(bleu_error) <= HALF_A_POINT
    gained = tokens > 2 * tokens_error and bleu > 2 * bleu_error
    settle(
        "s5.4-smoothing-bleu",
        holds=gained if told_apart else None,
        expected="more tokens right and more BLEU, beyond 2 standard errors, in a "
        "test that finds half a point of BLEU in four of five repetitions",
        measured=f"with smoothing, over {FEW} and {pairs:,} pairs: "
        + ", ".join(f"{m} {x:+.2f} ± {e:.2f}" for m, (x, e) in better.items())
        + f". Two standard errors of BLEU are {2 * bleu_error:.1f} points",
        sample="ten paired differences, five seeds for each size",
        detects=f"{smallest_effect(bleu_error):.1f} BLEU; power at the paper's "
        f"half a point {power(HALF_A_POINT, bleu_error):.0%}",
    )


# Temperature and calibration.

TEMPERATURES = torch.linspace(0.4, 2.0, 33)


def best_temperature(logits: Tensor, right: Tensor) -> float:
    """The number that the logits are best divided by."""
    choices = torch.linspace(0.4, 2.0, 33)
    losses = [F.cross_entropy(logits / T, right) for T in choices]
    return choices[torch.stack(losses).argmin()].item()


@dataclass(frozen=True)
class Heated:
    """A model's losses by temperature, which is chosen on half of the pairs."""

    chosen: float
    """The best temperature for one half."""
    before: float
    """The loss of the other half at temperature 1."""
    after: float
    """Its loss at the chosen temperature."""
    losses: tuple[float, ...]
    """Its loss at all of `TEMPERATURES`."""


@cache
@torch.no_grad()
def heated(pairs: int, smoothing: float, seed: int) -> Heated:
    """Choose a temperature on one half of the held-out pairs, measure on the other."""
    model = run(pairs, smoothing=smoothing, seed=seed).model
    held_out = corpus().held_out
    one, other = ((held_out[0][i::2], held_out[1][i::2]) for i in (0, 1))
    chosen = best_temperature(*predict(model, one))
    logits, right = predict(model, other)
    losses = [F.cross_entropy(logits / T, right).item() for T in TEMPERATURES]
    before, after = (
        F.cross_entropy(logits / T, right).item() for T in (1.0, chosen)
    )  # fmt: skip
    return Heated(chosen, before, after, tuple(losses))


def cost_of_smoothing(pairs: int) -> tuple[list[float], list[float]]:
    """What smoothing adds to the loss, before and after the temperature, by seed."""
    both = [(heated(pairs, EPSILON, seed), heated(pairs, 0.0, seed)) for seed in SEEDS]
    before = [smooth.before - plain.before for smooth, plain in both]
    return before, [smooth.after - plain.after for smooth, plain in both]


def temperatures(pairs: int, smoothing: float) -> list[float]:
    """The temperature that each seed's model chose."""
    return [heated(pairs, smoothing, seed).chosen for seed in SEEDS]


def calibration_error(confidence: Tensor, hit: Tensor, bins: int = 10) -> float:
    """The expected calibration error: the mean gap of the bins, by their tokens."""
    which = (confidence * bins).long().clamp(max=bins - 1)
    gaps = [
        abs(confidence[which == b].sum() - hit[which == b].sum()) for b in range(bins)
    ]
    return float(sum(gaps)) / len(hit)


@cache
@torch.no_grad()
def confidences(pairs: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Confidence, and whether it was right, of the held-out tokens in five models."""
    found = []
    for seed in SEEDS:
        model = run(pairs, smoothing=smoothing, seed=seed).model
        logits, right = predict(model, corpus().held_out)
        sure, choice = logits.softmax(dim=-1).max(dim=-1)
        found.append(torch.stack([sure, (choice == right).float()]))
    sure, hit = torch.cat(found, dim=1)
    return sure, hit


def expected_lead(vocab_size: int, smoothing: float = EPSILON) -> float:
    """The lead of the right logit at the minimum of the smoothed loss."""
    return math.log((1 - smoothing) * vocab_size / smoothing + 1)


# Dropout: where it is, and what it does.


def shortened(p: float, draws: int = 20_000) -> float:
    """By what share the norm after dropout is shorter, on average over the masks."""
    generator = torch.Generator().manual_seed(15)
    residual, update = torch.randn(2, 64, generator=generator)
    kept = torch.rand(draws, 64, generator=generator) >= p
    average = F.layer_norm(residual + kept * update / (1 - p), (64,)).mean(0)
    exact = F.layer_norm(residual + update, (64,))
    return 1 - (average @ exact / (exact @ exact)).item()


NARROW: dict[str, Any] = {"vocab_size": 50, "d_model": 16, "d_ff": 32, "num_heads": 2}


@dataclass(frozen=True)
class Places:
    """A narrow base model that has read one batch, and what each dropout saw."""

    model: Transformer
    source: Tensor
    target: Tensor
    logits: Tensor
    seen: tuple[tuple[str, Tensor, Tensor], ...]
    """Name, input and output of every dropout, in the order in which they happened."""


def _note(seen: list[Any], name: str, _: Any, args: Any, output: Any) -> None:
    """Remember what one dropout saw."""
    seen.append((name, args[0].detach(), output.detach()))


@cache
def places(attention: float = 0.0, activation: float = 0.0) -> Places:
    """Every dropout of a model with 6 + 6 layers; its weights are random."""
    rates: Any = {"attention_dropout": attention, "activation_dropout": activation}
    seen = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(15)
        model = Transformer(TransformerConfig(**NARROW, **rates)).train()
        for name, module in model.named_modules():
            if isinstance(module, nn.Dropout) and module.p > 0:
                module.register_forward_hook(partial(_note, seen, name))
        source, target = torch.randint(4, 50, (2, 3, 7))
        logits = model(source, target)
    return Places(model, source, target, logits, tuple(seen))


def kind_of(name: str) -> str:
    """Which of four kinds a dropout is, by its name in the model."""
    if name == "dropout":
        return "sum of embedding and position"
    if name.endswith("residual.dropout"):
        return "output of a sub-layer"
    return "attention weights" if "attention" in name else "after the ReLU"


def _rebuilt(
    layers: Iterable[Any], x: Tensor, seen: Sequence[Any], memory: Tensor | None = None
) -> tuple[Tensor, list[float]]:
    """Each sub-layer again, from what was dropped before it: how far off is it?"""
    causal = None if memory is None else causal_mask(x.size(1))
    dropped, gaps = iter(seen), []
    for layer in layers:
        again = {
            "self_attention": lambda x, f: f(x, x, x, causal)[0],
            "cross_attention": lambda x, f: f(x, memory, memory)[0],
            "feed_forward": lambda x, f: f(x),
        }
        for name, compute in again.items():
            if hasattr(layer, name):
                _, before, after = next(dropped)
                gap = compute(x, getattr(layer, name)) - before
                gaps.append(gap.abs().max().item())
                x = getattr(layer, f"{name}_residual").norm(x + after)
    return x, gaps


@torch.no_grad()
def settle_dropout() -> None:
    """Settle that the model drops where §5.4 says, and nowhere else."""
    found = places()
    model, seen = found.model, found.seen
    gaps = [math.inf]
    if len(seen) == 32:  # otherwise the sub-layers cannot be told apart
        memory, gaps = _rebuilt(model.encoder.layers, seen[0][2], seen[1:13])
        states, more = _rebuilt(model.decoder.layers, seen[13][2], seen[14:], memory)
        at_the_end = (model.logits(states) - found.logits).abs().max().item()
        gaps += [*more, at_the_end]
    read = model.source_positions(model.embedding("source")(found.source))
    written = model.target_positions(model.embedding("target")(found.target))
    sums_match = torch.equal(seen[0][1], read) and torch.equal(seen[13][1], written)
    rate = TransformerConfig().dropout
    none = Transformer(TransformerConfig(**NARROW, dropout=0.0)).train()
    two = (none(found.source, found.target) for _ in range(2))
    certain = torch.equal(*two)
    settle(
        "s5.4-dropout",
        holds=sums_match
        and max(gaps) < 1e-5
        and certain
        and len(gaps) == 30 + 1
        and rate == paper.BASE.dropout,
        expected="2 sums + 6 × 2 + 6 × 3 sub-layers, each before its addition",
        measured=f"dropout of {rate} at {len(seen)} places; both stacks, rebuilt "
        "sub-layer by sub-layer from what was dropped, differ by at most "
        f"{max(gaps):.0e}; with p = 0 two passes in training mode are "
        f"{'equal' if certain else 'unequal'}",
        scale="derivation",
    )


def final(pairs: int, dropout: float) -> tuple[list[float], list[float]]:
    """Training and held-out loss after the last step, seed by seed."""
    ends = [run(pairs, dropout, seed=seed).curve[-1] for seed in THREE]
    return [end[1] for end in ends], [end[2] for end in ends]


def best_on_the_way(pairs: int) -> list[float]:
    """The least held-out loss of each training without dropout."""
    return [min(h for _, _, h in run(pairs, seed=seed).curve) for seed in THREE]


# One of the three left out.

LEFT_OUT = {  # dropout, smoothing, warm-up
    "all three": (P, EPSILON, True),
    "no dropout": (0.0, EPSILON, True),
    "no smoothing": (P, 0.0, True),
    "no warm-up": (P, EPSILON, False),
}
LEFT_OUT_MEASURES = ("training loss", "held-out loss", "tokens right", "overconfidence")


@cache
def left_out(name: str) -> tuple[dict[str, float], ...]:
    """`LEFT_OUT_MEASURES` of three seeds, trained on few pairs."""
    train, found = corpus().train, []
    known = train[0][:FEW], train[1][:FEW]
    for seed in THREE:
        dropout, smoothing, warm_up = LEFT_OUT[name]
        model = run(FEW, dropout, smoothing, warm_up, seed).model
        entry = token_scores(model)
        found.append(
            {
                "training loss": loss_of(model, known),
                "held-out loss": entry["loss"],
                "tokens right": entry["tokens right"],
                "overconfidence": entry["confidence"] - entry["tokens right"],
            }
        )
    return tuple(found)


def mean_left_out(name: str, measure: str) -> float:
    """The mean of three seeds."""
    return sum(entry[measure] for entry in left_out(name)) / len(left_out(name))


# Drawings and charts.

NAMES = {0.0: "ε = 0", EPSILON: f"ε = {EPSILON}"}
PLAIN, SMOOTH = NAMES.values()
_COLOUR = alt.Scale(domain=[PLAIN, SMOOTH], range=[ALERT.mark, KEY.mark])
_DASH = alt.Scale(domain=[PLAIN, SMOOTH], range=[[5, 4], [1, 0]])
VOCABULARY = ("der", "die", "Hund", "schläft", "</s>")
TRANSLATION = ("der", "Hund", "schläft", "</s>")


def smoothed(tokens: Sequence[int], vocab_size: int, smoothing: float) -> Tensor:
    """The target of each token: (tokens, V)."""
    one_hot = F.one_hot(torch.tensor(tokens), vocab_size).float()
    return (1 - smoothing) * one_hot + smoothing / vocab_size


def targets() -> Svg:
    """The target of a short translation, without smoothing and with it."""
    tokens = [VOCABULARY.index(word) for word in TRANSLATION]
    drawing = Diagram(338, 330)
    for y, smoothing, words in (
        (96, 0.0, "ε = 0: all on the right token"),
        (254, EPSILON, "ε = 0.1: a little for every token"),
    ):
        table = smoothed(tokens, len(VOCABULARY), smoothing)
        drawing.text(196, y - 84, words, bold=True)
        drawing.grid(
            196,
            y,
            table,
            role="key" if smoothing else "alert",
            cell=54,
            tall=26,
            rows=TRANSLATION,
            columns=VOCABULARY,
        )
    return drawing.finish(
        "The target, plain and smoothed",
        "Two tables with a row for each of four target tokens and a column for each "
        "of five words of the vocabulary. Without smoothing the right word of each row "
        "has 1. With a smoothing of 0.1 it has 0.92, and each other word 0.02.",
    )


def log_odds(confidence: float, vocab_size: int = 5) -> float:
    """The lead of the right logit, if all wrong ones are equal."""
    return math.log((vocab_size - 1) * confidence / (1 - confidence))


def loss_at(confidence: float, smoothing: float, vocab_size: int = 5) -> float:
    """The loss of one token, if the wrong ones share the rest equally."""
    wrong = (1 - confidence) / (vocab_size - 1)
    share = smoothing / vocab_size
    right = 1 - smoothing + share
    return -right * math.log(confidence) - (vocab_size - 1) * share * math.log(wrong)


def loss_by_confidence() -> alt.LayerChart:
    """The loss of one token against the confidence in it, with and without smoothing.

    The axis is the lead of the right logit, so that the confidences near 1 have room.
    """
    rows = []
    for lead in torch.linspace(0.0, 9.0, 91).tolist():
        confidence = math.exp(lead) / (math.exp(lead) + 4)
        rows += [
            {
                "lead": lead,
                "confidence": confidence,
                "loss": loss_at(confidence, e),
                "target": NAMES[e],
            }
            for e in (0.0, EPSILON)
        ]
    ticks = {log_odds(c): f"{c:g}" for c in (0.2, 0.5, 0.8, 0.92, 0.98, 0.995, 0.999)}
    shown = " : ".join(
        f"abs(datum.value - {at:.4f}) < 0.01 ? '{words}'" for at, words in ticks.items()
    )
    x = alt.X(
        "lead:Q",
        title="probability of the right token",
        axis=alt.Axis(values=list(ticks), labelExpr=f"{shown} : ''", grid=False),
    )
    y = alt.Y("loss:Q", title="loss of the token, nats")
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=alt.Color("target:N", title=None, scale=_COLOUR),
            strokeDash=alt.StrokeDash("target:N", title=None, scale=_DASH),
            tooltip=[
                "target:N",
                alt.Tooltip("confidence:Q", format=".4f"),
                alt.Tooltip("loss:Q", format=".3f"),
            ],
        )
    )
    best = 1 - EPSILON + EPSILON / 5
    lowest: dict[str, Any] = {"lead": log_odds(best), "loss": smoothing_floor(5)}
    lowest["words"] = f"minimum at {best:g}"
    mark = alt.Chart(alt.Data(values=[lowest])).encode(x=x, y=y)
    layers = [
        lines,
        mark.mark_point(filled=True, size=90, opacity=1, color=KEY.mark),
        mark.mark_text(align="left", dx=-5, dy=18).encode(text="words:N"),
    ]
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=270,
        description="The loss of one token against the probability that the model "
        "gives it, from 0.2 to nearly 1. The plain loss falls towards zero. The "
        "smoothed loss falls to 0.39 at a probability of 0.92 and rises again.",
    )


def floor_chart() -> alt.LayerChart:
    """The least smoothed loss by vocabulary, for both definitions and a chosen ε."""
    epsilon = alt.param(
        name="epsilon",
        value=EPSILON,
        bind=alt.binding_range(min=0.01, max=0.5, step=0.01, name="ε "),
    )
    kinds: list[Any] = ["all tokens (torch)", "all but the right one (tensor2tensor)"]
    wrong = "(epsilon / datum.V)"
    right = f"(1 - epsilon + {wrong})"
    torchs = f"-{right} * log({right}) - (datum.V - 1) * {wrong} * log({wrong})"
    authors = "-(1 - epsilon) * log(1 - epsilon)"
    authors += " - epsilon * log(epsilon / (datum.V - 1))"
    x = alt.X(
        "V:Q",
        title="V, tokens in the vocabulary",
        scale=alt.Scale(type="log", base=10, domain=[2, 1e6], nice=False),
        axis=alt.Axis(values=[10, 100, 1000, 10_000, 100_000, 1e6], format="~s"),
    )
    y = alt.Y("floor:Q", title="least loss, nats")
    lines = (
        alt.Chart(alt.sequence(1, 20, 0.25, as_="log2"))
        .transform_calculate(V="pow(2, datum.log2)")
        .transform_calculate(**dict(zip(kinds, (torchs, authors), strict=True)))
        .transform_fold(kinds, as_=["spread over", "floor"])
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "spread over:N",
                scale=alt.Scale(domain=kinds, range=[KEY.mark, QUERY.mark]),
                legend=alt.Legend(columns=1, labelLimit=300),
            ),
            strokeDash=alt.StrokeDash(
                "spread over:N",
                scale=alt.Scale(domain=kinds, range=[[1, 0], [5, 4]]),
            ),
        )
    )
    here = (
        alt.Chart(alt.Data(values=[{"V": paper.BASE.vocabulary_en_de}]))
        .transform_calculate(floor=torchs)
        .transform_calculate(
            says="'ε ' + format(epsilon, '.2f') + ', V 37,000: floor '"
            " + format(datum.floor, '.2f') + ', perplexity '"
            " + format(exp(datum.floor), '.2f')"
        )
    )
    layers = [
        lines,
        here.mark_point(size=90, filled=True, opacity=1, color=KEY.mark)
        .encode(x=x, y=y),
        here.mark_text(align="left")
        .encode(x=alt.value(8), y=alt.value(10), text="says:N"),
    ]  # fmt: skip
    return (
        alt.LayerChart(layer=layers)
        .add_params(epsilon)
        .properties(
            description="The least possible smoothed loss against the number of "
            "tokens, on a logarithmic axis, for both definitions. At first ε is 0.1: "
            "the curves differ for a handful of tokens, where spreading over all but "
            "the right one is higher, and coincide from about a hundred on. A point "
            "marks the paper's vocabulary of 37,000 at 1.38 nats.",
            width="container",
            height=260,
        )
    )


BASE = "base: both 0.1"
ROW_D = {  # row: its label in the chart
    "D label_smoothing=0.0": "ε = 0",
    "base": BASE,
    "D label_smoothing=0.2": "ε = 0.2",
    "D dropout=0.0": "p = 0",
    "D dropout=0.2": "p = 0.2",
}


def cost_in_the_paper(smoothing: float) -> float:
    """What smoothing adds to the loss in the paper's Table 3, in nats."""
    row = "base" if smoothing == 0.1 else f"D label_smoothing={smoothing}"
    without = paper.TABLE_3["D label_smoothing=0.0"].perplexity
    return math.log(paper.TABLE_3[row].perplexity / without)


def row_d() -> alt.LayerChart:
    """Row D of the paper's Table 3: BLEU against perplexity."""
    smoothing = [name for name in ROW_D if "dropout" not in name]
    dropout = ["D dropout=0.0", "base", "D dropout=0.2"]
    rows = [
        {
            "perplexity": paper.TABLE_3[name].perplexity,
            "BLEU": paper.TABLE_3[name].bleu,
            "varied": varied,
            "order": order,
            "label": ROW_D[name],
        }
        for varied, names in (("label smoothing", smoothing), ("dropout", dropout))
        for order, name in enumerate(names)
    ]
    domain = ["label smoothing", "dropout"]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "perplexity:Q",
            title="perplexity (lower is better)",
            scale=alt.Scale(domain=[4.4, 6.1], nice=False),
            axis=alt.Axis(values=[4.5, 5, 5.5, 6], format=".1f"),
        ),
        y=alt.Y(
            "BLEU:Q",
            title="BLEU (higher is better)",
            scale=alt.Scale(domain=[24.4, 26.1], nice=False),
            axis=alt.Axis(values=[24.5, 25, 25.5, 26], format=".1f"),
        ),
    )
    drawn = base.encode(
        color=alt.Color(
            "varied:N",
            title="varied",
            scale=alt.Scale(domain=domain, range=[KEY.mark, VALUE.mark]),
        ),
        strokeDash=alt.StrokeDash(
            "varied:N",
            title="varied",
            scale=alt.Scale(domain=domain, range=[[1, 0], [5, 4]]),
        ),
        order="order:Q",
    )
    points = base.mark_point(filled=True, size=80, opacity=1, color=NEUTRAL.mark)
    smoothed_more = "datum.varied == 'label smoothing' && datum.order > 0"
    above = base.transform_filter(smoothed_more)  # the base model is in both rows
    below = base.transform_filter(f"!({smoothed_more}) && datum.label != '{BASE}'")
    layers = [
        drawn.mark_line(),
        points.encode(tooltip=["label:N", "perplexity:Q", "BLEU:Q"]),
        above.mark_text(dy=-14).encode(text="label:N"),
        below.mark_text(dy=18).encode(text="label:N"),
    ]
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=280,
        description="BLEU against perplexity for row D of the paper's Table 3. Without "
        "smoothing the perplexity is 4.67 and BLEU 25.3; the base model has 4.92 and "
        "25.8, a smoothing of 0.2 gives 5.47 and 25.7. Without dropout the perplexity "
        "is 5.77 and BLEU 24.6; a dropout of 0.2 gives 4.95 and 25.5.",
    )


_SHOWN = {  # measure: the title of its axis, and its format
    "loss": "change of the plain loss, nats",
    "confidence": "change of the confidence, points",
    "tokens right": "change of the tokens right, points",
    "BLEU": "change of BLEU, points",
}


def change_charts() -> list[alt.LayerChart]:
    """What smoothing changes in four measures: five seeds, their mean, two errors."""
    return [_change_chart(measure, title) for measure, title in _SHOWN.items()]


def _change_chart(measure: str, title: str) -> alt.LayerChart:
    sizes = {f"{FEW} pairs": FEW, f"{everything():,} pairs": everything()}
    points, means = [], []
    for name, pairs in sizes.items():
        found = changes(pairs, measure)
        mean, error = mean_and_error(found)
        points += [{"pairs": name, "change": change} for change in found]
        means.append(
            {
                "pairs": name,
                "change": mean,
                "low": mean - 2 * error,
                "high": mean + 2 * error,
            }
        )
    y = alt.Y(
        "pairs:N",
        title=None,
        sort=list(sizes),
        axis=alt.Axis(ticks=False, labelPadding=8),
    )
    wide = alt.Scale(padding=8)
    x = alt.X("change:Q", title=title, scale=wide)
    base = alt.Chart(alt.Data(values=means)).encode(y=y)
    zero = alt.Chart(alt.Data(values=[{"change": 0}])).encode(x=x)
    dots = alt.Chart(alt.Data(values=points)).encode(x=x, y=y)
    layers = [
        zero.mark_rule(strokeDash=[4, 3], color=NEUTRAL.mark),
        base.mark_rule(strokeWidth=3, color=KEY.mark)
        .encode(x=alt.X("low:Q", title=title, scale=wide), x2="high:Q"),
        dots.mark_point(size=45, opacity=0.8, color=NEUTRAL.mark),
        base.mark_point(filled=True, size=110, opacity=1, color=KEY.mark)
        .encode(x=x, tooltip=[alt.Tooltip("change:Q", format="+.2f")]),
    ]  # fmt: skip
    few, many = (mean["change"] for mean in means)
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=96,
        description=f"The {title}, by label smoothing, in five seeds each. Mean with "
        f"{FEW} pairs {few:+.2f}, with all pairs {many:+.2f}.",
    )


def temperature_chart() -> alt.LayerChart:
    """The loss by temperature, on the half of the pairs that did not choose it."""
    rows = [
        {"temperature": T, "held-out loss": loss, "trained with": name, "seed": seed}
        for e, name in NAMES.items()
        for seed in SEEDS
        for T, loss in zip(
            TEMPERATURES.tolist(), heated(everything(), e, seed).losses, strict=True
        )
        if T < 1.25
    ]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("temperature:Q", title="temperature T", scale=alt.Scale(zero=False)),
        color=alt.Color("trained with:N", title="trained with", scale=_COLOUR),
    )
    y = alt.Y("held-out loss:Q", scale=alt.Scale(zero=False))
    mean = alt.Y(
        "held-out loss:Q",
        aggregate="mean",
        title="held-out loss, nats",
        scale=alt.Scale(zero=False),
    )
    one = alt.Chart(alt.Data(values=[{"temperature": 1}]))
    layers = [
        one.mark_rule(color=NEUTRAL.mark, strokeDash=[2, 3]).encode(x="temperature:Q"),
        base.mark_line(strokeWidth=0.8, opacity=0.55).encode(y=y, detail="seed:N"),
        base.mark_line().encode(
            y=mean,
            strokeDash=alt.StrokeDash(
                "trained with:N", title="trained with", scale=_DASH
            ),
        ),
    ]
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=260,
        description="Held-out loss against the temperature, five seeds and their mean. "
        "At temperature 1 the models trained with smoothing have the higher loss. "
        "Their lowest loss lies at about 0.7 and is about as low as the lowest of the "
        "plain models, which lies at about 0.9.",
    )


def calibration_charts() -> list[alt.LayerChart]:
    """The share of right tokens against the confidence: few pairs, and all."""
    told = {
        FEW: "the plain models lie below the diagonal, the smoothed ones above it",
        everything(): "the plain models lie a little above the diagonal, the smoothed "
        "ones far above it",
    }
    return [_calibration_chart(pairs, words) for pairs, words in told.items()]


def calibration_rows(pairs: int, smoothing: float) -> list[dict[str, Any]]:
    """Mean confidence and share right of each tenth that has at least 50 tokens."""
    sure, hit = confidences(pairs, smoothing)
    which = (sure * 10).long().clamp(max=9)
    return [
        {
            "confidence": sure[which == b].mean().item(),
            "share right": hit[which == b].mean().item(),
            "tokens": int((which == b).sum()),
            "trained with": NAMES[smoothing],
        }
        for b in range(10)
        if (which == b).sum() >= 50
    ]


def _calibration_chart(pairs: int, words: str) -> alt.LayerChart:
    rows = [row for e in NAMES for row in calibration_rows(pairs, e)]
    unit = alt.Scale(domain=[0, 1])
    x = alt.X("confidence:Q", title=f"confidence, {pairs:,} pairs", scale=unit)
    y = alt.Y("share right:Q", scale=unit)
    ends = [{"confidence": 0, "share right": 0}, {"confidence": 1, "share right": 1}]
    diagonal = alt.Chart(alt.Data(values=ends)).mark_line(
        strokeDash=[2, 3], strokeWidth=1.5, color=NEUTRAL.mark
    )
    lines = alt.Chart(alt.Data(values=rows)).encode(
        x=x,
        y=y,
        color=alt.Color("trained with:N", title="trained with", scale=_COLOUR),
        tooltip=[
            "trained with:N",
            alt.Tooltip("confidence:Q", format=".2f"),
            alt.Tooltip("share right:Q", format=".2f"),
            "tokens:Q",
        ],
    )
    dash = alt.StrokeDash("trained with:N", title="trained with", scale=_DASH)
    layers = [
        diagonal.encode(x=x, y=y),
        lines.mark_line().encode(strokeDash=dash),
        lines.mark_point(filled=True, size=50, opacity=1),
    ]
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=240,
        description=f"Share of right tokens against confidence after training on "
        f"{pairs} pairs, with a diagonal: {words}.",
    )


def four_outcomes() -> Svg:
    """Dropout of two numbers with p = ½: four outcomes, and their mean."""
    drawing = Diagram(356, 190)
    drawing.text(36, 16, "x", bold=True)
    drawing.bars(36, 84, [3.0, 1.0], role="key", width=46, height=100, limit=6.0)
    drawing.text(36, 152, "3, 1", small=True)
    drawing.arrow((66, 84), (92, 84))
    outcomes = [(6, 2), (6, 0), (0, 2), (0, 0)]
    drawing.text(182, 16, "four outcomes, ¼ each", bold=True)
    for x, outcome in zip((118, 161, 204, 247), outcomes, strict=True):
        drawing.bars(x, 84, outcome, role="alert", width=36, height=100, limit=6.0)
        drawing.text(x, 152, f"{outcome[0]}, {outcome[1]}", small=True)
    drawing.arrow((268, 84), (294, 84))
    drawing.text(324, 16, "mean", bold=True)
    drawing.bars(324, 84, [3.0, 1.0], role="key", width=46, height=100, limit=6.0)
    drawing.text(324, 152, "3, 1", small=True)
    drawing.text(182, 178, "what is kept is doubled, 1 / (1 − ½)", italic=True)
    return drawing.finish(
        "Dropout by hand",
        "The numbers 3 and 1 go through dropout with a probability of one half. The "
        "four outcomes, equally probable, are 6 and 2, 6 and 0, 0 and 2, and 0 and 0. "
        "Their mean is 3 and 1 again.",
    )


def dropout_places() -> list[Svg]:
    """Where the encoder and the decoder drop: solid in the paper, dashed elsewhere."""
    return [
        _places_of("encoder", ("self-attention", "feed-forward")),
        _places_of("decoder", ("self-attention", "cross-attention", "feed-forward")),
    ]


def _places_of(side: str, sub_layers: Sequence[str]) -> Svg:
    step, centre = 128, 148
    height = 100 + step * len(sub_layers)
    drawing = Diagram(336, height + 10)
    bottom = height - 72
    drawing.text(centre, 14, side, bold=True)
    drawing.frame(38, 30, 292, step * len(sub_layers) + 10)
    drawing.text(20, 46, "6 ×", bold=True)
    for i, name in enumerate(sub_layers):
        y = bottom - step * i - 20  # of the sub-layer
        drawing.arrow((centre, y + 28), (62, y + 28), (62, y - 66), (86, y - 66))
        for start, end in ((15, 49 if i else 38), (-23, -15), (-53, -47)):
            drawing.arrow((centre, y + end), (centre, y + start), head=False)
        drawing.box(centre, y, name, width=120)
        drawing.box(centre, y - 35, "dropout", width=74, height=24, role="alert")
        drawing.box(centre, y - 66, "add & norm", width=120, height=26)
        inner = "ReLU" if name == "feed-forward" else "weights"
        drawing.arrow((centre + 60, y), (234, y), head=False, dashed=True)
        drawing.frame(234, y - 13, 88, 26)
        drawing.text(278, y, inner)
    y = height - 42
    drawing.box(centre, y, "dropout", width=74, height=24, role="alert")
    drawing.box(centre, height - 8, "embedding + position", width=170, height=26)
    drawing.arrow((centre, height - 21), (centre, y + 12), head=False)
    count = 6 * len(sub_layers) + 1
    drawing.text(278, y, f"{count} places", bold=True)
    return drawing.finish(
        f"Where the {side} drops",
        f"One layer of the {side}, to be read from below. Dropout stands after the sum "
        "of embedding and position, and after each of "
        f"{', '.join(sub_layers)}, before the addition and the norm: {count} places in "
        "six layers. Dashed boxes mark two further kinds of place, the attention "
        "weights and the ReLU.",
    )


def dropout_charts() -> list[alt.LayerChart]:
    """Losses on the way, with dropout and without: few pairs, and all."""
    told = {
        FEW: "Without dropout the training loss falls to nearly zero and the held-out "
        "loss stops falling half-way. With dropout the training loss falls more slowly "
        "and the held-out loss ends lower.",
        everything(): "Without dropout both losses fall together. With dropout both "
        "fall more slowly and end higher.",
    }
    return [_dropout_chart(pairs, words) for pairs, words in told.items()]


def _dropout_chart(pairs: int, words: str) -> alt.LayerChart:
    rows = [
        {
            "step": step,
            f"loss, {pairs:,} pairs": loss,
            "measured on": f"{where}, p = {p:g}",
            "seed": seed,
        }
        for where, column in (("training", 1), ("held-out", 2))
        for p in (0.0, P)
        for seed in THREE
        for step, *losses in run(pairs, p, seed=seed).curve
        for loss in [losses[column - 1]]
    ]
    return curves(
        rows,
        "step",
        f"loss, {pairs:,} pairs",
        "measured on",
        description=f"Loss against step with {pairs} pairs, three seeds. {words}",
    )


def left_out_charts() -> list[alt.LayerChart]:
    """Four measures of the models with all three and without each: three seeds."""
    return [_left_out_chart(measure) for measure in LEFT_OUT_MEASURES]


def _left_out_chart(measure: str) -> alt.LayerChart:
    units = {"tokens right": ", %", "overconfidence": ", points"}
    title = measure + units.get(measure, ", nats")
    rows = [
        {"model": name, "value": entry[measure], "seed": seed}
        for name in LEFT_OUT
        for seed, entry in zip(THREE, left_out(name), strict=True)
    ]
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False, padding=8))
    y = alt.Y(
        "model:N",
        title=None,
        sort=list(LEFT_OUT),
        axis=alt.Axis(ticks=False, grid=True, labelPadding=8),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    layers = [
        base.mark_point(size=45, opacity=0.8, color=NEUTRAL.mark).encode(x=x),
        base.mark_tick(thickness=3, size=20, color=KEY.mark)
        .encode(x=alt.X("value:Q", aggregate="mean", title=title)),
    ]  # fmt: skip
    means = ", ".join(f"{n} {mean_left_out(n, measure):.2f}" for n in LEFT_OUT)
    return alt.LayerChart(layer=layers).properties(
        width="container",
        height=130,
        description=f"The {measure} of four kinds of model, three seeds each; means: "
        f"{means}.",
    )
