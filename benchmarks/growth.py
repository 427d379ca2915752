"""How do speed and memory of training change as the sizes grow? Ours alone.

Usage: python -m benchmarks.growth

From one size in the middle, the length of the sentences, the width of the model, the
vocabulary and the number of processes grow in turn, each with the others held; tokens
are random, since no size of a text is asked about here.
"""

from dataclasses import asdict

from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import Peer
from benchmarks.summary import growth_lines

AXES = {
    "length": (16, 32, 64, 128, 256, 512),
    "width": (64, 128, 256, 512),
    "vocabulary": (1000, 2000, 4000, 8000, 16000, 32000),
    "processes": (1, 2),
}
"""What grows; where it does not, it has its value in `benchmarks.workload.MIDDLE`."""


def main() -> None:
    """Measure each size, and print the table."""
    parser = arguments(__doc__.splitlines()[0], alone=True)
    parser.set_defaults(threads=1)
    parser.add_argument("--steps", type=int, default=4, help="timed in a round")
    given = parser.parse_args()
    settings = {
        "middle": workload.MIDDLE,
        "model": asdict(workload.CONFIG),
        "tokens_per_batch": workload.TOKENS_PER_BATCH,
        "steps": given.steps,
    }

    def jobs(_: Peer) -> list[Job]:
        return [
            Job({"axis": axis, "value": value}, {"steps": given.steps})
            for axis, values in AXES.items()
            for value in values
        ]

    benchmark = Benchmark("growth", given, settings)
    benchmark.run(jobs)
    print("\n".join(growth_lines(benchmark.record)))


if __name__ == "__main__":
    report(main)
