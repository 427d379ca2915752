"""The directives that draw what was measured of a training step and of a translation.

They read what ``python -m benchmarks.…`` recorded under ``benchmarks/records``: a table
for each case, with a bar in each row, and where and when it was measured.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_site.run_times import table

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))

from aiayn.errors import InputError  # noqa: E402
from aiayn_book.records import load_record, repeats  # noqa: E402
from benchmarks import summary  # noqa: E402
from benchmarks.peers import PEERS  # noqa: E402

RECORDS = ROOT / "benchmarks" / "records"
LEVEL = 0.95
"""The goal at the worst size of a batch: about as fast as the fastest other."""
MANY = 8
"""Of fewer ratios there is no middle half."""
WORKLOADS = {
    "batches": "32 sentences of like length at once",
    "mixed": "32 sentences of mixed length at once",
    "file": "a long file, sorted by length",
}


class BenchmarkDirective(SphinxDirective):
    """Reads a record and leaves its tables."""

    record: str

    def run(self) -> list[nodes.Node]:
        path = RECORDS / f"{self.record}.json"
        self.env.note_dependency(str(path))
        if not path.exists():
            command = f"python -m benchmarks.{self.record}"
            code = nodes.literal(command, command)
            words = (nodes.Text("Not measured yet: "), code, nodes.Text(" does it."))
            return [nodes.paragraph("", "", *words)]
        record = json.loads(path.read_text(encoding="utf-8"))
        return [*self.tables(record), *closing(record)]

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        """One table a case, each under a line that names it."""
        raise NotImplementedError


class TrainingStep(BenchmarkDirective):
    """The speed of a training step, in float32 and in bfloat16."""

    record = "training_step"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for precision in ("fp32", "bf16"):
            rows = training_rows(record, precision)
            if rows:
                header = ["", "target tokens/s", "ours, times", "the first time"]
                header += ["GFLOP/s", "peak MB"]
                made += [heading(precision, record, {"precision": precision})]
                made += [with_bars(table(header, rows), rows)]
                made += losses(record, {"precision": precision})
        return made


class Grid(SphinxDirective):
    """How far ours is ahead of the fastest peer at each size of a batch.

    Each line of its content names a record and its processor.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for _, title, record in records_by_processor(self):
            for precision in ("fp32", "bf16"):
                found = summary.fastest_by_size(record, precision)
                if found:
                    case = {"precision": precision}
                    turns = record["settings"].get("turns")
                    often = f" of {turns} turns" if turns else ""
                    name = f"{title}, {precision}"
                    made += [heading(name, record, case, of=often)]
                    made += [table_of_sizes(found)]
                    made += [worst_size(found, record, precision)]
            made += closing(record)
        return made


