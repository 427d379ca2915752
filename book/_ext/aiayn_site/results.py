"""The directives ``{results} table-1`` … ``table-4``, ``search``, ``records`` and more.

Of the translators of captions, ``captions`` has the scores of each run, ``penalties``
what another length penalty makes of them, and ``samples`` what they write.

They set what this book measured beside what the paper printed. The paper's figures come
from `aiayn_book.paper`, ours from the records; nothing is typed.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from statistics import fmean
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn.training import TrainingConfig
from aiayn_book import paper
from aiayn_book.chapters.train_a_translator import caption_runs, mean_scores, scores
from aiayn_book.records import load_record, repeats
from aiayn_site.ledger import ledger_part
from aiayn_site.run_times import table

NOTHING = "–"
Rows = list[list[str]]


class Results(SphinxDirective):
    """Draws one of the tables."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        for path in files("aiayn_book").joinpath("records").iterdir():
            self.env.note_dependency(str(path))
        what = self.arguments[0]
        if what == "claims":
            self.env.metadata[self.env.docname]["shows-ledger"] = True
            return [ledger_part(group="§4 Why self-attention")]
        header, rows, own = TABLES[what]()
        headings = header.index("BLEU") if what == "search" else 1  # its setting
        plain = what in ("records", "samples")
        drawn = table(header, rows if plain else with_minus(rows), headings)
        drawn["classes"].append("results")
        if what == "records":
            as_typed(drawn, column=header.index("command"))
            drawn["classes"].append("records")
        for row in list(drawn.findall(nodes.row))[-own:] if own else ():
            row["classes"].append("results-ours")
        below = {"search": searches, "captions": signature}.get(what)
        return [drawn, below()] if below else [drawn]


def with_minus(rows: Rows) -> Rows:
    """The rows with a minus sign where Python prints a hyphen before a number."""
    minus = "\N{MINUS SIGN}"
    return [[re.sub(r"(?<!\w)-(?=\d)", minus, cell) for cell in row] for row in rows]


def as_typed(drawn: nodes.table, column: int) -> None:
    """Sets a column as code: in text, two hyphens would become a dash."""
    for row in next(drawn.findall(nodes.tbody)):
        (paragraph,) = row[column]
        text = paragraph.astext()
        row[column][0] = nodes.paragraph("", "", nodes.literal(text, text))


def names() -> list[str]:
    """The records that there are."""
    folder = files("aiayn_book").joinpath("records")
    found = (file.name for file in folder.iterdir())
    return sorted(n.removesuffix(".json") for n in found if n.endswith(".json"))


def table_1() -> tuple[list[str], Rows, int]:
    """The four kinds of layers, as printed; chapter 12 counts and measures them."""
    header = ["layer", "operations", "in sequence", "longest path"]
    rows = [
        [r.layer, r.complexity, r.sequential_operations, r.maximum_path_length]
        for r in paper.TABLE_1
    ]
    return header, rows, 0


def table_2() -> tuple[list[str], Rows, int]:
    """The paper's models by BLEU; below them ours, on another test set."""
    header = ["model", "English–German", "English–French", "operations"]
    rows = [
        [
            row.model,
            _number(row.bleu_en_de),
            _number(row.bleu_en_fr),
            _power(row.flops_en_de or row.flops_en_fr),
        ]
        for row in paper.TABLE_2
    ]
    ours = list(_translators())
    return header, rows + ours, len(ours)


def _translators() -> Iterator[list[str]]:
    """The recorded translators, with the operations that chapter 17 counts.

    Runs of one configuration, whatever their seed and commit, make one line.
    """
    alike: dict[str, list[dict[str, Any]]] = {}
    for record in map(load_record, names()):
        if "test" in record and "log" in record:
            # What a record is too old to name has its default.
            config = TrainingConfig.from_dict(record["config"]).as_dict()
            config |= dict.fromkeys(("seed", "output", "threads", "progress"))
            alike.setdefault(str(config), []).append(record)
    for runs in alike.values():
        begin, config = runs[0]["log"][0], runs[0]["config"]
        passes = config["steps"] * config["accumulate"] / begin["data"]["batches"]
        # As in chapter 16: three passes of two operations a weight and target token.
        operations = 6 * begin["parameters"] * begin["data"]["target_tokens"] * passes
        score = _range([run["test"]["bleu"] for run in runs])
        pair = (config["source"], config["target"])
        yield [
            f"here: {begin['parameters'] / 1e6:.1f} million weights, {kind(config)}, "
            f"{config['steps']:,} steps on {config['corpus']}"
            f"{' with a GPU' * ('gpu' in begin['machine'])}, its own test set",
            score if pair == ("en", "de") else NOTHING,
            score if pair == ("en", "fr") else NOTHING,
            _power(operations),
        ]


