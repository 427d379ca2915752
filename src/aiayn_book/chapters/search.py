"""Chapter 17, search: its trees, its small translators, its recorded searches.

The notebook shows a beam search, an exact search and the mean of checkpoints. Here is
what surrounds them: the table that is searched by hand, three small translators, what
is measured on them and on recorded runs, and every picture.

Paper: §6.1.
"""

import inspect
import random
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig, fast, shift_right
from aiayn.data.grammar import generate
from aiayn.inference import (
    Hypothesis,
    beam_search,
    greedy_search,
    translate,
)
from aiayn.storage import save_tensors
from aiayn.training import TrainingConfig
from aiayn.training.averaging import average_checkpoints
from aiayn_book import paper
from aiayn_book.bleu import bleu, sentence_counts
from aiayn_book.chapters.how_the_decoder_writes import Translator
from aiayn_book.claims import settle
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, SERIES, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.ensemble import Ensemble
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

PAD, BOS, EOS = range(3)
SEEDS = 1, 2, 3
CLOSE = 1e-5
"""Scores of the same output are no further apart than this; larger is no rounding."""

# A decoder that is a table

TABLE = {
    "<s>": {"Der": 0.6, "Ein": 0.4},
    "Der": {"Hund": 0.4, "Hase": 0.35, "Fuchs": 0.25},
    "Ein": {"Hund": 0.9, "Fuchs": 0.1},
    "Hund": {"bellt": 0.55, "</s>": 0.45},
    "Hase": {"</s>": 1.0},
    "Fuchs": {"</s>": 1.0},
    "bellt": {"</s>": 1.0},
}
"""Probabilities of the next token after each newest token."""
CONFIDENT = {
    "<s>": {"Der": 0.999, "</s>": 0.001},
    "Der": {"Hund": 0.999, "</s>": 0.001},
    "Hund": {"bellt": 0.999, "</s>": 0.001},
    "bellt": {"</s>": 1.0},
}
"""The same for a model that is nearly certain of *Der Hund bellt*."""
Table = dict[str, dict[str, float]]
Beginning = tuple[str, ...]


@dataclass
class _Nothing:
    """A cache for a decoder that reads the newest token only."""

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        """There is nothing to keep."""


