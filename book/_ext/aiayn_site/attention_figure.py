"""The map of attention that stands in the picture of a shared link.

The weights are a trained model's, recorded by ``tools/records/attention.py``.
"""

from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parents[2] / "data" / "attention.json"

Map = list[list[float]]


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
