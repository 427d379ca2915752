"""Train the paper's model and eight that differ by later parts; keep the losses.

Usage: python -m tools.records.changes

Two seeds at two learning rates, and three more seeds at the better of them. Some
twelve minutes on one core. Each training is written down as soon as it is done, and
one that is written down is not repeated: stop it, and start it again, as you like.
"""

from statistics import fmean

import torch

from aiayn.device import describe_machine
from aiayn.storage import write_json
from aiayn_book.chapters import what_changed as chapter
from tools.project import RECORDS, commit, continued

RECORD = RECORDS / "changes.json"
RATES = 0.004, 0.008
CHOICES = [
    {"variant": variant, "rate": rate, "seed": seed}
    for seed in (1, 2)
    for rate in RATES
    for variant in chapter.VARIANTS
]


def run_one(choice: dict) -> dict:
    """The held-out loss of one training, every hundred steps."""
    checks = chapter.train(choice["variant"], choice["seed"], choice["rate"])
    return choice | {"validation": [[step, round(loss, 5)] for step, loss in checks]}


def better_rate(runs: list[dict], variant: str) -> float:
    """The learning rate at which the first two seeds of a variant end lower."""

    def loss(rate: float) -> float:
        return fmean(
            run["validation"][-1][1]
            for run in runs
            if (run["variant"], run["rate"]) == (variant, rate) and run["seed"] <= 2
        )

    return min(RATES, key=loss)


def add(record: dict, choices: list[dict]) -> None:
    """Train what the record lacks."""
    done = [{name: run[name] for name in CHOICES[0]} for run in record["runs"]]
    for choice in choices:
        if choice not in done:
            record["runs"].append(run_one(choice))
            print(record["runs"][-1], flush=True)
            write_json(RECORD, record)


def main() -> None:
    """First both rates, then the better one."""
    torch.set_num_threads(1)
    head = {
        "command": "python -m tools.records.changes",
        "commit": commit(),
        "machine": describe_machine(),
        "parameters": chapter.sizes(),
    }
    record = continued(RECORD, head)
    add(record, CHOICES)
    runs = record["runs"]
    better = {variant: better_rate(runs, variant) for variant in chapter.VARIANTS}
    more = [
        {"variant": variant, "rate": rate, "seed": seed}
        for seed in (3, 4, 5)
        for variant, rate in better.items()
    ]
    add(record, more)
    print(f"{RECORD.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()
