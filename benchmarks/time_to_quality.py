"""How long until a translator is good? Minutes of training until 35 BLEU, side by side.

Usage: python -m benchmarks.time_to_quality

Data, batches, sizes, schedule and search (greedy) are the same for all; what differs is
the implementation. The sizes are those of chapter 16's recorded runs, batches and rates
not: a phase in which the rate falls to zero would need to know when training ends. BLEU
is cased sacreBLEU on Multi30k's validation split.
"""

from dataclasses import asdict

from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import Peer
from benchmarks.summary import quality_lines

ABLE = ("ours", "torch_nn", "fairseq", "joeynmt")
"""Whose adapters know pre-norm, and can search with what they have learnt."""


def main() -> None:
    """Train each peer once a seed, and print the minutes."""
    parser = arguments(__doc__.splitlines()[0], rounds=1)
    parser.set_defaults(peers=["ours", "fairseq", "joeynmt"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--bleu", type=float, default=35.0, help="good enough")
    parser.add_argument("--minutes", type=float, default=60.0, help="give up after")
    parser.add_argument("--validate-every", type=int, default=100, help="steps")
    given = parser.parse_args()
    if unable := set(given.peers) - set(ABLE):
        parser.error(f"only {', '.join(ABLE)} train pre-norm: not {min(unable)}.")
    choices = {
        "bleu": given.bleu,
        "minutes": given.minutes,
        "tokens_per_batch": 4096,
        "warmup_steps": 1000,
        "learning_rate_scale": 2.0,
        "validate_every": given.validate_every,
    }
    path = workload.save(workload.quality_data(), "time_to_quality")
    model = asdict(workload.QUALITY_CONFIG)

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