class TableDecoder(nn.Module):
    """A translator that ignores its source and looks up what follows a token."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        words = {word for row in table.values() for word in row} - {"</s>"}
        self.vocabulary = ["<pad>", "<s>", "</s>", *sorted(words)]
        self.config = TransformerConfig.tiny(vocab_size=len(self.vocabulary))
        number = {word: token for token, word in enumerate(self.vocabulary)}
        size = len(self.vocabulary)
        p = torch.zeros(size, size)  # (newest, next)
        p[:, EOS] = 1.0  # where the table says nothing, the end
        for newest, row in table.items():
            p[number[newest], EOS] = 0.0
            for word, probability in row.items():
                p[number[newest], number[word]] = probability
        self.register_buffer("log_p", p.log())

    def init_decode(self, source: Tensor) -> _Nothing:
        """What the source says does not matter."""
        return _Nothing()

    def decode_step(self, tokens: Tensor, cache: _Nothing) -> Tensor:
        """The row of each newest token: (rows, vocab)."""
        return self.log_p[tokens]


def table_sentences(table: Table = TABLE) -> dict[Beginning, float]:
    """Every sentence of a table with its probability, in the order of the table."""
    found: dict[Beginning, float] = {}

    def go_on(written: Beginning, p: float) -> None:
        newest = written[-1] if written else "<s>"
        if newest == "</s>":
            found[written] = p
            return
        for word, q in table[newest].items():
            go_on((*written, word), p * q)

    go_on((), 1.0)
    return found


def beam_states(width: int, table: Table = TABLE) -> dict[Beginning, str]:
    """What a beam does with each beginning, ranked by plain probability.

    Returns:
        For each beginning that is computed "kept", "finished" or "dropped".
    """
    states: dict[Beginning, str] = {}
    beam: list[tuple[Beginning, float]] = [((), 1.0)]
    while beam:
        longer = [
            ((*written, word), p * q)
            for written, p in beam
            for word, q in table[written[-1] if written else "<s>"].items()
        ]
        longer.sort(key=lambda one: -one[1])
        beam = []
        for rank, (written, p) in enumerate(longer):
            states[written] = "dropped"
            if written[-1] == "</s>":
                if rank < width:
                    states[written] = "finished"
            elif len(beam) < width:
                states[written] = "kept"
                beam.append((written, p))
    return states


def best_found(states: dict[Beginning, str], table: Table = TABLE) -> Beginning:
    """The most probable of the finished sentences."""
    p = table_sentences(table)
    ended = [one for one, state in states.items() if state == "finished"]
    return max(ended, key=lambda one: p[one])


_LOOKS = {"kept": "query", "finished": "value", "dropped": "neutral"}
_CENTRES, _WIDTHS, _ROW = (35, 122, 218, 304), (66, 82, 82, 62), 47
"""Of the boxes of each level, and the height of a row."""


def tree(width: int, name: str, table: Table = TABLE) -> Svg:
    """The tree of a table, and what a beam of some width computes of it."""
    states, sentences = beam_states(width, table), table_sentences(table)
    drawing = Diagram(width=338, height=len(sentences) * _ROW + 62)
    drawing.text(168, 13, name, bold=True)
    rows: dict[Beginning, float] = {}
    for leaf, sentence in enumerate(sentences):
        for length in range(1, len(sentence) + 1):
            rows.setdefault(sentence[:length], []).append(leaf)
    at = {
        one: (_CENTRES[len(one) - 1], 52 + _ROW * mean(leaves))
        for one, leaves in rows.items()
    }
    p = {
        one: sum(q for s, q in sentences.items() if s[: len(one)] == one) for one in at
    }
    best = best_found(states, table)
    for one, (x, y) in at.items():
        state, parent = states.get(one), one[:-1]
        q = table[parent[-1] if parent else "<s>"][one[-1]]
        wide = _WIDTHS[len(one) - 1]
        if parent:
            x0, y0 = at[parent]
            found = one == best[: len(one)]
            drawing.arrow(
                (x0 + _WIDTHS[len(one) - 2] / 2, y0),
                (x - wide / 2, y),
                head=False,
                role=_LOOKS[state] if state and state != "dropped" else None,
                dashed=state is None,
                width=3 if found else 1.2,
            )
        if state is None:
            drawing.text(x, y - 8, f"{one[-1]} ×{q:g}", italic=True)
            drawing.text(x, y + 9, f"{p[one]:.3f}", small=True)
            continue
        label = f"{one[-1]} ×{q:g}"
        drawing.box(x, y, "", width=wide, height=38, role=_LOOKS[state])
        drawing.text(x, y - 8, label)
        drawing.text(x, y + 9, f"{p[one]:.3f}", small=True, bold=one == best)
    foot = len(sentences) * _ROW + 46
    left = 14
    for state, room in (("kept", 62), ("finished", 84), ("dropped", 84)):
        drawing.box(left, foot, "", width=18, height=14, role=_LOOKS[state])
        drawing.text(left + 14, foot, state, anchor="start")
        left += room
    drawing.text(left - 8, foot, "not computed", anchor="start", italic=True)
    words = " ".join(best[:-1])
    return drawing.finish(
        name,
        f"A tree of {len(sentences)} sentences; each box has the next word with its "
        f"probability and below it the probability of the whole beginning. "
        f"{Counter(states.values())['kept']} beginnings are kept, and the result is "
        f"{words} with {sentences[best]:.3f}.",
    )


def _signed(number: float) -> str:
    """Three digits, with a true minus sign."""
    return f"{number:.3f}".replace("-", "−")


def early_stop() -> Svg:
    """Why K finished outputs are no reason to stop: a model that is nearly certain."""
    drawing = Diagram(width=360, height=212)
    words, p = ("Der", "Hund", "bellt"), 1.0
    for step, word in enumerate(words):
        x = 52 + 116 * step
        drawing.text(x, 14, f"step {step + 1}", italic=True)
        drawing.box(x, 150, "", width=92, height=38, role="value")
        drawing.text(x, 142, f"</s> ×{0.001:g}")
        drawing.text(x, 159, _signed(np.log(p * 0.001)), small=True)
        p *= 0.999
        drawing.box(x, 58, "", width=92, height=38, role="query")
        drawing.text(x, 50, f"{word} ×{0.999:g}")
        drawing.text(x, 67, _signed(np.log(p)), small=True)
        if step:
            drawing.arrow((x - 70, 58), (x - 46, 58), role="query")
            drawing.arrow((x - 70, 72), (x - 34, 131), role="value")
    drawing.arrow((226, 34), (226, 176), head=False, dashed=True, role="alert")
    drawing.text(226, 194, "two outputs have ended", role="alert")
    return drawing.finish(
        "Two early ends beside the sentence that is being written",
        "At each step of a beam of two, the next word has the probability 0.999 and "
        "the end 0.001. After two steps two outputs have ended, with a log-probability "
        "of about -6.9 each, while the unfinished sentence stands at -0.002.",
    )


# The small translators


@dataclass
class Translators:
    """Models of several seeds with their last ten checkpoints, and 200 sentences."""

    words: Translator
    trained: dict[int, tuple[Transformer, list[dict[str, Tensor]]]]
    found: dict[tuple, tuple[list[Hypothesis], float]] = field(default_factory=dict)
    """What searches have found already, by seed and knobs."""

    @property
    def sources(self) -> Tensor:
        """The held-out sources: (sentences, length)."""
        return self.words.sources

    @property
    def targets(self) -> Tensor:
        """The held-out targets, with their end tokens: (sentences, length)."""
        return self.words.targets

    @property
    def references(self) -> list[list[int]]:
        """The held-out targets, without their end tokens."""
        return self.words.references

    def in_words(self, tokens: Sequence[int]) -> str:
        """A sentence as text."""
        return " ".join(self.words.in_words(tokens))

    def model(self, seed: int, averaged: int = 5) -> Transformer:
        """The model of a seed, with the mean of its last checkpoints."""
        model, checkpoints = self.trained[seed]
        model.load_state_dict(average(checkpoints[-averaged:]))
        return model  # the same one each time, with other weights

    def decode(
        self,
        seed: int,
        averaged: int = 5,
        beam: int = 4,
        alpha: float = 0.6,
        extra: int = 50,
    ) -> tuple[list[Hypothesis], float]:
        """What a search finds, and the decoder rows that it computes a sentence."""
        key = seed, averaged, beam, alpha if beam > 1 else 0.0, extra
        if key not in self.found:
            model = self.model(seed, averaged)
            self.found[key] = counted_search(model, self.sources, beam, alpha, extra)
        return self.found[key]

    def measure(self, seed: int, averaged: int = 5, **knobs: Any) -> dict[str, float]:
        """What one setting of the knobs gives with the model of one seed."""
        found, work = self.decode(seed, averaged, **knobs)
        log_p = self.log_probability(seed, averaged)
        pieces = int((self.targets != PAD).sum())
        written = [one.tokens for one in found]
        return {
            **quality(written, self.references),
            "log p": mean(one.log_probability for one in found),
            "rows": work,
            "loss": -log_p.sum().item() / pieces,
        }

    def log_probability(self, seed: int, averaged: int = 5) -> Tensor:
        """Of each reference, its end token's included: (sentences,)."""
        model = self.model(seed, averaged)
        logits = model(self.sources, shift_right(self.targets, BOS))
        picked = logits.log_softmax(-1).gather(2, self.targets[..., None])[..., 0]
        return (picked * (self.targets != PAD)).sum(dim=1)

    def compare(self, knob: str, values: Sequence[Any], **fixed: Any) -> pd.DataFrame:
        """A row for each value of a knob and each seed."""
        return pd.DataFrame(
            {knob: value, "seed": seed} | self.measure(seed, **fixed, **{knob: value})
            for value in values
            for seed in self.trained
        )


