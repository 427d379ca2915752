"""The directive ``{live-attention}``: a sentence, its translation, who looks at whom.

The weights are a trained model's, recorded by ``tools/record_attention.py``. The map is
a table, so that it can be read aloud; ``landing.js`` redraws it for another sentence or
head, and says in words where the row that is pointed at looks.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_book.explorables.base import number
from aiayn_book.html import escape

RECORD = Path(__file__).resolve().parent.parent / "attention.json"

TRAINED_IN = "notebooks/16-train-a-translator"

Map = list[list[float]]
Address = Callable[[str], str]  # from a page's name to where it is


def read(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The sentences with their weights as numbers: [layer][head][target][source]."""
    return [
        {**sentence, "weights": [[_map(rows) for rows in layer] for layer in recorded]}
        for sentence in record["sentences"]
        for recorded in [sentence["hundredths"]]
    ]


def _map(rows: list[str]) -> Map:
    return [[int(share) for share in row.split()] for row in rows]


def views(sentence: dict[str, Any]) -> dict[str, Map]:
    """The maps that a reader can choose: the last layer's mean first, then each head.

    The last layer is where this model's attention is closest to an alignment.
    """
    weights = sentence["weights"]
    last = len(weights)
    chosen = {f"layer {last}, all heads": mean(weights[-1])}
    for layer in range(last, 0, -1):
        for head, one in enumerate(weights[layer - 1], start=1):
            chosen[f"layer {layer}, head {head}"] = one
    return chosen


def mean(heads: list[Map]) -> Map:
    """The mean of several maps."""
    return [
        [sum(shares) / len(heads) for shares in zip(*rows, strict=True)]
        for rows in zip(*heads, strict=True)
    ]


def table(sentence: dict[str, Any], weights: Map) -> str:
    """The map as a table: a row for each word that was written."""
    head = "".join(
        f'<th scope="col"><span>{escape(w)}</span></th>' for w in sentence["source"]
    )
    rows = "".join(
        '<tr><th scope="row"><button type="button" lang="de">'
        f"{escape(word)}</button></th>" + "".join(map(_cell, shares)) + "</tr>"
        for word, shares in zip(sentence["target"], weights, strict=True)
    )
    return (
        "<table><caption>Weights of the translation’s words (rows) on the "
        "source’s words (columns), in percent</caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cell(share: float) -> str:
    empty = ' class="nothing"' if share < 1 else ""
    style = f"--w: {share / 100:.2f}"
    return f'<td{empty} style="{style}"><span>{number(share, 0)}</span></td>'


def figure(record: dict[str, Any], address: Address) -> str:
    """Controls, table, the sentence below it, and the data for the script."""
    sentences = read(record)
    maps = [views(sentence) for sentence in sentences]
    texts = [" ".join(s["source"][:-1]).replace(" .", ".") for s in sentences]
    data = json.dumps(
        [
            {"source": s["source"], "target": s["target"], "views": list(v.values())}
            for s, v in zip(sentences, maps, strict=True)
        ],
        ensure_ascii=False,
    ).replace("<", "\\u003c")
    where = (
        f"Weights of a real model after {record['steps']:,} training steps on "
        f"{record['corpus'].capitalize()}: "
        f'<a href="{address(TRAINED_IN)}">how it was trained</a>.'
    )
    return (
        '<figure class="live-attention" aria-label="Attention of a trained translator">'
        '<div class="live-attention-controls">'
        f"{_menu('Sentence', texts)}{_menu('Attention', list(maps[0]))}</div>"
        '<div class="live-attention-map">'
        f"{table(sentences[0], next(iter(maps[0].values())))}</div>"
        '<p class="live-attention-words" aria-live="polite">Point at a German word to '
        "see where the model looked while it wrote it.</p>"
        f"<figcaption>{where}</figcaption>"
        f'<script type="application/json">{data}</script></figure>'
    )


def _menu(name: str, choices: list[str]) -> str:
    options = "".join(
        f'<option value="{i}">{escape(choice)}</option>'
        for i, choice in enumerate(choices)
    )
    return f'<label>{name} <select autocomplete="off">{options}</select></label>'


class LiveAttention(SphinxDirective):
    """Draws the map."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD))
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        builder, here = self.env.app.builder, self.env.docname

        def address(page: str) -> str:
            return escape(builder.get_relative_uri(here, page))

        return [nodes.raw("", figure(record, address), format="html")]


def setup(app: Sphinx) -> dict:
    """Register the directive."""
    app.add_directive("live-attention", LiveAttention)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
