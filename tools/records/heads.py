"""Train chapter 20's small translator from other seeds, and keep what was measured.

Usage: python -m tools.records.heads SEED [SEED …]

One core needs about a minute and a half a seed. A seed whose numbers are in the record
already is made anew; the others stay, if they were made with the same code, choices and
machine.
"""

import argparse
import time

import torch

from aiayn.data.grammar import generate
from aiayn.device import describe_machine
from aiayn.storage import write_json
from aiayn_book.head_measures import held_out, measure
from aiayn_book.heads import KINDS, PAIRS, Pair, Words, configuration, train_words
from tools.project import RECORDS, commit, continued

RECORD = RECORDS / "heads.json"


def run(seed: int, words: Words, pairs: list[Pair]) -> dict:
    """One seed: its numbers, and what they took."""
    began, cpu = time.perf_counter(), time.process_time()
    model, log = train_words(configuration(seed, len(words.words)), pairs)
    numbers = measure(model, held_out(), words)
    taken = {
        "wall_seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    return {
        "seed": seed,
        "loss": log[-1]["loss"],
        **taken,
        **numbers,
    }


def main() -> None:
    """Read the command line, train, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    seeds = parser.parse_args().seeds
    made_with = commit()
    torch.set_num_threads(1)
    samples = generate(PAIRS, seed=20, kinds=KINDS)
    words = Words.of(samples)
    pairs = words.pairs(samples)
    config = configuration(seeds[0], len(words.words)).as_dict()
    head = {
        "command": "python -m tools.records.heads",
        "commit": made_with,
        "config": {name: config[name] for name in config if name != "seed"},
        "machine": describe_machine(),
    }
    record = continued(RECORD, head)
    runs = {one["seed"]: one for one in record["runs"]}
    for seed in seeds:
        runs[seed] = run(seed, words, pairs)
        record["command"] = " ".join([head["command"], *map(str, sorted(runs))])
        record["runs"] = [runs[seed] for seed in sorted(runs)]
        write_json(RECORD, record)
        print(f"seed {seed}: {runs[seed]['exact']:.1%} exactly right")


if __name__ == "__main__":
    main()