def average(checkpoints: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of every weight; the notebook shows it."""
    count = len(checkpoints)
    return {
        name: sum(one[name] for one in checkpoints) / count for name in checkpoints[0]
    }


def counted_search(
    model: Any, sources: Tensor, beam: int = 4, alpha: float = 0.6, extra: int = 50
) -> tuple[list[Hypothesis], float]:
    """What a search finds, and how many rows the decoder computes for a sentence.

    A beam of 1 is greedy search. A row is one hypothesis at one step.
    """
    rows, plain = [], model.decode_step

    def counted(tokens: Tensor, cache: Any) -> Tensor:
        rows.append(len(tokens))
        return plain(tokens, cache)

    ends = {"bos_id": BOS, "eos_id": EOS, "extra_length": extra}
    model.decode_step = counted
    try:
        if beam == 1:
            found = greedy_search(model, sources, **ends)
        else:
            knobs = {"beam_size": beam, "length_penalty": alpha}
            found = beam_search(model, sources, **knobs, **ends)
    finally:
        del model.decode_step  # the class's own again
    return found, sum(rows) / len(sources)


def quality(
    written: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
) -> dict[str, float]:
    """BLEU, per cent of sentences that are exactly right, and the ratio of lengths."""
    pairs = list(zip(written, references, strict=True))
    counts = [sentence_counts([*map(str, a)], [*map(str, b)]) for a, b in pairs]
    return {
        "BLEU": float(bleu(np.sum(counts, axis=0))),
        "exact, %": 100 * mean(list(a) == list(b) for a, b in pairs),
        "length": sum(len(a) for a, _ in pairs) / sum(len(b) for _, b in pairs),
    }


STEPS, WARMUP = 432, 72
EVERY = STEPS // 72
"""The paper's base model trained 12 hours, with a checkpoint every 10 minutes."""
RATE = 3e-3
"""The learning rate at the end of the warm-up."""


def learning_rate(step: int, warmup: int = WARMUP) -> float:
    """The paper's schedule, as a share of its peak: it falls, and never to zero."""
    return min(step / warmup, (warmup / step) ** 0.5)


def sentence_pairs(drawn: int = 9_000, held_out: int = 200) -> Translator:
    """Short sentences of few different words, of every kind that the grammar has."""
    samples = [s for s in generate(drawn, seed=17) if len(s.source_tokens) <= 8]
    uses = Counter(word.lower() for s in samples for word in s.source_tokens)
    common = {word for word, _ in uses.most_common(300)}
    kept = [s for s in samples if common.issuperset(map(str.lower, s.source_tokens))]
    words = {word for s in kept for word in s.source_tokens + s.target_tokens}
    vocabulary = ["<pad>", "<s>", "</s>", *sorted(words)]
    return Translator(vocabulary, kept[held_out:], kept[:held_out])


def train_translators(
    seeds: Sequence[int] = SEEDS, steps: int = STEPS, drawn: int = 9_000
) -> Translators:
    """A Transformer of two layers a side for each seed, not trained to the end."""
    words = sentence_pairs(drawn)
    ordered = sorted(words.training, key=lambda s: len(s.source_tokens))
    starts = range(0, len(ordered), 48)
    batches = [words.batch(ordered[i : i + 48]) for i in starts]
    trained = {
        seed: _train(len(words.vocabulary), batches, seed, steps) for seed in seeds
    }
    return Translators(words, trained)


def _train(
    vocab_size: int, batches: list[tuple[Tensor, Tensor]], seed: int, steps: int
) -> tuple[Transformer, list[dict[str, Tensor]]]:
    torch.manual_seed(seed)
    picker, checkpoints = random.Random(seed), deque(maxlen=10)
    sizes = {"d_model": 64, "d_ff": 128, "num_heads": 4}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    config = TransformerConfig(vocab_size, **sizes, **layers)
    model = fast.accelerate(Transformer(config))  # less time for the same
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = RATE * learning_rate(step)
        source, target = picker.choice(batches)
        logits = model(source, shift_right(target, BOS))
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == 0:
            state = model.state_dict().items()
            checkpoints.append({name: tensor.clone() for name, tensor in state})
    return model.eval().requires_grad_(False), list(checkpoints)


# The notebook's beam search


class Agreement(NamedTuple):
    """A search of the notebook beside the library's."""

    searches: int
    different: int
    """Searches with other tokens."""
    furthest: float
    """The largest difference of two scores."""


def agreement(
    search: Callable[..., tuple[float, list[int]]],
    translators: Translators,
    sentences: int = 5,
    widths: Sequence[int] = (1, 2, 4, 8),
    alphas: Sequence[float] = (0.0, 0.6, 2.0),
) -> Agreement:
    """Hold ``search(model, source, K, alpha)`` against the library's `beam_search`.

    Args:
        search: Returns the score and the tokens of the best output, for one source.
        translators: Each of their models is tried.
        sentences: How many of the held-out sentences.
        widths: The beams, K.
        alphas: The length penalties.
    """
    count, different, furthest = 0, 0, 0.0
    for seed in translators.trained:
        model = translators.model(seed)
        sources = [row[row != PAD] for row in translators.sources[:sentences]]
        for width in widths:
            for alpha in alphas:
                knobs = {"beam_size": width, "length_penalty": alpha}
                for source in sources:
                    [best] = beam_search(
                        model, source[None], bos_id=BOS, eos_id=EOS, **knobs
                    )
                    score, tokens = search(model, source, width, alpha)
                    count += 1
                    different += tokens != best.tokens
                    furthest = max(furthest, abs(score - best.score))
    return Agreement(count, different, furthest)


def settle_decoding(
    translators: Translators, search: Callable[..., tuple[float, list[int]]]
) -> None:
    """Our defaults, mean and score are those of §6.1; the text's search is ours."""
    found = agreement(search, translators)
    options = inspect.signature(translate).parameters
    named = ("beam_size", "length_penalty", "extra_length")
    defaults = [options[name].default for name in named]
    base, keep = paper.BASE, TrainingConfig().keep
    same = defaults == [base.beam, base.length_penalty, base.extra_output_length]
    seed = min(translators.trained)
    checkpoints = translators.trained[seed][1][-5:]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.safetensors") for i in range(5)]
        for path, weights in zip(paths, checkpoints, strict=True):
            save_tensors(path, {k: v.contiguous() for k, v in weights.items()})
        mean_of_files, _ = average_checkpoints(paths)
    ours = average(checkpoints)
    off = max((ours[k] - v).abs().max().item() for k, v in mean_of_files.items())
    one = translators.decode(seed)[0][0]
    by_hand = one.log_probability / ((5 + len(one.tokens) + 1) / 6) ** 0.6
    gap = abs(one.score - by_hand)
    settle(
        "s6.1-decoding",
        holds=same
        and keep == base.averaged_checkpoints
        and max(off, gap, found.furthest) < CLOSE
        and not found.different,
        expected="beam 4, α = 0.6, input + 50, the mean of the last 5 (big's 20 are a "
        "setting, `keep=20`, which is not run here)",
        measured=f"defaults {defaults}, keep {keep}; mean off by {off:.0e}, score by "
        f"{gap:.0e}; {found.different} of {found.searches} searches of the text's own "
        "code find another output",
        scale="derivation",
    )


# What a beam finds that greedy search misses

OUTCOMES = ("both right", "only beam right", "only greedy right", "both wrong")
FOUND = ("neither", "the beam's", "greedy's")
"""Whose output is more probable; neither, if both found the same."""


def greedy_beside_beam(
    greedy: Sequence[Hypothesis],
    beam: Sequence[Hypothesis],
    references: Sequence[Sequence[int]],
) -> pd.DataFrame:
    """Count sentences by which output is more probable and by which is right.

    Args:
        greedy: What greedy search found.
        beam: What a beam found, ranked by plain probability.
        references: The right tokens, without their end tokens.

    Returns:
        A row for each element of `FOUND`, a column for each of `OUTCOMES`.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for g, b, reference in zip(greedy, beam, references, strict=True):
        right = list(g.tokens) == list(reference), list(b.tokens) == list(reference)
        outcome = {
            (True, True): "both right",
            (False, True): "only beam right",
            (True, False): "only greedy right",
            (False, False): "both wrong",
        }[right]
        found = FOUND[0]
        if g.tokens != b.tokens:
            found = FOUND[1 if b.log_probability >= g.log_probability else 2]
        counts[found, outcome] += 1
    rows = {row: [counts[row, column] for column in OUTCOMES] for row in FOUND}
    return pd.DataFrame.from_dict(rows, "index", columns=list(OUTCOMES))


def instructive_case(
    greedy: Sequence[Hypothesis],
    beam: Sequence[Hypothesis],
    references: Sequence[Sequence[int]],
) -> int:
    """A sentence that only the beam gets right, the shortest; else one that differs."""

    def worth(k: int) -> tuple[bool, bool, int]:
        g, b, reference = greedy[k], beam[k], list(references[k])
        only_beam = list(b.tokens) == reference and list(g.tokens) != reference
        return only_beam, b.log_probability > g.log_probability, -len(g.tokens)

    return max(range(len(greedy)), key=worth)


def outcome_chart(counts: pd.DataFrame) -> alt.Chart:
    """The table of `greedy_beside_beam` as stacked bars."""
    rows = [
        {
            "found": found,
            "outcome": outcome,
            "sentences": int(counts.loc[found, outcome]),
        }
        for found in counts.index
        for outcome in counts.columns
    ]
    colours = [colour.mark for colour in SERIES[: len(OUTCOMES)]]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("sentences:Q", stack="zero"),
            y=alt.Y("found:N", title="more probable", sort=list(FOUND)),
            color=alt.Color(
                "outcome:N",
                title=None,
                scale=alt.Scale(domain=list(OUTCOMES), range=colours),
                legend=alt.Legend(columns=2, symbolType="square", symbolStrokeWidth=0),
            ),
            tooltip=["found:N", "outcome:N", "sentences:Q"],
        )
        .properties(
            width="container",
            height=36 * len(FOUND),
            description="Three bars: sentences for which greedy search and beam found "
            "the same output, for which the beam's is more probable, and for which "
            "greedy's is. Each is cut into both right, only one right, and both wrong.",
        )
    )


# A knob and what it does, seed by seed


def gains(runs: pd.DataFrame, what: str, start: Any) -> pd.DataFrame:
    """Differences of each seed from its own line `start`: a column for each seed."""
    table = runs.pivot(index=runs.columns[0], columns="seed", values=what)
    return table.sub(table.loc[start])


def knob_chart(
    table: pd.DataFrame, x: str, y: str, description: str, zero: bool = True
) -> alt.LayerChart:
    """A thin line for each column of a table, and a thick one for their mean.

    Args:
        table: A row for each value of the knob, a column for each seed.
        x: The name of the horizontal axis.
        y: The name of the vertical axis.
        description: The text alternative.
        zero: Whether a dashed line marks zero.
    """
    rows = [
        {"value": f"{value:g}", "seed": f"seed {seed}", "y": float(number)}
        for value, line in table.iterrows()
        for seed, number in line.items()
    ]
    order = [f"{value:g}" for value in table.index]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("value:O", title=x, sort=order, axis=alt.Axis(labelAngle=0))
    )
    scale = alt.Scale(zero=False)
    thin = base.mark_line(strokeWidth=1, color=NEUTRAL.mark).encode(
        y=alt.Y("y:Q", title=y, scale=scale), detail="seed:N"
    )
    thick = base.mark_line(
        strokeWidth=3, color=QUERY.mark, point={"size": 50, "color": QUERY.mark}
    ).encode(
        y=alt.Y("y:Q", aggregate="mean", title=y, scale=scale),
        tooltip=[
            alt.Tooltip("value:O", title=x),
            alt.Tooltip("y:Q", aggregate="mean", format=".3g", title=f"mean {y}"),
        ],
    )
    layers = [_zero_line("y"), thin, thick] if zero else [thin, thick]
    return alt.layer(*layers).properties(
        width="container", height=220, description=description
    )


def _zero_line(axis: str) -> alt.Chart:
    mark = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(
        strokeDash=[6, 4], color=ALERT.mark
    )
    return mark.encode(**{axis: "zero:Q"})


def beam_charts(runs: pd.DataFrame) -> list[alt.LayerChart]:
    """Two panels over the beam: what it gains in BLEU, and what it costs."""
    return [
        knob_chart(
            gains(runs, "BLEU", 1),
            "beam",
            "BLEU, gain over greedy search",
            "Gain in BLEU over greedy search for beams of 1 to 32, for three seeds and "
            "their mean. The lines rise up to 2 or 4 and are level from there.",
        ),
        knob_chart(
            runs.pivot(index="beam", columns="seed", values="rows"),
            "beam",
            "decoder rows per sentence",
            "Decoder rows per sentence for beams of 1 to 32: they grow with it.",
            zero=False,
        ),
    ]


def penalty_charts(runs: pd.DataFrame) -> list[alt.LayerChart]:
    """Two panels over α: the length of all outputs, and the gain in BLEU."""
    return [
        knob_chart(
            runs.pivot(index="alpha", columns="seed", values="length"),
            "length penalty α",
            "length of outputs / references",
            "Length of the outputs over that of the references for α from 0 to 2, for "
            "three seeds and their mean. No line falls, and the mean stays below 1.",
            zero=False,
        ),
        knob_chart(
            gains(runs, "BLEU", 0.0),
            "length penalty α",
            "BLEU, gain over α = 0",
            "Gain in BLEU over α = 0 for three seeds and their mean: less than one "
            "point either way.",
        ),
    ]


def penalty_explorer() -> alt.LayerChart:
    """Three finished outputs and their scores, with a slider for α."""
    ends = [("3 tokens", 3, -1.9), ("7 tokens", 7, -2.4), ("14 tokens", 14, -3.6)]
    rows = [dict(zip(("output", "length", "log_p"), end, strict=True)) for end in ends]
    alpha = alt.param(
        name="alpha",
        value=0.6,
        bind=alt.binding_range(min=0, max=2, step=0.02, name="length penalty α "),
    )
    base = (
        alt.Chart(alt.Data(values=rows))
        .transform_calculate(score="datum.log_p / pow((5 + datum.length) / 6, alpha)")
        .transform_joinaggregate(best="max(score)")
        .encode(
            x=alt.X(
                "score:Q", scale=alt.Scale(domain=[-4, 0]), title="score, log p / lp"
            ),
            y=alt.Y("output:N", sort=[end[0] for end in ends], title=None),
        )
    )
    bars = base.mark_bar().encode(
        color=alt.condition(
            "datum.score == datum.best",
            alt.value(QUERY.mark),
            alt.value(NEUTRAL.mark),
        )
    )
    labels = (
        base.transform_calculate(
            text="format(datum.score, '.2f') + "
            "(datum.score == datum.best ? '  wins' : '')"
        )
        .mark_text(align="right", dx=-5)
        .encode(text="text:N")
    )
    return (
        (bars + labels)
        .add_params(alpha)
        .properties(
            width="container",
            height=110,
            description="Three bars, the scores of three outputs of 3, 7 and 14 "
            "tokens, with a slider for the length penalty. The shortest bar wins and "
            "is coloured. At 0 the output of 3 tokens wins; a stronger penalty favours "
            "longer ones.",
        )
    )


# The mean of checkpoints


class Walk(NamedTuple):
    """A noisy descent into a bowl whose lowest point is (0, 0)."""

    path: np.ndarray  # (steps, 2)
    checkpoints: np.ndarray  # (5, 2), the last one at the end of the path
    """Every tenth step at the end."""


def walk(falling: bool, seed: int = 3, steps: int = 150, apart: int = 10) -> Walk:
    """Follow a noisy gradient, at a constant rate or one that falls to zero."""
    rng = np.random.default_rng(seed)
    at, path = np.array([9.0, 6.0]), []
    for step in range(steps):
        rate = 0.25 * (1 - step / steps if falling else 1)
        at = at - rate * (at + rng.normal(scale=4.0, size=2))
        path.append(at)
    path = np.array(path)
    return Walk(path, path[::-apart][:5][::-1])


def walk_distances(falling: bool, walks: int = 200) -> tuple[float, float]:
    """How far from the lowest point: the last checkpoint, and the mean of five.

    Root mean squares over many walks.
    """
    some = [walk(falling, seed).checkpoints for seed in range(walks)]
    last = np.array([one[-1] for one in some])
    middle = np.array([one.mean(axis=0) for one in some])
    return tuple(float(np.sqrt((x**2).sum(1).mean())) for x in (last, middle))


def walks() -> list[Svg]:
    """Two panels: weights that move on, and weights that come to rest."""
    return [_walk_panel(False), _walk_panel(True)]


def _walk_panel(falling: bool) -> Svg:
    title = "Rate falls to zero" if falling else "Rate stays"
    drawing = Diagram(width=336, height=288)
    drawing.text(168, 13, title, bold=True)
    found = walk(falling)

    def place(point: np.ndarray) -> tuple[float, float]:
        return 150 + 15 * point[0], 160 - 15 * point[1]

    for radius in (30, 60, 90):
        x, y = place(np.zeros(2))
        drawing.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" style="fill: none; '
            'stroke: currentColor; stroke-opacity: 0.18"/>'
        )
    drawing.arrow(*map(place, found.path), head=False, width=0.7, role="neutral")
    for point in found.checkpoints:
        drawing.dot(*place(point), role="key", radius=5)
    drawing.dot(*place(found.checkpoints.mean(axis=0)), role="query", radius=7)
    drawing.plus(*place(np.zeros(2)))
    for x, name, role in ((14, "checkpoint", "key"), (112, "mean of five", "query")):
        drawing.dot(x, 272, role=role, radius=5 if role == "key" else 7)
        drawing.text(x + 12, 272, name, anchor="start")
    drawing.plus(222, 272)
    drawing.text(236, 272, "lowest loss", anchor="start")
    last, middle = (
        float(np.hypot(*p))
        for p in (found.checkpoints[-1], found.checkpoints.mean(axis=0))
    )
    return drawing.finish(
        title,
        "A winding path comes from the upper right to the lowest point of a bowl. The "
        f"last checkpoint is {last:.1f} from that point, the mean of the last five "
        f"{middle:.1f}.",
    )


def average_charts(runs: pd.DataFrame) -> list[alt.LayerChart]:
    """Two panels over the number of checkpoints: change of the loss, and of BLEU."""
    return [
        knob_chart(
            gains(runs, what, 1),
            "checkpoints in the mean",
            f"{name}, change",
            f"Change of the {name} for means of 1, 2, 5 and 10 checkpoints beside the "
            "last checkpoint alone, for three seeds and their mean.",
        )
        for what, name in (("loss", "loss"), ("BLEU", "BLEU"))
    ]


# Search errors and model errors


def suspects() -> list[Svg]:
    """Two panels: what proves an error of the search, and one of the model."""
    return [
        _line(
            "Search error",
            [
                (-6.0, "output", "query"),
                (-4.0, "reference", "value"),
            ],
            "the search missed a more probable output",
        ),
        _line(
            "Model error",
            [(-6.0, "reference", "value"), (-4.0, "output", "query")],
            "the model ranks a wrong output higher",
        ),
    ]


def _line(title: str, marks: Sequence[tuple[float, str, str]], proof: str) -> Svg:
    drawing = Diagram(width=336, height=136)
    drawing.text(168, 13, title, bold=True)

    def place(log_p: float) -> float:
        return 24 + 288 * (log_p + 8) / 6

    ticks = [((t + 8) / 6, f"−{-t}") for t in range(-8, -1)]
    drawing.axis((24, 84), (318, 84), ticks)
    drawing.text(168, 124, f"log p: {proof}", italic=True)
    for log_p, name, role in marks:
        drawing.dot(place(log_p), 70, role=role, radius=7)
        drawing.text(place(log_p), 48, name, role=role)
    drawing.arrow(
        (place(marks[0][0]) + 14, 70), (place(marks[1][0]) - 14, 70), width=1.2
    )
    return drawing.finish(
        title,
        f"A line of log-probabilities. {marks[0][1].capitalize()} at {marks[0][0]:g}, "
        f"{marks[1][1]} at {marks[1][0]:g}: {proof}.",
    )


SLACK = 1e-3
"""Two log-probabilities that are closer are equal up to rounding."""
SEARCHES = {"greedy": 1, "beam 4": 4, "beam 32": 32}


def exact_search(
    translators: Translators,
    most_probable: Callable[..., tuple[float | None, int]],
    sentences: int = 60,
) -> pd.DataFrame:
    """Search exactly, and compare with three searches and with the reference.

    Args:
        translators: The models.
        most_probable: ``most_probable(model, source, bound)`` returns the best
            log-probability, None if it gave up, and the decoder rows that it computed.
        sentences: How many of the held-out sentences.

    Returns:
        A row for each sentence of each seed.
    """
    rows = []
    for seed in translators.trained:
        found = {
            name: translators.decode(seed, beam=width, alpha=0.0)[0]
            for name, width in SEARCHES.items()
        }
        right = translators.log_probability(seed).tolist()
        model = translators.model(seed)
        for i in range(sentences):
            p = {name: one[i].log_probability for name, one in found.items()}
            source = translators.sources[i]
            source = source[source != PAD]
            best, work = most_probable(model, source, p["greedy"] - SLACK)
            rows.append(
                {"seed": seed, "best": best, "rows": work, "reference": right[i], **p}
            )
    return pd.DataFrame(rows)


def error_shares(exact: pd.DataFrame) -> pd.DataFrame:
    """Bounds on the share of sentences with a search error, and with a model error.

    A sentence that exact search did not solve is an error for certain if another
    search found something more probable; it may be one in any case.

    Returns:
        A row for each search, and the model, and each seed: the errors that are
        certain, and those that are possible.
    """
    known = exact[["best", *SEARCHES]].max(axis=1)
    unknown = exact.best.isna()
    rows = []
    for name in (*SEARCHES, "model"):
        column = "reference" if name == "model" else name
        certain = exact[column] < known - SLACK
        for seed, group in exact.groupby("seed"):
            inside = group.index
            rows.append(
                {
                    "errors of": name,
                    "seed": seed,
                    "certain": certain[inside].mean(),
                    "possible": (certain | unknown)[inside].mean(),
                }
            )
    return pd.DataFrame(rows)


def error_chart(shares: pd.DataFrame) -> alt.LayerChart:
    """A dot for each seed, and a line up to what is possible."""
    names = {name: f"search: {name}" for name in SEARCHES} | {"model": "model"}
    rows = [
        {
            "of": names[row["errors of"]],
            "kind": "model" if row["errors of"] == "model" else "search",
            "seed": f"seed {row['seed']}",
            "certain": row["certain"],
            "possible": row["possible"],
        }
        for row in shares.to_dict("records")
    ]
    kinds = alt.Scale(domain=["search", "model"], range=[QUERY.mark, KEY.mark])
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("of:N", sort=list(names.values()), title=None),
        yOffset="seed:N",
        color=alt.Color("kind:N", scale=kinds, legend=None),
    )
    x = alt.X(
        "certain:Q",
        title="share of the sentences",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 0.6]),
    )
    bounds = base.mark_rule(strokeWidth=2).encode(x=x, x2="possible:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, tooltip=["of:N", "seed:N", alt.Tooltip("certain:Q", format=".0%")]
    )
    return (bounds + dots).properties(
        width="container",
        height=190,
        description="For greedy search, beams of 4 and 32 and for the model, the share "
        "of sentences with an error, a dot for each of three seeds: about a fifth for "
        "greedy search, a twelfth for a beam of 4, a fiftieth for one of 32, and "
        "half for the model.",
    )


# Recorded searches on Multi30k

PAPERS = {"averaged": 5, "beam": 4, "alpha": 0.6, "extra": 50}


class Recorded:
    """The record of searches on Multi30k, as tables."""

    def __init__(self, record: dict[str, Any] | None = None) -> None:
        self.record = record or load_record("search")
        self.runs = self.record["runs"]
        settings = [
            {**row, "run": run["name"]} for run in self.runs for row in run["settings"]
        ]
        self.settings = pd.DataFrame(settings)
        per = self.settings.sentences
        self.settings["rows"] = self.settings.decoder_rows / per
        self.settings["ms"] = 1000 * self.settings.cpu_seconds / per

    def chosen(self, **knobs: Any) -> pd.DataFrame:
        """The lines of one setting, which differs from the paper's by these knobs."""
        wanted = {"part": False, **PAPERS, **knobs}
        rows = self.settings
        for name, value in wanted.items():
            rows = rows[rows[name] == value]
        return rows


def verdict(rows: pd.DataFrame) -> str:
    """Whether a setting gains or loses in every run, or neither."""
    if (rows.low > 0).all():
        return "gains"
    return "loses" if (rows.high < 0).all() else "within noise"


SHOWN = {
    "greedy": {"beam": 1},
    "beam 2": {"beam": 2},
    "beam 8": {"beam": 8},
    "beam 16 *": {"beam": 16, "part": True},
    "beam 32 *": {"beam": 32, "part": True},
    "α = 0": {"alpha": 0.0},
    "α = 0.3": {"alpha": 0.3},
    "α = 1": {"alpha": 1.0},
    "α = 1.5": {"alpha": 1.5},
    "α = 2": {"alpha": 2.0},
    "input + 0": {"extra": 0},
    "input + 5": {"extra": 5},
    "input + 10": {"extra": 10},
    "mean of 2": {"averaged": 2},
    "last alone": {"averaged": 1},
}
"""Settings beside the paper's; a star marks those tried on a part of the sentences."""


def recorded_gains(recorded: Recorded) -> dict[str, pd.DataFrame]:
    """For each element of `SHOWN` gain, low and high of each run."""
    columns = ["gain", "low", "high"]
    return {
        name: pd.DataFrame(
            recorded.chosen(**knobs).difference.tolist(), columns=columns
        )
        for name, knobs in SHOWN.items()
    }


def recorded_chart(found: dict[str, pd.DataFrame]) -> alt.LayerChart:
    """Every setting beside the paper's: a dot and an interval for each run."""
    colours = {"gains": VALUE.mark, "loses": ALERT.mark, "within noise": NEUTRAL.mark}
    rows = [
        {"setting": name, "run": f"run {i + 1}", "verdict": verdict(table), **line}
        for name, table in found.items()
        for i, line in enumerate(table.to_dict("records"))
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("setting:N", sort=list(found), title=None),
        yOffset="run:N",
        color=alt.Color(
            "verdict:N",
            title=None,
            scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        ),
    )
    x = {"title": "BLEU, difference from the paper's setting"}
    rules = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q")
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=alt.X("gain:Q", **x),
        tooltip=["setting:N", "run:N"]
        + [alt.Tooltip(f"{c}:Q", format="+.2f") for c in ("gain", "low", "high")],
    )
    return (_zero_line("x") + rules + dots).properties(
        width="container",
        height=30 * len(found),
        description="Fifteen settings, each with three runs: the difference in BLEU "
        "from the paper's setting and its bootstrap interval. "
        + " ".join(
            f"{name}: {table.gain.mean():+.2f}, {verdict(table)}."
            for name, table in found.items()
        ),
    )


