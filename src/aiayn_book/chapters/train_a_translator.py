"""Chapter 16, train a translator: its drawings, charts, recorded runs and claims."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import altair as alt
import pandas as pd
import torch
from pandas.io.formats.style import Styler
from torch import Tensor, nn

from aiayn import TrainingConfig, Transformer, noam_rate, translate
from aiayn.data.grammar import GrammarSample, generate
from aiayn.inference import AttentionMap, cross_attention_map
from aiayn_book import paper, settle
from aiayn_book.colours import ALERT, KEY, QUERY
from aiayn_book.diagrams import Diagram
from aiayn_book.live import load_live_model
from aiayn_book.plots import attention_map, curves
from aiayn_book.power import smallest_effect
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

SHOWN = {  # sentences of the test split, which no training sees, and their references
    "The woman who turns off the lamp is hungry.": (
        "Die Frau, die die Lampe ausschaltet, ist hungrig."
    ),
    "Every queen thinks that the king is young.": (
        "Jede Königin glaubt, dass der König jung ist."
    ),
    "When does a singer turn off cameras?": "Wann schaltet ein Sänger Kameras aus?",
    "Sad neighbours should live in the village.": (
        "Traurige Nachbarn sollten im Dorf wohnen."
    ),
}
SEED = 16  # of the samples that the chapter draws
PUNCTUATION = frozenset(".,?")
END = "</s>"
RECIPES = {
    "German, post-norm": ("multi30k-en-de",),
    "German, sinusoids": tuple(f"multi30k-en-de-{seed}" for seed in (1, 2, 3)),
    "German, today's": tuple(f"multi30k-en-de-rotary-{seed}" for seed in (1, 2, 3, 4)),
    "French, sinusoids": ("multi30k-en-fr",),
    "French, today's": tuple(f"multi30k-en-fr-rotary{end}" for end in ("", "-2", "-3")),
}
"""The recorded runs on captions, by language and recipe."""

Share = tuple[int, int]  # how many are right, of how many


# What a translator writes.


def recorded_translator() -> list[Any]:
    """What the recorded model of the live page writes, and where it attends."""
    model, tokenizer = load_live_model()
    written = translate(list(SHOWN), model, tokenizer, beam_size=1)
    rows = list(zip(SHOWN, written, SHOWN.values(), strict=True))
    sample = relative_clause()
    seen = cross_attention_map(
        sample.source,
        model,
        tokenizer,
        layer=model.config.num_decoder_layers,
        translation=sample.target,
    )
    return [beside_reference(rows), where_it_attends(seen, sample)]


def beside_reference(rows: Sequence[tuple[str, str, str]]) -> Svg:
    """English, what the model writes, and the reference where that is another."""
    wrong = sum(written != reference for _, written, reference in rows)
    drawing = Diagram(360, 22 + 62 * len(rows) + 20 * wrong)
    y = 14
    for english, written, reference in rows:
        right = written == reference
        role = "value" if right else "alert"
        mark = "✓" if right else "✗"
        drawing.text(4, y, mark, anchor="start", role=role, bold=True)
        drawing.text(22, y, english, anchor="start", italic=True)
        drawing.text(4, y + 21, written, anchor="start", role=role, bold=True)
        if not right:
            drawing.text(4, y + 42, reference, anchor="start")
            y += 20
        y += 62
    told = "; ".join(
        f"{english} becomes {written} "
        + ("(right)" if written == reference else f"(reference: {reference})")
        for english, written, reference in rows
    )
    return drawing.finish("Translations beside their references", told)


def relative_clause() -> GrammarSample:
    """The sentence of the test split whose attention the chapter shows."""
    return next(
        sample
        for sample in generate(500, seed=SEED, split="test")
        if {"relative", "separable"} <= sample.tags and len(sample.source_tokens) < 13
    )


def word_of_each(pieces: Sequence[str]) -> list[int]:
    """Which word each piece belongs to; punctuation is a word of its own.

    >>> word_of_each(["▁The", "▁wo", "man", ",", "▁who"])
    [0, 1, 1, 2, 3]
    """
    words, word = [], -1
    for piece in pieces:
        word += piece.startswith("▁") or piece in PUNCTUATION | {END}
        words.append(word)
    return words


def by_words(seen: AttentionMap) -> tuple[list[str], list[str], Tensor]:
    """Attention between words: a source word's sum of pieces, a target word's mean.

    Returns:
        The source's words and the end, the target's words, and (target, source)
        weights, whose rows sum to one. The row that predicts the end is left out.
    """
    columns, rows = word_of_each(seen.source), word_of_each(seen.target)
    sources, targets = (
        [
            "".join(p for p, at in zip(pieces, words, strict=True) if at == word)
            .replace("▁", "")
            .replace(END, "(end)")
            for word in range(words[-1] + 1)
        ]
        for pieces, words in ((seen.source, columns), (seen.target, rows))
    )
    pick = torch.zeros(len(columns), len(sources))  # (pieces, words)
    pick[torch.arange(len(columns)), columns] = 1.0
    mean = torch.zeros(len(targets), len(rows))  # (words, pieces)
    mean[rows, torch.arange(len(rows))] = 1.0
    mean /= mean.sum(dim=1, keepdim=True)
    return sources, targets[:-1], (mean @ seen.weights @ pick)[:-1]


def where_it_attends(seen: AttentionMap, sample: GrammarSample) -> alt.LayerChart:
    """Attention between words, with the grammar's own alignment in frames."""
    sources, targets, weights = by_words(seen)
    return attention_map(
        weights,
        targets,
        sources,
        gold=[(target, source) for source, target in sample.alignment],
        description="Cross-attention of the last decoder layer, mean over its heads: "
        "a row for each German word, a column for each English one. Framed cells are "
        "the true alignment; the German verb of the relative clause stands last, and "
        "its row attends back to the middle of the English sentence.",
    )


