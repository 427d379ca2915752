"""Chapter 20's questions to the model itself: what changes if something is missing?

A weight says where a head looks. Here heads are taken out, and source words hidden.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from aiayn.data.grammar import GrammarSample
from aiayn.data.grammar.relations import candidates, english_relations
from aiayn.model import Transformer, shift_right
from aiayn_book.head_scores import (
    all_heads,
    attention_of,
    best_offset,
    uniform_baseline,
    value_norms,
    without_heads,
)
from aiayn_book.heads import BOS, PAD, Words, exact, mean_loss

Samples = Sequence[GrammarSample]


def ablation(model: Transformer, samples: Samples, words: Words) -> dict[str, Any]:
    """The loss without each head, and how far one can go in taking heads out.

    Heads go in the order of what they cost alone on one half; the other half is scored.
    """
    pairs = words.pairs(samples)
    chosen_on, scored_on = pairs[::2], pairs[1::2]
    heads, base = all_heads(model), mean_loss(model, chosen_on)
    alone = {}
    for head in heads:
        with without_heads(model, [head]):
            alone[head] = mean_loss(model, chosen_on) - base
    order = sorted(heads, key=alone.__getitem__)
    curve = []
    for removed in range(len(order) + 1):
        with without_heads(model, order[:removed]):
            right = exact(model, scored_on)
            curve.append(
                {
                    "removed": removed,
                    "exact": sum(right) / len(right),
                    "loss": mean_loss(model, scored_on),
                }
            )
        if not any(right):
            break
    return {
        "loss": base,
        "without": [[*head, round(cost, 4)] for head, cost in alone.items()],
        "curve": curve,
    }


def relevance(model: Transformer, samples: Samples, words: Words) -> dict[str, Any]:
    """Three ways to say which source word mattered, beside taking it away.

    What counts as the truth is the *effect*: by how much the prediction of a word
    changes (total variation) when one source position is hidden from the decoder. Then
    for every word that is written, the rank correlation over source positions.
    """
    rank: dict[str, list[float]] = {"weight": [], "norm": [], "gradient": []}
    top, tops, spans = [], [], []
    on_marks: dict[str, list[float]] = {"weight": [], "norm": [], "effect": []}
    for source, target in words.pairs(samples):
        guesses = relevance_of(model, source, target)
        effect = guesses["effect"]  # (target, source)
        for name, values in rank.items():
            values += spearman(guesses[name], effect).tolist()
        hit = guesses["weight"].argmax(dim=-1) == effect.argmax(dim=-1)
        top += hit.float().tolist()
        tops.append(list(enumerate(effect.argmax(dim=-1).tolist())))
        spans.append(len(source))
        for name, values in on_marks.items():
            shares = guesses[name] / guesses[name].sum(dim=-1, keepdim=True)
            values += shares[:, -2:].sum(dim=-1).tolist()  # the full stop and </s>
    return {
        "correlation": {name: _mean(values) for name, values in rank.items()},
        "top": _mean(top),
        "uniform": uniform_baseline(spans, tops),
        "offset": best_offset(tops).hits,
        "on marks": {name: _mean(values) for name, values in on_marks.items()},
    }


def pronoun_sources(
    model: Transformer, samples: Samples, words: Words
) -> dict[str, dict[str, float]]:
    """Which English words the German pronoun is written from.

    Args:
        model: A translator.
        samples: "The cow did not eat the bread because it was sick.", with
            `two_candidates`.
        words: The vocabulary.

    Returns:
        For *it*, both nouns and the adjective: their *weight* and *effect* in the row
        of the pronoun (`relevance_of`), the mean over the sentences.
    """
    names, found = ("weight", "effect"), {}
    for sample, pair in zip(samples, words.pairs(samples), strict=True):
        it, meant = english_relations(sample)["antecedent of the pronoun"][0]
        both = candidates(sample)
        assert both is not None
        roles = {
            "it": it,
            "the noun meant": meant,
            "the other noun": sum(both) - meant,
            "the adjective": len(sample.source_tokens) - 2,  # before the full stop
        }
        row = next(j for i, j in sorted(sample.alignment) if i == it)
        guesses = relevance_of(model, *pair)
        for role, place in roles.items():
            numbers = [guesses[name][row, place].item() for name in names]
            found.setdefault(role, []).append(numbers)
    return {
        role: dict(zip(names, torch.tensor(rows).mean(dim=0).tolist(), strict=True))
        for role, rows in found.items()
    }


def relevance_of(
    model: Transformer, source: list[int], target: list[int]
) -> dict[str, Tensor]:
    """Effect, weight, value norm and gradient of each source position.

    Returns:
        Four tables (target, source): the row says which word is written.
    """
    wanted, sources = torch.tensor([target]), torch.tensor([source])
    target_in, length = shift_right(wanted, BOS), len(target)
    with torch.no_grad():
        memory = model.encode(sources)
        whole = model.decode(target_in, memory, sources)[0].softmax(dim=-1)
        # Padding is what cross-attention cannot see: hide one position a row.
        hidden = sources.repeat(len(source), 1).fill_diagonal_(PAD)
        rows = memory.expand(len(source), -1, -1)
        parts = model.decode(target_in.expand(len(source), -1), rows, hidden)
        effect = (parts.softmax(dim=-1) - whole).abs().sum(dim=-1).T / 2
        crossed = model.attention_weights(sources, target_in).cross
        norms = [
            value_norms(attention_of(model, "cross", layer), weights, memory)[0]
            for layer, weights in enumerate(crossed)
        ]
    copies = memory.repeat(length, 1, 1).requires_grad_()  # one for each word written
    logits = model.decode(
        target_in.repeat(length, 1), copies, sources.repeat(length, 1)
    )
    steps = torch.arange(length)
    chosen = logits[steps, steps].log_softmax(dim=-1)[steps, wanted[0]]
    (gradient,) = torch.autograd.grad(chosen.sum(), copies)
    return {
        "effect": effect,
        "weight": torch.cat(crossed).mean(dim=(0, 1)),
        "norm": torch.stack(norms).mean(dim=0),
        "gradient": gradient.norm(dim=-1),
    }


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """The rank correlation of each row of two tables."""
    ranks = [table.argsort(dim=-1).argsort(dim=-1).double() for table in (a, b)]
    centred = [rank - rank.mean(dim=-1, keepdim=True) for rank in ranks]
    product = (centred[0] * centred[1]).sum(dim=-1)
    return product / (centred[0].square().sum(dim=-1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
