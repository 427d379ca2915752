"""Make the book's record of Table 3 from the runs that ``aiayn_book.table3`` left.

Usage: python -m tools.records.table3 FOLDER [COMMAND]

FOLDER holds one file for each run; any number of them will do. What all runs share is
written once, and COMMAND is what was typed ("python -m aiayn_book.table3" if left
out).
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiayn.model import TABLE_3_ROWS
from aiayn.storage import read_json, write_json
from tools.project import RECORDS

RECORD = RECORDS / "table3.json"


def collect(runs: list[dict[str, Any]], command: str) -> dict[str, Any]:
    """One record of many runs: in the table's order, with what they share in front.

    Args:
        runs: As `aiayn_book.table3.run_variation` returns them; the base row too.
        command: What was typed.
    """
    order = list(TABLE_3_ROWS)
    runs = sorted(runs, key=lambda run: (order.index(run["row"]), run["seed"]))
    if not runs or runs[0]["row"] != "base":
        raise SystemExit("No run of the base row: there is nothing to compare with.")
    for run in runs:
        if _shared(run) != _shared(runs[0]):
            raise SystemExit(f"{run['row']}, seed {run['seed']}: other settings.")
    record = {
        "command": command,
        "commits": _distinct(run["commit"] for run in runs),
        "machines": _distinct(run["machine"] for run in runs),
        "config": runs[0]["config"] | {"output": "runs/table3"},
    }
    return record | {"runs": [_short(run, record) for run in runs]}


def _shared(run: dict[str, Any]) -> dict[str, Any]:
    """The settings that no row changes."""
    own = ("model", "label_smoothing", "seed")
    return {name: value for name, value in run["config"].items() if name not in own}


def _short(run: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """A run without its configuration; commit and machine become numbers of a list."""
    short = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in run.items()
        if name != "config"
    }
    short["commit"] = record["commits"].index(run["commit"])
    short["machine"] = record["machines"].index(run["machine"])
    return short


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def main() -> None:
    """Read the command line, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs="?", default="python -m aiayn_book.table3")
    words = parser.parse_args()
    runs = [read_json(path) for path in sorted(words.folder.glob("*.json"))]
    write_json(RECORD, collect(runs, words.command))
    print(f"{RECORD.name}: {len(runs)} runs")


if __name__ == "__main__":
    main()
