"""From a record to what is shown: medians over the rounds, and ratios to ours.

Nothing is imported that the book's build or a test would not have.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

PRODUCT = "matrix_product"
"""The name under which a record holds the machine's own measure."""
OURS = "ours"
OUR_FORMS = (OURS, "plain")
"""Under these names stands this package; all others are peers'."""

Record = dict[str, Any]
Measurement = dict[str, Any]


def rounds_of(record: Record, peer: str, case: dict[str, Any]) -> list[Measurement]:
    """All measurements of a peer in one case."""
    return [
        m
        for m in record["measurements"]
        if m["peer"] == peer and all(m.get(key) == case[key] for key in case)
    ]


def middle(
    rounds: list[Measurement], value: Callable[[Measurement], float]
) -> float | None:
    """The median of something over the rounds; None if there are none."""
    return median(map(value, rounds)) if rounds else None


def peers_in(record: Record) -> list[str]:
    """Everyone who was measured, in the order of the first round."""
    names = dict.fromkeys(m["peer"] for m in record["measurements"])
    return [name for name in names if name != PRODUCT]


def tokens_per_second(
    record: Record, peer: str, precision: str, clock: str = "seconds"
) -> float | None:
    """Target tokens a second of training, padding not counted.

    Args:
        record: Of a training step.
        peer: Whose.
        precision: fp32 or bf16.
        clock: 'seconds' on the wall, 'cpu_seconds' of all threads together, or
            'first_seconds': on the wall, while the batches' shapes were new.
    """
    tokens = record["settings"]["target_tokens"]
    rounds = rounds_of(record, peer, {"precision": precision})
    return middle(rounds, lambda m: tokens / m[clock])


def ratio_to_ours(record: Record, peer: str, case: dict[str, Any]) -> float | None:
    """How many times as fast ours is: the median of the rounds' own ratios."""
    ratios = ratios_to_ours(record, peer, case)
    return median(ratios) if ratios else None


def ratios_to_ours(record: Record, peer: str, case: dict[str, Any]) -> list[float]:
    """The same, round by round.

    A round's measurements lie close together in time, so its ratio is disturbed less
    than its figures.
    """
    theirs = {m["round"]: m["seconds"] for m in rounds_of(record, peer, case)}
    ours = {m["round"]: m["seconds"] for m in rounds_of(record, OURS, case)}
    return [theirs[number] / ours[number] for number in theirs if number in ours]


def fastest_other(record: Record, precision: str) -> tuple[str, float] | None:
    """The peer that ours is least ahead of, and how many times as fast ours is."""
    case = {"precision": precision}
    others = (peer for peer in peers_in(record) if peer not in OUR_FORMS)
    ratios = {peer: ratio_to_ours(record, peer, case) for peer in others}
    known = {peer: ratio for peer, ratio in ratios.items() if ratio is not None}
    return min(known.items(), key=lambda item: item[1], default=None)


def achieved_gflops(record: Record, peer: str, precision: str) -> float | None:
    """The model's own operations a second, in thousands of millions."""
    flops = record["settings"]["flops"]
    rounds = rounds_of(record, peer, {"precision": precision})
    return middle(rounds, lambda m: flops / m["seconds"] / 1e9)


def product_gflops(
    record: Record, precision: str, library: str | None = None
) -> float | None:
    """What a large matrix product reaches on the same machine.

    Args:
        record: Of a training step, or of a GPU.
        precision: fp32 or bf16.
        library: "torch", as torch itself multiplies, or "onednn"; None: the faster.
    """
    rounds = rounds_of(record, PRODUCT, {"precision": precision})
    return middle(rounds, lambda m: m["gflops_by"][library] if library else m["gflops"])


def most_ahead(record: Record, peer: str, precision: str) -> float | None:
    """How far ahead of a peer a step could be that consists of its products alone.

    It takes the model's operations at the rate of one large product, and no time for
    anything else.
    """
    rate = product_gflops(record, precision)
    achieved = achieved_gflops(record, peer, precision)
    return None if rate is None or achieved is None else rate / achieved


def peak_megabytes(record: Record, peer: str, case: dict[str, Any]) -> float | None:
    """The most memory that the peer's process held."""
    return middle(rounds_of(record, peer, case), lambda m: m["peak_mb"])


def mean_loss(record: Record, peer: str, case: dict[str, Any]) -> float | None:
    """The mean loss of the timed steps, in nats a token."""
    return middle(rounds_of(record, peer, case), lambda m: m["loss"])


