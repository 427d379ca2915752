"""How fast is a training step? Forward, loss, backward, Adam: ours beside the peers.

Usage: python -m benchmarks.training_step
"""

from dataclasses import asdict

from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import PEERS, Peer
from benchmarks.summary import training_lines


def main() -> None:
    """Measure, and print the table."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=24, help="timed in a round")
    parser.add_argument(
        "--precisions", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"]
    )
    given = parser.parse_args()
    given.peers = [name for name in given.peers if PEERS[name].trains]
    batches = workload.training_batches(given.batches)
    content = {"warm_up": batches.warm_up, "timed": batches.timed}
    path = workload.save(content, "training_step")
    settings = {
        "model": asdict(workload.CONFIG),
        "label_smoothing": workload.LABEL_SMOOTHING,
        "corpus": "multi30k en-de, training split",
        "tokens_per_batch": workload.TOKENS_PER_BATCH,
        "batches": given.batches,
        "target_tokens": batches.target_tokens,
        "flops": sum(
            workload.training_step_flops(workload.CONFIG, batch)
            for batch in batches.timed
        ),
    }
    cases = [{"precision": precision} for precision in given.precisions]

    def jobs(peer: Peer) -> list[Job]:
        return [Job(case, {"workload": str(path)}) for case in cases]

    benchmark = Benchmark("training_step", given, settings)
    benchmark.run(jobs, [Job(case) for case in cases])
    print("\n".join(training_lines(benchmark.record)))


if __name__ == "__main__":
    report(main)
