"""One measurement of one peer, in a process of its own, in the peer's environment.

Usage: python -m benchmarks.worker JOB, JOB being JSON from `benchmarks.driver`. The
result is JSON too, on the last line of what is printed.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, count, islice
from operator import itemgetter
from pathlib import Path
from statistics import median

import torch
from torch import profiler
from torch.autograd import DeviceType
from torch.nn import functional as F

from aiayn.data import (
    EncodedPairs,
    TokenBatches,
    Tokenizer,
    load_corpus,
    map_batches,
)
from aiayn.fast import compilation, gpu_attention
from aiayn.fast.attention import FastMultiHeadAttention
from aiayn.inference import evaluate_bleu, load_translator, translate
from aiayn.model import MultiHeadAttention, TransformerConfig
from aiayn.storage import RunFolder
from aiayn.training import trainer
from aiayn.training.distributed import processes
from benchmarks import workload
from benchmarks.peers.shared import Schedule

PRODUCT_SIZE = 2048
"""Rows and columns of the matrices whose product is the machine's measure."""
PRODUCT_SIZE_ON_A_GPU = 8192
TURN = "turn"
"""The file that whoever has its turn holds."""
PASSES = 3
"""Over the timed batches of a GPU; to compile a form takes a hundred times as long."""
CPU = torch.device("cpu")


def training_step(job: dict) -> dict:
    """Steps over the same batches; what is timed is all of them together, seen again.

    The first time that a shape comes by, libraries write machine code for it. A
    training meets each in every epoch, so that time stands beside the other.
    """
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    batches = workload.load(Path(job["workload"]))
    torch.manual_seed(1)
    narrow = job["case"]["precision"] == "bf16"
    step = adapter.training_step(adapter.build(workload.CONFIG), narrow, Schedule())
    for batch in batches["warm_up"]:
        step(*batch)
    watch = Stopwatch()
    for batch in batches["timed"]:
        step(*batch)
    first = watch.read()["seconds"]
    watch = Stopwatch()
    losses = [step(*batch) for batch in batches["timed"]]
    mean = float(sum(losses) / len(losses))
    return watch.read() | {"first_seconds": first, "loss": mean}


def gpu(job: dict) -> dict:
    """Steps in one of the forms of `benchmarks.gpu`, on the job's device."""
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    batches, form = workload.load(Path(job["workload"])), job["case"]["form"]
    config = TransformerConfig(**batches["config"])
    device, compiled = torch.device(job["device"]), form.startswith("compiled")
    if "fused" in form:
        gpu_attention.fit = lambda *given: False
    if form.endswith("formula"):
        FastMultiHeadAttention.attention = MultiHeadAttention.attention
        trainer.gpu_options = lambda _: compilation.gpu_options(sums_over_keys=True)
    torch.manual_seed(1)
    model = adapter.build(config).to(device)
    options = {"compiled": True} if compiled else {}
    if job["peer"] == "ours":
        options["packed"] = form.endswith("packed")
        options["fast"] = form != "plain"
    step = adapter.training_step(model, True, Schedule(), **options)
    watch = Stopwatch(device)
    for batch in batches["warm_up"]:
        step(*batch)
    warm_up = watch.read()["seconds"]
    for batch in batches["timed"]:  # its shape is new once, not in every epoch
        step(*batch)
    timed, passes = batches["timed"], []
    with turn(**job.get("gate", {})):
        for _ in range(PASSES):
            watch = Stopwatch(device)
            losses = [step(*batch) for batch in timed]
            passes.append(watch.read())
        kernels = _kernels(lambda: [step(*batch) for batch in timed[:3]], device)
    return sorted(passes, key=itemgetter("seconds"))[PASSES // 2] | {
        "passes": [taken["seconds"] for taken in passes],
        "warm_up_seconds": warm_up,
        "loss": float(sum(losses) / len(losses)),
        "kernels": {name: taken / len(timed[:3]) for name, taken in kernels.items()},
        "target_tokens": sum(int((target != 0).sum()) for _, target in timed),
        "flops": sum(workload.training_step_flops(config, batch) for batch in timed),
        **_memory_on(device),
    }


def _kernels(run: Callable[[], object], device: torch.device) -> dict[str, float]:
    """Seconds of each of a GPU's kernels, by the first letters of their names."""
    if device.type != "cuda":
        return {}
    activities = [profiler.ProfilerActivity.CUDA]
    with profiler.profile(activities=activities, acc_events=True) as profile:
        run()
    found: Counter[str] = Counter()
    for event in profile.key_averages():
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            found[event.key[:80]] += event.self_device_time_total / 1e6
    return dict(found.most_common())


@contextmanager
def turn(
    folder: str | None = None, place: int = 0, places: int = 1, number: int = 0
) -> Iterator[None]:
    """One at a time inside, and nobody before all that get ready together are ready.

    Args:
        folder: Where each leaves a file when it is; None: there are no others.
        place: Whose turn it is.
        places: How many they are.
        number: Which turn of each, if they take several.
    """
    if folder is None:
        yield
        return
    import fcntl  # not on Windows

    (Path(folder) / f"{place}-{number}").touch()
    while _ready(folder, number) < places:
        time.sleep(0.05)
    with (Path(folder) / TURN).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    time.sleep(0.05)  # whoever was the last would be the first in the next turn


