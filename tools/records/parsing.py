"""Train chapter 19's parsers on more and more trees, and keep their scores in the book.

Usage: python -m tools.records.parsing

Some seven minutes on one core. Each training is written down as soon as it is done,
and one that is written down is not repeated: stop it, and start it again, as you like.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiayn.device import describe_machine
from aiayn.errors import InputError
from aiayn.parsing import load_treebank
from aiayn.storage import write_json
from aiayn.training import TrainingConfig, train
from aiayn_book.gum import read_gum, write_gum
from aiayn_book.parsing import (
    SEEDS,
    SENTENCES,
    SIZES,
    gum_parser,
    lengths,
    score,
    short,
    small_parser,
)
from tools.project import RECORDS, commit, continued

RECORD = RECORDS / "parsing.json"


def run_one(config: TrainingConfig) -> dict[str, Any]:
    """Train one parser; what came of it."""
    cpu, wall = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        changes: dict[str, Any] = {"output": Path(folder) / config.output}
        if config.corpus == "gum":
            write_gum(Path(folder) / "gum")
            changes["corpus"] = str(Path(folder) / "gum")
        result = train(replace(config, **changes))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    bank = read_gum() if config.corpus == "gum" else load_treebank(size=1)
    last = result.log[-1]
    return {
        "corpus": config.corpus,
        "sentences": result.log[0]["data"]["pairs"],
        "seed": config.seed,
        "parameters": result.log[0]["parameters"],
        "config": config.as_dict() | {"output": str(config.output)},
        "loss": last["loss"],
        "cpu_seconds": round(cpu, 1),
        "seconds": round(wall, 1),
        "scores": {
            split: score(
                short(bank[split], config)[:SENTENCES], result.model, result.tokenizer
            )
            for split in ("test", "combinations")
            if split in bank
        },
        "machine": describe_machine("cpu"),
    }


def plan() -> Iterator[TrainingConfig]:
    """Every training: all seeds on most trees, GUM, then on fewer and fewer trees."""
    for size in reversed(SIZES):
        for seed in SEEDS:
            name = Path(f"grammar-{size}-{seed}")
            yield small_parser(corpus_size=size, seed=seed, output=name)
        if size == SIZES[-1]:
            yield gum_parser(output=Path("gum-1"))


def main() -> None:
    """Do what the record lacks."""
    head = {"command": "python -m tools.records.parsing", "commit": commit()}
    record = continued(RECORD, head)
    record.setdefault("lengths", {})
    for name in ("grammar", "gum"):
        with suppress(InputError):  # without GUM, its runs say so below
            record["lengths"][name] = lengths(name)
    done = {run["config"]["output"] for run in record["runs"]}
    for config in plan():
        if str(config.output) in done:
            continue
        try:
            record["runs"].append(run_one(config))
        except InputError as error:
            print(f"{config.output}: {error}")
            continue
        print(config.output, record["runs"][-1]["scores"]["test"], flush=True)
        write_json(RECORD, record)
    print(f"{RECORD.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()
