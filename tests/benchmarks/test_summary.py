"""Medians and ratios, worked by hand; and every record on disk can be drawn."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from aiayn_site.speed_tables import trained_by, who_is_ahead
from benchmarks import summary
from benchmarks.peers import PEERS

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "records"
FP32 = {"precision": "fp32"}


def measurement(peer, number, seconds, **more):
    known = {"peer": peer, "round": number, "precision": "fp32", "seconds": seconds}
    known |= {"cpu_seconds": 2 * seconds, "peak_mb": 100 * number, "loss": 8.5}
    return known | more


RECORD = {
    "settings": {"target_tokens": 1200, "flops": 6e9},
    "not_measured": {"t5": "pip failed."},
    "measurements": [
        measurement("matrix_product", 1, 1.0, gflops=50.0, gflops_by={"torch": 40.0}),
        # In the second round the machine was half as fast, for all alike.
        *(measurement("ours", n, s) for n, s in ((1, 1.0), (2, 2.0), (3, 1.0))),
        *(measurement("bart", n, s) for n, s in ((1, 1.5), (2, 3.0), (3, 1.2))),
    ],
}


def test_speed_is_the_median_of_the_rounds():
    assert summary.tokens_per_second(RECORD, "ours", "fp32") == 1200
    assert summary.tokens_per_second(RECORD, "bart", "fp32") == 800
    assert summary.tokens_per_second(RECORD, "bart", "fp32", "cpu_seconds") == 400
    assert summary.tokens_per_second(RECORD, "bart", "bf16") is None


def test_the_ratio_is_the_median_of_the_rounds_ratios():
    """1.5, 1.5 and 1.2: the slow second round does not count against anyone."""
    assert summary.ratio_to_ours(RECORD, "bart", FP32) == 1.5
    assert summary.ratio_to_ours(RECORD, "ours", FP32) == 1.0
    assert summary.ratio_to_ours(RECORD, "t5", FP32) is None


def test_the_fastest_other_is_no_form_of_ours():
    """T5 took twice the time of ours, BART 1.5; our plain classes do not count."""
    more = [measurement(p, 1, s) for p, s in (("t5", 2.0), ("plain", 1.1))]
    record = RECORD | {"measurements": RECORD["measurements"] + more}
    assert summary.fastest_other(record, "fp32") == ("bart", 1.5)
    assert summary.fastest_other(record, "bf16") is None


def test_operations_a_second_and_memory():
    assert summary.achieved_gflops(RECORD, "ours", "fp32") == 6.0
    assert summary.product_gflops(RECORD, "fp32") == 50.0
    assert summary.product_gflops(RECORD, "fp32", "torch") == 40.0
    assert summary.peak_megabytes(RECORD, "ours", FP32) == 200


def test_how_far_ahead_products_alone_would_be():
    """BART does 4 GFLOP/s, a large product 50: nobody can be further ahead of it."""
    assert summary.most_ahead(RECORD, "bart", "fp32") == 12.5
    assert summary.most_ahead(RECORD, "bart", "bf16") is None


ON_A_GPU = {
    "settings": {"gpu": "NVIDIA H100 80GB HBM3"},
    "not_measured": {"t5": "pip failed."},
    "measurements": [
        measurement(
            peer,
            number,
            seconds,
            form=form,
            target_tokens=1000,
            flops=4e12,
            warm_up_seconds=30.0,
        )
        for peer, form, times in (
            ("torch_nn", "eager", (4.0, 8.0, 4.0)),
            ("ours", "eager", (2.0, 2.0, 9.0)),
            ("ours", "compiled", (1.0, 1.0, 1.0)),
        )
        for number, seconds in enumerate(times, start=1)
    ],
}


def test_a_gpus_rows_are_sorted_by_speed():
    rows = summary.gpu_rows(ON_A_GPU)
    assert [(r["peer"], r["form"], r["speed"], r["tflops"]) for r in rows] == [
        ("ours", "compiled", 1000, 4.0),
        ("ours", "eager", 500, 2.0),
        ("torch_nn", "eager", 250, 1.0),
    ]
    assert rows[0]["peak_gb"] == 200 / 1024
    assert summary.data_sheet_tflops(ON_A_GPU) == 989
    assert "t5: not measured. pip failed." in summary.gpu_lines(ON_A_GPU)


def test_a_gpus_time_is_what_its_kernels_take_and_what_it_waits():
    """Two batches in 8 seconds: of a step's 4, the kernels take 3.5."""
    kernels = {
        "nvjet_sm90_tst_64x128": 1.0,
        "splitKreduce_kernel": 0.25,
        "_backward_of_keys": 0.5,
        "fmha_cutlassF_bf16_aligned": 0.25,
        "triton_red_fused_nll_loss_forward_2": 1.5,
    }
    given = {"form": "compiled", "target_tokens": 1, "flops": 1.0}
    made = measurement("ours", 1, 8.0, kernels=kernels, warm_up_seconds=1.0, **given)
    record = {"settings": {"batches": 2}, "measurements": [made]}
    assert summary.gpu_times(record) == [
        {
            "peer": "ours",
            "form": "compiled",
            "step": 4000,
            "products": 1250,
            "attention": 750,
            "others": 1500,
            "waiting": 500,
        }
    ]