def _ready(folder: str, number: int) -> int:
    """How many are ready for a turn; whoever is done, or failed, counts as ready."""
    marks = (name.partition("-") for name in os.listdir(folder) if name != TURN)
    return len({place for place, _, at in marks if at in ("", str(number))})


def _memory_on(device: torch.device) -> dict[str, int]:
    """The most that tensors took of a GPU; on a CPU the process's own peak stands."""
    if device.type != "cuda":
        return {}
    return {"peak_mb": round(torch.cuda.max_memory_allocated(device) / 2**20)}


def decoding(job: dict) -> dict:
    """Translate all batches once; the first few also before the clock starts."""
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    batches = workload.load(Path(job["workload"]))["batches"]
    device = torch.device(job["device"])
    translate = adapter.searcher(adapter.trained(Path(job["weights"]), device))
    beam_size = job["case"]["beam_size"]
    for batch in batches[:2]:
        translate(batch, beam_size)
    watch = Stopwatch(device)
    outputs = [translate(batch, beam_size) for batch in batches]
    return watch.read() | {"outputs": list(chain.from_iterable(outputs))}


def time_to_quality(job: dict) -> dict:
    """Train until greedy translations of the validation split are good enough.

    Only training is timed: validation takes each peer its own time, and how often one
    validates is a matter of taste.
    """
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    data, case = workload.load(Path(job["workload"])), job["case"]
    pairs = EncodedPairs(*(workload.rows_from(data[s]) for s in ("source", "target")))
    batches = TokenBatches(pairs, job["tokens_per_batch"], seed=case["seed"])
    tokenizer = Tokenizer.load(Path(data["tokenizer"]))
    torch.manual_seed(case["seed"])
    model = adapter.build(workload.QUALITY_CONFIG)
    narrow = case["precision"] == "bf16"
    schedule = Schedule(job["warmup_steps"], job["learning_rate_scale"])
    step = adapter.training_step(model, narrow, schedule)
    translate = adapter.searcher(model)

    def bleu() -> float:
        found = map_batches(
            lambda source: translate(_unpadded(source), 1),
            workload.rows_from(data["validation"]),
            workload.TOKENS_PER_BATCH,
        )
        return evaluate_bleu(tokenizer.decode_batch(found), data["references"]).score

    spent, curve = {"seconds": 0.0, "cpu_seconds": 0.0}, []
    endless = chain.from_iterable(map(batches.epoch, count()))
    while not curve or (
        curve[-1]["bleu"] < job["bleu"] and spent["seconds"] < 60 * job["minutes"]
    ):
        watch = Stopwatch()
        for batch in islice(endless, job["validate_every"]):
            step(batch.source, batch.target)
        spent = {key: spent[key] + value for key, value in watch.read().items()}
        steps = job["validate_every"] * (len(curve) + 1)
        curve.append({"step": steps, "seconds": spent["seconds"], "bleu": bleu()})
    return spent | {"reached": curve[-1]["bleu"] >= job["bleu"], "curve": curve}


def _unpadded(source: torch.Tensor) -> list[list[int]]:
    return [[token for token in row if token] for row in source.tolist()]


