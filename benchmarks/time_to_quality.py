"""How long until a translator is good? Minutes of training until 35 BLEU, side by side.

Usage: python -m benchmarks.time_to_quality

Data, batches, sizes, schedule and search (greedy) are the same for all; what differs is
the implementation. BLEU is cased sacreBLEU on Multi30k's validation split.
"""

from dataclasses import asdict, replace

from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import Peer
from benchmarks.summary import quality_lines


def main() -> None:
    """Train each peer once a seed, and print the minutes."""
    parser = arguments(__doc__.splitlines()[0], rounds=1)
    parser.set_defaults(peers=["ours", "marian"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--bleu", type=float, default=35.0, help="good enough")
    parser.add_argument("--minutes", type=float, default=60.0, help="give up after")
    given = parser.parse_args()
    choices = {
        "bleu": given.bleu,
        "minutes": given.minutes,
        "dropout": 0.3,
        "tokens_per_batch": 4096,
        "warmup_steps": 1000,
        "validate_every": 100,
    }
    path = workload.save(workload.quality_data(), "time_to_quality")
    model = asdict(replace(workload.CONFIG, dropout=choices["dropout"]))

    def jobs(_: Peer) -> list[Job]:
        return [
            Job(
                {"seed": seed, "precision": given.precision},
                choices | {"workload": str(path)},
            )
            for seed in given.seeds
        ]

    benchmark = Benchmark("time_to_quality", given, choices | {"model": model})
    benchmark.run(jobs)
    print("\n".join(quality_lines(benchmark.record)))


if __name__ == "__main__":
    report(main)