def number_of_rounds(record: Record, case: dict[str, Any]) -> int:
    """How often ours was measured in a case."""
    return len(rounds_of(record, OURS, case))


def training_lines(record: Record) -> list[str]:
    """The record of a training step as a table of text, for the terminal."""
    lines = ["", "target tokens a second, median of the rounds (ours: times as fast)"]
    for precision in ("fp32", "bf16"):
        case = {"precision": precision}
        product = product_gflops(record, precision)
        if product:
            lines.append(
                f"{precision}: a matrix product reaches {product:,.0f} GFLOP/s"
            )
        for peer in peers_in(record):
            speed = tokens_per_second(record, peer, precision)
            if speed is None:
                continue
            ratio, peak = (
                ratio_to_ours(record, peer, case),
                peak_megabytes(record, peer, case),
            )
            share = achieved_gflops(record, peer, precision)
            lines.append(
                f"  {peer:16}{speed:9,.0f}/s{_times(ratio):>8}{share:8.0f} GFLOP/s"
                f"{peak:8,.0f} MB   loss {mean_loss(record, peer, case):.3f}"
            )
    return lines + _not_measured(record)


# Dense bfloat16, of the makers' data sheets, in TFLOP/s, by the name that CUDA gives.
DATA_SHEETS = {
    "H100 PCIe": 756,
    "H100 NVL": 835,
    "H100": 989,
    "H200": 989,
    "A100": 312,
}


def gpu_rows(record: Record) -> list[dict[str, Any]]:
    """A training step on a GPU: one row for each peer and form, the fastest first.

    Returns:
        Target tokens a second, TFLOP/s, seconds before the first timed step, and the
        peak of the GPU's memory in GB; medians over the rounds.
    """
    cases = dict.fromkeys(
        (m["peer"], m["form"]) for m in record["measurements"] if m["peer"] != PRODUCT
    )
    rows = []
    for peer, form in cases:
        rounds = rounds_of(record, peer, {"form": form})
        rows.append(
            {
                "peer": peer,
                "form": form,
                "speed": median(m["target_tokens"] / m["seconds"] for m in rounds),
                "tflops": median(m["flops"] / m["seconds"] for m in rounds) / 1e12,
                "warm_up": median(m["warm_up_seconds"] for m in rounds),
                "peak_gb": median(m["peak_mb"] for m in rounds) / 1024,
            }
        )
    return sorted(rows, key=lambda row: -row["speed"])


PRODUCTS = ("nvjet", "gemm", "cutlass::Kernel2", "splitK")
ATTENTIONS = ("fmha", "flash", "sdpa")
OUR_ATTENTION = ("_forward", "_backward_of_")
"""How names begin in `aiayn.model.attention_kernels`; the others are libraries'."""


def gpu_times(record: Record) -> list[dict[str, Any]]:
    """Milliseconds of a step on a GPU: one row for each peer and form, as `gpu_rows`.

    Returns:
        The whole step's; those of kernels that multiply matrices, that attend, and of
        all others; and those in which the GPU waits to be told what to do.
    """
    rows = []
    for row in gpu_rows(record):
        rounds = rounds_of(record, row["peer"], {"form": row["form"]})
        kinds: dict[str, list[float]] = {"products": [], "attention": [], "others": []}
        for measured in rounds:
            found = dict.fromkeys(kinds, 0.0)
            for name, seconds in measured.get("kernels", {}).items():
                found[_kind_of(name)] += 1e3 * seconds
            for kind, taken in found.items():
                kinds[kind].append(taken)
        batches = record["settings"]["batches"]
        step = median(1e3 * m["seconds"] / batches for m in rounds)
        busy = {kind: median(taken) for kind, taken in kinds.items()}
        waiting = max(0.0, step - sum(busy.values()))
        names = {"peer": row["peer"], "form": row["form"]}
        rows.append(names | {"step": step, **busy, "waiting": waiting})
    return rows


def _kind_of(kernel: str) -> str:
    if kernel.startswith(OUR_ATTENTION) or any(x in kernel for x in ATTENTIONS):
        return "attention"
    return "products" if any(x in kernel for x in PRODUCTS) else "others"


def data_sheet_tflops(record: Record) -> int | None:
    """The GPU's own maker's figure, if it is known here."""
    name = record["settings"]["gpu"]
    return next((peak for part, peak in DATA_SHEETS.items() if part in name), None)


