"""The record of Table 3: complete, small, and never of mixed settings."""

import json

import pytest

from aiayn_book.table3 import miniature
from tools.records import table3


def run(row, seed, **changes):
    """A run as `aiayn_book.table3` records it, its scores made up."""
    config = miniature(row, seed=seed, **changes).as_dict()
    del config["output"]
    return {
        "row": row,
        "seed": seed,
        "bleu": 12.3456789,
        "config": config,
        "commit": "c" * 40,
        "machine": {"processor": "one", "threads": 1},
    }


def test_a_record_holds_every_run_in_the_table_s_order():
    other = run("base", 1) | {"machine": {"processor": "another"}}
    record = table3.collect([run("C N=2", 2), other, run("base", 2)], "typed")
    found = [(r["row"], r["seed"], r["machine"]) for r in record["runs"]]
    assert found == [("base", 1, 0), ("base", 2, 1), ("C N=2", 2, 1)]
    assert record["command"] == "typed"
    assert [machine["processor"] for machine in record["machines"]] == [
        "another",
        "one",
    ]
    assert record["commits"] == ["c" * 40]
    assert record["runs"][0]["bleu"] == 12.3457


def test_the_whole_table_stays_small():
    rows = table3.TABLE_3_ROWS
    runs = [run(row, seed) for row in rows for seed in (1, 2, 3)]
    assert len(json.dumps(table3.collect(runs, "typed"), indent=2)) < 60_000


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([], "base row"),
        ([run("C N=2", 1)], "base row"),
        ([run("base", 1), run("C N=2", 1, steps=7)], "C N=2, seed 1: other settings"),
    ],
)
def test_what_cannot_be_compared_makes_no_record(runs, words):
    with pytest.raises(SystemExit, match=words):
        table3.collect(runs, "typed")
