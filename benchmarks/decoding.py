"""How fast is a translation? Greedy and beam 4 on trained weights, beside the peers.

Usage: python -m benchmarks.decoding RUN

RUN is a folder that `aiayn train` wrote. Peers get its weights; one whose layers are of
another form cannot take them and is left out, for the length of its outputs, and with
it the time, would be another's. Outputs are compared with ours.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from aiayn.device import describe_machine, resolve_device
from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.storage import RunFolder
from benchmarks import workload
from benchmarks.driver import RECORDS, Benchmark, Job, arguments, report
from benchmarks.peers import PEERS, Peer
from benchmarks.summary import decoding_lines

ONLY_GREEDY = {"torch_nn"}
"""Peers without a beam search."""


def main() -> None:
    """Measure, and print the table."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a trained model")
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    parser.add_argument(
        "--workloads",
        nargs="+",
        choices=workload.DECODING,
        default=list(workload.DECODING),
    )
    parser.add_argument("--sentences", type=int, default=1000, help="of the test set")
    parser.add_argument("--lines", type=int, default=10_000, help="of the file")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    given = parser.parse_args()
    device = resolve_device(given.device)
    if device.type == "cuda":  # the book's record is that of a processor
        given.output = given.output or RECORDS / "decoding_gpu.json"
    given.peers = [name for name in given.peers if PEERS[name].translates]
    given.peers = list(dict.fromkeys(["ours", *given.peers]))  # to compare with
    model, tokenizer = load_translator(given.run)
    paths, sentences = {}, {}
    for name in workload.DECODING:  # all, so that another call may add to the record
        count = given.lines if name == "file" else given.sentences
        batches = workload.decoding_batches(name, tokenizer, count)
        paths[name] = workload.save({"batches": batches}, f"decoding_{name}")
        sentences[name] = sum(map(len, batches))
    weights = digest_of_weights(given.run)
    settings = {
        "model": asdict(model.config),
        "run": given.run.name,
        "weights": weights,
        "length_penalty": 0.6,
        "sentences": sentences,
    }
    if device.type == "cuda":
        settings["gpu"] = describe_machine(device)["gpu"]
    cases = [
        {"beam_size": beam, "workload": name}
        for beam in given.beams
        for name in given.workloads
    ]

    def jobs(peer: Peer) -> list[Job]:
        return [
            Job(
                case,
                {
                    "workload": str(paths[case["workload"]]),
                    "weights": str(given.run.resolve()),
                    "device": device.type,
                },
            )
            for case in cases
            if case["beam_size"] == 1 or peer.name not in ONLY_GREEDY
        ]

    compare = CompareWithOurs(weights)
    benchmark = Benchmark("decoding", given, settings, reduce=compare)
    benchmark.run(jobs)
    print("\n".join(decoding_lines(benchmark.record)))


def digest_of_weights(run: Path) -> str:
    """The beginning of the weights' sha256: a folder of the same name may hold others.

    Args:
        run: What the command was given, a folder or one file of weights.
    """
    file = RunFolder(run).weights() if run.is_dir() else run
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


class CompareWithOurs:
    """Replaces a peer's outputs by the share of them that are ours, word for word.

    Args:
        weights: What `digest_of_weights` says of the weights that all translate with.
    """

    def __init__(self, weights: str) -> None:
        self.weights = weights

    def __call__(self, key: dict, result: dict) -> dict:
        outputs = result.pop("outputs")
        case = f"{key['workload']}_{key['beam_size']}_{len(outputs)}"
        path = workload.WORK / f"outputs_{self.weights}_{case}.json"
        if key["peer"] == "ours":
            path.write_text(json.dumps(outputs), encoding="utf-8")
        if not path.exists():
            raise InputError(
                f"The record has our speed, but our outputs, {path.name} in "
                f"{workload.WORK.name}, are gone, and nothing to compare "
                f"{key['peer']}'s with: give --fresh, and ours is measured anew."
            )
        ours = json.loads(path.read_text(encoding="utf-8"))
        same = sum(mine == its for mine, its in zip(ours, outputs, strict=True))
        tokens = sum(len(output) + 1 for output in outputs)
        return result | {"identical": same / len(ours), "output_tokens": tokens}


if __name__ == "__main__":
    report(main)
