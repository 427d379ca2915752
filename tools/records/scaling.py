"""Train the scaling curve of chapter 23 and keep it in the book.

Usage: python -m tools.records.scaling [--kinds]

Some six minutes on one core; with --kinds, two, for one seed of each size and its
losses by the kind of token, which are a record of their own. Each training is written
down as soon as it is done, and one that is written down is not repeated: stop it, and
start it again, as you like.
"""

import argparse
import time
from typing import Any

import torch

from aiayn.device import describe_machine
from aiayn.storage import write_json
from aiayn_book.scaling import (
    RATE,
    SEEDS,
    STEPS,
    WIDTHS,
    held_out_loss,
    losses_by_kind,
    make_text,
    train_size,
)
from tools.project import RECORDS, commit, continued

RECORD = RECORDS / "scaling.json"
KINDS_RECORD = RECORDS / "scaling_kinds.json"
CURVE = [(width, seed, STEPS, RATE) for seed in SEEDS for width in WIDTHS]


def main() -> None:
    """Do what the record lacks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", action="store_true", help="losses by kind of token")
    kinds = parser.parse_args().kinds
    torch.set_num_threads(1)
    head = {
        "command": "python -m tools.records.scaling" + (" --kinds" if kinds else ""),
        "commit": commit(),
        "machine": describe_machine(),
        "seeds": SEEDS[:1] if kinds else SEEDS,
    }
    path = KINDS_RECORD if kinds else RECORD
    record = continued(path, head)
    done = {(r["width"], r["seed"], r["steps"], r["rate"]) for r in record["runs"]}
    text = make_text()
    for width, seed, steps, rate in CURVE:
        if (width, seed, steps, rate) in done or seed not in head["seeds"]:
            continue
        began, cpu = time.perf_counter(), time.process_time()
        model = train_size(width, seed, text, steps, rate)
        run: dict[str, Any] = {
            "width": width,
            "seed": seed,
            "steps": steps,
            "rate": rate,
            "loss": round(held_out_loss(model, text), 5),
            "layers": sum(p.numel() for p in model.encoder.parameters()),
            "embedding": model.output_weight.numel(),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "seconds": round(time.perf_counter() - began, 1),
        }
        if kinds:
            by_kind = losses_by_kind(model, text)
            run["kinds"] = {name: round(loss, 5) for name, loss in by_kind.items()}
        print(run, flush=True)
        record["runs"].append(run)
        write_json(path, record)
    print(f"{path.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()