@pytest.mark.parametrize(
    ("name", "tflops"),
    [("NVIDIA H100 PCIe", 756), ("NVIDIA H100 NVL", 835), ("none: a CPU", None)],
)
def test_the_data_sheet_is_that_of_the_card(name, tflops):
    assert summary.data_sheet_tflops({"settings": {"gpu": name}}) == tflops


def test_a_search_is_shown_beside_ours():
    """300 sentences in 2 seconds and in 6, of which 1.5 % come out otherwise."""
    case = {"beam_size": 4, "workload": "mixed"}
    record = {
        "settings": {"sentences": {"mixed": 300}},
        "not_measured": {},
        "measurements": [
            measurement("ours", 1, 2.0, identical=1.0, **case),
            measurement("marian", 1, 6.0, identical=0.985, **case),
        ],
    }
    assert [" ".join(line.split()) for line in summary.decoding_lines(record)[2:]] == [
        "beam 4, mixed:",
        "ours 150.0/s 1.00 × 100.0% same 100 MB",
        "marian 50.0/s 3.00 × 98.5% same 100 MB",
    ]


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (6.0, "No peer is faster."),
        (1.5, "Faster than ours: Hugging Face Marian (greedy, ours 0.75 ×)."),
    ],
)
def test_the_page_says_who_translates_faster_than_ours(seconds, sentence):
    case = {"beam_size": 1, "workload": "mixed"}
    ours, theirs = (
        measurement(peer, 1, needed, **case)
        for peer, needed in (("ours", 2.0), ("marian", seconds))
    )
    [paragraph] = who_is_ahead({"measurements": [ours, theirs]})
    assert paragraph.astext().replace("\N{NO-BREAK SPACE}", " ") == sentence


def test_the_page_names_the_command_that_trains_the_weights_today():
    """Not the one that did so before the recipe's defaults changed."""
    [paragraph] = trained_by({"settings": {"run": "multi30k-en-de"}})
    assert "--model.norm post" in paragraph.astext()
    assert trained_by({"settings": {"run": "nobody's"}}) == []


def test_the_table_names_all_who_were_measured_and_who_was_not():
    text = "\n".join(summary.training_lines(RECORD))
    assert "1.50 ×" in text
    assert "loss 8.500" in text
    assert "t5: not measured. pip failed." in text
    assert summary.peers_in(RECORD) == ["ours", "bart"]


def test_time_to_quality_is_compared_seed_by_seed():
    """120 / 60 and 300 / 100; seed 3 did not get there, and seed 2 came first."""
    curve = [{"step": 100, "seconds": 60.0, "bleu": 33.0}]
    runs = [("ours", 2, 100.0), ("ours", 1, 60.0), ("ours", 3, 80.0)]
    runs += [("bart", 2, 300.0), ("bart", 1, 120.0), ("bart", 3, 900.0)]
    record = {
        "settings": {"bleu": 35.0},
        "not_measured": {},
        "measurements": [
            measurement(peer, 1, seconds, seed=seed, curve=curve)
            | {"reached": seconds < 900}
            for peer, seed, seconds in runs
        ],
    }
    assert [m["seed"] for m in summary.quality_runs(record, "bart")] == [1, 2, 3]
    assert summary.quality_ratio(record, "bart") == 2.5
    assert summary.quality_ratio(record, "ours") == 1.0
    text = "\n".join(summary.quality_lines(record))
    assert "seed 3: 15.0 min (not reached: 33.0)" in text
    assert "2.50 ×" in text


def test_what_arithmetic_predicts_goes_out_from_the_middle():
    """Twice the operations a token: half the speed; memory grows by what is kept."""
    known = {"peer": "ours", "axis": "width", "target_tokens": 100}
    middle = known | {"value": 256, "flops": 1e9, "kept_mb": 10}
    wide = known | {"value": 512, "flops": 2e9, "kept_mb": 40, "seconds": 3.0}
    record = {
        "settings": {"middle": {"width": 256}},
        "not_measured": {},
        "measurements": [
            middle | {"round": 1, "seconds": 1.0, "peak_mb": 210},
            wide | {"round": 1, "peak_mb": 250},
        ],
    }
    first, second = summary.growth_points(record, "width")
    assert first["speed"] == first["predicted_speed"] == 100
    assert second["predicted_speed"] == 50
    assert second["speed"] == pytest.approx(100 / 3)
    assert (second["predicted_mb"], second["peak_mb"]) == (240, 250)
    last = summary.growth_lines(record)[-1]
    assert " ".join(last.split()) == "512 33/s (50) 250 MB (240)"
    assert summary.growth_points(record | {"measurements": [wide]}, "width") == []


