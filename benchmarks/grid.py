"""Is there a size of a batch at which a peer trains faster than we do?

Usage: python -m benchmarks.grid

Tokens are random and no row has padding, so that nothing but the size differs. Each
peer takes the steps of all sizes in one process, the smallest first. The processes run
side by side and take turns within each size.
"""

from dataclasses import asdict

from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import PEERS, Peer
from benchmarks.summary import grid_lines


def main() -> None:
    """Measure, and print the table."""
    parser = arguments(__doc__.splitlines()[0])
    parser.set_defaults(threads=1)
    parser.add_argument(
        "--precisions", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"]
    )
    given = parser.parse_args()
    given.peers = [name for name in given.peers if PEERS[name].trains]
    settings = {
        "model": asdict(workload.CONFIG),
        "label_smoothing": workload.LABEL_SMOOTHING,
        "sizes": workload.GRID,
        "peers": given.peers,  # others would not have had their turns beside these
        "turns": workload.TURNS,
        "seconds_a_turn": workload.SECONDS_A_TURN,
    }

    def jobs(_: Peer) -> list[Job]:
        return [
            Job({"precision": precision}, ready_with=precision)
            for precision in given.precisions
        ]

    benchmark = Benchmark("grid", given, settings)
    benchmark.run(jobs, side_by_side=len(given.peers), together=True)
    print("\n".join(grid_lines(benchmark.record)))


if __name__ == "__main__":
    report(main)
