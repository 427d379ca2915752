"""What chapter 24 measures in the published encoder: its heads and its mixtures.

Each function takes the encoder and rows of tokens, and returns plain lists, which the
record holds as they are.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from statistics import mean
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


def mixing(
    encoder: Any, rows: Rows, words: Sequence[int], tries: int = 2
) -> dict[str, Any]:
    """How much of a position's vector depends on its own token, after each layer.

    One token at a time is replaced by a random word, and the change of every vector is
    measured, as in chapter 20. Beside it stands what attention rollout computes from
    the weights, with one half for the residual connection, and the weight on itself.

    Args:
        encoder: The encoder.
        rows: Tokens of short texts.
        words: Tokens to draw from.
        tries: Random words for each token.
    """
    draw = torch.Generator().manual_seed(24)
    table = torch.tensor(words)
    measured, computed, own_weight = [], [], []
    for row in rows:
        n = len(row)
        (weights,) = attention_of_rows(encoder, [row])
        average = weights.mean(dim=1)  # (layers, queries, keys)
        flow, shares = torch.eye(n), [1.0]
        for layer in average:
            flow = (torch.eye(n) + layer) / 2 @ flow
            shares.append(_own(flow))
        computed.append(shares)
        own_weight.append([_own(layer) for layer in average])
        ids = torch.tensor(list(row))
        moved = torch.zeros(len(average) + 1, n, n)
        with torch.no_grad():
            whole = layer_states(encoder, ids[None])
            for _ in range(tries):
                other = table[torch.randint(len(table), (n,), generator=draw)]
                changed = ids.repeat(n, 1)
                changed[torch.arange(n), torch.arange(n)] = other
                for depth, states in enumerate(layer_states(encoder, changed)):
                    moved[depth] += (states - whole[depth]).norm(dim=-1).T
        measured.append([_own(m / m.sum(dim=-1, keepdim=True)) for m in moved])
    return {
        "measured": [round(mean(column), 4) for column in zip(*measured, strict=True)],
        "rollout": [round(mean(column), 4) for column in zip(*computed, strict=True)],
        "weight": [round(mean(column), 4) for column in zip(*own_weight, strict=True)],
        "uniform": mean(1 / len(row) for row in rows),
    }


def _own(shares: Tensor) -> float:
    """The mean of the diagonal, over ordinary tokens."""
    return shares.diagonal()[1:-1].mean().item()


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


# Scale, from published configurations.

CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "this encoder (2021)": {
        "vocab": 30522, "d": 384, "ff": 1536, "layers": 6, "heads": 12,
        "positions": 512, "segments": 2, "biases": True, "norm": "post",
        "embedding_norm": True, "pooler": True,
    },
    "the paper's base (2017)": {
        "vocab": 37000, "d": 512, "ff": 2048, "layers": 6, "decoder_layers": 6,
        "heads": 8, "ff_biases": True, "norm": "post",
    },
    "BERT-base (2018)": {
        "vocab": 30522, "d": 768, "ff": 3072, "layers": 12, "heads": 12,
        "positions": 512, "segments": 2, "biases": True, "norm": "post",
        "embedding_norm": True, "pooler": True,
    },
    "GPT-2 XL (2019)": {
        "vocab": 50257, "d": 1600, "ff": 6400, "layers": 48, "heads": 25,
        "positions": 1024, "biases": True, "norm": "pre",
    },
    "Llama 3 8B (2024)": {
        "vocab": 128256, "d": 4096, "ff": 14336, "layers": 32, "heads": 32,
        "kv_heads": 8, "gated": True, "tied": False, "norm": "rms",
    },
}  # fmt: skip
"""Sizes as their authors published them."""


def parameters(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Count the parameters of a model from its sizes.

    Returns:
        *total*, and *products*: those that each token is multiplied with, so without
        embeddings and norms, but with the output layer of a language model.
    """
    d, ff = sizes["d"], sizes["ff"]
    layers, decoder = sizes["layers"], sizes.get("decoder_layers", 0)
    narrow = d * sizes.get("kv_heads", sizes["heads"]) // sizes["heads"]
    attention = 2 * d * d + 2 * d * narrow
    attention_biases = 2 * d + 2 * narrow if sizes.get("biases") else 0
    forward = (3 if sizes.get("gated") else 2) * d * ff
    forward_biases = d + ff if sizes.get("biases") or sizes.get("ff_biases") else 0
    norm = d if sizes["norm"] == "rms" else 2 * d
    products = layers * (attention + forward) + decoder * (2 * attention + forward)
    rest = layers * (attention_biases + forward_biases + 2 * norm)
    rest += decoder * (2 * attention_biases + forward_biases + 3 * norm)
    rest += norm * (sizes["norm"] != "post") + norm * sizes.get("embedding_norm", False)
    tables = sizes["vocab"] + sizes.get("positions", 0) + sizes.get("segments", 0)
    output = sizes["vocab"] * d
    total = products + rest + tables * d
    if sizes.get("pooler"):
        total += d * d + d
    else:  # it predicts tokens
        products += output
    if not sizes.get("tied", True):
        total += output
    return {"total": total, "products": products}


def flops(sizes: Mapping[str, Any], length: int = 128) -> float:
    """Multiplications and additions for one token among `length`, forward only.

    Two for each parameter in a product, and 4 n d in each attention for scores and
    weighted means, without a discount for a causal mask. In an encoder-decoder a token
    is one of the source and one of the target.
    """
    attentions = sizes["layers"] + 2 * sizes.get("decoder_layers", 0)
    return 2 * parameters(sizes)["products"] + 4 * length * sizes["d"] * attentions
