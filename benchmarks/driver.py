"""Measures peers in turn, A B C A B C …, each time in a fresh process.

What else the machine does then falls on all of them alike, and the median of the rounds
forgets what fell on one. Every measurement is written down at once: a benchmark that
was interrupted goes on where it stopped, if it is started with the same choices.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

from aiayn.device import describe_machine
from aiayn.errors import InputError
from aiayn.storage import read_json, write_json
from benchmarks.environments import NotInstallableError, python_of, versions
from benchmarks.peers import PEERS, Peer
from benchmarks.summary import PRODUCT

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
NOT_INSTALLED = "not installed: "
"""How the record's reason begins for a peer that has no environment."""
MINUTES = 120  # that one measurement may take


@dataclass(frozen=True)
class Job:
    """One case of a benchmark: what is sent to every peer's process."""

    case: dict[str, Any]
    content: dict[str, Any] = field(default_factory=dict)
    """What the process needs besides: paths of files."""
    ready_with: str = ""
    """It may get ready beside those that have the same word here; empty: alone."""


def arguments(
    description: str, rounds: int = 3, alone: bool = False
) -> argparse.ArgumentParser:
    """The options that all benchmarks share; no choice of peers if ours is alone."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--rounds", type=int, default=rounds, help="how often each is measured")
    if alone:
        parser.set_defaults(peers=["ours"])
    else:
        add("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="who")
    add("--threads", type=int, default=2, help="threads of each process")
    add("--output", type=Path, help="the record; default: under benchmarks/records")
    add("--fresh", action="store_true", help="begin anew, forget what was measured")
    return parser


class Benchmark:
    """A record on disk, and what is still missing in it.

    Args:
        kind: What `benchmarks.worker` is asked for, and the record's name.
        given: The command line.
        settings: Every choice that a measurement depends on.
        reduce: What to keep of a result, given what was measured: for instance a score
            instead of all outputs.
    """

    def __init__(
        self,
        kind: str,
        given: argparse.Namespace,
        settings: dict[str, Any],
        reduce: Callable[[dict, dict], dict] = lambda _, result: result,
    ) -> None:
        self.kind, self.given, self.reduce = kind, given, reduce
        self.path = given.output or RECORDS / f"{kind}.json"
        settings = settings | {"threads": given.threads}
        self._writing = threading.Lock()
        self.record: dict[str, Any] = {
            "benchmark": kind,
            "command": _command(kind, sys.argv[1:]),
            "commit": _git("rev-parse", "HEAD"),
            "source_tree": _git("rev-parse", "HEAD:src"),
            "changed_files": bool(_git("status", "--porcelain", "--", "src")),
            "measured_by": _digest_of_the_code(),
            "date": date.today().isoformat(),
            "machine": describe_machine() | {"threads": given.threads},
            "settings": settings,
            "versions": {},
            "not_measured": {},
            "measurements": [],
        }
        if self.path.exists() and not given.fresh:
            self._go_on(read_json(self.path))

    def run(
        self,
        jobs: Callable[[Peer], list[Job]],
        products: Sequence[Job] = (),
        side_by_side: int = 1,
        together: bool = False,
    ) -> None:
        """Measure whatever is missing: round by round, case by case, peer by peer.

        Args:
            jobs: What a peer is measured at, case by case.
            products: Cases of the machine's own measure, taken in every round.
            side_by_side: How many of those that may get ready together do so.
            together: Their times are compared turn by turn: if one of them is missing,
                all are measured again.
        """
        pythons = self._environments()
        turns = zip_longest(*(jobs(PEERS[name]) for name in pythons))
        all_tasks = [
            (self.kind, python, name, job)
            for turn in turns
            for (name, python), job in zip(pythons.items(), turn, strict=True)
            if job is not None
        ]
        alone, groups = [], defaultdict(list)
        for task in all_tasks:
            word = task[3].ready_with if side_by_side > 1 else ""
            (groups[word] if word else alone).append(task)
        for number in range(1, self.given.rounds + 1):
            for job in products:
                self._measure(PRODUCT, Path(sys.executable), PRODUCT, job, number)
            for group in groups.values():
                for first in range(0, len(group), side_by_side):
                    tasks = group[first : first + side_by_side]
                    if together:
                        self._forget_incomplete(tasks, number)
                    self._side_by_side(tasks, number)
            for task in alone:
                self._measure(*task, number)

    def _go_on(self, old: dict[str, Any]) -> None:
        """Take up an earlier record, unless it measured something else."""
        same = ("settings", "source_tree", "changed_files", "machine", "measured_by")
        if any(old.get(key) != self.record[key] for key in same):
            print(f"{self.path.name} measured something else: beginning anew.")
            return
        for key in ("versions", "not_measured", "measurements"):
            self.record[key] = old[key]
        if self.record["command"] not in old["command"].split(" && "):
            self.record["command"] = f"{old['command']} && {self.record['command']}"
        else:
            self.record["command"] = old["command"]
        print(f"Going on with {self.path.name}; --fresh begins anew.")

    def _environments(self) -> dict[str, Path]:
        """Each peer's interpreter; who cannot be installed is written down."""
        found = {}
        for name in self.given.peers:
            try:
                found[name] = python_of(PEERS[name])
            except NotInstallableError as error:
                self.record["not_measured"][name] = f"{NOT_INSTALLED}{error}"
                print(f"{PEERS[name].title}: {NOT_INSTALLED}{error}")
                continue
            self._no_longer(name, NOT_INSTALLED)
            self.record["versions"][name] = versions(found[name], PEERS[name])
        return found

    def _forget_incomplete(self, tasks: list[tuple], number: int) -> None:
        """Drop what some of them have measured in a round, unless all have."""
        keys = [_key(peer, number, job) for *_, peer, job in tasks]
        done = self.record["measurements"]
        theirs = [m for m in done if any(_is(m, key) for key in keys)]
        if len(theirs) < len(keys):
            done[:] = [m for m in done if m not in theirs]

    def _side_by_side(self, tasks: list[tuple], number: int) -> None:
        """Several at once, which wait for one another in `benchmarks.worker.turn`."""

        def measure(place: int) -> None:
            *task, job = tasks[place]
            gate = {"folder": folder, "place": place, "places": len(tasks)}
            try:
                self._measure(
                    *task, Job(job.case, job.content | {"gate": gate}), number
                )
            finally:  # nobody is to wait for one that failed
                (Path(folder) / str(place)).touch()

        with (
            tempfile.TemporaryDirectory() as folder,
            ThreadPoolExecutor(len(tasks)) as pool,
        ):
            list(pool.map(measure, range(len(tasks))))

    def _measure(
        self, kind: str, python: Path, peer: str, job: Job, number: int
    ) -> None:
        key = _key(peer, number, job)
        if any(_is(measured, key) for measured in self.record["measurements"]):
            return
        request = {"kind": kind, "peer": peer, "threads": self.given.threads}
        load = os.getloadavg()[0]
        result = _ask(python, request | {"case": job.case} | job.content)
        words = " ".join(map(str, job.case.values()))
        with self._writing:
            self._note(peer, words, key, result, load)
        shown = result.get("error") or f"{result['seconds']:.1f} s"
        print(f"round {number} · {peer} · {words}: {shown}", flush=True)

    def _note(
        self, peer: str, words: str, key: dict[str, Any], result: dict, load: float
    ) -> None:
        """Write a result down, or why there is none."""
        if "error" in result:
            self.record["not_measured"][peer] = f"{words}: {result['error']}"
        else:
            kept = self.reduce(key, result)
            self.record["measurements"].append(key | kept | {"load": round(load, 1)})
            self._no_longer(peer, f"{words}: ")  # it failed in an earlier round only
        write_json(self.path, self.record)

    def _no_longer(self, peer: str, failure: str) -> None:
        """Forget why a peer was not measured, if the reason begins with these words."""
        if self.record["not_measured"].get(peer, "").startswith(failure):
            del self.record["not_measured"][peer]


