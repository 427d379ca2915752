"""Train the scaling curve of chapter 23 and keep it in the book.

Usage: python tools/record_scaling.py

Some six minutes on one core. Each training is written down as soon as it is done,
and one that is written down is not repeated: stop it, and start it again, as you like.
"""

import time

import torch

from aiayn.device import describe_machine
from aiayn.storage import write_json
from aiayn_book.scaling import (
    RATE,
    SEEDS,
    STEPS,
    WIDTHS,
    held_out_loss,
    make_text,
    train_size,
)
from project import RECORDS, commit, continued

RECORD = RECORDS / "scaling.json"
CURVE = [(width, seed, STEPS, RATE) for seed in SEEDS for width in WIDTHS]


def main() -> None:
    """Do what the record lacks."""
    torch.set_num_threads(1)
    head = {
        "command": "python tools/record_scaling.py",
        "commit": commit(),
        "machine": describe_machine(),
        "seeds": SEEDS,
    }
    record = continued(RECORD, head)
    done = {(r["width"], r["seed"], r["steps"], r["rate"]) for r in record["runs"]}
    text = make_text()
    for width, seed, steps, rate in CURVE:
        if (width, seed, steps, rate) in done:
            continue
        began, cpu = time.perf_counter(), time.process_time()
        model = train_size(width, seed, text, steps, rate)
        run = {
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
        print(run, flush=True)
        record["runs"].append(run)
        write_json(RECORD, record)
    print(f"{RECORD.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()
