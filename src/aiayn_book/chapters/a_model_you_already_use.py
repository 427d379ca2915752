"""Chapter 24, a model you already use: its drawings, charts and measurements (§7).

Not in the paper: the published encoder all-MiniLM-L6-v2 (Reimers and Gurevych, 2019;
Wang et al., 2020) is compared with the paper's.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import altair as alt
import torch
from torch import Tensor, nn

from aiayn_book import published_measures as measures
from aiayn_book import settle
from aiayn_book.colours import ALERT, KEY, NEUTRAL, WEIGHT, css_colour
from aiayn_book.diagrams import Diagram
from aiayn_book.passages import Passage, by_chance, difference, found_at, interval
from aiayn_book.plots import curves
from aiayn_book.published import Published, embed_rows, tokenize
from aiayn_book.svg import Svg

EXAMPLES = (
    "How do I reset my password?",
    "I forgot my login and need a new one.",
    "The bank of the river was muddy.",
    "The shore of the stream was full of mud.",
    "My bank raised its interest rates.",
    "Borrowing money became more expensive.",
)
"""Three pairs of one meaning; in the middle two sentences that share *bank*."""
SHOWN = "The cat saw the dog and the dog saw the bird."
"""The sentence of the attention maps: some of its words come twice."""
LONG_WORD = "untranslatable"

PARTS = (
    ("1", "biases", "in the four projections\nof each attention"),
    ("2", "GELU", "instead of ReLU"),
    ("3", "learned positions", "instead of sinusoids"),
    ("4", "a segment vector", "added to every token"),
    ("5", "a norm", "after the embeddings"),
)


# Drawings.


def two_encoders(*, phone: bool = False) -> Svg:
    """The paper's encoder beside the published one, five differences marked."""
    width, wide = (360, 150) if phone else (690, 176)
    left, right = (86, 272) if phone else (110, 336)
    drawing = Diagram(width, 640 if phone else 470)
    drawing.text(left, 12, "the paper, 2017", bold=True)
    drawing.text(right, 12, "all-MiniLM-L6-v2, 2021", bold=True)
    for x, label in ((left, "6 ×"), (right, "6 ×")):
        drawing.frame(x - wide / 2 - 9, 84, wide + 18, 206)
        drawing.text(x - wide / 2, 98, label, anchor="start", small=True)
    ours = [
        (40, "one vector a token", "neutral"),
        (122, "Add & Norm", "neutral"),
        (164, "feed-forward, ReLU", "value"),
        (214, "Add & Norm", "neutral"),
        (256, "attention, 8 heads", "query"),
        (372, "+ sinusoids", "key"),
        (414, "embedding × √512", "weight"),
    ]
    theirs = [
        (40, "mean: one a sentence", "neutral"),
        (122, "Add & Norm", "neutral"),
        (164, "feed-forward, GELU", "value"),
        (214, "Add & Norm", "neutral"),
        (256, "attention, 12 heads", "query"),
        (322, "Norm", "neutral"),
        (372, "+ table + segment", "key"),
        (414, "embedding", "weight"),
    ]
    for x, boxes in ((left, ours), (right, theirs)):
        for (y, label, role), (above, *_) in zip(
            boxes, [(14, ""), *boxes], strict=False
        ):
            drawing.box(x, y, label, width=wide, height=28, role=role)
            if above > 20:
                drawing.arrow((x, y - 14), (x, above + 15))
        drawing.text(x, 452, "tokens" if x == left else "word pieces")
        drawing.arrow((x, 442), (x, 429))
    for number, y, shift in (("1", 256, 0), ("2", 164, 0), ("5", 322, 0)):
        _mark(drawing, right + wide / 2 - 4 + shift, y - 13, number)
    _mark(drawing, right - wide / 2 + 6, 359, "3")
    _mark(drawing, right + wide / 2 - 4, 359, "4")
    x, y, step = (20, 492, 29) if phone else (462, 128, 56)
    for row, (number, name, rest) in enumerate(PARTS):
        at = y + step * row
        _mark(drawing, x, at, number)
        first, *more = rest.split("\n")
        if phone:
            drawing.text(
                x + 18, at, f"{name} {' '.join([first, *more])}", anchor="start"
            )
            continue
        drawing.text(x + 18, at - 8, name, anchor="start", bold=True)
        drawing.text(x + 18, at + 9, first, anchor="start")
        for line in more:
            drawing.text(x + 18, at + 25, line, anchor="start")
    if not phone:
        drawing.text(x - 10, 96, "Five differences:", anchor="start", italic=True)
    return drawing.finish(
        "Two encoders",
        "Left, from below: embedding times the root of 512, plus sinusoids, then six "
        "layers of attention with eight heads, Add and Norm, feed-forward with ReLU, "
        "Add and Norm; the output is one vector for each token. Right, the published "
        "encoder, the same but for five marked places: biases in attention, GELU, a "
        "learned table of positions, a segment vector, a norm after the embeddings. "
        "Its output is averaged into one vector for each sentence.",
    )