def gpu_lines(record: Record) -> list[str]:
    """The record of a GPU as a table of text."""
    settings = record["settings"]
    lines = ["", f"target tokens a second on {settings['gpu']}"]
    product = product_gflops(record, "bf16")
    if product:
        sheet = data_sheet_tflops(record)
        of_sheet = f", data sheet {sheet}" if sheet else ""
        lines.append(f"a matrix product reaches {product / 1e3:,.2f} TFLOP/s{of_sheet}")
    lines += [
        f"  {row['peer']:16}{row['form']:20}{row['speed']:10,.0f}/s"
        f"{row['tflops']:8.2f} TFLOP/s{row['peak_gb']:7.1f} GB"
        f"   ready after {row['warm_up']:.0f} s"
        for row in gpu_rows(record)
    ]
    return lines + _not_measured(record)


def decoding_lines(record: Record) -> list[str]:
    """The record of decoding as a table of text."""
    lines = ["", "sentences a second, median of the rounds (ours: times as fast)"]
    for case in decoding_cases(record):
        lines.append(f"beam {case['beam_size']}, {case['workload']}:")
        for peer in peers_in(record):
            speed = sentences_per_second(record, peer, case)
            if speed is None:
                continue
            ratio, peak = (
                ratio_to_ours(record, peer, case),
                peak_megabytes(record, peer, case),
            )
            same = share_identical(record, peer, case)
            lines.append(
                f"  {peer:16}{speed:9,.1f}/s{_times(ratio):>8}{same:8.1%} same"
                f"{peak:8,.0f} MB"
            )
    return lines + _not_measured(record)


def quality_runs(record: Record, peer: str) -> list[Measurement]:
    """A peer's trainings, seed by seed."""
    return sorted(rounds_of(record, peer, {}), key=lambda m: m["seed"])


def quality_ratio(record: Record, peer: str) -> float | None:
    """How many times as fast ours is good: the median of the seeds' own ratios.

    Trainings that did not reach the score, of the peer's or ours, are left out.
    """
    theirs, ours = (
        {m["seed"]: m["seconds"] for m in quality_runs(record, who) if m["reached"]}
        for who in (peer, OURS)
    )
    ratios = [theirs[seed] / ours[seed] for seed in theirs if seed in ours]
    return median(ratios) if ratios else None


def quality_lines(record: Record) -> list[str]:
    """The record of time to quality as a table of text."""
    wanted = record["settings"]["bleu"]
    lines = ["", f"minutes of training until {wanted:g} BLEU on the validation split"]
    for peer in peers_in(record):
        for m in quality_runs(record, peer):
            reached = (
                "" if m["reached"] else f" (not reached: {m['curve'][-1]['bleu']:.1f})"
            )
            lines.append(
                f"  {peer:16}seed {m['seed']}: {m['seconds'] / 60:.1f} min{reached}"
            )
        lines.append(f"  {peer:16}{_times(quality_ratio(record, peer))}")
    return lines + _not_measured(record)


def default_command_lines(record: Record) -> list[str]:
    """The seeds of the default command as a table of text."""
    lines = ["", "aiayn train multi30k: minutes of training, and BLEU on test2016"]
    for m in quality_runs(record, OURS):
        minutes = m["training_seconds"] / 60
        lines.append(f"  ours, seed {m['seed']}: {minutes:.1f} min, {m['bleu']:.2f}")
    return lines


def ratios_by_size(
    record: Record, precision: str
) -> dict[tuple[int, int], dict[str, list[float]]]:
    """How many times as fast ours is as each peer, in every turn of each size.

    In an earlier record a round is one turn.
    """
    times = {
        (m["peer"], (m["round"], number), one["rows"], one["length"]): seconds
        for m in record["measurements"]
        if m["precision"] == precision
        for one in m["sizes"]
        for number, seconds in enumerate(one.get("turns") or [one["seconds"]])
    }
    found: dict[tuple[int, int], dict[str, list[float]]] = {}
    for (peer, turn, *size), seconds in times.items():
        ours = times.get((OURS, turn, *size))
        if ours is not None and peer not in OUR_FORMS:
            ratios = found.setdefault((size[0], size[1]), {})
            ratios.setdefault(peer, []).append(seconds / ours)
    return found


