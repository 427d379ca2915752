"""What chapter 24 measures in the published encoder: its heads and its sink.

Each function takes the encoder and rows of tokens, and returns plain lists, which the
record holds as they are.
"""

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from aiayn_book.head_scores import Pairs, uniform_baseline
from aiayn_book.published import DIFFERENCES, embed_rows, layer_states, without

Rows = Sequence[Sequence[int]]
RELATIONS = ("previous token", "next token", "itself", "[CLS]", "[SEP]", "same word")


def attention_of_rows(encoder: Any, rows: Rows) -> list[Tensor]:
    """For each text the weights (layers, heads, queries, keys)."""
    found = []
    with torch.no_grad():
        for row in rows:
            _, weights = encoder(torch.tensor([list(row)]), need_weights=True)
            found.append(torch.cat(weights))
    return found


def relations(rows: Rows, words: set[int]) -> dict[str, list[Pairs]]:
    """For each relation and text the pairs (query, key); queries are ordinary tokens.

    Args:
        rows: Tokens between [CLS] and [SEP].
        words: The tokens that count as words, for *same word*.
    """
    found: dict[str, list[Pairs]] = {name: [] for name in RELATIONS}
    for row in rows:
        last = len(row) - 1
        queries = range(1, last)
        places = defaultdict(list)
        for place in queries:
            if row[place] in words:
                places[row[place]].append(place)
        same = [
            (q, k) for there in places.values() for q in there for k in there if q != k
        ]
        for name, pairs in {
            "previous token": [(q, q - 1) for q in queries if q > 1],
            "next token": [(q, q + 1) for q in queries if q < last - 1],
            "itself": [(q, q) for q in queries],
            "[CLS]": [(q, 0) for q in queries],
            "[SEP]": [(q, last) for q in queries],
            "same word": sorted(same),
        }.items():
            found[name].append(pairs)
    return found


def mass(weights: Sequence[Tensor], gold: Sequence[Pairs]) -> Tensor:
    """The mean weight of a query on its right keys: (layers, heads).

    The same as `aiayn_book.head_scores.score_heads(weights, gold).mass`, and faster.
    """
    total, queries = torch.zeros(weights[0].shape[:2]), 0
    for table, pairs in zip(weights, gold, strict=True):
        if pairs:
            at, keys = torch.tensor(pairs).T
            total += table[:, :, at, keys].sum(dim=-1)
            queries += len(at.unique())
    return total / queries


def exchanged(gold: Sequence[Pairs], seed: int = 24) -> list[list[tuple[int, int]]]:
    """A null: the same queries and the same keys of each text, but paired at random."""
    draw = Random(seed)
    found = []
    for pairs in gold:
        keys = [key for _, key in pairs]
        draw.shuffle(keys)
        found.append([(q, k) for (q, _), k in zip(pairs, keys, strict=True)])
    return found


def head_table(encoder: Any, rows: Rows, words: set[int]) -> dict[str, Any]:
    """The mean weight of every head on each relation, beside two baselines.

    Returns:
        For each relation: mass (layers, heads); uniform, which every head would have
        if it weighted all tokens alike; shuffled, the most that any head has when keys
        and queries of a text are paired at random; pairs, how many there are.
    """
    weights = attention_of_rows(encoder, rows)
    lengths = [len(row) for row in rows]
    return {
        name: {
            "mass": _rounded(mass(weights, gold)),
            "uniform": uniform_baseline(lengths, gold),
            "shuffled": mass(weights, exchanged(gold)).max().item(),
            "pairs": sum(map(len, gold)),
        }
        for name, gold in relations(rows, words).items()
    }


def moved_sink(encoder: Any, rows: Rows) -> dict[str, list[float]]:
    """Is it the token or its position? The weight by layer when [CLS] is moved.

    Each text is given as it is, and with [CLS] moved to its middle.

    Returns:
        For each layer, the mean over heads and ordinary queries: *in front*, on [CLS]
        where it belongs; *moved*, on [CLS] in the middle; *first*, on the word that
        then comes first.
    """
    sums: dict[str, list[Tensor]] = {"in front": [], "moved": [], "first": []}
    for row in rows:
        middle = len(row) // 2
        other = [*row[1:middle], row[0], *row[middle:]]
        for given, names in ((row, ["in front"]), (other, ["moved", "first"])):
            (weights,) = attention_of_rows(encoder, [given])
            special = {row[0], row[-1]}
            ordinary = [i for i, t in enumerate(given) if i and t not in special]
            average = weights[:, :, ordinary].mean(dim=(1, 2))  # (layers, keys)
            places = {"in front": 0, "moved": middle - 1, "first": 0}
            for name in names:
                sums[name].append(average[:, places[name]])
    return {
        name: _rounded(torch.stack(all_).mean(dim=0)) for name, all_ in sums.items()
    }


def sink_share(encoder: Any, rows: Rows) -> dict[str, list[float]]:
    """By layer, what [CLS] gets of the weight, and what it adds to the output.

    The second is its share of the norms ‖α f(x)‖, where f is the projection of values
    and output of one head (Kobayashi et al., 2020).
    """
    found: dict[str, list[Tensor]] = {"weight": [], "norm": []}
    for row in rows:
        tokens = torch.tensor([list(row)])
        with torch.no_grad():
            states = layer_states(encoder, tokens)
            _, weights = encoder(tokens, need_weights=True)
            layers = zip(encoder.encoder.layers, states[:-1], weights, strict=True)
            shares = []
            for layer, x, (w,) in layers:
                part = layer.self_attention
                _, (values,) = part.project_kv(x, x)  # (heads, keys, d_v)
                out = part.output_projection.weight.unflatten(1, (part.num_heads, -1))
                handed = torch.einsum("hkv,mhv->hkm", values, out).norm(dim=-1)
                w = w[:, 1:-1]  # ordinary queries
                added = (w * handed[:, None]).sum(dim=1)  # (heads, keys)
                share = added[:, 0] / added.sum(dim=-1)
                shares.append((w[:, :, 0].mean(), share.mean()))
        for name, column in zip(found, zip(*shares, strict=True), strict=True):
            found[name].append(torch.stack(column))
    return {
        name: _rounded(torch.stack(all_).mean(dim=0)) for name, all_ in found.items()
    }


def left_out(encoder: Any, rows: Rows, right: Tensor) -> dict[str, dict[str, float]]:
    """What each difference is worth: the encoder's error without it.

    Args:
        encoder: The assembled encoder.
        rows: Tokens of the reference sentences.
        right: Their reference vectors (texts, d_model).

    Returns:
        For *nothing* and each difference the largest error of a number, and the mean
        cosine with the reference.
    """

    def errors() -> dict[str, float]:
        found = embed_rows(encoder, rows)[-1]
        return {
            "largest": (found - right).abs().max().item(),
            "cosine": (found * right).sum(dim=-1).mean().item(),
        }

    table = {"nothing": errors()}
    for what in DIFFERENCES:
        with without(encoder, what):
            table[what] = errors()
    return table


def _rounded(table: Tensor) -> list:
    return [
        [round(x, 4) for x in row] if isinstance(row, list) else round(row, 4)
        for row in table.tolist()
    ]
