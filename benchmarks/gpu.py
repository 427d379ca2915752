"""How fast is a training step of the paper's base model on a GPU, and what makes it so?

Usage: python -m benchmarks.gpu

Ours in several forms, and the peers beside it, in bfloat16 and with 25,000 tokens a
batch. The tokens are drawn, and so are the sentences' lengths: no corpus is needed.
"""

from dataclasses import asdict

import torch

from aiayn.device import describe_machine, resolve_device
from aiayn.model import TransformerConfig
from benchmarks import workload
from benchmarks.driver import Benchmark, Job, arguments, report
from benchmarks.peers import PEERS, Peer
from benchmarks.summary import gpu_lines

FORMS = {
    "compiled": "one graph by torch.compile, attention by our kernels",
    "compiled-fused": "the same with torch's fused kernel",
    "compiled-formula": "the same with attention by its formula",
    "compiled-unsorted": "as the first, on batches of unlike lengths",
    "compiled-packed": "as the first, on rows that hold several pairs",
    "compiled-fused-packed": "as the second, on such rows",
    "eager": "no compiler; short sentences by our kernels, loss in chunks",
    "plain": "the plain classes, no compiler",
}
"""What ours is measured in, and what that is; 'unsorted' tells what padding costs, and
'packed' what it costs to do without."""
KINDS = ("sorted", "unsorted", "packed")
"""Of batches; a form whose name does not end in one takes sorted ones."""
FORMS_OF_PEERS = {"torch_nn": ("eager", "compiled")}
"""What a peer is measured in; others: eager, as their own trainers run them."""
MODELS = {
    "tiny": TransformerConfig.tiny,
    "base": TransformerConfig.base,
    "big": TransformerConfig.big,
}


def main() -> None:
    """Measure, and print the table."""
    parser = arguments(__doc__.splitlines()[0])
    add = parser.add_argument
    add("--model", choices=MODELS, default="base", help="sizes")
    add("--tokens", type=int, default=25_000, help="places of a batch, on either side")
    add("--batches", type=int, default=16, help="timed, three times in a round")
    meant = "; ".join(f"{form}: {what}" for form, what in FORMS.items())
    add("--forms", nargs="+", choices=FORMS, default=list(FORMS), help=meant)
    add(
        "--side-by-side",
        type=int,
        default=1,
        help="how many forms get ready at once; they are timed one after the other",
    )
    add("--device", default="cuda", help="cpu: to try whether all works")
    given = parser.parse_args()
    given.peers = [name for name in given.peers if PEERS[name].trains]
    if "plain" in given.peers:
        given.peers.remove("plain")  # a form of ours here
    device = resolve_device(given.device)
    config = MODELS[given.model](vocab_size=workload.GPU_VOCABULARY)
    paths, padding = {}, {}
    for kind in KINDS:
        batches = workload.drawn_batches(kind, given.tokens, given.batches)
        content = {"config": asdict(config), "warm_up": batches.warm_up}
        paths[kind] = workload.save(content | {"timed": batches.timed}, f"gpu_{kind}")
        padding[kind] = batches.padding_share
    settings = {
        "model": asdict(config),
        "label_smoothing": workload.LABEL_SMOOTHING,
        "tokens_per_batch": given.tokens,
        "batches": given.batches,
        "forms": {form: FORMS[form] for form in given.forms},
        "padding_share": padding,
        "gpu": describe_machine(device).get("gpu", "none: a CPU"),
        "cuda": torch.version.cuda,
    }

    def jobs(peer: Peer) -> list[Job]:
        forms = given.forms
        if peer.name != "ours":
            forms = FORMS_OF_PEERS.get(peer.name, ("eager",))
        return [
            Job(
                {"form": form},
                {
                    "device": device.type,
                    "workload": str(paths[_kind(form)]),
                },
                # A compiler that takes minutes holds up its own peer's forms only.
                ready_with=peer.name if form.startswith("compiled") else "eager",
            )
            for form in forms
        ]

    benchmark = Benchmark("gpu", given, settings)
    product = Job({"precision": "bf16"}, {"device": device.type})
    benchmark.run(jobs, [product], given.side_by_side)
    print("\n".join(gpu_lines(benchmark.record)))


def _kind(form: str) -> str:
    last = form.rpartition("-")[2]
    return last if last in KINDS else "sorted"


if __name__ == "__main__":
    report(main)
