"""The directive ``{speed-goals}``: how far ahead ours is, beside what was aimed at.

One row for each kind of measurement, computed from the records of `benchmarks`. Under a
ratio is a bar, and in the bar a mark where the goal is.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_site.run_times import table
from aiayn_site.speed_tables import LEVEL, RECORDS, times
from benchmarks import summary
from benchmarks.peers import PEERS

Record = dict[str, Any]
NAMES = (
    "training_step",
    "training_step_zen4",
    "training_step_zen3",
    "grid",
    "grid_zen3",
    "decoding",
    "decoding_file",
    "time_to_quality",
    "gpu",
)
IN_PYTORCH = ("torch_nn", "marian", "fairseq")
"""The libraries for PyTorch that translate with our weights."""


@dataclass(frozen=True)
class Row:
    """A measurement, and what was aimed at."""

    what: str
    ratio: float
    """How many times as fast ours is as the other, or how many times as much memory the
    other takes."""
    other: str
    goal: float | None = None

    def cells(self) -> list[str]:
        """As the table shows it."""
        if self.goal is None:
            goal = "none"
        else:
            met = "met" if self.ratio >= self.goal else "missed"
            goal = f"{times(self.goal)}, {met}"
        return [self.what, times(self.ratio), goal, self.other]


def rows(records: dict[str, Record]) -> Iterator[Row]:
    """Every row, in the page's order.

    Args:
        records: Those of `NAMES`.
    """
    goals = {"fp32": 1.25, "bf16": 2.0}
    for name, processor, precisions in (
        ("training_step", "Zen 5", goals),
        ("training_step_zen4", "Zen 4", goals),
        ("training_step_zen3", "Zen 3", ["fp32"]),  # it cannot multiply bfloat16
    ):
        for precision in precisions:
            found = summary.fastest_other(records[name], precision)
            assert found is not None
            peer, ratio = found
            what = f"a training step in {precision}, {processor}"
            yield Row(what, ratio, PEERS[peer].title, goals[precision])
    for name, processor in (("grid", "Zen 5"), ("grid_zen3", "Zen 3")):
        sizes = [
            found
            for precision in ("fp32", "bf16")
            for found in summary.fastest_by_size(records[name], precision).values()
        ]
        count = len(records[name]["settings"]["sizes"])
        peer, ratio = min(sizes, key=lambda size: size[1])
        what = f"a training step at the worst of {count} batch sizes, {processor}"
        yield Row(what, ratio, PEERS[peer].title, LEVEL)
    for precision in ("fp32", "bf16"):
        peer, ratio = leanest_other(records["training_step"], precision)
        yield Row(f"memory of a step in {precision}", ratio, PEERS[peer].title, 1.0)
    both = [records["decoding"], records["decoding_file"]]
    for beam, words in ((1, "greedy search"), (4, "a beam of 4")):
        for peers, goal in (
            (IN_PYTORCH, 1.5),
            (("ctranslate2",), 1.0),
            (("ctranslate2_int8",), None),
        ):
            peer, ratio = least_ahead(both, beam, peers)
            yield Row(f"a translation, {words}", ratio, PEERS[peer].title, goal)
    quality = records["time_to_quality"]
    ratio = summary.quality_ratio(quality, "fairseq")
    if ratio is not None:
        what = f"training until {quality['settings']['bleu']:g} BLEU"
        yield Row(what, ratio, PEERS["fairseq"].title)
    # No other library was measured compiled, so neither is ours compared compiled.
    on_gpu = [r for r in summary.gpu_rows(records["gpu"]) if r["form"] == "eager"]
    best, other = (
        max(
            (row for row in on_gpu if (row["peer"] == summary.OURS) is ours),
            key=lambda row: row["speed"],
        )
        for ours in (True, False)
    )
    gpu = records["gpu"]["settings"]["gpu"]
    what = f"a training step of base, uncompiled, {gpu}"
    yield Row(what, best["speed"] / other["speed"], PEERS[other["peer"]].title)


def leanest_other(record: Record, precision: str) -> tuple[str, float]:
    """The peer that takes the least memory, and how many times ours that is."""
    case = {"precision": precision}
    peaks = {
        peer: peak
        for peer in summary.peers_in(record)
        if (peak := summary.peak_megabytes(record, peer, case)) is not None
    }
    ours = peaks[summary.OURS]
    others = {peer: p for peer, p in peaks.items() if peer not in summary.OUR_FORMS}
    return min(
        ((peer, peak / ours) for peer, peak in others.items()), key=lambda one: one[1]
    )


def least_ahead(
    records: Iterable[Record], beam_size: int, peers: Iterable[str]
) -> tuple[str, float]:
    """The peer that ours is least ahead of in any of the workloads of a search."""
    found = [
        (peer, ratio)
        for record in records
        for case in summary.decoding_cases(record)
        if case["beam_size"] == beam_size
        for peer in peers
        if (ratio := summary.ratio_to_ours(record, peer, case)) is not None
    ]
    return min(found, key=lambda one: one[1])


class SpeedGoals(SphinxDirective):
    """The table, with its bars and marks."""

    def run(self) -> list[nodes.Node]:
        records = {}
        for name in NAMES:
            path = RECORDS / f"{name}.json"
            self.env.note_dependency(str(path))
            records[name] = json.loads(path.read_text(encoding="utf-8"))
        found = list(rows(records))
        header = ["", "ours, times", "the goal", "the other"]
        made = table(header, [row.cells() for row in found])
        made["classes"].append("speeds")
        most = max(max(row.ratio, row.goal or 0) for row in found)
        for entries, row in zip(next(made.findall(nodes.tbody)), found, strict=True):
            marks = {"speed-bar": row.ratio, "speed-goal": row.goal}
            html = "".join(
                f'<span class="{name}" style="--share: {value / most:.3f}"></span>'
                for name, value in marks.items()
                if value is not None
            )
            entries[1] += nodes.raw("", html, format="html")
        goals = [row for row in found if row.goal is not None]
        met = sum(row.ratio >= row.goal for row in goals if row.goal is not None)
        words = f"Of {len(goals)} goals, {met} are met."
        return [made, nodes.paragraph("", words)]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("speed-goals", SpeedGoals)