def kind(config: dict[str, Any]) -> str:
    """What tells recorded translators of one size apart, beside their steps."""
    model = config["model"]
    rows = "sorted" if config.get("packed_length") is None else "packed"
    positions = model.get("positions", "sinusoidal")
    return f"{model.get('norm', 'post')}-norm, {positions}, {rows}"


def search() -> tuple[list[str], Rows, int]:
    """What each trick of §6.1 changes: means over the runs, all their intervals."""
    header = ["checkpoints", "beam", "α", "BLEU", "beside the first", "95 % intervals"]
    runs = load_record("search")["runs"]
    rows = []
    for number, setting in enumerate(runs[0]["settings"]):
        if setting["part"] or setting["extra"] != paper.BASE.extra_output_length:
            continue
        same = [run["settings"][number] for run in runs]
        each = (one["difference"] for one in same)
        differences, lows, highs = zip(*each, strict=True)
        rows.append(
            [
                str(setting["averaged"]),
                str(setting["beam"]),
                f"{setting['alpha']:g}",
                f"{fmean(one['bleu'] for one in same):.2f}",
                f"{fmean(differences):+z.2f}",
                f"{min(lows):+z.2f} to {max(highs):+z.2f}",
            ]
        )
    rows[0][-2:] = [NOTHING, NOTHING]  # the paper's setting, beside itself
    return header, rows, 0


def searches() -> nodes.paragraph:
    """How many runs the table of `search` has, and how many sentences each."""
    runs = load_record("search")["runs"]
    sentences = runs[0]["settings"][0]["sentences"]
    mean = "One run" if len(runs) == 1 else f"Means over {len(runs)} runs"
    text = f"{mean} on {sentences:,} sentences of the validation split."
    return nodes.paragraph("", text)


def captions() -> tuple[list[str], Rows, int]:
    """Each recorded run on captions, and below them the mean of each recipe."""
    header = ["run", "steps", "minutes (threads)", "BLEU", "BLEU / BP"]
    rows, count = [], {}
    for recipe, record in caption_runs():
        begin, end = record["log"][0], record["log"][-1]
        found = scores(record)
        count[recipe] = count.get(recipe, 0) + 1
        rows.append(
            [
                f"{recipe}, seed {record['config']['seed']}",
                f"{record['config']['steps']:,}",
                f"{end['seconds'] / 60:.0f} ({begin['machine']['threads']})",
                *(f"{found[score]:.2f}" for score in header[3:]),
            ]
        )
    means = [
        [
            f"{recipe}, mean of {count[recipe]}",
            *(NOTHING, NOTHING),
            *(f"{mean[score]:.2f}" for score in header[3:]),
        ]
        for recipe, mean in mean_scores().items()
        if count[recipe] > 1
    ]
    return header, rows + means, len(means)


def signature() -> nodes.paragraph:
    """How sacreBLEU signs these scores; each record has its whole line."""
    printed = {
        record["test"]["printed"].split(" = ")[0] for _, record in caption_runs()
    }
    text = "Signature of all scores: " + " and ".join(sorted(printed)) + "."
    text = text.replace("|", "|\u200b")  # a line may break there
    return nodes.paragraph("", text)


def penalties() -> tuple[list[str], Rows, int]:
    """The length penalty that was best on the validation captions, and its score."""
    header = ["run", "BLEU", "lower case", "chosen α", "BLEU with it"]
    rows = []
    for recipe, record in caption_runs():
        test = record["test"]
        chosen = test.get("chosen")
        rows.append(
            [
                f"{recipe}, seed {record['config']['seed']}",
                f"{test['bleu']:.2f}",
                f"{test['lowercase_bleu']:.2f}",
                f"{chosen['alpha']:g}" if chosen else NOTHING,
                f"{chosen['bleu']:.2f}" if chosen else NOTHING,
            ]
        )
    return header, rows, 0


