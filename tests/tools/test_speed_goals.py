"""The table of goals: worked by hand, and drawn from the records that there are."""

import json

from aiayn_site import speed_goals
from aiayn_site.speed_goals import Row, leanest_other, least_ahead, rows


def measured(peer, seconds, **more):
    return {"peer": peer, "round": 1, "seconds": seconds, **more}


def decoded(workload, **seconds):
    case = {"beam_size": 4, "workload": workload}
    return {"measurements": [measured(p, s, **case) for p, s in seconds.items()]}


def test_the_worst_workload_counts():
    """fairseq takes 3 times our time for batches and 1.5 for the file."""
    records = [
        decoded("batches", ours=1.0, fairseq=3.0, marian=2.0),
        decoded("file", ours=10.0, fairseq=15.0),
    ]
    assert least_ahead(records, 4, ("fairseq", "marian")) == ("fairseq", 1.5)
    assert least_ahead(records, 4, ("marian",)) == ("marian", 2.0)


def test_the_leanest_other_is_no_form_of_ours():
    peaks = {"ours": 400, "plain": 100, "bart": 600, "t5": 500}
    narrow = {"precision": "bf16"}
    record = {
        "measurements": [measured(p, 1, peak_mb=m, **narrow) for p, m in peaks.items()]
    }
    assert leanest_other(record, "bf16") == ("t5", 1.25)


def test_a_goal_is_met_or_missed_or_there_is_none():
    shown = [Row("a step", 1.5, "T5", goal).cells()[2] for goal in (1.5, 2.0, None)]
    assert [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in shown] == [
        "1.50 ×, met",
        "2.00 ×, missed",
        "none",
    ]


def test_every_row_can_be_drawn_from_the_records():
    """Each processor, search and kind of memory has its row, and each says whose."""
    records = {
        name: json.loads((speed_goals.RECORDS / f"{name}.json").read_text("utf-8"))
        for name in speed_goals.NAMES
    }
    found = list(rows(records))
    assert len({row.what for row in found}) >= 10
    steps = [row.what for row in found if "Zen" in row.what]
    both = [(kind, zen) for zen in (5, 4) for kind in ("fp32", "bf16")]
    # Zen 3 has no instruction that multiplies bfloat16 numbers.
    expected = [f"a training step in {k}, Zen {zen}" for k, zen in (*both, ("fp32", 3))]
    worst = "a training step at the worst of 13 batch sizes, Zen"
    assert steps == [*expected, f"{worst} 5", f"{worst} 3"]
    assert all(row.ratio > 0 and row.other for row in found)