def default_command(job: dict) -> dict:
    """`aiayn train multi30k`, and then a search with what it has learnt.

    Args:
        job: Besides its case, "options" may hold more words for the command.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder) / "run")
        words = ["train", "multi30k", "--seed", str(job["case"]["seed"])]
        words += ["--output", str(run.path), "--no-progress", *job.get("options", ())]
        command = [sys.executable, "-m", "aiayn", *words]
        watch = Stopwatch()
        subprocess.run(command, capture_output=True, check=True)
        taken, used = watch.read(), resource.getrusage(resource.RUSAGE_CHILDREN)
        log = run.read_log()
        model, tokenizer = load_translator(run.path)
    text = load_corpus("multi30k", source="en", target="de").test
    text = text[: job.get("sentences")]
    score = evaluate_bleu(translate(text.source, model, tokenizer), text.target)
    return taken | {
        "peak_mb": round(used.ru_maxrss / 1024),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "steps": log[-1]["step"],
        "training_seconds": log[-1]["seconds"],
        "validation_bleu": log[-1].get("bleu"),
        "bleu": score.score,
        "printed": score.text,
    }


def grid(job: dict) -> dict:
    """Steps at each size of `workload.GRID`, in turn with the other peers.

    A machine may change its speed within a minute, and a peer that was measured a
    minute later would be compared with another machine. So the peers' processes run
    side by side, one computes while the others wait, and at each size they have several
    turns: a tenth of a second, or one step, after one that is not timed. The median
    step of a turn counts. The seconds of the whole measurement are mostly waiting.
    """
    adapter = import_module(f"benchmarks.peers.{job['peer']}")
    torch.manual_seed(1)
    narrow = job["case"]["precision"] == "bf16"
    step = adapter.training_step(adapter.build(workload.CONFIG), narrow, Schedule())
    whole, sizes, number = Stopwatch(), [], count()
    for rows, length in workload.GRID:
        batch, turns = workload.filled(rows, length), []
        for _ in range(1 + workload.TURNS):  # machine code is written in the first
            with turn(**job.get("gate", {}), number=next(number)):
                turns.append(_median_step(step, batch))
        sizes.append({"rows": rows, "length": length, "turns": turns[1:]})
    return whole.read() | {"sizes": sizes}


def _median_step(
    step: Callable[..., object], batch: tuple[torch.Tensor, torch.Tensor]
) -> float:
    """In seconds, over the time of a turn; one step before fetches the memory."""
    step(*batch)
    watch, steps = Stopwatch(), []
    while not steps or watch.read()["seconds"] < workload.SECONDS_A_TURN:
        one = Stopwatch()
        step(*batch)
        steps.append(one.read()["seconds"])
    return median(steps)


def growth(job: dict) -> dict:
    """Steps of our trainer at one size; several processes share each batch."""
    from benchmarks.peers import ours

    axis, value = job["case"]["axis"], job["case"]["value"]
    count = value if axis == "processes" else 1
    if count > 1 and "LOCAL_RANK" not in os.environ:
        return _by_torchrun(count)
    config, batch = workload.grown(axis, value, seed=1)
    torch.manual_seed(1)
    with processes(torch.device("cpu")) as group:
        step = ours.training_step(ours.build(config), False, Schedule(), group)
        for _ in range(2):
            step(*batch)
        group.wait()
        watch = Stopwatch()
        for _ in range(job["steps"]):
            step(*batch)
        group.wait()
        return watch.read() | {
            "target_tokens": job["steps"] * batch[1].numel(),
            "flops": job["steps"] * workload.training_step_flops(config, batch),
            "kept_mb": workload.kept_bytes(config, batch, count) / 2**20,
            "first": group.is_main,
        }


def _by_torchrun(count: int) -> dict:
    """What the first of several processes measures."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(count), "-m", "benchmarks.worker", sys.argv[1]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results = [json.loads(x) for x in done.stdout.splitlines() if x[:1] == "{"]
    return next(result for result in results if result["first"])


def matrix_product(job: dict) -> dict:
    """GFLOP/s of one large product: what the machine, or its GPU, can do at best.

    In float32 torch multiplies with MKL, which on some processors is far from the best:
    oneDNN, which torch holds as well, is asked too, and the faster one counts.
    """
    dtype = torch.bfloat16 if job["case"].get("precision") == "bf16" else torch.float32
    device = torch.device(job.get("device", "cpu"))
    size = PRODUCT_SIZE if device.type == "cpu" else PRODUCT_SIZE_ON_A_GPU
    left, right = torch.randn(2, size, size, device=device).to(dtype)
    by_torch, taken = _product_gflops(lambda: F.linear(left, right), size, device)
    if device.type != "cpu":
        return taken | {"gflops": by_torch}
    blocked = left.to_mkldnn(), right.to_mkldnn()
    by_onednn, _ = _product_gflops(lambda: F.linear(*blocked), size, device)
    return taken | {
        "gflops": max(by_torch, by_onednn),
        "gflops_by": {"torch": by_torch, "onednn": by_onednn},
    }


def _product_gflops(
    multiply: Callable[[], object], size: int, device: torch.device
) -> tuple[float, dict]:
    """GFLOP/s over two seconds, and the time that was taken."""
    multiply()
    watch, products = Stopwatch(device), 0
    while (taken := watch.read())["seconds"] < 2:
        multiply()
        products += 1
    return 2 * size**3 * products / taken["seconds"] / 1e9, taken


class Stopwatch:
    """Wall-clock and processor time since it was made.

    Args:
        device: Whose queued work belongs to what is timed.
    """

    def __init__(self, device: torch.device = CPU) -> None:
        self.device = device
        self._wait()
        self.seconds, self.cpu_seconds = time.perf_counter(), time.process_time()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def read(self) -> dict[str, float]:
        self._wait()
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
        "gpu": gpu,
        "decoding": decoding,
        "time_to_quality": time_to_quality,
        "default_command": default_command,
        "grid": grid,
        "growth": growth,
        "matrix_product": matrix_product,
    }
    result = measure[job["kind"]](job)
    print()
    print(json.dumps({"peak_mb": round(peak_kilobytes() / 1024)} | result))


def peak_kilobytes() -> int:
    """The most memory that this process held, imports included.

    Linux lets a process begin with its parent's ``ru_maxrss``, and the driver, which
    has read the corpus, may have held more than a lean peer ever does. /proc does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(x.split(":", 1) for x in status.read_text().splitlines())
        if "VmHWM" in lines:
            return int(lines["VmHWM"].split()[0])
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found // 1024 if sys.platform == "darwin" else found  # there in bytes


if __name__ == "__main__":
    main()