def test_the_middle_is_measured_once_for_each_axis():
    points = (("width", 256, 1.0), ("width", 512, 9.0), ("length", 32, 2.0))
    record = {
        "settings": {"middle": {"width": 256, "length": 32}},
        "measurements": [
            {"axis": axis, "value": value, "seconds": s, "target_tokens": 100}
            for axis, value, s in points
        ],
    }
    assert summary.middle_speeds(record) == [100, 50]


def test_threads_are_busy_while_they_take_processor_time():
    """Two threads, in every measurement; 1.0, 2.0 and 1.0 seconds by the clock."""
    assert summary.busy_threads(RECORD, "ours") == (2.0, 2.0)
    assert summary.busy_threads(RECORD, "t5") is None
    assert summary.processor_seconds(RECORD, "ours", FP32) == 2.0


def at_one_size(peer, number, **found):
    """A measurement of the grid."""
    sizes = [{"rows": 4, "length": 8} | found]
    return {"peer": peer, "round": number, "precision": "fp32", "sizes": sizes}


def test_of_each_size_the_peer_counts_that_ours_is_least_ahead_of():
    """In two rounds t5 takes 2 and 4 times as long as ours, bart 5 and 2 times."""
    record = {
        "settings": {"sizes": [[4, 8], [1, 512]]},
        "measurements": [
            at_one_size(peer, number, seconds=seconds)
            for peer, both in {
                "ours": (1, 2),
                "plain": (0.5, 1),
                "t5": (2, 8),
                "bart": (5, 4),
            }.items()
            for number, seconds in enumerate(both)
        ],
        "not_measured": {},
    }
    assert summary.fastest_by_size(record, "fp32") == {(4, 8): ("t5", 3.0)}
    assert summary.fastest_by_size(record, "bf16") == {}
    assert "3.00 ×  t5" in "\n".join(summary.grid_lines(record))


def test_a_ratio_is_taken_within_a_turn():
    """The machine slows down; t5 takes 2, 3, 4 and 5 times as long as ours."""
    turns = {"ours": [[1, 2], [4, 8]], "t5": [[2, 6], [16, 40]]}
    record = {
        "settings": {"sizes": [[4, 8]]},
        "measurements": [
            at_one_size(peer, number, turns=each)
            for peer, both in turns.items()
            for number, each in enumerate(both)
        ],
    }
    assert summary.fastest_by_size(record, "fp32") == {(4, 8): ("t5", 3.5)}


# What takes too long for several rounds; the page says how many there were.
LONG = ("decoding_file", "time_to_quality", "default_command")
# What tells the cases of a benchmark apart.
CASE = ("precision", "form", "beam_size", "workload", "axis", "value")
DRAW = {
    "training_step": summary.training_lines,
    "gpu": summary.gpu_lines,
    "decoding": summary.decoding_lines,
    "time_to_quality": summary.quality_lines,
    "default_command": summary.default_command_lines,
    "grid": summary.grid_lines,
    "growth": summary.growth_lines,
}
PATH = re.compile(r"(?<![\w.])(?<!:/)/\w")


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda p: p.stem)
def test_a_record_says_what_was_measured_where_and_when(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path.stem.startswith(record["benchmark"])
    # What is not the benchmark's own run says so, and what it is instead.
    trial = "note" in record
    command = f"python -m benchmarks.{record['benchmark']}"
    assert trial or record["command"].startswith(command)
    assert len(record["commit"]) == 40
    changed = record.get("changed_files")
    assert trial or not changed, "measured with changes that no commit holds"
    assert record["machine"]["processor"]
    assert record["date"]
    assert set(record["versions"]) <= set(PEERS)
    peers = summary.peers_in(record)
    assert "ours" in peers
    for m in record["measurements"]:
        assert m["seconds"] > 0
        assert trial or m["cpu_seconds"] > 0
        assert m["peak_mb"] > 0
    rounds = Counter((m["peer"], *map(m.get, CASE)) for m in record["measurements"])
    assert trial or path.stem in LONG or min(rounds.values()) >= 3


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda p: p.stem)
def test_a_record_can_be_drawn(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    text = "\n".join(DRAW[record["benchmark"]](record))
    assert not re.search("nan|None", text)
    settings = record["settings"]
    sizes = [f"{rows:4} x {length:4}" for rows, length in settings.get("sizes", [])]
    for name in sizes or settings.get("middle") or summary.peers_in(record):
        assert name in text


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda p: p.stem)
def test_no_path_of_a_machine_stands_in_a_record(path):
    assert not PATH.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text", ["/home/me/x", "'/home/me/x'", "--output=/home/me/r.json", "file:///x"]
)
def test_a_path_in_a_record_would_be_found(text):
    assert PATH.search(text)


def test_what_is_no_path_of_a_machine_is_not():
    assert not PATH.search("150 tokens/s, benchmarks/records, https://example.org")
