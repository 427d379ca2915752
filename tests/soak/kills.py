"""Trainings that are killed again and again must end as if they never had been.

A child trains or resumes, and is killed: at a random line of the package's code, at a
random line of the code that writes files, or at a random moment of the clock, by
SIGKILL or by SIGTERM. That goes on until one child comes to the end. Then the log's
losses, every checkpoint, the average and the optimizer's state must be those of a
training that nobody killed, bit by bit.
"""

import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from functools import partial

from aiayn.checkpoint import load_tensors
from aiayn.run import RunFolder
from aiayn.training import train
from tests.soak.children import PLACES, Children, die_at, lines_of
from tests.training.numbers import number_training, write_numbers

KINDS = (*PLACES, "SIGKILL", "SIGTERM")
# A training must come to its end at some time.
MOST_KILLS = 12
OF_NO_ACCOUNT = ("seconds", "tokens_per_second", "machine")


def soak_kills(folder, *, seconds, seed, count=1):
    """Kill trainings for a time, and check what they come to.

    Args:
        folder: An empty place.
        seconds: No new training is begun after so long.
        seed: Of everything that is random.
        count: Processes of each training.

    Returns:
        How many trainings, and kills of each kind.
    """
    draw, figures = random.Random(f"{seed} {count}"), Counter()
    config = replace(
        number_training(write_numbers(folder / "corpus"), folder / "whole"),
        steps=12,
        validate_every=4,
        log_every=3,
    )
    # Here, so that whatever is loaded on first use is there before the first fork.
    train(replace(config, output=folder / "loaded"))
    began = time.monotonic()
    assert Children(config, count).wait() == [0] * count
    duration = time.monotonic() - began
    expected = result(config.output)
    victim = replace(config, output=folder / "killed")
    lines = {}
    for place in PLACES:
        lines[place] = lines_of(victim, count, place)
        assert result(victim.output) == expected, "two trainings of one seed differ"
        shutil.rmtree(victim.output)
    while time.monotonic() - began < seconds or not figures["trainings"]:
        figures.update(_kill_until_done(victim, count, draw, duration, lines))
        found = result(victim.output)
        assert found == expected, f"seed {seed}: {_difference(found, expected)}"
        figures["trainings"] += 1
        shutil.rmtree(victim.output)
    return dict(figures)


def _kill_until_done(config, count, draw, duration, lines):
    """Begin, kill, resume, kill, … until one comes to the end; count the kills."""
    kills, statuses = Counter(), None
    while statuses != [0] * count:
        kind = draw.choice(KINDS) if kills.total() < MOST_KILLS else "none"
        rank, moment = draw.randrange(count), draw.uniform(0, duration)
        number = draw.randint(1, lines.get(kind, 1))
        first = partial(die_at, kind, number) if kind in PLACES else None
        children = Children(config, count, rank, first)
        if kind.startswith("SIG"):
            time.sleep(moment)
            children.signal(rank, signal.Signals[kind])
        statuses = children.wait()
        said = children.said.read_text()
        assert "Traceback" not in said, said
        assert kind != "none" or statuses == [0] * count, f"{statuses}: {said}"
        if statuses != [0] * count:
            kills[kind] += 1
    return kills


def result(output):
    """All that a training has left but times: the log, the weights, the state."""
    run = RunFolder(output)
    log = [
        {key: value for key, value in record.items() if key not in OF_NO_ACCOUNT}
        for record in run.read_log()
    ]
    tensors, info = load_tensors(run.state)
    info["progress"].pop("seconds")
    files = {path.name: path.read_bytes() for path in sorted(output.iterdir())}
    for name in (run.state.name, run.log.name, run.config.name):
        del files[name]
    state = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    return {"log": log, "state": state, "info": info, "files": files}


def _difference(found, expected):
    """Which parts differ, in words."""
    parts = [part for part in expected if found[part] != expected[part]]
    logs = f"{found['log']} instead of {expected['log']}" if "log" in parts else ""
    names = sorted(found["files"]), sorted(expected["files"])
    return f"{parts} differ; files {names}; {logs}"
