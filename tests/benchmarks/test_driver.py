"""Peers take turns, every measurement is kept, and an interrupted run goes on."""

import json
import subprocess
import sys

import pytest

from benchmarks import driver
from benchmarks.driver import Benchmark, Job, arguments
from benchmarks.environments import NotInstallableError

JOBS = [Job({"precision": "fp32"}), Job({"precision": "bf16"})]


@pytest.fixture
def asked(monkeypatch):
    """Who was measured at what, in which order; nothing is really run."""
    found = []

    def ask(_, request):
        found.append((request["peer"], request["case"].get("precision")))
        if request["peer"] == "bart":
            return {"error": "ImportError: it does not work"}
        return {"seconds": 2.0, "cpu_seconds": 2.0, "peak_mb": 100}

    monkeypatch.setattr(driver, "_ask", ask)
    monkeypatch.setattr(driver, "python_of", lambda peer: driver.Path(peer.name))
    monkeypatch.setattr(driver, "versions", lambda *_: {})
    return found


def measure(path, *words, settings=None):
    given = arguments("A benchmark.").parse_args(["--output", str(path), *words])
    made = Benchmark("training_step", given, settings or {"batches": 2})
    made.run(lambda _: JOBS, [Job({"precision": "fp32"})])
    return json.loads(path.read_text(encoding="utf-8"))


def test_peers_take_turns(tmp_path, asked):
    record = measure(
        tmp_path / "r.json", "--rounds", "2", "--peers", "ours", "torch_nn"
    )
    one_round = [
        ("matrix_product", "fp32"),
        ("ours", "fp32"),
        ("torch_nn", "fp32"),
        ("ours", "bf16"),
        ("torch_nn", "bf16"),
    ]
    assert asked == 2 * one_round
    assert [m["round"] for m in record["measurements"]] == 5 * [1] + 5 * [2]


def test_a_peer_may_have_fewer_cases_than_another(tmp_path, asked):
    words = ["--output", str(tmp_path / "r.json"), "--rounds", "1"]
    given = arguments("A benchmark.").parse_args([*words, "--peers", "ours", "marian"])
    made = Benchmark("training_step", given, {})
    made.run(lambda peer: JOBS if peer.name == "marian" else JOBS[:1])
    assert asked == [("ours", "fp32"), ("marian", "fp32"), ("marian", "bf16")]


def test_what_may_get_ready_together_does(tmp_path, asked, monkeypatch):
    """Two at a time here, the third alone; a failure holds up nobody."""
    gates, ask = [], driver._ask

    def note(python, request):
        gates.append(dict(request).pop("gate", None))
        return ask(python, request)

    monkeypatch.setattr(driver, "_ask", note)

    def jobs(peer):
        slow = [Job({"precision": str(n)}, ready_with=peer.name) for n in range(3)]
        quick = Job({"precision": "quick"}, ready_with="both")
        return [*slow, quick, JOBS[0]]

    words = ["--output", str(tmp_path / "r.json"), "--rounds", "1"]
    given = arguments("A benchmark.").parse_args([*words, "--peers", "ours", "bart"])
    Benchmark("gpu", given, {}).run(jobs, (), side_by_side=2)
    assert sorted(asked[:2]) == [("ours", "0"), ("ours", "1")]
    assert asked[2] == ("ours", "2")
    assert sorted(asked[3:5]) == [("bart", "0"), ("bart", "1")]
    assert asked[5] == ("bart", "2")
    assert sorted(asked[6:8]) == [("bart", "quick"), ("ours", "quick")]
    assert asked[8:] == [("ours", "fp32"), ("bart", "fp32")]
    assert [gate["places"] for gate in gates[:8]] == [2, 2, 1, 2, 2, 1, 2, 2]
    assert {gate["place"] for gate in gates[:2]} == {0, 1}
    assert gates[8:] == [None, None]


def test_peers_that_take_turns_are_measured_together_or_not_at_all(tmp_path, asked):
    """One is missing in the second round: all of that round are measured again."""
    path = tmp_path / "r.json"

    def run():
        words = ["--output", str(path), "--rounds", "2", "--peers", "ours", "t5"]
        made = Benchmark("grid", arguments("A grid.").parse_args(words), {})
        jobs = [Job({"precision": "fp32"}, ready_with="fp32")]
        made.run(lambda _: jobs, side_by_side=2, together=True)

    run()
    record = json.loads(path.read_text(encoding="utf-8"))
    assert len(record["measurements"]) == 4
    missing = next(
        m for m in record["measurements"] if m["round"] == 2 and m["peer"] == "t5"
    )
    record["measurements"].remove(missing)
    path.write_text(json.dumps(record), encoding="utf-8")
    asked.clear()
    run()
    assert sorted(asked) == [("ours", "fp32"), ("t5", "fp32")]
    asked.clear()
    run()
    assert asked == []


