"""Figures 3–5, counted: what each head looks at, and what the model loses without it.

A head is scored against a *gold* relation: for each sentence, pairs (query, key) of
positions. Two scores are in use: how often the greatest weight of a row lies on a right
key, and how much of the weight does.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from aiayn.errors import InputError
from aiayn.inference.hypothesis import eval_mode
from aiayn.model import Transformer, shift_right
from aiayn.model.attention import MultiHeadAttention

Use = Literal["encoder", "decoder", "cross"]
Pairs = Sequence[tuple[int, int]]
Head = tuple[Use, int, int]
"""Where it is, its layer and its number: both counted from 0, as torch does, whereas
`cross_attention_map` counts from 1, as the paper does."""


class SentenceWeights(NamedTuple):
    """The weights of every head for one sentence pair, rows being queries."""

    encoder: Float[Tensor, "layers heads source source"]
    decoder: Float[Tensor, "layers heads target target"]
    """Row i writes token i, having read those before it; column 0: the start token."""
    cross: Float[Tensor, "layers heads target source"]


def attention_by_sentence(
    model: Transformer,
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    bos_id: int,
) -> list[SentenceWeights]:
    """What every head looks at while the model reads and writes these sentences.

    Args:
        model: The model; it is put into evaluation mode for the while.
        pairs: Ids of source and target, each ending in its end token.
        bos_id: What the decoder reads first.

    Returns:
        Weights on the CPU, where the gold relations are, in the order of the pairs.
    """
    device, found = next(model.parameters()).device, []
    for source, target in pairs:
        read = torch.tensor([source], device=device)
        written = shift_right(torch.tensor([target], device=device), bos_id)
        with eval_mode(model):
            weights = model.attention_weights(read, written)
        # Joined out here: what is made inside cannot be changed in place.
        n, m, heads = len(source), len(target), model.config.num_heads
        found.append(
            SentenceWeights(
                _joined(weights.encoder, (0, heads, n, n)),
                _joined(weights.decoder, (0, heads, m, m)),
                _joined(weights.cross, (0, heads, m, n)),
            )
        )
    return found


def _joined(layers: tuple[Tensor, ...], empty: tuple[int, ...]) -> Tensor:
    """The layers in one tensor on the CPU, of the shape ``empty`` if there is none."""
    return torch.cat(layers).cpu() if layers else torch.empty(empty)


class HeadScores(NamedTuple):
    """How well heads follow a relation."""

    hits: Float[Tensor, "layers heads"]
    """The share of queries whose greatest weight lies on a right key."""
    mass: Float[Tensor, "layers heads"]
    """The mean weight on right keys."""


def score_heads(
    weights: Sequence[Float[Tensor, "layers heads _queries _keys"]],
    gold: Sequence[Pairs],
) -> HeadScores:
    """Score each head against a relation.

    Args:
        weights: For each sentence, every head's weights.
        gold: For each sentence, the pairs (query, key). A query may have several right
            keys; one without any does not count.

    Returns:
        Both scores, where the weights are; NaN if there is no pair at all.

    Raises:
        InputError: There is no sentence at all, so that nothing says how many heads.
    """
    if not len(weights):
        raise InputError("Without a sentence there are no heads: give at least one.")
    hits, mass = [], []
    for table, pairs in zip(weights, gold, strict=True):
        for query, keys in _by_query(pairs).items():
            row = table[:, :, query]  # (layers, heads, keys)
            right = torch.zeros(row.size(-1), device=row.device)
            right[keys] = 1.0
            hits.append(right[row.argmax(dim=-1)])  # (layers, heads)
            mass.append(row.to(right.dtype) @ right)  # (layers, heads)
    if not hits:
        device = weights[0].device
        nothing = torch.full(weights[0].shape[:2], torch.nan, device=device)
        return HeadScores(nothing, nothing)
    return HeadScores(torch.stack(hits).mean(dim=0), torch.stack(mass).mean(dim=0))


def uniform_baseline(
    lengths: Sequence[int], gold: Sequence[Pairs], *, causal: bool = False
) -> float:
    """What a head scores that looks at all keys alike.

    Args:
        lengths: How many keys each sentence has.
        gold: As for `score_heads`.
        causal: Whether a mask forbids what comes later: query i has i + 1 keys then.

    Returns:
        The share of right keys, averaged over queries; NaN if there is no pair at all.
    """
    shares = [
        len(keys) / (query + 1 if causal else length)
        for length, pairs in zip(lengths, gold, strict=True)
        for query, keys in _by_query(pairs).items()
    ]
    return sum(shares) / len(shares) if shares else math.nan


class Offset(NamedTuple):
    """A fixed distance, and the share of queries that find a right key there."""

    offset: int
    hits: float


def best_offset(gold: Sequence[Pairs]) -> Offset:
    """The score of the best head that knows nothing but positions.

    Voita et al. (2019) hold heads against it: whoever always looks at the word before
    finds many subjects.

    Raises:
        InputError: There is no pair at all.

    >>> best_offset([[(2, 1)], [(3, 2)], [(5, 1)]])
    Offset(offset=-1, hits=0.6666666666666666)
    """
    rows = [(q, keys) for pairs in gold for q, keys in _by_query(pairs).items()]
    if not rows:
        raise InputError("Without a pair there is no offset: give at least one.")
    offsets = sorted({key - query for query, keys in rows for key in keys}, key=abs)
    shares = {
        d: sum(query + d in keys for query, keys in rows) / len(rows) for d in offsets
    }
    best = max(shares, key=shares.__getitem__)
    return Offset(best, shares[best])


def shuffled(
    gold: Sequence[Pairs], lengths: Sequence[int], *, seed: int
) -> list[list[tuple[int, int]]]:
    """A null: the same queries and the same distances, but dealt out anew.

    Args:
        gold: As for `score_heads`.
        lengths: How many keys each sentence has; a key beyond is moved to its end.
        seed: Of the shuffle.
    """
    offsets = [key - query for pairs in gold for query, key in pairs]
    Random(seed).shuffle(offsets)
    dealt = iter(offsets)
    return [
        [(q, min(max(q + next(dealt), 0), length - 1)) for q, _ in pairs]
        for pairs, length in zip(gold, lengths, strict=True)
    ]


def all_heads(model: Transformer) -> list[Head]:
    """Every head of the model, encoder first; layers and heads count from 0."""
    config = model.config
    layers: dict[Use, int] = {
        "encoder": config.num_encoder_layers,
        "decoder": config.num_decoder_layers,
        "cross": config.num_decoder_layers,
    }
    return [
        (use, layer, head)
        for use, count in layers.items()
        for layer in range(count)
        for head in range(config.num_heads)
    ]


def attention_of(model: Transformer, use: Use, layer: int) -> MultiHeadAttention:
    """The attention that a head is part of."""
    stack = model.encoder if use == "encoder" else model.decoder
    name = "cross_attention" if use == "cross" else "self_attention"
    return getattr(stack.layers[layer], name)


@contextmanager
def without_heads(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Inside, these heads contribute nothing; afterwards the model is as it was.

    A head reaches the rest of the model through its rows of $W^O$ only, so setting them
    to zero takes it out (Michel et al., 2019).

    Raises:
        InputError: The model has no such head.
    """
    kept = []
    try:
        for use, layer, head in heads:
            if (use, layer, head) not in all_heads(model):
                raise InputError(
                    f"The model has no head {(use, layer, head)}: choose one of "
                    "all_heads(model)."
                )
            attention = attention_of(model, use, layer)
            weight = attention.output_projection.weight  # (d_model, heads·d_v)
            part = slice(head * attention.d_v, (head + 1) * attention.d_v)
            kept.append((weight, part, weight[:, part].detach().clone()))
            weight.data[:, part] = 0.0
        yield
    finally:
        for weight, part, values in reversed(kept):
            weight.data[:, part] = values