def wide_beams(recorded: Recorded) -> pd.DataFrame:
    """Beams from 2 to 32 beside a beam of 4 with the same penalty: a row a run."""
    rows = []
    for alpha in (0.0, 0.6):
        for width in (2, 4, 8, 16, 32):
            part = width > 8  # the widest were tried on a part of the sentences
            lines = recorded.chosen(alpha=alpha, beam=width, part=part)
            for run in lines.to_dict("records"):
                gain, low, high = run["difference_to_beam_4"]
                rows.append(
                    {
                        "alpha": alpha,
                        "beam": width,
                        "gain": gain,
                        "low": low,
                        "high": high,
                        "length": run["length_ratio"],
                        "log p": run["log_probability"],
                        "reference": run["reference_log_probability"],
                        "rows": run["rows"],
                        "ms": run["ms"],
                        "run": run["run"],
                    }
                )
    return pd.DataFrame(rows)


def curse_charts(wide: pd.DataFrame) -> list[alt.LayerChart]:
    """Two panels over the beam, each with and without a penalty: BLEU, and length."""
    return [
        _two_penalties(
            wide,
            "gain",
            "BLEU, difference from a beam of 4",
            "Difference in BLEU from a beam of 4 with the same penalty, for beams of 2 "
            "to 32 and three runs. Without a penalty the curve falls by more than a "
            "point and a half; with 0.6 it rises a little.",
        ),
        _two_penalties(
            wide,
            "length",
            "length of outputs / references",
            "Length of the outputs over that of the references. Without a penalty it "
            "falls from 0.95 to 0.88 as the beam grows, with 0.6 from 0.96 to 0.94.",
        ),
    ]


