"""One measurement of one peer, in a process of its own, in the peer's environment.

Usage: python -m benchmarks.worker JOB, JOB being JSON from `benchmarks.driver`. The
result is JSON too, on the last line of what is printed.
"""

import json
import resource
import sys
import time
from importlib import import_module
from itertools import chain
from pathlib import Path

import torch

from benchmarks import workload

PRODUCT_SIZE = 2048
"""Rows and columns of the matrices whose product is the machine's measure."""


def training_step(job: dict) -> dict:
    """Steps over the same batches; what is timed is all of them together."""
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    batches = workload.load(Path(job["workload"]))
    torch.manual_seed(1)
    narrow = job["case"]["precision"] == "bf16"
    step = adapter.training_step(adapter.build(workload.CONFIG), narrow, 4000)
    for batch in batches["warm_up"]:
        step(*batch)
    watch = Stopwatch()
    losses = [step(*batch) for batch in batches["timed"]]
    return watch.read() | {"loss": float(sum(losses) / len(losses))}


def decoding(job: dict) -> dict:
    """Translate all batches once; the first few also before the clock starts."""
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    batches = workload.load(Path(job["workload"]))["batches"]
    translate = adapter.searcher(adapter.trained(Path(job["weights"])))
    beam_size = job["case"]["beam_size"]
    for batch in batches[:2]:
        translate(batch, beam_size)
    watch = Stopwatch()
    outputs = [translate(batch, beam_size) for batch in batches]
    return watch.read() | {"outputs": list(chain.from_iterable(outputs))}


def matrix_product(job: dict) -> dict:
    """GFLOP/s of one large product: what the machine can do at best."""
    dtype = torch.bfloat16 if job["case"].get("precision") == "bf16" else torch.float32
    left, right = torch.randn(2, PRODUCT_SIZE, PRODUCT_SIZE).to(dtype)
    left @ right
    watch, products = Stopwatch(), 0
    while watch.read()["seconds"] < 2:
        left @ right
        products += 1
    taken = watch.read()
    flops = 2 * PRODUCT_SIZE**3 * products
    return taken | {"gflops": flops / taken["seconds"] / 1e9}


class Stopwatch:
    """Wall-clock and processor time since it was made."""

    def __init__(self) -> None:
        self.seconds, self.cpu_seconds = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self.seconds,
            "cpu_seconds": time.process_time() - self.cpu_seconds,
        }


def main() -> None:
    """Do the job and print its result."""
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    measure = {
        "training_step": training_step,
        "decoding": decoding,
        "matrix_product": matrix_product,
    }
    result = measure[job["kind"]](job)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print()
    print(json.dumps(result | {"peak_mb": round(kilobytes / 1024)}))


if __name__ == "__main__":
    main()