def mean_contexts(
    model: Transformer,
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    bos_id: int,
) -> dict[tuple[Use, int], Tensor]:
    """What the heads of each attention hand to $W^O$ on average.

    Args:
        model: The model; it is put into evaluation mode for the while.
        pairs: Ids of source and target, each ending in its end token.
        bos_id: What the decoder reads first.

    Returns:
        For each use and layer, the mean over all positions of all sentences of the
        concatenated contexts, of shape (heads · d_v,).
    """
    places = sorted({(use, layer) for use, layer, _ in all_heads(model)})
    device = next(model.parameters()).device
    sums, counts = dict.fromkeys(places, 0.0), dict.fromkeys(places, 0)
    with ExitStack() as hooks, eval_mode(model):
        for place in places:

            def note(module: Any, given: tuple, place: tuple = place) -> None:
                flat = given[0].flatten(0, -2)  # (positions, heads·d_v)
                sums[place] += flat.sum(dim=0)
                counts[place] += len(flat)

            projection = attention_of(model, *place).output_projection
            hooks.enter_context(_hooked(projection, note))
        for source, target in pairs:
            read = torch.tensor([source], device=device)
            model(read, shift_right(torch.tensor([target], device=device), bos_id))
    return {place: sums[place] / counts[place] for place in places}


@contextmanager
def heads_at_their_mean(
    model: Transformer,
    heads: Iterable[Head],
    means: Mapping[tuple[Use, int], Tensor],
) -> Iterator[None]:
    """Inside, these heads hand over their mean whatever they read.

    Zero is a value that the layers behind a head may never have met; the mean removes
    what the head says about *this* sentence, and little else.
    """
    with ExitStack() as hooks:
        for use, layer, head in heads:
            attention = attention_of(model, use, layer)
            part = slice(head * attention.d_v, (head + 1) * attention.d_v)

            def put(
                module: Any,
                given: tuple,
                part: slice = part,
                mean: Tensor = means[use, layer],
            ) -> tuple:
                contexts = given[0].clone()
                contexts[..., part] = mean[part]
                return (contexts, *given[1:])

            hooks.enter_context(_hooked(attention.output_projection, put))
        yield


@contextmanager
def _hooked(module: torch.nn.Module, hook: Callable[..., Any]) -> Iterator[None]:
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def value_norms(
    attention: MultiHeadAttention,
    weights: Float[Tensor, "batch heads queries keys"],
    values: Float[Tensor, "batch keys d_model"],
) -> Float[Tensor, "batch queries keys"]:
    r"""The length of what each key adds to the output, all heads together.

    $$\Bigl\lVert \sum_h α^h_{ij}\, x_j W^V_h W^O_h \Bigr\rVert$$

    Args:
        attention: Whose projections.
        weights: What it looked at.
        values: What it looked at it in.

    Paper: none; Kobayashi et al. (2020).
    """
    heads, d_v = attention.num_heads, attention.d_v
    projected = attention.value_projection(values)  # (batch, keys, heads·d_v)
    projected = projected.unflatten(-1, (heads, d_v))
    out = attention.output_projection.weight  # (d_model, heads·d_v)
    out = out.unflatten(-1, (heads, d_v))
    handed = torch.einsum("bkhv,mhv->bhkm", projected, out)
    added = torch.einsum("bhqk,bhkm->bqkm", weights, handed)
    return added.norm(dim=-1)


def _by_query(pairs: Pairs) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for query, key in pairs:
        rows.setdefault(query, []).append(key)
    return rows