def _two_penalties(
    wide: pd.DataFrame, what: str, y: str, description: str
) -> alt.LayerChart:
    names = {0.0: "no penalty", 0.6: "α = 0.6"}
    rows = [
        {
            "beam": str(row["beam"]),
            "penalty": names[row["alpha"]],
            "run": row["run"],
            "y": row[what],
        }
        for row in wide.to_dict("records")
    ]
    scale = alt.Scale(domain=list(names.values()), range=[ALERT.mark, KEY.mark])
    dashes = alt.Scale(domain=list(names.values()), range=[[6, 3], [1, 0]])
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "beam:O", sort=["2", "4", "8", "16", "32"], axis=alt.Axis(labelAngle=0)
        ),
        color=alt.Color("penalty:N", title=None, scale=scale),
    )
    axis = {"title": y, "scale": alt.Scale(zero=False)}
    thin = base.mark_line(strokeWidth=0.8).encode(
        y=alt.Y("y:Q", **axis), detail="run:N"
    )
    thick = base.mark_line(strokeWidth=3).encode(
        y=alt.Y("y:Q", aggregate="mean", **axis),
        strokeDash=alt.StrokeDash("penalty:N", title=None, scale=dashes),
    )
    return (thin + thick).properties(
        width="container", height=230, description=description
    )