def fastest_by_size(
    record: Record, precision: str
) -> dict[tuple[int, int], tuple[str, float]]:
    """For each size of a batch the peer that ours is least ahead of, and by how much.

    Returns:
        For sentences and tokens of each: the peer's name, and how many times as fast
        ours is, the median of the ratios within each turn.
    """
    return {
        size: min(
            ((peer, median(each)) for peer, each in ratios.items()),
            key=lambda one: one[1],
        )
        for size, ratios in ratios_by_size(record, precision).items()
    }


def grid_lines(record: Record) -> list[str]:
    """The record of the grid as a table of text."""
    lines = []
    for precision in ("fp32", "bf16"):
        lines += ["", f"{precision}: ours, times the fastest other at each size"]
        lines += [
            f"  {rows:4} x {length:4}{ratio:8.2f} ×  {peer}"
            for (rows, length), (peer, ratio) in fastest_by_size(
                record, precision
            ).items()
        ]
    return lines + _not_measured(record)


def growth_points(record: Record, axis: str) -> list[dict[str, float]]:
    """One axis of the growth benchmark: measured beside predicted.

    Returns:
        For each value: target tokens a second and the peak of memory in MB, both as
        medians; and what arithmetic predicts from the size in the middle: its rate of
        operations for the speed, its memory and the difference in what must be kept.
    """
    start = {"axis": axis, "value": record["settings"]["middle"][axis]}
    middles = rounds_of(record, OURS, start)
    if not middles:
        return []
    rate = median(m["flops"] / m["seconds"] for m in middles)
    rest = median(m["peak_mb"] - m["kept_mb"] for m in middles)
    points = []
    for value in dict.fromkeys(
        m["value"] for m in record["measurements"] if m["axis"] == axis
    ):
        rounds = rounds_of(record, OURS, {"axis": axis, "value": value})
        first = rounds[0]
        per_operation = first["target_tokens"] / first["flops"]
        shared = value if axis == "processes" else 1
        points.append(
            {
                "value": value,
                "speed": median(m["target_tokens"] / m["seconds"] for m in rounds),
                "predicted_speed": per_operation * rate * shared,
                "peak_mb": median(m["peak_mb"] for m in rounds),
                "predicted_mb": rest + first["kept_mb"],
            }
        )
    return points


def middle_speeds(record: Record) -> list[float]:
    """Target tokens a second at the size in the middle, which all axes go through."""
    middle_of = record["settings"]["middle"]
    return [
        m["target_tokens"] / m["seconds"]
        for m in record["measurements"]
        if m["value"] == middle_of[m["axis"]]
    ]


def growth_lines(record: Record) -> list[str]:
    """The record of growth as a table of text."""
    lines = ["", "target tokens a second and peak memory (predicted in brackets)"]
    for axis in record["settings"]["middle"]:
        lines.append(f"{axis}:")
        lines += [
            f"  {p['value']:6}{p['speed']:9,.0f}/s ({p['predicted_speed']:,.0f})"
            f"{p['peak_mb']:9,.0f} MB ({p['predicted_mb']:,.0f})"
            for p in growth_points(record, axis)
        ]
    return lines + _not_measured(record)


def decoding_cases(record: Record) -> list[dict[str, Any]]:
    """Every search and workload that anyone was measured at."""
    keys = ("beam_size", "workload")
    found = {tuple(m[k] for k in keys): None for m in record["measurements"]}
    return [dict(zip(keys, values, strict=True)) for values in found]


def sentences_per_second(
    record: Record, peer: str, case: dict[str, Any], clock: str = "seconds"
) -> float | None:
    """Sentences translated a second."""
    sentences = record["settings"]["sentences"][case["workload"]]
    return middle(rounds_of(record, peer, case), lambda m: sentences / m[clock])


def processor_seconds(record: Record, peer: str, case: dict[str, Any]) -> float | None:
    """Seconds of all threads together."""
    return middle(rounds_of(record, peer, case), lambda m: m["cpu_seconds"])


def busy_threads(record: Record, peer: str) -> tuple[float, float] | None:
    """How many threads a peer kept busy, at the least and at the most of all cases."""
    found = [m["cpu_seconds"] / m["seconds"] for m in rounds_of(record, peer, {})]
    return (min(found), max(found)) if found else None


def share_identical(record: Record, peer: str, case: dict[str, Any]) -> float | None:
    """The share of sentences that a peer translates exactly as we do."""
    return middle(rounds_of(record, peer, case), lambda m: m["identical"])


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f} ×"


def _not_measured(record: Record) -> list[str]:
    return [
        f"{peer}: not measured. {why}" for peer, why in record["not_measured"].items()
    ]
