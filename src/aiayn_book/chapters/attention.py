"""Chapter 3, attention: its drawings, its measurements, its claims (§3.2, §3.2.1)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aiayn import scaled_dot_product_attention
from aiayn_book import settle
from aiayn_book.diagrams import Diagram
from aiayn_book.svg import Svg

Attention = Callable[..., tuple[Tensor, Tensor]]

WORDS = ["cat", "drinks", "milk"]
FEATURES = ["thing", "action", "living", "liquid"]
QUERY = torch.tensor([2.0, 0, 2, 0])  # the verb asks for its subject
KEYS = torch.tensor([[1.0, 0, 1, 0], [0.0, 1, 0, 0], [1.0, 0, 0, 1]])
VALUES = torch.tensor([[10.0, 0.0], [0.0, 0.0], [0.0, 10.0]])


def soft_lookup(*, phone: bool = False) -> Svg:
    """One look-up from left to right: compare, softmax, mix."""
    context, weights = scaled_dot_product_attention(QUERY[None], KEYS, VALUES)
    scores = KEYS @ QUERY / 2
    drawing = Diagram(360, 270) if phone else Diagram(690, 262)
    x = (142, 0, 243, 314, 314) if phone else (170, 308, 394, 500, 640)
    keys_at, scores_at, weights_at, values_at, answer_at = x
    cell = 33 if phone else 46
    middle, tall = (146, 30) if phone else (152, 36)
    if phone:
        drawing.text(keys_at, 14, "thing · action · living · liquid")
    drawing.grid(
        keys_at,
        42,
        QUERY[None],
        role="query",
        cell=cell,
        limit=4,
        digits=0,
        rows=["query"],
        columns=[] if phone else FEATURES,
    )
    drawing.arrow((keys_at, 58), (keys_at, middle - 1.5 * tall - 4), role="query")
    drawing.text(keys_at - 2 * cell, middle - 1.5 * tall - 16, "keys", anchor="start")
    drawing.grid(
        keys_at,
        middle,
        KEYS,
        role="key",
        cell=cell,
        tall=tall,
        limit=2,
        digits=0,
        rows=WORDS,
    )
    head = middle - 1.5 * tall - 16
    if phone:
        drawing.text(weights_at, head, "weights")
    else:
        drawing.text(scores_at, head, "scores")
        drawing.text(weights_at, head, "weights")
        for row, score in enumerate(scores.tolist()):
            drawing.text(scores_at, middle + tall * (row - 1), f"{score:.0f}")
        drawing.arrow((keys_at + 2 * cell + 8, middle), (scores_at - 12, middle))
        drawing.arrow((scores_at + 12, middle), (weights_at - 32, middle))
        drawing.arrow((weights_at + 32, middle), (values_at - 54, middle))
        steps = [(scores_at, "1. compare"), (weights_at, "2. softmax")]
        for place, step in [*steps, (570, "3. mix")]:
            drawing.text(place, 244, step, italic=True)
    drawing.text(values_at, head, "values")
    wide = 40 if phone else 46
    drawing.grid(weights_at, middle, weights.T, cell=wide, tall=tall)
    many = {"role": "value", "cell": wide, "limit": 20}
    drawing.grid(values_at, middle, VALUES, tall=tall, digits=0, **many)
    below = (314, 248) if phone else (answer_at, middle)
    if phone:
        drawing.arrow((values_at, middle + 1.5 * tall + 4), (values_at, 230))
        drawing.text(262, 248, "answer", anchor="end")
    else:
        drawing.arrow((values_at + 54, middle), (answer_at - 54, middle))
        drawing.text(answer_at, middle - 26, "answer")
    drawing.grid(*below, context, digits=1, **many)
    return drawing.finish(
        "A soft look-up",
        "A query of four numbers is compared with the keys of cat, drinks and milk. "
        "The scores are 2, 0 and 1, the weights 0.67, 0.09 and 0.24. The answer, 6.7 "
        "and 2.4, is the mean of the three values under these weights.",
    )


def projections() -> Svg:
    """Where queries, keys and values come from, and what is done with them."""
    generator = torch.Generator().manual_seed(4)
    asks, asked = torch.randn(2, 8, generator=generator)
    drawing = Diagram(360, 316)
    drawing.text(76, 14, "the word that attends")
    drawing.bars(70, 46, asks, width=100, height=44)
    drawing.text(254, 14, "each word attended to")
    drawing.bars(254, 46, asked, width=100, height=44)
    parts = [(70, "query", "W_Q", asks), (196, "key", "W_K", asked)]
    for x, role, name, source in [*parts, (312, "value", "W_V", asked)]:
        start = 254 if source is asked else 70
        drawing.arrow((start, 72), (start, 82), (x, 82), (x, 94), role=role)
        drawing.box(x, 110, name, width=60, role=role)
        made = torch.randn(4, generator=generator)
        drawing.arrow((x, 126), (x, 140), role=role)
        drawing.bars(x, 164, made, width=56, height=40, role=role)
        drawing.text(x, 196, role, role=role)
    drawing.box(133, 238, "score, softmax: weight", width=190, role="weight")
    drawing.arrow((70, 206), (70, 222), role="query")
    drawing.arrow((196, 206), (196, 222), role="key")
    drawing.box(220, 292, "context: weight × value, summed", width=240, role="value")
    drawing.arrow((133, 254), (133, 276), role="weight")
    drawing.arrow((312, 206), (312, 276), role="value")
    return drawing.finish(
        "Three projections",
        "The vector of the word that attends is multiplied by W_Q into a query. The "
        "vector of each word that is attended to is multiplied by W_K into a key and "
        "by W_V into a value. Query and key give a weight, and the weighted values "
        "are added up into the context.",
    )


def learned_matrices(
    learned_query: Tensor,
    learned_key: Tensor,
    query_by_hand: Tensor,
    key_by_hand: Tensor,
    words: Sequence[str],
) -> list[Svg]:
    """W_Q and W_K after training, and their product beside the one set by hand.

    Args:
        learned_query: (10, 6), W_Q after training.
        learned_key: (10, 6), W_K after training.
        query_by_hand: (10, 6).
        key_by_hand: (10, 6).
        words: what the first four of the ten dimensions stand for; the other six are
            the positions.
    """
    names = [*words, *map(str, range(6))]
    short = ["th", "ca", "sa", "bl", *map(str, range(6))]
    told = (
        "Ten rows, what a query's word and position are; ten columns, what a key's "
        "are. The largest numbers stand where the key's position is one less."
    )
    alone = "Ten rows for the words and positions, six columns without a meaning."
    return [
        _shaded("W_Q, learned", alone, learned_query, names),
        _shaded("W_K, learned", alone, learned_key, names),
        _shaded(
            "W_Q W_Kᵀ, learned", told, learned_query @ learned_key.mT, names, short
        ),
        _shaded(
            "W_Q W_Kᵀ, by hand", told, query_by_hand @ key_by_hand.mT, names, short
        ),
    ]


def _shaded(
    title: str,
    description: str,
    table: Tensor,
    rows: Sequence[str],
    columns: Sequence[str] = (),
) -> Svg:
    """A matrix without numbers, shaded up to the largest of them."""
    side = 26
    height = side * len(rows) + (44 if columns else 26)
    drawing = Diagram(330, height)
    middle = 62 + side * len(table[0]) / 2, height - side * len(rows) / 2 - 2
    drawing.text(middle[0], 10, title, bold=True)
    drawing.grid(
        *middle,
        table,
        cell=side,
        tall=side,
        limit=table.detach().abs().max().item(),
        digits=None,
        rows=rows,
        columns=columns,
    )
    return drawing.finish(title, description)


def weight_on_previous(weights: Tensor) -> float:
    """The mean weight of the word before, (batch, n, n), but for the first word."""
    return weights.diagonal(-1, dim1=-2, dim2=-1).mean().item()


def shuffled_words() -> list[Svg]:
    """One layer of attention over three words in two orders."""
    generator = torch.Generator().manual_seed(8)
    words = ["dog", "bites", "man"]
    x = torch.randn(3, 6, generator=generator)
    matrices = torch.randn(3, 6, 6, generator=generator) / 6**0.5
    panels = []
    for order in ([0, 1, 2], [2, 1, 0]):
        out, _ = scaled_dot_product_attention(*(x[order] @ matrices))
        drawing = Diagram(330, 190)
        places = drawing.tokens(165, 168, [words[i] for i in order], step=90)
        drawing.box(165, 108, "self-attention", width=270, role="weight")
        for place, row in zip(places, out, strict=True):
            drawing.arrow((place, 154), (place, 124))
            drawing.arrow((place, 92), (place, 66))
            drawing.bars(place, 38, row, role="value", width=66, height=48, limit=1)
        spoken = " ".join(words[i] for i in order)
        drawing_of = f"Outputs for: {spoken}"
        panels.append(
            drawing.finish(
                drawing_of,
                "Each word goes into self-attention and comes out as a vector of six "
                "bars. A word's bars are the same in both orders.",
            )
        )
    return panels


def influence(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """How far each input word moves each output: (outputs, inputs).

    The norm of the derivative of an output's vector with respect to an input's.
    """
    slopes: Any = torch.autograd.functional.jacobian(layer, x)  # (n, d, n, d)
    return slopes.square().sum(dim=(1, 3)).sqrt()


def influence_maps(by_attention: Tensor, by_convolution: Tensor) -> list[Svg]:
    """Which outputs depend on which inputs, in one layer of each kind."""
    names = [str(position) for position in range(len(by_attention))]
    told = "Rows are outputs and columns inputs. "
    return [
        _shaded(
            "One layer of attention",
            f"{told}Every cell is shaded.",
            by_attention,
            names,
            names,
        ),
        _shaded(
            "One convolution of width 3",
            f"{told}Only the diagonal and its neighbours are shaded.",
            by_convolution,
            names,
            names,
        ),
    ]


def cross_attention_shapes(*, phone: bool = False) -> Svg:
    """The shapes of an attention of five words to seven."""
    step = 13
    drawing = Diagram(360, 300) if phone else Diagram(690, 190)
    upper, lower = (76, 226) if phone else (86, 86)

    def matrix(x: float, y: float, rows: int, columns: int, role: str, name: str):
        full = torch.full((rows, columns), 0.45)
        drawing.grid(x, y, full, role=role, cell=step, tall=step, digits=None)
        top, bottom = y - step * rows / 2 - 12, y + step * rows / 2 + 14
        drawing.text(x, top, name, role=role, bold=True)
        drawing.text(x, bottom, f"{rows} × {columns}", small=True)

    places = (50, 150, 296) if phone else (50, 146, 304)
    matrix(places[0], upper, 5, 4, "query", "Q")
    drawing.text((places[0] + places[1]) / 2 - 8, upper, "·")
    matrix(places[1], upper, 4, 7, "key", "Kᵀ")
    drawing.arrow((places[1] + 54, upper), (places[2] - 54, upper))
    drawing.text((places[1] + places[2]) / 2, upper - 14, "softmax")
    matrix(places[2], upper, 5, 7, "weight", "weights")
    values, context = (120, 280) if phone else (446, 610)
    if phone:
        drawing.text(50, lower, "weights ·")
    else:
        drawing.text(374, lower, "·")
    matrix(values, lower, 7, 6, "value", "V")
    drawing.arrow((values + 48, lower), (context - 48, lower))
    matrix(context, lower, 5, 6, "value", "context")
    return drawing.finish(
        "Shapes in cross-attention",
        "Q of five rows and four columns times K transposed, four by seven, gives "
        "weights of five by seven; times V, seven by six, they give a context of five "
        "by six: a row for each query.",
    )


def settle_equation_1(attention: Attention, slowly: Callable[..., Any]) -> None:
    """The matrix form against one look-up after another, and against PyTorch's.

    Args:
        attention: the chapter's function.
        slowly: the chapter's loop: one query, keys, values → context, weights.
    """
    q, k, v = _random_batch()
    context, _ = attention(q, k, v)
    by_loop = torch.tensor(
        [
            slowly(*(tensor.tolist() for tensor in (q[b, h, i], k[b, h], v[b, h])))[0]
            for b in range(2)
            for h in range(3)
            for i in range(5)
        ],
        dtype=torch.float64,
    ).view_as(context)
    from_loop = (context - by_loop).abs().max().item()
    fused = F.scaled_dot_product_attention(q, k, v)
    from_torch = (context - fused).abs().max().item()
    settle(
        "s3.2.1-equation-1",
        holds=max(from_loop, from_torch) < 1e-12,  # float64 keeps about 16 digits
        expected="the matrix form gives what one look-up after another gives",
        measured=f"over 30 random queries, largest difference {from_loop:.1g} from the "
        f"loop, and {from_torch:.1g} from PyTorch's fused attention",
        scale="derivation",
    )


def settle_attention(attention: Attention) -> None:
    """The definition of §3.2: weights follow the fit, outputs lie among the values."""
    q, k, v = _random_batch()
    context, weights = attention(q, k, v)
    scores = q @ k.mT
    same_order = torch.equal(scores.argsort(dim=-1), weights.argsort(dim=-1))
    lowest, highest = v.amin(dim=-2, keepdim=True), v.amax(dim=-2, keepdim=True)
    inside = (lowest <= context) & (context <= highest)
    off_one = (weights.sum(dim=-1) - 1).abs().max().item()
    settle(
        "s3.2-attention",
        holds=same_order and inside.all().item() and off_one < 1e-12,
        expected="weights that rank as the scores do and sum to one, and outputs "
        "within the range of the values",
        measured=f"weights {'rank' if same_order else 'do not rank'} as the scores do; "
        f"{inside.sum()} of {inside.numel()} outputs lie within the values' range; "
        f"each row of weights sums to one within {off_one:.1g}",
        scale="derivation",
    )


def settle_self_attention(by_attention: Tensor, by_convolution: Tensor) -> None:
    """After one layer, every position depends on every other (§2)."""
    apart = (by_attention == 0).sum().item()
    pairs = by_attention.numel()
    settle(
        "s2-self-attention",
        holds=apart == 0,
        expected="after one layer, each position's new vector depends on all "
        "positions of the same sequence",
        measured=f"{pairs - apart} of {pairs} pairs are connected, the weakest by a "
        f"derivative of norm {by_attention.min():.3f}; a convolution of width 3 "
        f"leaves {(by_convolution == 0).sum()} apart",
        scale="derivation",
    )


def _random_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values: 2 sentences, 3 heads, 5 queries, 7 keys."""
    generator = torch.Generator().manual_seed(2017)
    q, k, v = (
        torch.randn(2, 3, n, d, dtype=torch.float64, generator=generator)
        for n, d in ((5, 16), (7, 16), (7, 8))
    )
    return q, k, v
