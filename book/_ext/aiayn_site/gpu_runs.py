"""The directive ``{gpu-runs}``: what was trained on a GPU, beside a processor's."""

from collections.abc import Iterable
from statistics import mean
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn_book.records import load_record, repeats

Record = dict[str, Any]
TRANSLATORS = [f"multi30k-en-de-gpu-{number}" for number in (1, 2, 3)]
SAME_ON_A_PROCESSOR = [f"multi30k-en-de-rotary-{seed}" for seed in (1, 2, 3, 4)]
WIDTHS = "multi30k-gpu-widths"
TABLE, TABLE_ON_A_PROCESSOR = "table3-gpu", "table3"


class GpuRuns(SphinxDirective):
    """A sentence on each, with its command."""

    def run(self) -> list[nodes.Node]:
        translators, table = list(map(load_record, TRANSLATORS)), load_record(TABLE)
        others, widths = (
            list(map(load_record, SAME_ON_A_PROCESSOR)),
            load_record(WIDTHS),
        )
        return [
            *paragraphs(translator_words(translators, others), translators[-1]),
            *paragraphs(width_words(widths, translators), widths),
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
        f"The translator of chapter 16, but with {_width(records)} numbers inside of a "
        f"feed-forward network instead of {_width(others)}, {len(records)} times on "
        f"one {begin['machine']['gpu']}, with seeds {', '.join(seeds)}: "
        f"{end['step']:,} steps instead of {others[0]['config']['steps']:,}, with the "
        "loss on the validation split now and then, took "
        f"{_range(taken)} seconds, and the whole command, from Python's start to "
        f"averaged weights, {_range(commands)}. On test2016 they have {min(ours):.1f} "
        f"to {max(ours):.1f} BLEU, {mean(ours):.1f} in the mean. Chapter 16's own, "
        f"on a processor and with {len(others)} seeds, have {min(theirs):.1f} to "
        f"{max(theirs):.1f}, {mean(theirs):.1f} in the mean, after "
        f"{_range(minutes)} minutes with one thread or two, in which some validation "
        "sentences were translated, too."
    )


def _range(times: list[float]) -> str:
    """From the least to the most, in whole numbers."""
    least, most = (f"{time:.0f}" for time in (min(times), max(times)))
    return least if least == most else f"{least} to {most}"


def _distance(scores: Iterable[float]) -> float:
    """Between the best and the worst."""
    found = list(scores)
    return max(found) - min(found)


def _width(records: list[Record]) -> int:
    return records[0]["config"]["model"]["d_ff"]


def width_words(record: Record, now: list[Record]) -> str:
    """Why the width says nothing: all runs of either width, tested or validated."""
    tested = record["tested_before"]
    first = [run["test_bleu"] for run in tested]
    second = [run["test"]["bleu"] for run in now]
    everything = first + second
    before, after = (
        ", ".join(f"{score:.1f}" for score in some) for some in (first, second)
    )
    widths = dict.fromkeys(run["d_ff"] for run in record["runs"])
    scores = {
        width: [run["bleu"] for run in record["runs"] if run["d_ff"] == width]
        for width in widths
    }
    told = "; ".join(
        f"with {width}, " + " and ".join(f"{score:.1f}" for score in found)
        for width, found in scores.items()
    )
    return (
        "The steps are as many as fit into a minute with the whole command. The width "
        "is no better than the one before it, as far as we know: "
        f"{len(tested)} runs with {tested[0]['d_ff']} numbers inside had been scored "
        f"on test2016 when it was changed, {before} BLEU, beside {after} now. On the "
        f"validation split, after {record['steps']:,} steps with other seeds, the two "
        f"widths have {told}. Their means differ by "
        f"{_distance(map(mean, scores.values())):.1f}, and seeds of one width by up to "
        f"{max(map(_distance, scores.values())):.1f}, so that this does not choose "
        "between them; and the scores on test2016 were known. The mean of all "
        f"{len(everything)} runs on test2016 is {mean(everything):.1f}."
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
    command = nodes.literal("", repeats(record))
    return [
        nodes.paragraph("", words),
        nodes.paragraph("", "", nodes.Text("Command: "), command),
    ]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("gpu-runs", GpuRuns)
