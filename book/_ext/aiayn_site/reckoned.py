"""The directives ``{whole-run}`` and ``{many-gpus}``: arithmetic on what was measured.

The first is a table of how long the paper's runs would take at the rates that the
records hold; the second a picture of what share of many GPUs' time is computation.
"""

import json
from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_book.colours import KEY, QUERY
from aiayn_book.plots import as_svg, use_theme
from aiayn_site.run_times import table
from aiayn_site.speed_tables import RECORDS
from benchmarks import reckoning, summary

SPEEDS = (50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000)
"""Target tokens a second of one GPU."""


class WholeRun(SphinxDirective):
    """How long base and big would take, on each machine that a record comes from."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for name, measure in (("training_step", by_processor), ("gpu", by_gpu)):
            path = RECORDS / f"{name}.json"
            self.env.note_dependency(str(path))
            if path.exists():
                rows.append(measure(json.loads(path.read_text(encoding="utf-8"))))
        header = ["", "TFLOP/s", *reckoning.RUNS]
        return [table(header, [row(*measured) for measured in rows])]


def by_processor(record: dict[str, Any]) -> tuple[str, float]:
    """Who computed, and operations a second of our step in bfloat16."""
    machine = record["machine"]
    rate = summary.achieved_gflops(record, summary.OURS, "bf16")
    return f"{machine['processor']}, {machine['threads']} threads", 1e9 * rate


def by_gpu(record: dict[str, Any]) -> tuple[str, float]:
    """The same of our fastest form."""
    rows = (r for r in summary.gpu_rows(record) if r["peer"] == summary.OURS)
    return record["settings"]["gpu"], 1e12 * next(rows)["tflops"]


def row(title: str, rate: float) -> list[str]:
    """One machine's line: its rate, and the time that each of the runs would take."""
    hours = [reckoning.whole_run_flops(name) / rate / 3600 for name in reckoning.RUNS]
    return [title, f"{rate / 1e12:.3g}", *map(in_words, hours)]


def in_words(hours: float) -> str:
    """Hours, or days from two of them on."""
    return f"{hours / 24:,.3g} days" if hours >= 48 else f"{hours:.2g} hours"


class ManyGpus(SphinxDirective):
    """Efficiency over the speed of one GPU, for each cluster and each way to share."""

    def run(self) -> list[nodes.Node]:
        use_theme()
        drawing, panel = plt.subplots(layout="constrained")
        numbers, spoken = reckoning.parameters("base"), []
        for cluster, role in zip(reckoning.CLUSTERS, (KEY, QUERY), strict=True):
            exchange = reckoning.exchange_seconds(numbers, cluster)
            for shared, style in ((False, "-"), (True, "--")):
                shares = [
                    100 * reckoning.efficiency(a_step(speed, cluster, shared), exchange)
                    for speed in SPEEDS
                ]
                what = "one batch for all" if shared else "a batch each"
                name = f"{cluster.gpus} GPUs, {what}"
                panel.plot(SPEEDS, shares, style, color=role.mark, label=name)
                spoken.append(f"{name}: from {shares[0]:.0f} to {shares[-1]:.0f} %")
        panel.set_xscale("log")
        panel.set_xticks(SPEEDS, [f"{speed // 1000}" for speed in SPEEDS])
        panel.minorticks_off()
        panel.set_ylim(0, 105)
        panel.legend(frameon=False, loc="lower left")  # where no line passes
        panel.set_xlabel("thousand target tokens a second of one GPU")
        panel.set_title("% of the time that is computation", fontsize=11, loc="left")
        said = (
            f"Share of computation over the speed of one GPU, {SPEEDS[0]:,} to "
            f"{SPEEDS[-1]:,} tokens a second. {'; '.join(spoken)}."
        )
        html = as_svg(drawing, said)._repr_html_()
        return [nodes.raw("", html, format="html")]


def a_step(speed: float, cluster: reckoning.Cluster, shared: bool) -> float:
    """Seconds in which a GPU of that speed computes its part of a step."""
    batch = reckoning.RUNS["base"].tokens_per_batch
    return batch / (cluster.gpus if shared else 1) / speed


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("whole-run", WholeRun)
    app.add_directive("many-gpus", ManyGpus)
