"""How good is `aiayn train multi30k`, and how long does it take? Several seeds.

Usage: python -m benchmarks.default_command

Each seed is the command as one types it, with no other choice. Its translations of
test2016 are scored afterwards, with the paper's search (a beam of 4, α = 0.6) and cased
sacreBLEU. About half an hour a seed, on two cores.
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
