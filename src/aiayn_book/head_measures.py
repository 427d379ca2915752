"""Chapter 20's numbers: `measure` takes a trained translator and fills one record.

Figures 3 and 4 have their own module, `head_figures`; taking things away is in
`head_effects`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from aiayn.data.grammar import GrammarSample, generate
from aiayn.model import Transformer
from aiayn_book.head_effects import ablation, pronoun_sources, relevance
from aiayn_book.head_figures import (
    long_distance,
    reference,
    two_candidates,
    verb_bracket,
)
from aiayn_book.head_scores import (
    SentenceWeights,
    attention_by_sentence,
    best_offset,
    score_heads,
    uniform_baseline,
)
from aiayn_book.heads import (
    BOS,
    HELD_OUT,
    KINDS,
    Words,
    bar,
    exact,
    gold_of,
    lengths_of,
    side,
)

USES = ("encoder", "decoder", "cross")
Samples = Sequence[GrammarSample]


def tasks(weights: Sequence[SentenceWeights], samples: Samples) -> dict[str, list]:
    """For each head, the tasks whose bar it reaches in both halves of the sentences.

    Returns:
        For each use, layer and head a list of names.
    """
    gold = gold_of(samples)
    found = {}
    for use in USES:
        tables = side(weights, use)
        layers, heads = tables[0].shape[:2]
        names: list = [[[] for _ in range(heads)] for _ in range(layers)]
        for name, pairs in gold[use].items():
            reached = torch.stack(
                [
                    score_heads(tables[half::2], pairs[half::2]).hits
                    >= bar(name, pairs[half::2])
                    for half in (0, 1)
                ]
            ).all(dim=0)
            for layer, head in reached.nonzero().tolist():
                names[layer][head].append(name)
        found[use] = names
    return found


def relation_scores(
    weights: Sequence[SentenceWeights], samples: Samples
) -> dict[str, dict[str, dict[str, Any]]]:
    """Every head against every relation, with both baselines."""
    gold, found = gold_of(samples), {}
    for use in USES:
        lengths = lengths_of(samples, use)
        found[use] = {
            name: {
                "hits": _numbers(score_heads(side(weights, use), pairs).hits),
                "uniform": uniform_baseline(lengths, pairs, causal=use == "decoder"),
                "offset": best_offset(pairs).hits,
                "bar": bar(name, pairs),
            }
            for name, pairs in gold[use].items()
        }
    return found


def held_out() -> dict[str, list[GrammarSample]]:
    """The sentences that heads are looked at with; none of them is in the training."""

    def draw(count: int, seed: int, kinds: Sequence[str]) -> list[GrammarSample]:
        return generate(count, seed=seed, split="test", kinds=kinds)

    return {
        "mixed": draw(HELD_OUT, 20, KINDS),
        "relative": draw(300, 21, ["relative-subject"]),
        "anaphora": two_candidates(draw(1200, 22, ["anaphora"])),
    }


def distances(weights: Sequence[SentenceWeights], longest: int = 10) -> list:
    """For each encoder head, how much weight goes how many words far.

    Returns:
        (layers, heads, longest + 1); the last entry is for all that is farther.
    """
    shares = []
    for table in side(weights, "encoder"):
        length = table.size(-1)
        places = torch.arange(length)
        far = (places[:, None] - places).abs().clamp(max=longest).flatten()
        empty = torch.zeros(*table.shape[:2], longest + 1)
        shares.append(empty.index_add(2, far, table.flatten(2)) / length)
    return _numbers(torch.stack(shares).mean(dim=0))


def measure(
    model: Transformer, tests: dict[str, list[GrammarSample]], words: Words
) -> dict[str, Any]:
    """All numbers of the chapter for one model.

    Args:
        model: Trained, or not.
        tests: Held-out samples: "mixed", "relative" and "anaphora".
        words: The vocabulary.
    """
    seen = {
        name: attention_by_sentence(model, words.pairs(samples), bos_id=BOS)
        for name, samples in tests.items()
    }
    right = exact(model, words.pairs(tests["mixed"]))
    return {
        "exact": sum(right) / len(right),
        "scores": relation_scores(seen["mixed"], tests["mixed"]),
        "tasks": tasks(seen["mixed"], tests["mixed"]),
        "long": long_distance(seen["relative"], tests["relative"]),
        "bracket": verb_bracket(seen["mixed"], tests["mixed"]),
        "reference": reference(model, seen["anaphora"], tests["anaphora"], words),
        "pronoun": pronoun_sources(model, tests["anaphora"], words),
        "ablation": ablation(model, tests["mixed"][:200], words),
        "relevance": relevance(model, tests["mixed"][:60], words),
        "distances": distances(seen["mixed"]),
    }


def _numbers(table: Tensor) -> list:
    return table.double().mul(1e4).round().div(1e4).tolist()