def records_by_processor(
    directive: SphinxDirective,
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The records that a directive's content names: name, processor and record.

    What a record calls it, "AMD EPYC", does not tell the generation.
    """
    for line in directive.content:
        name, _, title = line.partition(": ")
        path = RECORDS / f"{name}.json"
        directive.env.note_dependency(str(path))
        if not path.exists():
            raise directive.error(f"There is no record {path}.")
        yield name, title, json.loads(path.read_text(encoding="utf-8"))


def table_of_sizes(found: dict[tuple[int, int], tuple[str, float]]) -> nodes.Node:
    """A row for each number of sentences, a column for each length."""
    lengths = sorted({length for _, length in found})
    rows = [
        [
            sentences(count),
            *(size_cell(found.get((count, length))) for length in lengths),
        ]
        for count in dict.fromkeys(count for count, _ in found)
    ]
    return table(["", *(f"of {length} tokens" for length in lengths)], rows)


def worst_size(
    found: dict[tuple[int, int], tuple[str, float]],
    record: dict[str, Any],
    precision: str,
) -> nodes.Node:
    """At how many sizes a peer is ahead, and how sure that is."""
    behind = sum(ratio < LEVEL for _, ratio in found.values())
    words = f"At {behind} of {len(found)} sizes ours is below {times(LEVEL)}."
    size, (peer, ratio) = min(found.items(), key=lambda item: item[1][1])
    turns = summary.ratios_by_size(record, precision)[size][peer]
    many = len(turns) >= MANY
    low, *_, high = quantiles(turns, n=4) if many else (min(turns), max(turns))
    those = "the middle half of them lies" if many else "they lie"
    words += (
        f" At the worst, {sentences(size[0])} of {size[1]} tokens, {times(ratio)} is "
        f"the median of {len(turns)} ratios; {those} between {times(low)} and "
        f"{times(high)}."
    )
    return nodes.paragraph("", words)


def sentences(count: int) -> str:
    """How many they are, in words."""
    return f"{count} sentence{'s' * (count > 1)}"


def size_cell(found: tuple[str, float] | None) -> str:
    """The ratio, and whose it is; empty where the batch would be too large."""
    return "" if found is None else f"{times(found[1])} ({PEERS[found[0]].title})"


class Processors(SphinxDirective):
    """How far a training step is ahead on each processor.

    Each line of its content names a record and its processor.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        rows, made = [], []
        for name, title, record in records_by_processor(self):
            rows += [
                [f"{title}, {precision}", *ahead(record, precision)]
                for precision in ("fp32", "bf16")
                if summary.fastest_other(record, precision)
            ]
            if name != TrainingStep.record:  # whose closing lines stand above
                often = f", {record['settings']['batches']} batches a round"
                words = (nodes.strong("", title), nodes.Text(often))
                made += [nodes.paragraph("", "", *words)]
                made += closing(record)
        header = ["", "GFLOP/s: oneDNN / torch", "the fastest other", "ours, times"]
        header += ["in the rounds", "at most", "not accelerated"]
        return [table(header, rows), *made]


class Decoding(BenchmarkDirective):
    """The speed of a translation, for each search and each kind of batch."""

    record = "decoding"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for case in summary.decoding_cases(record):
            title = f"{searched(case)}, {WORKLOADS[case['workload']]}"
            header = ["", "sentences/s", "ours, times", "processor s", "same output"]
            header.append("peak MB")
            made += [heading(title, record, case)]
            rows = decoding_rows(record, case)
            made += [with_bars(table(header, rows), rows)]
        return [*made, *who_is_ahead(record), *busy(record), *trained_by(record)]


class OnAGpu(BenchmarkDirective):
    """The speed of a training step of base on a GPU, in each form and by each peer."""

    record = "gpu"

    def tables(self, record: dict[str, Any]) -> list[nodes.Node]:
        rows, settings = gpu_rows(record), record["settings"]
        if not rows:
            return []
        header = ["", "target tokens/s", "TFLOP/s", "of a product", "peak GB"]
        header.append("ready, s")
        padding = settings["padding_share"]
        sheet = summary.data_sheet_tflops(record)
        words = (
            f"{settings['gpu']}"
            + (f" ({sheet} TFLOP/s by its data sheet)" if sheet else "")
            + "; of the batches' places, this share is padding: "
            + ", ".join(f"{kind} {share:.1%}" for kind, share in padding.items())
            + "."
        )
        forms = [f"{form}: {what}" for form, what in settings["forms"].items()]
        note = [nodes.paragraph("", record["note"])] if "note" in record else []
        first = {"form": summary.gpu_rows(record)[0]["form"]}
        return [
            heading("bf16", record, first),
            with_bars(table(header, rows), rows),
            nodes.paragraph("", words),
            nodes.paragraph("", f"Of ours, {'; '.join(forms)}."),
            *note,
            *times_of_kernels(record),
        ]


class DecodingOfFile(Decoding):
    """The same for a file of thousands of lines, in a record of its own."""

    record = "decoding_file"


def times_of_kernels(record: dict[str, Any]) -> list[nodes.Node]:
    """What a GPU does in a step, and how long it waits, in a table of its own."""
    if not any("kernels" in measured for measured in record["measurements"]):
        return []
    kinds = ("step", "products", "attention", "others", "waiting")
    header = ["", "a step", "matrix products", "attention", "all else", "waiting"]
    rows = [
        [
            f"{PEERS[row['peer']].title}, {row['form']}",
            *(f"{row[k]:.1f}" for k in kinds),
        ]
        for row in summary.gpu_times(record)
    ]
    title = nodes.strong("", "where a step's milliseconds go")
    return [nodes.paragraph("", "", title), table(header, rows)]


def heading(
    title: str, record: dict[str, Any], case: dict[str, Any], of: str = ""
) -> nodes.Node:
    """A table's line above it: what was measured, and how often."""
    rounds = summary.number_of_rounds(record, case)
    often = f", median of {rounds} rounds" if rounds > 1 else ", one round"
    often += of
    return nodes.paragraph("", "", nodes.strong("", title), nodes.Text(often))


def losses(record: dict[str, Any], case: dict[str, Any]) -> list[nodes.Node]:
    """The plain classes learn the same: dropout alone draws other numbers there."""
    found = [summary.mean_loss(record, peer, case) for peer in summary.OUR_FORMS]
    if None in found:
        return []
    text = "Mean loss of the timed steps: {:.3f}; with the plain classes {:.3f}."
    return [nodes.paragraph("", text.format(*found))]


def training_rows(record: dict[str, Any], precision: str) -> list[list[str]]:
    """The fastest first; the last row is the machine's own measure."""
    case = {"precision": precision}
    speeds = {
        peer: speed
        for peer in summary.peers_in(record)
        if (speed := summary.tokens_per_second(record, peer, precision)) is not None
    }
    rows = []
    for peer in sorted(speeds, key=speeds.__getitem__, reverse=True):
        first = summary.tokens_per_second(record, peer, precision, "first_seconds")
        achieved = summary.achieved_gflops(record, peer, precision)
        rows.append(
            [
                PEERS[peer].title,
                f"{speeds[peer]:,.0f}",
                times(summary.ratio_to_ours(record, peer, case)),
                f"{first:,.0f}",
                f"{achieved:,.0f}",
                f"{summary.peak_megabytes(record, peer, case):,.0f}",
            ]
        )
    product = summary.product_gflops(record, precision)
    if rows and product is not None:
        rows.append(["a large matrix product", "", "", "", f"{product:,.0f}", ""])
    return rows


def ahead(record: dict[str, Any], precision: str) -> list[str]:
    """The machine's own measures, and how far ours is ahead of the fastest peer."""
    rates = [
        summary.product_gflops(record, precision, library)
        for library in ("onednn", "torch")
    ]
    shown = "" if None in rates else " / ".join(f"{rate:,.0f}" for rate in rates)
    found = summary.fastest_other(record, precision)
    assert found is not None  # the caller has asked
    peer, ratio = found
    ratios = summary.ratios_to_ours(record, peer, {"precision": precision})
    span = f"{min(ratios):.2f} to {max(ratios):.2f}"
    most = times(summary.most_ahead(record, peer, precision))
    plain = times(summary.ratio_to_ours(record, "plain", {"precision": precision}))
    return [shown, PEERS[peer].title, times(ratio), span, most, plain]


def gpu_rows(record: dict[str, Any]) -> list[list[str]]:
    """The fastest first; the last row is the GPU's own measure."""
    product = summary.product_gflops(record, "bf16")
    rows = [
        [
            f"{PEERS[row['peer']].title}: {row['form']}",
            f"{row['speed']:,.0f}",
            f"{row['tflops']:.3g}",
            f"{1e3 * row['tflops'] / product:.0%}" if product else "",
            f"{row['peak_gb']:.1f}",
            f"{row['warm_up']:.0f}",
        ]
        for row in summary.gpu_rows(record)
    ]
    if rows and product is not None:
        reached = f"{product / 1e3:.3g}"
        rows.append(["a large matrix product", "", reached, "", "", ""])
    return rows


def decoding_rows(record: dict[str, Any], case: dict[str, Any]) -> list[list[str]]:
    """The fastest first."""
    speeds = {
        peer: speed
        for peer in summary.peers_in(record)
        if (speed := summary.sentences_per_second(record, peer, case)) is not None
    }
    return [
        [
            PEERS[peer].title,
            f"{speeds[peer]:,.1f}",
            times(summary.ratio_to_ours(record, peer, case)),
            f"{summary.processor_seconds(record, peer, case):,.1f}",
            f"{summary.share_identical(record, peer, case):.1%}",
            f"{summary.peak_megabytes(record, peer, case):,.0f}",
        ]
        for peer in sorted(speeds, key=speeds.__getitem__, reverse=True)
    ]


def searched(case: dict[str, Any]) -> str:
    """How a case was translated."""
    return "greedy" if case["beam_size"] == 1 else f"beam {case['beam_size']}"


def who_is_ahead(record: dict[str, Any]) -> list[nodes.Node]:
    """Which peers translate faster than ours, and where."""
    faster = [
        f"{PEERS[peer].title} ({searched(case)}, ours {times(ratio)})"
        for case in summary.decoding_cases(record)
        for peer in summary.peers_in(record)
        if (ratio := summary.ratio_to_ours(record, peer, case)) and ratio < 1
    ]
    text = f"Faster than ours: {', '.join(faster)}." if faster else "No peer is faster."
    return [nodes.paragraph("", text)]


def busy(record: dict[str, Any]) -> list[nodes.Node]:
    """How many threads CTranslate2 keeps busy, and what that makes of its speed."""
    ranges = [summary.busy_threads(record, peer) for peer in ("ctranslate2", "ours")]
    if None in ranges:
        return []
    cases = summary.decoding_cases(record)
    cheaper = sum(
        summary.processor_seconds(record, "ctranslate2", case)
        < summary.processor_seconds(record, "ours", case)
        for case in cases
    )
    (low, high), (our_low, our_high) = ranges
    text = (
        f"Of {record['settings']['threads']} threads CTranslate2 keeps {low:.2f} to "
        f"{high:.2f} busy, ours {our_low:.2f} to {our_high:.2f}; in {cheaper} of "
        f"{len(cases)} cases it takes less processor time than ours."
    )
    return [nodes.paragraph("", text)]


def trained_by(record: dict[str, Any]) -> list[nodes.Node]:
    """The command that trains such weights today, where the book has their record."""
    try:
        command = repeats(load_record(record["settings"]["run"]))
    except InputError:
        return []
    code = nodes.literal(command, command)
    return [nodes.paragraph("", "", nodes.Text("The weights: "), code)]


def with_bars(made: nodes.table, rows: list[list[str]]) -> nodes.table:
    """Under each speed, the second column, a bar as long as it is fast."""
    made["classes"].append("speeds")
    speeds = [float(row[1].replace(",", "") or 0) for row in rows]
    for entries, speed in zip(next(made.findall(nodes.tbody)), speeds, strict=True):
        share = speed / max(speeds)
        bar = f'<span class="speed-bar" style="--share: {share:.3f}"></span>'
        entries[1] += nodes.raw("", bar, format="html")
    return made


def times(ratio: float | None) -> str:
    """A ratio as people read it; nothing where ours was not measured."""
    return "" if ratio is None else f"{ratio:.2f}\N{NO-BREAK SPACE}×"


def closing(record: dict[str, Any]) -> list[nodes.Node]:
    """Who was not measured and why; the machine, the versions, the command."""
    missing = [
        f"{PEERS[peer].title}: {why}"
        for peer, why in record["not_measured"].items()
        if peer in PEERS
    ]
    machine, threads = record["machine"], record["machine"]["threads"]
    versions = [
        f"{name} {number}"
        for packages in record["versions"].values()
        for name, number in packages.items()
    ]
    parts = [
        f"{machine['processor']}, {threads} thread{'s' * (threads != 1)}",
        f"Python {machine['python']}",
        f"torch {machine['torch']}",
        *dict.fromkeys(versions),
        record["date"],
        *([f"commit {record['commit'][:10]}"] if record["commit"] else []),
    ]
    made: list[nodes.Node] = []
    if missing:
        made.append(nodes.paragraph("", "Not measured. " + " ".join(missing)))
    made.append(nodes.paragraph("", " · ".join(parts)))
    if "command" in record:
        command = nodes.literal("", record["command"])
        made.append(nodes.paragraph("", "", nodes.Text("Command: "), command))
    return made


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("training-step-benchmark", TrainingStep)
    app.add_directive("grid-benchmark", Grid)
    app.add_directive("processors", Processors)
    app.add_directive("decoding-benchmark", Decoding)
    app.add_directive("file-benchmark", DecodingOfFile)
    app.add_directive("gpu-benchmark", OnAGpu)
