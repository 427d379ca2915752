"""The directive ``{gpu-runs}``: what was trained on a GPU, beside a processor's."""

from statistics import mean
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn.book.records import load_record

Record = dict[str, Any]
TRANSLATORS = [f"multi30k-en-de-gpu-{number}" for number in (1, 2, 3)]
SAME_ON_A_PROCESSOR = [f"multi30k-en-de-rotary-{seed}" for seed in (1, 2, 3, 4)]
TABLE, TABLE_ON_A_PROCESSOR = "table3-gpu", "table3"


class GpuRuns(SphinxDirective):
    """A sentence on each, with its command."""

    def run(self) -> list[nodes.Node]:
        translators, table = list(map(load_record, TRANSLATORS)), load_record(TABLE)
        others = list(map(load_record, SAME_ON_A_PROCESSOR))
        return [
            *paragraphs(translator_words(translators, others), translators[-1]),
            *paragraphs(table_words(table, load_record(TABLE_ON_A_PROCESSOR)), table),
        ]


def translator_words(records: list[Record], others: list[Record]) -> str:
    """How long trainings took and how good they are; and the same on a processor."""
    begin, end = records[0]["log"][0], records[0]["log"][-1]
    seeds = [str(record["config"]["seed"]) for record in records]
    taken = [record["log"][-1]["seconds"] for record in records]
    commands = [record["command_seconds"] for record in records]
    ours, theirs = (
        [record["test"]["bleu"] for record in some] for some in (records, others)
    )
    minutes = [other["log"][-1]["seconds"] / 60 for other in others]
    return (
        f"The translator of chapter 16, {len(records)} times on one "
        f"{begin['machine']['gpu']}, with seeds {', '.join(seeds)}: {end['step']:,} "
        "steps, with the loss on the validation split now and then, took "
        f"{min(taken):.0f} to {max(taken):.0f} seconds, and the whole command, from "
        f"Python's start to averaged weights, {min(commands):.0f} to "
        f"{max(commands):.0f}. On test2016 they have {min(ours):.1f} to "
        f"{max(ours):.1f} BLEU, {mean(ours):.1f} in the mean. On a processor "
        f"{len(others)} seeds have {min(theirs):.1f} to {max(theirs):.1f}, "
        f"{mean(theirs):.1f} in the mean, after {min(minutes):.0f} to "
        f"{max(minutes):.0f} minutes with one thread or two, in which some validation "
        "sentences were translated, too."
    )


def table_words(record: Record, on_a_processor: Record) -> str:
    """How much of the table was done in what time; perplexities beside the others."""
    runs, rows = record["runs"], {run["row"] for run in record["runs"]}
    ratios = [
        mean_perplexity(record, row) / mean_perplexity(on_a_processor, row)
        for row in rows
    ]
    times = [run["wall_seconds"] for run in runs]
    return (
        f"Chapter 18's table on one {record['machines'][0]['gpu']}, by as many "
        f"commands side by side as the line below has: when the GPU had to be given "
        f"back, after {record['stopped_after_seconds']} seconds, {len(runs)} of its "
        f"{len(on_a_processor['runs'])} runs were done, {len(rows)} rows with each "
        f"seed, and the others had begun. One took {min(times):.0f} to "
        f"{max(times):.0f} seconds. A row's "
        f"perplexity, the mean of its seeds, is {min(ratios):.2f} to "
        f"{max(ratios):.2f} times that of the same row in the chapter's own table, "
        "which was made on a processor."
    )


def mean_perplexity(record: Record, row: str) -> float:
    """Of a row's seeds."""
    return mean(run["perplexity"] for run in record["runs"] if run["row"] == row)


def paragraphs(words: str, record: Record) -> list[nodes.Node]:
    """The sentence, and what to type for the same."""
    command = nodes.literal("", record["command"])
    return [
        nodes.paragraph("", words),
        nodes.paragraph("", "", nodes.Text("Command: "), command),
    ]


def setup(app: Sphinx) -> dict:
    """Register the directive."""
    app.add_directive("gpu-runs", GpuRuns)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