def on_the_frames(seen: AttentionMap, sample: GrammarSample) -> float:
    """How much of the attention of words that have a counterpart falls on it."""
    _, _, weights = by_words(seen)
    true = torch.zeros_like(weights)
    for source, target in sample.alignment:
        true[target, source] = 1.0
    return (weights * true).sum(dim=1)[true.sum(dim=1) > 0].mean().item()


def left_aligned(rows: Any) -> Styler:
    """A table of sentences."""
    style = pd.DataFrame(rows).style.set_properties(**{"text-align": "left"})
    return style.hide(axis="index")


def mistakes(corpus: Any, found: Mapping[str, Sequence[str]], each: int = 4) -> Styler:
    """The first wrong translations of each split."""
    rows = []
    for split, written in found.items():
        pairs = zip(corpus.split(split), written, strict=True)
        wrong = [(s, h, t) for (s, t), h in pairs if h != t]
        rows += [
            {"English": f"{s} ({split})", "the model": h, "reference": t}
            for s, h, t in wrong[:each]
        ]
    return left_aligned(rows)


# How it is trained.


def two_sides(sample: GrammarSample) -> Svg:
    """English words on the left, German ones on the right, lines between partners."""
    rows = max(len(sample.source_tokens), len(sample.target_tokens))
    drawing = Diagram(360, 30 + 26 * rows)
    drawing.text(120, 12, "English", bold=True)
    drawing.text(240, 12, "German", bold=True)
    for source, target in sorted(sample.alignment):
        drawing.arrow(
            (134, 42 + 26 * source),
            (226, 42 + 26 * target),
            role="weight",
            head=False,
        )
    for row, word in enumerate(sample.source_tokens):
        drawing.text(126, 42 + 26 * row, word, anchor="end", role="key")
    for row, word in enumerate(sample.target_tokens):
        drawing.text(234, 42 + 26 * row, word, anchor="start", role="query")
    return drawing.finish(
        "One derivation, two sentences",
        f"{sample.source} and {sample.target}, word below word, with a line from each "
        "English word to the German words that come from it. Lines cross where the "
        "German verb waits until the end of the relative clause.",
    )


def one_step(config: TrainingConfig) -> Svg:
    """The five parts of a training step, in a loop."""
    drawing = Diagram(360, 352)
    parts = (
        ("neutral", f"batch\nabout {round(config.tokens_per_batch, -2)} German pieces"),
        ("key", "forward\nscore each next piece"),
        ("alert", "loss\n−log p of the right pieces"),
        ("value", "backward\nthe loss's slope in each weight"),
        ("query", "update\nmove each weight downhill"),
    )
    for number, (role, words) in enumerate(parts):
        y = 34 + 70 * number
        drawing.box(150, y, words, width=230, height=46, role=role)
        if number:
            drawing.arrow((150, y - 47), (150, y - 24))
    drawing.arrow((266, 314), (300, 314), (300, 34), (267, 34))
    drawing.text(308, 166, f"{config.steps:,}", anchor="start", bold=True)
    drawing.text(308, 184, "times", anchor="start")
    return drawing.finish(
        "One step of training",
        "A loop of five boxes: a batch of sentence pairs, the forward pass, the loss, "
        f"the backward pass, the update; then the next batch, {config.steps:,} times.",
    )


