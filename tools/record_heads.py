"""Train chapter 20's small translator from other seeds, and keep what was measured.

Usage: python tools/record_heads.py SEED [SEED …]

One core needs about a minute and a half a seed. A seed whose numbers are in the record
already is made anew; the others stay.
"""

import argparse
import time

import torch

from aiayn.book.head_measures import held_out, measure
from aiayn.book.heads import KINDS, PAIRS, Words, configuration, train_words
from aiayn.checkpoint import read_json, write_json
from aiayn.data.grammar import generate
from aiayn.machine import describe_machine
from project import RECORDS, commit

RECORD = RECORDS / "heads.json"


def run(seed: int) -> dict:
    """One seed: its numbers, and what they took."""
    began, cpu = time.perf_counter(), time.process_time()
    samples = generate(PAIRS, seed=20, kinds=KINDS)
    words = Words.of(samples)
    config = configuration(seed, len(words.words))
    model, log = train_words(config, words.pairs(samples))
    numbers = measure(model, held_out(), words)
    taken = {
        "wall_seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    return {
        "seed": seed,
        "words": len(words.words),
        "loss": log[-1]["loss"],
        **taken,
        **numbers,
    }


def main() -> None:
    """Read the command line, train, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    words = parser.parse_args()
    torch.set_num_threads(1)
    old = read_json(RECORD)["runs"] if RECORD.exists() else []
    runs = {record["seed"]: record for record in old}
    head = commit()
    for seed in words.seeds:
        runs[seed] = run(seed)
        config = configuration(seed, runs[seed].pop("words")).as_dict()
        write_json(
            RECORD,
            {
                "command": "python tools/record_heads.py "
                + " ".join(map(str, sorted(runs))),
                "commit": head,
                "config": {k: v for k, v in config.items() if k != "seed"},
                "machine": describe_machine(torch.device("cpu")),
                "runs": [runs[seed] for seed in sorted(runs)],
            },
        )
        print(f"seed {seed}: {runs[seed]['exact']:.1%} exactly right")


if __name__ == "__main__":
    main()