def _mark(drawing: Diagram, x: float, y: float, number: str) -> None:
    """A number in a filled circle."""
    drawing.dot(x, y, role="alert", radius=9)
    drawing.parts[-1] = drawing.parts[-1].replace(css_colour("alert"), ALERT.light)
    drawing.text(x, y, number, bold=True)
    drawing.parts[-1] = drawing.parts[-1].replace("currentColor", "white")


def longest_match(vocabulary: Mapping[str, int], word: str = LONG_WORD) -> Svg:
    """How one word is cut: letters above, pieces below."""
    pieces = tokenize(word, vocabulary)[1:-1]
    cell = min(25, 340 // len(word))
    drawing = Diagram(360, 150)
    start = 180 - cell * len(word) / 2
    drawing.text(180, 12, "the longest piece from the left, again and again")
    place = 0
    for number, piece in enumerate(pieces):
        letters = piece.removeprefix("##")
        role = ("query", "key", "value", "weight", "alert")[number % 5]
        for letter in letters:
            x = start + cell * (place + 0.5)
            drawing.box(x, 46, letter, width=cell - 2, height=30, role=role)
            place += 1
        middle = start + cell * (place - len(letters) / 2)
        drawing.arrow((middle, 64), (middle, 84), role=role)
        drawing.text(middle, 98, piece, role=role, bold=True)
        drawing.text(
            middle, 120 + 18 * (number % 2), str(vocabulary[piece]), small=True
        )
    return drawing.finish(
        "WordPiece",
        f"The word {word} is cut into {', '.join(pieces)}. Each piece is the longest "
        "that the vocabulary has at its place; below it stands its number.",
    )


def similarity_maps(vectors: Tensor, texts: Sequence[str] = EXAMPLES) -> list[Svg]:
    """Cosines of six sentences, and the share of words that they have in common."""
    sets = [{w.strip("?.").lower() for w in text.split()} for text in texts]
    shared = [[len(a & b) / len(a | b) for b in sets] for a in sets]
    panels = []
    for title, table, told in (
        ("cosine of the vectors", (vectors @ vectors.T).clamp(min=0), "by the encoder"),
        ("share of words in common", torch.tensor(shared), "by their words"),
    ):
        drawing = Diagram(330, 250)
        drawing.text(180, 12, title, bold=True)
        names = [str(number + 1) for number in range(len(texts))]
        drawing.grid(180, 146, table, cell=44, tall=32, rows=names, columns=names)
        panels.append(
            drawing.finish(
                title,
                f"Six sentences compared with each other {told}; 1 and 2, 3 and 4, 5 "
                "and 6 mean the same.",
            )
        )
    return panels


def head_grids(table: Mapping[str, Any], *, phone: bool = False) -> Svg:
    """One small grid of layers and heads for each relation."""
    across, cell, tall = (2, 11.5, 15) if phone else (3, 15, 17)
    step_x, step_y = (178, 150) if phone else (228, 166)
    rows = -(-len(table) // across)
    drawing = Diagram(360 if phone else 690, step_y * rows + 6)
    for number, (name, found) in enumerate(table.items()):
        x = step_x * (number % across) + (104 if phone else 122)
        y = step_y * (number // across)
        drawing.text(x, y + 12, name, bold=True)
        drawing.text(x, y + 30, f"uniform: {found['uniform']:.0%}")
        last = number % across == 0
        drawing.grid(
            x,
            y + 44 + 3 * tall,
            found["mass"],
            cell=cell,
            tall=tall,
            digits=None,
            rows=[str(layer + 1) for layer in range(6)] if last else (),
        )
    return drawing.finish(
        "All heads",
        "For each of six relations a grid of six layers and twelve heads. "
        + " ".join(
            f"{name}: the strongest head has {max(map(max, found['mass'])):.0%}."
            for name, found in table.items()
        ),
    )


def head_maps(maps: Sequence[Mapping[str, Any]]) -> list[Svg]:
    """Some heads on one sentence."""
    panels = []
    for one in maps:
        pieces = one["pieces"]
        side, first = 17.5, 66
        size = side * len(pieces)
        drawing = Diagram(338, round(size) + 90)
        drawing.text(first + size / 2, 12, one["name"], bold=True)
        x, y = first + size / 2, 84 + size / 2
        drawing.grid(
            x, y, one["weights"], cell=side, tall=side, digits=None, rows=pieces
        )
        for number, piece in enumerate(pieces):
            at = first + side * (number + 0.5)
            drawing.parts.append(
                f'<g transform="translate({at:g} 78) rotate(-60)">'
                f'<text style="font: 13px var(--book-sans, system-ui, sans-serif); '
                f'fill: currentColor">{piece}</text></g>'
            )
        panels.append(drawing.finish(one["name"], f"Rows attend to columns: {SHOWN}"))
    return panels


# Charts.


def where_the_numbers_are(counts: Mapping[str, int]) -> Any:
    """Bars: the parameters of each part."""
    rows = [
        {"part": name, "millions": count / 1e6, "label": f"{count / 1e6:.2f}"}
        for name, count in counts.items()
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("part:N", sort=list(counts), title=None),
        x=alt.X("millions:Q", title="million numbers", scale=alt.Scale(domain=[0, 16])),
    )
    return alt.layer(
        base.mark_bar(color=WEIGHT.mark),
        base.mark_text(align="left", dx=4).encode(text="label:N"),
    ).properties(
        width="container",
        height=150,
        description="Bars of the parameters in each part, in millions: "
        + ", ".join(f"{row['part']} {row['label']}" for row in rows),
    )


def two_activations() -> alt.LayerChart:
    """ReLU and GELU."""
    x = torch.linspace(-4, 4, 81)
    rows = [
        {"x": a, "output": b, "activation": name}
        for name, y in (("ReLU", x.relu()), ("GELU", nn.functional.gelu(x)))
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    return curves(
        rows,
        "x",
        "output",
        "activation",
        description="ReLU is zero below zero and x above. GELU follows it smoothly, "
        "dips to -0.17 near -0.75, and meets it far from zero.",
    )


def error_chart(table: Mapping[str, Mapping[str, float]]) -> Any:
    """The largest error without each difference, on a logarithmic axis."""
    rows: list[dict[str, Any]] = [
        {
            "without": {"nothing": "nothing left out"}.get(name, f"no {name}"),
            "error": max(found["largest"], 1e-8),
            "label": f"{found['largest']:.1g}",
        }
        for name, found in table.items()
    ]
    rows = [
        row
        | {"without": {"no epsilon": "ε = 1e-5"}.get(row["without"], row["without"])}
        for row in rows
    ]
    ticks = [1e-8, 1e-6, 1e-4, 1e-2, 1]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("without:N", sort=[row["without"] for row in rows], title=None),
        x=alt.X(
            "error:Q",
            title="largest error of a number",
            scale=alt.Scale(type="log", domain=[1e-8, 10]),
            axis=alt.Axis(values=ticks, format=".0e"),
        ),
    )
    limit = (
        alt.Chart(alt.Data(values=[{"error": 1e-5}]))
        .mark_rule(strokeDash=[5, 4], color=NEUTRAL.mark)
        .encode(x="error:Q")
    )
    return alt.layer(
        limit,
        base.mark_point(filled=True, size=110, color=ALERT.mark, opacity=1),
        base.mark_text(align="left", dx=9).encode(text="label:N"),
    ).properties(
        width="container",
        height=210,
        description="The largest error of a number in the sentence vectors: "
        + ", ".join(f"{row['without']} {row['label']}" for row in rows),
    )


def recall_rows(
    hits: Mapping[str, Mapping[int, Sequence[bool]]], chance: Mapping[int, float]
) -> list[dict[str, Any]]:
    """One row a method and length of the list: share and 95 % interval."""
    rows = []
    for method, by_best in hits.items():
        for best, found in by_best.items():
            low, high = interval(sum(found), len(found))
            share = sum(found) / len(found)
            rows.append(
                {
                    "method": method,
                    "list": _list_name(best),
                    "share": share,
                    "low": low,
                    "high": high,
                    "label": f"{share:.0%}",
                }
            )
    for best, share in chance.items():
        row = {"method": "by chance", "list": _list_name(best), "share": share}
        rows.append(row | {"low": share, "high": share, "label": f"{share:.0%}"})
    return rows


def _list_name(best: int) -> str:
    return "first passage" if best == 1 else f"first {best} passages"


def recall_charts(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Points with intervals, a chart for each length of the list."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    panels = []
    for name in dict.fromkeys(row["list"] for row in rows):
        chosen = [row for row in rows if row["list"] == name]
        base = alt.Chart(alt.Data(values=chosen)).encode(
            y=alt.Y("method:N", sort=methods, title=None)
        )
        scale = alt.Scale(domain=[0, 1])
        axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
        x = alt.X("share:Q", title=f"{name}: chapter found", scale=scale, axis=axis)
        bars = base.mark_rule(color=KEY.mark, strokeWidth=3)
        points = base.mark_point(filled=True, size=110, color=KEY.mark, opacity=1)
        panels.append(
            alt.layer(
                bars.encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"),
                points.encode(x=x),
                base.mark_text(dy=-13, dx=4).encode(x=x, text="label:N"),
            ).properties(
                width="container",
                height=160,
                description=f"The share of questions whose chapter is found, {name}: "
                + ", ".join(f"{row['method']} {row['label']}" for row in chosen),
            )
        )
    return panels


def sink_rows(
    moved: Mapping[str, Sequence[float]], share: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    """Lines of Figure 24.10."""
    names = {
        "in front": "[CLS] in front",
        "moved": "[CLS] in the middle",
        "first": "the word then in front",
    }
    rows = [
        {"layer": layer + 1, "weight": value, "on": names[name]}
        for name, values in moved.items()
        for layer, value in enumerate(values)
    ]
    rows += [
        {"layer": layer + 1, "weight": value, "on": "[CLS], share of what is added"}
        for layer, value in enumerate(share["norm"])
    ]
    return rows


def sink_chart(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """The weight of [CLS] by layer, where it stands and moved."""
    chart = curves(
        rows,
        "layer",
        "weight",
        "on",
        description="The mean weight on [CLS] is small in layer 1 and about a third in "
        "layers 2 to 5. When [CLS] is moved to the middle, layer 2 attends to the word "
        "now in front instead, and from layer 4 on both get about the same. The share "
        "of [CLS] in what is added is far smaller.",
    )
    for part in chart.layer:
        part.encoding.x.axis = alt.Axis(values=list(range(1, 7)), format="d")
    return chart


# Measurements.


def measured_texts(passages: Sequence[Passage], step: int = 31) -> list[str]:
    """The passages in which heads are measured: every 31st, if it is short."""
    return [one.text for one in passages[::step] if len(one.text.split()) <= 70]


def to_rows(model: Published, texts: Sequence[str]) -> list[list[int]]:
    """The numbers of the texts' pieces."""
    words = model.vocabulary
    return [[words[piece] for piece in tokenize(text, words)] for text in texts]


def word_ids(model: Published) -> set[int]:
    """Pieces that are whole words of three letters or more."""
    return {i for w, i in model.vocabulary.items() if w.isalpha() and len(w) > 2}


def largest_error(found: Tensor, right: Tensor) -> float:
    """The largest difference between two tables of vectors."""
    return (found - right).abs().max().item()


def heads(model: Published, encoder: Any, texts: Sequence[str]) -> dict[str, Any]:
    """`published_measures.head_table` of some texts."""
    return measures.head_table(encoder, to_rows(model, texts), word_ids(model))


def sinks(model: Published, encoder: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Where the sink stands, and what it adds."""
    rows = to_rows(model, texts)[:12]
    return {
        "moved": measures.moved_sink(encoder, rows),
        "share": measures.sink_share(encoder, rows),
    }


def maps(
    model: Published, encoder: Any, table: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The strongest head of three relations, on one sentence."""
    (row,) = to_rows(model, [SHOWN])
    (weights,) = measures.attention_of_rows(encoder, [row])
    found = []
    for name in ("previous token", "same word", "[CLS]"):
        mass = torch.tensor(table[name]["mass"])
        layer, head = divmod(int(mass.argmax()), mass.size(1))
        found.append(
            {
                "name": f"head {layer + 1}.{head + 1}: {name}",
                "pieces": tokenize(SHOWN, model.vocabulary),
                "weights": [
                    [round(x, 3) for x in line]
                    for line in weights[layer, head].tolist()
                ],
            }
        )
    return found


def left_out(model: Published, encoder: Any, right: Tensor) -> dict[str, Any]:
    """What each difference is worth, on the six example sentences."""
    return measures.left_out(encoder, to_rows(model, EXAMPLES), right)


def measure_all(
    model: Published,
    encoder: Any,
    untrained: Any,
    passages: Sequence[Passage],
    right: Tensor,
) -> dict[str, Any]:
    """All that the chapter reads from the record where the model is missing.

    Args:
        model: Installed.
        encoder: With its weights.
        untrained: The same encoder with random weights.
        passages: Of the book.
        right: The reference vectors of `EXAMPLES`.
    """
    texts = measured_texts(passages)
    table = heads(model, encoder, texts)
    found = embed_rows(encoder, to_rows(model, EXAMPLES))[-1]
    return {
        "largest error": largest_error(found, right),
        "left out": left_out(model, encoder, right),
        "heads": table,
        "heads untrained": heads(model, untrained, texts),
        "maps": maps(model, encoder, table),
        "sinks": sinks(model, encoder, texts),
    }


# Its claim.


def settle_other_tasks(
    hits: Mapping[str, Mapping[int, Sequence[bool]]],
    passages: Sequence[Passage],
    right: Sequence[str],
) -> None:
    """§7: attention-based models will serve for other tasks than translation.

    The encoder must beat a bag of words, a rule older than the measurement. Beating
    both ways of guessing, a passage drawn at random and the one chapter that answers
    most questions, is as weak as the claim, but was asked for after it, so it decides
    nothing.
    """
    found, words = hits["encoder"][1], hits["bag of words"][1]
    low, high = interval(sum(found), len(found))
    chance = by_chance(passages, right, 1)
    same = max(Counter(right).values()) / len(right)
    limit = max(chance, same)
    enough = next(
        (n for n in range(len(found) + 1) if interval(n, len(found))[0] > limit), 0
    )
    more, error = difference(found, words)
    settle(
        "s7-other-tasks",
        holds=False if low <= limit else True if more > 2 * error else None,
        expected="an encoder of the paper's build finds the chapter that answers a "
        "question more often than a bag of words, by two standard errors. More often "
        "than guessing, all that the paper's sentence needs, was asked for after the "
        "measurement, so it decides nothing",
        measured=f"right at the first passage {mean(found):.0%} "
        f"(95 % interval {low:.0%} to {high:.0%}); a random passage {chance:.0%}, "
        f"always the same chapter {same:.0%}; a bag of words {mean(words):.0%}, so the "
        f"encoder is {100 * more:+.0f} ± {100 * error:.0f} points from it",
        sample=f"{len(found)} readers' questions, {len(passages):,} passages; one "
        "published model, trained by others",
        detects=f"a share of {enough / len(found):.0%}, against guessing; a lead of "
        f"{284 * error:.0f} points over the bag of words, in four of five such tests",
    )


def all_hits(
    scores: Mapping[str, Tensor], passages: Sequence[Passage], right: Sequence[str]
) -> dict[str, dict[int, list[bool]]]:
    """The hits of each method in the first passage and in the first five."""
    return {
        name: {best: found_at(table, passages, right, best) for best in (1, 5)}
        for name, table in scores.items()
    }