def test_what_was_measured_is_not_measured_again(tmp_path, asked):
    measure(tmp_path / "r.json", "--rounds", "1", "--peers", "ours")
    asked.clear()
    record = measure(
        tmp_path / "r.json", "--rounds", "2", "--peers", "ours", "torch_nn"
    )
    assert ("torch_nn", "fp32") in asked
    assert asked.count(("ours", "fp32")) == 1  # the second round's
    assert len(record["measurements"]) == 10


def test_other_choices_begin_a_new_record(tmp_path, asked):
    words = (tmp_path / "r.json", "--rounds", "1", "--peers", "ours")
    measure(*words)
    asked.clear()
    record = measure(*words, settings={"batches": 3})
    assert len(asked) == len(record["measurements"]) == 3


def test_another_version_of_the_benchmark_begins_a_new_record(
    tmp_path, asked, monkeypatch
):
    words = (tmp_path / "r.json", "--rounds", "1", "--peers", "ours")
    assert measure(*words)["measured_by"] == driver._digest_of_the_code()
    asked.clear()
    monkeypatch.setattr(driver, "_digest_of_the_code", lambda: "another")
    record = measure(*words)
    assert len(asked) == len(record["measurements"]) == 3


@pytest.mark.parametrize("name", ["benchmarks/worker.py", "src/aiayn/model/cache.py"])
def test_what_measures_and_what_is_measured_are_one_version(
    name, tmp_path, monkeypatch
):
    """Two changes that no commit holds have the same HEAD."""
    monkeypatch.setattr(driver, "ROOT", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    before = driver._digest_of_the_code()
    path.write_text("x = 2\n")
    assert driver._digest_of_the_code() != before


def test_a_record_names_every_command_that_added_to_it(tmp_path, asked, monkeypatch):
    for rounds in ("1", "2", "2"):
        monkeypatch.setattr(driver.sys, "argv", ["", "--rounds", rounds])
        record = measure(tmp_path / "r.json", "--rounds", rounds, "--peers", "ours")
    said = "python -m benchmarks.training_step --rounds"
    assert record["command"] == f"{said} 1 && {said} 2"


def test_memory_is_not_what_the_parent_once_held():
    """Linux lets a child begin with its parent's ru_maxrss."""
    if not driver.Path("/proc/self/status").exists():
        pytest.skip("Only where there is a /proc.")
    held = bytearray(600 * 2**20)  # touched: zeros are written
    code = "from benchmarks.worker import peak_kilobytes; print(peak_kilobytes())"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < len(held) // 1024


def test_a_record_names_no_folder_of_the_machine():
    words = ["/some/where/run", "--rounds", "2", "--output=/else/where/r.json"]
    command = driver._command("decoding", words)
    assert command == "python -m benchmarks.decoding run --rounds 2 --output=r.json"


def test_a_peer_that_fails_is_named_with_the_reason(tmp_path, asked):
    record = measure(tmp_path / "r.json", "--rounds", "1", "--peers", "ours", "bart")
    assert record["not_measured"] == {"bart": "bf16: ImportError: it does not work"}
    assert {m["peer"] for m in record["measurements"]} == {"matrix_product", "ours"}


def test_a_failure_is_kept_until_the_peer_is_measured(tmp_path, asked, monkeypatch):
    """A later call for somebody else forgets nothing; one that goes well does."""
    path = tmp_path / "r.json"
    failed = {"bart": "bf16: ImportError: it does not work"}
    measure(path, "--rounds", "1", "--peers", "ours", "bart")
    record = measure(path, "--rounds", "1", "--peers", "torch_nn")
    assert record["not_measured"] == failed

    def well(_, request):
        return {"seconds": 2.0, "cpu_seconds": 2.0, "peak_mb": 100}

    monkeypatch.setattr(driver, "_ask", well)
    record = measure(path, "--rounds", "1", "--peers", "bart")
    assert record["not_measured"] == {}


def test_who_could_not_be_installed_is_named_until_it_is(tmp_path, asked, monkeypatch):
    path, python_of = tmp_path / "r.json", driver.python_of

    def refuse(peer):
        if peer.name == "t5":
            raise NotInstallableError("pip failed.")
        return python_of(peer)

    monkeypatch.setattr(driver, "python_of", refuse)
    record = measure(path, "--rounds", "1", "--peers", "ours", "t5")
    assert record["not_measured"] == {"t5": "not installed: pip failed."}
    monkeypatch.setattr(driver, "python_of", python_of)
    record = measure(path, "--rounds", "1", "--peers", "t5")
    assert record["not_measured"] == {}


def test_a_benchmark_of_ours_alone_offers_no_peers(capsys):
    """Another's name there would stand above our figures."""
    parser = arguments("A benchmark.", alone=True)
    assert parser.parse_args([]).peers == ["ours"]
    with pytest.raises(SystemExit):
        parser.parse_args(["--peers", "fairseq"])
    assert "--peers" in capsys.readouterr().err
