"""The directives that draw how training grows, and how good a translator becomes.

``{growth-benchmark}`` draws what ``python -m benchmarks.growth`` recorded, two pictures
an axis, side by side where there is room: measured points, and the curve that
arithmetic predicts from the size in the middle. ``{quality-benchmark}`` has a table and
a picture of what ``python -m benchmarks.time_to_quality`` did, and
``{default-command-benchmark}`` a table of ``python -m benchmarks.default_command``.
"""

from statistics import median
from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from sphinx.application import Sphinx

from aiayn_book.colours import KEY, NEUTRAL
from aiayn_book.plots import as_svg, use_theme
from aiayn_site.run_times import table
from aiayn_site.speed_tables import BenchmarkDirective
from benchmarks import summary
from benchmarks.peers import PEERS

LABELS = {
    "length": "tokens a sentence",
    "width": "width, d_model",
    "vocabulary": "pieces in the vocabulary",
    "processes": "processes, one core each",
}

GOOD_BLEU, QUICK_MINUTES = 40, 30
"""The goal of the default command, for every seed."""

MEASURED = (
    ("speed", "predicted_speed", "target tokens a second"),
    ("peak_mb", "predicted_mb", "peak memory, MB"),
)


class Growth(BenchmarkDirective):
    """Two pictures for each axis that was measured."""

    record = "growth"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        use_theme()
        made: list[nodes.Node] = []
        for axis, label in LABELS.items():
            if points := summary.growth_points(record, axis):
                both = "".join(
                    chart(points, label, *what)._repr_html_() for what in MEASURED
                )
                html = f'<div class="side-by-side">{both}</div>'
                made.append(nodes.raw("", html, format="html"))
        speeds = summary.middle_speeds(record)
        text = (
            f"The size in the middle was measured {len(speeds)} times, at "
            f"{min(speeds):,.0f} to {max(speeds):,.0f} target tokens a second."
        )
        return [*made, nodes.paragraph("", text)]


def chart(
    points: list[dict[str, float]], label: str, measured: str, predicted: str, name: str
) -> Any:
    """Speed or memory over one size, measured and predicted."""
    drawing, panel = plt.subplots(figsize=(3.8, 2.8), layout="constrained")
    values = [point["value"] for point in points]
    expected = [point[predicted] for point in points]
    found = [point[measured] for point in points]
    panel.plot(values, expected, color=NEUTRAL.mark, linestyle="--")
    panel.plot(values, found, "o", color=KEY.mark)
    panel.set_xscale("log", base=2)
    panel.set_xticks(values, [f"{value:,}" for value in values])
    panel.minorticks_off()
    panel.tick_params(labelsize=9)
    panel.set_ylim(0, 1.1 * max(found + expected))  # no point at the edge
    panel.set_xlabel(label)
    panel.set_title(name, fontsize=11, loc="left")
    spoken = "; ".join(
        f"{value:,}: {got:,.0f} (predicted {line:,.0f})"
        for value, got, line in zip(values, found, expected, strict=True)
    )
    return as_svg(drawing, f"{name}, measured beside predicted, by {label}. {spoken}.")


class TimeToQuality(BenchmarkDirective):
    """Minutes of training until a translator is good, and the way there."""

    record = "time_to_quality"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        wanted = f"{record['settings']['bleu']:g}"
        precision = record["measurements"][0]["precision"]
        title = nodes.strong("", f"minutes to {wanted} BLEU, {precision}")
        seeds = sorted({run["seed"] for run in record["measurements"]})
        header = ["", *(f"seed {seed}" for seed in seeds), "median", "ours, times"]
        rows = [quality_row(record, peer, seeds) for peer in summary.peers_in(record)]
        use_theme()
        html = quality_chart(record)._repr_html_()
        return [
            nodes.paragraph("", "", title),
            table(header, rows),
            nodes.raw("", html, format="html"),
        ]


class DefaultCommand(BenchmarkDirective):
    """The default command's score and its minutes, seed by seed."""

    record = "default_command"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        runs = summary.quality_runs(record, summary.OURS)
        rows = [
            [
                f"seed {run['seed']}",
                f"{run['training_seconds'] / 60:.1f}",
                f"{run['validation_bleu']:.1f}",
                f"{run['bleu']:.1f}",
                f"{run['peak_mb']:,}",
            ]
            for run in runs
        ]
        header = ["", "minutes of training", "BLEU, validation", "BLEU, test2016"]
        good = sum(run["bleu"] >= GOOD_BLEU for run in runs)
        quick = sum(run["training_seconds"] <= 60 * QUICK_MINUTES for run in runs)
        words = (
            f"Seeds measured: {len(runs)}. Of these, {good} reached {GOOD_BLEU} BLEU, "
            f"and {quick} trained for at most {QUICK_MINUTES} minutes."
        )
        return [table([*header, "peak MB"], rows), nodes.paragraph("", words)]


def quality_row(record: dict[str, Any], peer: str, seeds: list[int]) -> list[str]:
    """One peer's trainings: how long each took, or how far it came."""
    runs = {run["seed"]: run for run in summary.quality_runs(record, peer)}
    cells = [minutes_of(runs[seed]) if seed in runs else "" for seed in seeds]
    reached = [run["seconds"] / 60 for run in runs.values() if run["reached"]]
    whole = len(reached) == len(seeds)
    cells.append(f"{median(reached):.1f}" if whole else "")
    ratio = summary.quality_ratio(record, peer)
    cells.append("" if ratio is None or peer == summary.OURS else f"{ratio:.2f}")
    return [PEERS[peer].title, *cells]


def minutes_of(run: dict[str, Any]) -> str:
    """The minutes and steps of a training, or where it ended."""
    last, minutes = run["curve"][-1], run["seconds"] / 60
    if not run["reached"]:
        return f"not in {minutes:.0f} ({last['bleu']:.1f} BLEU)"
    return f"{minutes:.1f} ({last['step']:,} steps)"


def quality_chart(record: dict[str, Any]) -> Any:
    """BLEU over minutes of training: a line a run, ours in colour."""
    drawing, panel = plt.subplots(layout="constrained")
    spoken, best = [], record["settings"]["bleu"]
    for peer in summary.peers_in(record):
        role = KEY if peer == summary.OURS else NEUTRAL
        title, ends = PEERS[peer].title, []
        for run in summary.quality_runs(record, peer):
            minutes = [point["seconds"] / 60 for point in run["curve"]]
            scores = [point["bleu"] for point in run["curve"]]
            panel.plot(minutes, scores, color=role.mark, linewidth=1.2)
            ends.append((minutes[-1], scores[-1]))
            best = max(best, *scores)
            spoken.append(
                f"{title}, seed {run['seed']}: {scores[-1]:.1f} after "
                f"{minutes[-1]:.1f} minutes"
            )
        right, top = (max(places) for places in zip(*ends, strict=True))
        above = {"xytext": (0, 5), "textcoords": "offset points"}
        panel.annotate(title, (right, top), ha="right", va="bottom", **above)
    panel.axhline(record["settings"]["bleu"], color=NEUTRAL.mark, linestyle="--")
    panel.set_ylim(0, 1.15 * best)  # room for the names
    panel.set_xlim(0)
    panel.set_xlabel("minutes of training")
    panel.set_title("BLEU on the validation split", fontsize=11, loc="left")
    said = f"BLEU over minutes of training. {'; '.join(spoken)}."
    return as_svg(drawing, said)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("quality-benchmark", TimeToQuality)
    app.add_directive("default-command-benchmark", DefaultCommand)
    app.add_directive("growth-benchmark", Growth)