def learning_rates(config: TrainingConfig) -> alt.LayerChart:
    """Equation (3), and what this training makes of it."""
    width, warmup = config.model.d_model, config.warmup_steps
    rows = []
    for step in range(1, config.steps + 1, 5):
        rate = noam_rate(step, width, warmup)
        left = min(1, (config.steps - step + 1) / (config.cooldown_steps + 1))
        ours = config.learning_rate_scale * rate * left
        for kind, value in (("equation (3)", rate), ("this chapter", ours)):
            rows.append({"step": step, "learning rate": value, "schedule": kind})
    return curves(
        rows,
        "step",
        "learning rate",
        "schedule",
        description="The learning rate rises in a straight line until the warm-up "
        "ends, then falls as the inverse square root of the step. This chapter's soon "
        "falls faster, and ends at zero.",
    )


def losses(log: pd.DataFrame, floor: float) -> alt.LayerChart:
    """The loss with and without smoothing, and the least that the first can be."""
    names = {"loss": "with smoothing", "cross_entropy": "without"}
    trained = log[log.event == "train"][["step", *names]].rename(columns=names)
    tidy = trained.melt("step", var_name="loss", value_name="nats")
    kinds = alt.Scale(domain=list(names.values()), range=[QUERY.mark, KEY.mark])
    lines = (
        alt.Chart(tidy)
        .mark_line()
        .encode(
            x=alt.X("step", title="step"),
            y=alt.Y("nats", title="nats per piece", scale=alt.Scale(type="log")),
            color=alt.Color("loss", scale=kinds, title=None),
            tooltip=["step", "loss", alt.Tooltip("nats", format=".3f")],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame({"nats": [floor]}))
        .mark_rule(strokeDash=[6, 4], color=ALERT.mark)
        .encode(y="nats")
    )
    return alt.layer(lines, rule).properties(
        width="container",
        height=260,
        description="Loss per piece against the step, on a logarithmic scale. With "
        "label smoothing it falls and levels off just above a dashed line, the entropy "
        "of the smoothed target; without, it goes on falling.",
    )


# What it is worth, and what it costs.


def margin(right: int, total: int) -> float:
    """Two standard errors of a share, by which it may well be off.

    >>> margin(50, 100)
    0.1
    """
    share = right / total
    return 2 * math.sqrt(share * (1 - share) / total)


def exact_shares(shares: Mapping[str, Share]) -> Svg:
    """The share of sentences that are exactly right, on a scale from 0 to 100 %."""
    drawing = Diagram(360, 60 + 62 * len(shares))
    left, right = 20, 330
    for row, (name, (good, total)) in enumerate(shares.items()):
        share, error = good / total, margin(good, total)
        x, y = left + share * (right - left), 46 + 62 * row
        drawing.text(left, y - 26, f"{name}: {share:.1%}", anchor="start", bold=True)
        drawing.arrow((left, y), (right, y), head=False, width=0.5)
        ends = (max(0.0, share - error), min(1.0, share + error))
        low, high = (left + end * (right - left) for end in ends)
        drawing.arrow((low, y), (high, y), head=False, width=3)
        drawing.dot(x, y, role="value")
    y = 30 + 62 * len(shares)
    ticks = [(share / 100, f"{share} %") for share in (0, 50, 100)]
    drawing.axis((left, y), (right, y), ticks)
    told = ", ".join(
        f"{good} of {total} of {name}" for name, (good, total) in shares.items()
    )
    return drawing.finish("Exactly right", f"On a scale from 0 to 100 percent: {told}.")


def costs(operations: Mapping[str, float]) -> Svg:
    """Trainings by their operations, on a logarithmic scale."""
    drawing = Diagram(360, 56 + 52 * len(operations))
    left, right = 26, 334
    lowest = math.floor(math.log10(min(operations.values())))
    highest = math.ceil(math.log10(max(operations.values())))

    def place(value: float) -> float:
        return (math.log10(value) - lowest) / (highest - lowest)

    for row, (name, value) in enumerate(operations.items()):
        x, y = left + place(value) * (right - left), 38 + 52 * row
        drawing.text(left, y - 20, f"{name}: {in_powers(value)}", anchor="start")
        drawing.arrow((left, y), (right, y), head=False, width=0.5)
        drawing.dot(x, y, role="query", radius=6)
    y = 26 + 52 * len(operations)
    raised = [f"10{_raised(power)}" for power in range(lowest, highest + 1)]
    steps = len(raised) - 1
    ticks = [(number / steps, words) for number, words in enumerate(raised)]
    drawing.axis((left, y), (right, y), ticks)
    told = ", ".join(f"{name} {value:.1e}" for name, value in operations.items())
    return drawing.finish(
        "Operations of a training", f"On a logarithmic scale: {told}."
    )


def in_powers(value: float) -> str:
    """A number of operations as the paper prints it.

    >>> in_powers(3.26e18)
    '3.3 · 10¹⁸'
    """
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits} · 10{_raised(int(exponent))}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


# Recorded runs on captions.