def samples() -> tuple[list[str], Rows, int]:
    """What the first run of three recipes makes of sentences of our own."""
    shown = ("German, post-norm", "German, today's", "French, today's")
    first: dict[str, list[list[str]]] = {}
    for recipe, record in caption_runs():
        first.setdefault(recipe, record["samples"])
    english = [source for source, _ in first[shown[0]]]
    columns = [[written for _, written in first[recipe]] for recipe in shown]
    rows = [list(row) for row in zip(english, *columns, strict=True)]
    return ["English", *shown], rows, 0


def table_3() -> tuple[list[str], Rows, int]:
    """Each variation beside the base row: in the paper, and in miniature here."""
    header = ["row", "perplexity", "perplexity here", "BLEU", "BLEU here"]
    header.append("runs here")
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in load_record("table3")["runs"]:
        runs.setdefault(run["row"], []).append(run)
    base, base_runs = paper.TABLE_3["base"], runs["base"]
    rows = []
    for name, printed in paper.TABLE_3.items():
        own = runs.get(name, [])
        theirs = [f"{printed.perplexity:.2f}", f"{printed.bleu:.1f}"]
        here = [NOTHING, NOTHING]
        if own:
            here = [f"{_mean(own, 'perplexity'):.2f}", f"{_mean(own, 'bleu'):.1f}"]
        if name != "base":
            theirs[0] += f" ({printed.perplexity / base.perplexity - 1:+z.1%})"
            theirs[1] += f" ({printed.bleu - base.bleu:+z.1f})"
        if name != "base" and own:
            ratio = _mean(own, "perplexity") / _mean(base_runs, "perplexity")
            here[0] += f" ({ratio - 1:+z.1%})"
            here[1] += f" ({_mean(own, 'bleu') - _mean(base_runs, 'bleu'):+z.1f})"
        count = str(len(own) or "none yet")
        rows.append([name, theirs[0], here[0], theirs[1], here[1], count])
    return header, rows, 0


def table_4() -> tuple[list[str], Rows, int]:
    """The paper's parsers by F1; below them ours, on other treebanks."""
    header = ["parser", "trained on", "F1"]
    rows = [[r.parser, r.training, f"{r.f1:.1f}"] for r in paper.TABLE_4]
    found: dict[tuple[str, int], list[float]] = {}
    for run in load_record("parsing")["runs"]:
        scores = found.setdefault((run["corpus"], run["sentences"]), [])
        scores.append(100 * run["scores"]["test"]["f1"])
    ours = [
        [
            "here: four small layers",
            f"{sentences:,} sentences of {corpus}, its own test set",
            _range(scores),
        ]
        for (corpus, sentences), scores in sorted(found.items())
    ]
    return header, rows + ours, len(ours)


def records() -> tuple[list[str], Rows, int]:
    """How each recorded run is made again."""
    header = ["record", "command", "commit", "machine"]
    rows = []
    for name in names():
        record = load_record(name)
        machines = record.get("machines") or [_machine(record)]
        commits = record.get("commits") or [record["commit"]]
        where = ", ".join(map(_in_words, machines))
        made = ", ".join(commit[:9] for commit in commits)
        rows.append([name, record["command"], made, where])
        if repeats(record) != record["command"]:
            rows.append([f"{name}, today", repeats(record), NOTHING, NOTHING])
    return header, rows, 0


def _machine(record: dict[str, Any]) -> dict[str, Any]:
    """What a record ran on, wherever that kind of record says it."""
    if "machine" in record:
        return record["machine"]
    return record.get("log", record.get("runs"))[0]["machine"]


def _in_words(machine: dict[str, Any]) -> str:
    threads = machine["threads"]
    parts = machine["processor"], f"{threads} thread{'s' if threads > 1 else ''}"
    return ", ".join((*parts, *filter(None, [machine.get("gpu")])))


def _mean(runs: list[dict[str, Any]], score: str) -> float:
    return fmean(run[score] for run in runs)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:g}"


def _power(value: float | None) -> str:
    """A number of operations as the paper prints them."""
    if value is None:
        return NOTHING
    digits, exponent = f"{value:.1e}".split("e")
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"{digits} · 10{str(int(exponent)).translate(raised)}"


def _range(values: list[float]) -> str:
    """The mean, and from where to where if there are several."""
    mean = f"{fmean(values):.1f}"
    several = f" ({min(values):.1f} to {max(values):.1f})"
    return mean + several if len(values) > 1 else mean


TABLES = {
    "table-1": table_1,
    "table-2": table_2,
    "search": search,
    "captions": captions,
    "penalties": penalties,
    "samples": samples,
    "table-3": table_3,
    "table-4": table_4,
    "records": records,
}


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("results", Results)