def perplexities(recorded: Recorded) -> pd.DataFrame:
    """Of the last checkpoint and of means of 2 and 5: a column for each run."""
    lines = [
        {"checkpoints": line["averaged"], "run": run["name"], "y": line["perplexity"]}
        for run in recorded.runs
        for line in run["perplexities"]
        if "averaged" in line
    ]
    return pd.DataFrame(lines).pivot(index="checkpoints", columns="run", values="y")


# Several models at once


def weights_and_probabilities(translators: Translators) -> pd.DataFrame:
    """Three models alone, their mean weights, and their mean probabilities."""
    models = [translators.model(seed) for seed in translators.trained]
    blend = Transformer(models[0].config).eval().requires_grad_(False)
    blend.load_state_dict(average([model.state_dict() for model in models]))
    rows = {}
    for seed in translators.trained:
        found, work = translators.decode(seed)
        rows[f"seed {seed}"] = found, work
    rows["mean of the weights"] = counted_search(blend, translators.sources)
    found, work = counted_search(Ensemble(models), translators.sources)
    rows["mean of the probabilities"] = found, len(models) * work
    table = {}
    for name, (found, work) in rows.items():
        scores = quality([one.tokens for one in found], translators.references)
        table[name] = {
            "BLEU": scores["BLEU"],
            "exact, %": scores["exact, %"],
            "decoder rows": work,
        }
    return pd.DataFrame.from_dict(table, "index")