def caption_runs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each recorded run with its language and recipe."""
    for recipe, names in RECIPES.items():
        for name in names:
            yield recipe, load_record(name)


def scores(record: Mapping[str, Any]) -> dict[str, float]:
    """A record's BLEU, and what it would be without the brevity penalty BP."""
    test = record["test"]
    brevity = float(re.search(r"BP = ([\d.]+)", test["printed"])[1])
    return {"BLEU": test["bleu"], "BLEU / BP": test["bleu"] / brevity}


def mean_scores() -> dict[str, dict[str, float]]:
    """The mean of each recipe's runs."""
    found: dict[str, list[dict[str, float]]] = {}
    for recipe, record in caption_runs():
        found.setdefault(recipe, []).append(scores(record))
    return {
        recipe: {name: fmean(run[name] for run in runs) for name in runs[0]}
        for recipe, runs in found.items()
    }


def caption_curves() -> alt.Chart:
    """BLEU on validation captions against the step, a line for each run."""
    history = pd.concat(
        pd.DataFrame(run["log"]).assign(recipe=recipe, seed=run["config"]["seed"])
        for recipe, run in caption_runs()
    )
    checks = history[history.event == "validation"].dropna(subset=["bleu"])
    checks = checks[["step", "bleu", "recipe", "seed"]]
    legend = alt.Legend(columns=1, labelLimit=0)
    return (
        alt.Chart(checks)
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y("bleu:Q", title="BLEU on validation"),
            color=alt.Color("recipe:N", title=None, sort=list(RECIPES), legend=legend),
            detail="seed:N",
            tooltip=["recipe", "seed", "step", alt.Tooltip("bleu", format=".1f")],
        )
        .properties(
            width="container",
            height=260,
            description="BLEU on 200 validation sentences against steps, for German "
            "and French: it rises steeply at first and then ever more slowly.",
        )
    )


# The claims.


def recurrent_or_convolutional(model: nn.Module) -> list[str]:
    """The names of the modules that attention was to replace."""
    kinds = (
        nn.RNNBase,
        nn.RNNCellBase,
        *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
        *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    )
    return [name for name, part in model.named_modules() if isinstance(part, kinds)]


def settle_attention_alone(model: Transformer, right: int, total: int) -> None:
    """Abstract: attention alone translates well."""
    german = [scores(run)["BLEU"] for name, run in caption_runs() if "German" in name]
    settle(
        "abstract-attention-only",
        holds=right / total > 0.5 and not recurrent_or_convolutional(model),
        expected="most new sentences exactly right, without a recurrent or a "
        "convolutional module in the model",
        measured=f"{right / total:.1%} of {total:,} new sentences of this book's "
        "grammar equal to the reference; "
        f"{len(recurrent_or_convolutional(model))} modules of the model are recurrent "
        "or convolutional (§3.3 calls the feed-forward layers convolutions of width "
        f"1). Recorded: {min(german):.1f} to {max(german):.1f} BLEU in {len(german)} "
        "runs on German captions, which people wrote",
        sample=f"one training, {total:,} new sentences",
        detects="a share that lies "
        f"{100 * smallest_effect(math.sqrt(0.25 / total)):.1f} percentage points above "
        "or below one half; how far trainings differ is not measured",
    )


def machine_operations(hours: float) -> float:
    """§6.1: what the paper's eight P100 can sustain in that time."""
    return hours * 3600 * 8 * paper.TERAFLOPS["P100"] * 1e12


def settle_operations() -> None:
    """§6.1 and Table 2: the cost of a training."""
    base, big = machine_operations(12), machine_operations(3.5 * 24)
    settle(
        "s6.1-flops",
        holds=f"{base:.1e}" == "3.3e+18" and f"{big:.1e}" == "2.3e+19",
        expected="3.3 · 10¹⁸ operations from 12 hours, and 2.3 · 10¹⁹ from 3.5 days, "
        "on eight P100",
        measured=f"{base / 1e18:.2f} · 10¹⁸ operations and {big / 1e19:.2f} · 10¹⁹",
        scale="figures",
    )


def settle_step_time() -> None:
    """§5.2: how long a step takes."""
    settle(
        "s5.2-step-time",
        holds=None,
        expected="base: 0.4 s a step, 12 hours; big: 1.0 s a step, 3.5 days",
        measured=f"not timed here. 100,000 steps of 0.4 s are {1e5 * 0.4 / 3600:.1f} "
        "hours (12 hours are 0.43 s a step, which rounds to 0.4); 300,000 of 1.0 s are "
        f"{3e5 / 86400:.1f} days",
    )


def settle_twelve_hours() -> None:
    """§1: the best quality after twelve hours."""
    settle(
        "s1-twelve-hours",
        holds=None,
        expected="the best quality of its time after 12 hours on 8 P100",
        measured="not repeated here: it needs WMT 2014 and that machine. Table 2 would "
        "decide it for German only: there, base is above all earlier rows, and for "
        "French it is not",
    )
