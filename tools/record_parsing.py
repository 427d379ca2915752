"""Train chapter 19's parsers on more and more trees, and keep their scores in the book.

Usage: python tools/record_parsing.py FOLDER

Some seven minutes on one core. Each training leaves its result in FOLDER, and one that
is there is not run again: stop it when you like, and type the same to go on. Whatever
is done is in the record.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiayn.book.parsing import (
    SEEDS,
    SENTENCES,
    SIZES,
    gum_parser,
    lengths,
    score,
    short,
    small_parser,
)
from aiayn.checkpoint import read_json, write_json
from aiayn.data import TREEBANKS, load_treebank
from aiayn.errors import InputError
from aiayn.machine import describe_machine
from aiayn.run import RunFolder
from aiayn.training import TrainingConfig, resume_training, train
from project import RECORDS, commit


def run_one(config: TrainingConfig) -> dict[str, Any]:
    """Train one parser; what came of it."""
    cpu, wall = time.process_time(), time.perf_counter()
    begun = RunFolder(config.output).state.exists()
    result = resume_training(config.output) if begun else train(config)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    bank = load_treebank(config.corpus, size=1)
    last = result.log[-1]
    return {
        "corpus": config.corpus,
        "sentences": result.log[0]["data"]["pairs"],
        "seed": config.seed,
        "parameters": result.log[0]["parameters"],
        "config": config.as_dict() | {"output": config.output.name},
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


def plan(folder: Path) -> Iterator[TrainingConfig]:
    """Every training: all seeds on most trees, GUM, then on fewer and fewer trees."""
    for size in reversed(SIZES):
        for seed in SEEDS:
            name = folder / f"grammar-{size}-{seed}"
            yield small_parser(corpus_size=size, seed=seed, output=name)
        if size == SIZES[-1]:
            yield gum_parser(output=folder / "gum-1")


def main() -> None:
    """Run what is not done yet, and write the record after each training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    record: dict[str, Any] = {
        "command": "python tools/record_parsing.py runs/parsing",
        "commit": commit(),
        "lengths": {},
        "runs": [],
    }
    for name in TREEBANKS:
        with suppress(InputError):  # without GUM, its runs say so below
            record["lengths"][name] = lengths(name)
    for config in plan(folder):
        done = config.output / "result.json"
        try:
            if not done.exists():
                write_json(done, run_one(config))
        except InputError as error:
            print(f"{config.output.name}: {error}")
            continue
        record["runs"].append(read_json(done))
        print(config.output.name, record["runs"][-1]["scores"]["test"], flush=True)
        write_json(RECORDS / "parsing.json", record)


if __name__ == "__main__":
    main()
