"""The directive ``{growth-benchmark}``: speed and memory as the sizes grow.

One picture an axis of what ``python -m benchmarks.growth`` recorded: measured points,
and the curve that arithmetic predicts from the size in the middle.
"""

from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from speed_tables import BenchmarkDirective
from sphinx.application import Sphinx

from aiayn.book.colours import KEY, NEUTRAL
from aiayn.book.plots import figure, use_theme
from benchmarks import summary

LABELS = {
    "length": "tokens a sentence",
    "width": "width, d_model",
    "vocabulary": "pieces in the vocabulary",
    "processes": "processes, one core each",
}


class Growth(BenchmarkDirective):
    """A picture for each axis that was measured."""

    record = "growth"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        use_theme()
        made: list[nodes.Node] = []
        for axis, label in LABELS.items():
            if points := summary.growth_points(record, axis):
                html = chart(points, label)._repr_html_()
                made.append(nodes.raw("", html, format="html"))
        return made


def chart(points: list[dict[str, float]], label: str) -> Any:
    """Speed on the left, memory on the right, over one size."""
    drawing, panels = plt.subplots(1, 2, figsize=(7.6, 2.8), layout="constrained")
    values = [point["value"] for point in points]
    for panel, name, title in (
        (panels[0], "speed", "target tokens a second"),
        (panels[1], "mb", "peak memory, MB"),
    ):
        measured = "speed" if name == "speed" else "peak_mb"
        predicted = [point[f"predicted_{name}"] for point in points]
        panel.plot(values, predicted, color=NEUTRAL.mark, linestyle="--")
        panel.plot(values, [p[measured] for p in points], "o", color=KEY.mark)
        panel.set_xscale("log", base=2)
        panel.set_xticks(values, [f"{value:,}" for value in values])
        panel.minorticks_off()
        panel.set_ylim(0)
        panel.set_xlabel(label)
        panel.set_title(title, fontsize=11, loc="left")
    spoken = "; ".join(
        f"{p['value']:,}: {p['speed']:,.0f} (predicted {p['predicted_speed']:,.0f}) "
        f"tokens a second, {p['peak_mb']:,.0f} (predicted {p['predicted_mb']:,.0f}) MB"
        for p in points
    )
    return figure(drawing, f"Measured beside predicted, by {label}. {spoken}.")


def setup(app: Sphinx) -> dict:
    """Register the directive."""
    app.add_directive("growth-benchmark", Growth)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
