"""Figures 3 and 4 for chapter 20, counted: the head that follows a relation best.

The best of many heads is too good by chance alone, so it is chosen on one half of the
sentences and scored on the other.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from aiayn.data.grammar import GrammarSample
from aiayn.data.grammar.nouns import BY_NAME
from aiayn.data.grammar.relations import candidates, english_relations
from aiayn.inference import eval_mode
from aiayn.model import Transformer, shift_right
from aiayn_book.head_scores import (
    Pairs,
    SentenceWeights,
    best_offset,
    score_heads,
    shuffled,
    uniform_baseline,
)
from aiayn_book.heads import (
    ABOVE_OFFSET,
    BOS,
    LONG,
    SHARP,
    Words,
    gold_of,
    lengths_of,
    long_ones,
    side,
)

Samples = Sequence[GrammarSample]


def best_head(
    tables: Sequence[Tensor],
    gold: Sequence[Pairs],
    lengths: Sequence[int],
    *,
    causal: bool = False,
) -> dict[str, Any]:
    """The head that follows a relation best, chosen on one half, scored on the other.

    Beside it two baselines, and a null: the same search with `shuffled` gold.
    """
    first, second = (
        score_heads(tables[::2], gold[::2]),
        score_heads(*_odd(tables, gold)),
    )
    layer, head = divmod(int(first.hits.argmax()), first.hits.size(1))
    null = shuffled(gold, lengths, seed=20)
    chosen = divmod(
        int(score_heads(tables[::2], null[::2]).hits.argmax()), first.hits.size(1)
    )
    return {
        "layer": layer + 1,
        "head": head + 1,
        "hits": second.hits[layer, head].item(),
        "mass": second.mass[layer, head].item(),
        "uniform": uniform_baseline(lengths[1::2], gold[1::2], causal=causal),
        "offset": best_offset(gold[1::2]).hits,
        "shuffled": score_heads(*_odd(tables, null)).hits[chosen].item(),
        "queries": sum(map(len, gold[1::2])),
    }


def long_distance(weights: Sequence[SentenceWeights], samples: Samples) -> dict:
    """Figure 3: a verb and its subject, at least `LONG` words apart, both ways."""
    gold, lengths = gold_of(samples)["encoder"], lengths_of(samples, "encoder")
    tables = side(weights, "encoder")
    return {
        name: best_head(tables, long_ones(gold[name]), lengths)
        for name in ("subject of the verb", "verb of the subject")
    }


def verb_bracket(weights: Sequence[SentenceWeights], samples: Samples) -> dict:
    """The German pendant: a participle or prefix, far from its finite verb."""
    name = "first half of the verb"
    # Word j has column j + 1, so a pair looks nearer by one than it is.
    gold = long_ones(gold_of(samples)["decoder"][name], LONG - 1)
    lengths = lengths_of(samples, "decoder")
    return best_head(side(weights, "decoder"), gold, lengths, causal=True)


def two_candidates(samples: Samples) -> list[GrammarSample]:
    """Samples whose *it* could stand for either of two nouns of different gender."""

    def genders(sample: GrammarSample, places: tuple[int, int]) -> set[str]:
        return {BY_NAME[sample.source_tokens[place]].gender for place in places}

    return [s for s in samples if (c := candidates(s)) and len(genders(s, c)) == 2]


def reference(
    model: Transformer,
    weights: Sequence[SentenceWeights],
    samples: Samples,
    words: Words,
) -> dict[str, Any]:
    """Figure 4: what *it* looks at, in samples with `two_candidates`."""
    gold, others, rows = [], [], []
    for sample in samples:
        it, meant = english_relations(sample)["antecedent of the pronoun"][0]
        both = candidates(sample)
        assert both is not None
        gold.append([(it, meant)])
        others.append(sum(both) - meant)
        rows.append(it)
    tables = side(weights, "encoder")
    found = best_head(tables, gold, lengths_of(samples, "encoder"))
    at = torch.stack([t[:, :, i] for t, i in _padded(tables, rows)])
    index = torch.arange(len(samples))
    meant = torch.tensor([pairs[0][1] for pairs in gold])
    prefers = at[index, :, :, meant] > at[index, :, :, torch.tensor(others)]
    sharp = at.amax(dim=-1).mean(dim=0)  # (layers, heads)
    follows = torch.stack(
        [
            score_heads(tables[half::2], gold[half::2]).hits
            >= best_offset(gold[half::2]).hits + ABOVE_OFFSET
            for half in (0, 1)
        ]
    ).all(dim=0)
    place = found["layer"] - 1, found["head"] - 1
    passed = follows & (prefers.float().mean(dim=0) >= 0.75) & (sharp >= SHARP)
    return found | {
        "prefers": prefers[1::2].float().mean(dim=0)[place].item(),
        "sharp": sharp[place].item(),
        "heads": int(passed.sum()),
        "pronouns right": _pronouns_right(model, samples, words),
    }


def _pronouns_right(model: Transformer, samples: Samples, words: Words) -> float:
    """How often the German pronoun is right, given the right words before it."""
    right = 0
    for sample, (source, target) in zip(samples, words.pairs(samples), strict=True):
        it = sample.source_tokens.index("it")
        place = next(j for i, j in sorted(sample.alignment) if i == it)
        with eval_mode(model):
            logits = model(
                torch.tensor([source]), shift_right(torch.tensor([target]), BOS)
            )
        right += int(logits[0, place].argmax()) == target[place]
    return right / len(samples)


def _odd(tables: Sequence[Tensor], gold: Sequence[Pairs]) -> tuple:
    return tables[1::2], gold[1::2]


def _padded(tables: Sequence[Tensor], rows: Sequence[int]) -> list[tuple[Tensor, int]]:
    """Tables with as many keys as the longest sentence has."""
    longest = max(table.size(-1) for table in tables)
    grow = torch.nn.functional.pad
    return [
        (grow(table, (0, longest - table.size(-1))), row)
        for table, row in zip(tables, rows, strict=True)
    ]