def _key(peer: str, number: int, job: Job) -> dict[str, Any]:
    """What tells a measurement from the others."""
    return {"peer": peer, "round": number} | job.case


def _is(measured: dict[str, Any], key: dict[str, Any]) -> bool:
    return all(measured.get(name) == value for name, value in key.items())


def _ask(python: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Run a worker; its last line, or what went wrong in one line."""
    command = [str(python), "-m", "benchmarks.worker", json.dumps(request)]
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {
            "OMP_NUM_THREADS": str(request["threads"]),
            "PYTHONPATH": str(ROOT / "src"),
            "HF_HUB_OFFLINE": "1",
            # Nobody finds kernels that another process has compiled.
            "TORCHINDUCTOR_CACHE_DIR": empty,
            "TRITON_CACHE_DIR": empty,
        }
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60 * MINUTES,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"It took more than {MINUTES} minutes."}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"error": lines[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def report(main: Callable[[], None]) -> None:
    """Run a command; what it cannot use is answered in a sentence, and so is Ctrl-C."""
    try:
        main()
    except InputError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(
            "Stopped: the same command, without --fresh, goes on."
        ) from None


def _command(kind: str, words: list[str]) -> str:
    """What was typed, without the paths of this machine."""
    shown = []
    for word in words:
        option = word[: word.find("=") + 1] if word.startswith("-") else ""
        value = Path(word.removeprefix(option))
        shown.append(f"{option}{value.name}" if value.is_absolute() else word)
    return shlex.join(["python", "-m", f"benchmarks.{kind}", *shown])


def _digest_of_the_code() -> str:
    """Of what measures and is measured: a median over two versions is of neither."""
    digest = hashlib.sha256()
    for folder in ("benchmarks", "src"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ".environments" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _git(*words: str) -> str:
    """What git says; nothing where there is none, or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
