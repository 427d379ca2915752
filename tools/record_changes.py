"""Train the paper's model and eight that differ by one later part; keep the losses.

Usage: python tools/record_changes.py

Some twelve minutes on one core. Each training is written down as soon as it is done,
and one that is written down is not repeated: stop it, and start it again, as you like.
"""

import torch

from aiayn.device import describe_machine
from aiayn.storage import write_json
from aiayn_book.chapters import what_changed as chapter
from project import RECORDS, commit, continued

RECORD = RECORDS / "changes.json"
CHOICES = [
    {"variant": variant, "rate": rate, "seed": seed}
    for seed in range(1, 6)
    for rate in (0.004, 0.008)
    for variant in chapter.VARIANTS
]


def run_one(choice: dict) -> dict:
    """The held-out loss of one training, every hundred steps."""
    checks = chapter.train(choice["variant"], choice["seed"], choice["rate"])
    return choice | {"validation": [[step, round(loss, 5)] for step, loss in checks]}


def main() -> None:
    """Do what the record lacks."""
    torch.set_num_threads(1)
    head = {
        "command": "python tools/record_changes.py",
        "commit": commit(),
        "machine": describe_machine(),
        "parameters": chapter.sizes(),
    }
    record = continued(RECORD, head)
    done = [{name: run[name] for name in CHOICES[0]} for run in record["runs"]]
    for choice in CHOICES:
        if choice not in done:
            record["runs"].append(run_one(choice))
            print(record["runs"][-1], flush=True)
            write_json(RECORD, record)
    print(f"{RECORD.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()
