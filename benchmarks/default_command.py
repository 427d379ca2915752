"""How good is `aiayn train multi30k`, and how long does it take? Several seeds.

Usage: python -m benchmarks.default_command

For each seed the command runs as one types it, with no other choice. Then the model's
translations of test2016 are scored by cased sacreBLEU, with the paper's search (a beam
of 4, α = 0.6). A seed takes about half an hour of two cores.
"""

from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.summary import default_command_lines


def main() -> None:
    """Train each seed, and print the scores."""
    parser = arguments(__doc__.splitlines()[0], rounds=1, alone=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    given = parser.parse_args()
    benchmark = Benchmark("default_command", given, {})
    benchmark.run(lambda _: [Job({"seed": seed}) for seed in given.seeds])
    print("\n".join(default_command_lines(benchmark.record)))


if __name__ == "__main__":
    report(main)
