"""Trainings that are killed again and again must end as if they never had been.

A child trains or resumes, and is killed: at a random line of a step, a validation, a
checkpoint, an average or anything else, or at a random moment of the clock; by SIGKILL,
by SIGTERM, or with all its partners at once, as when the power fails. That goes on
until one child comes to the end. Then the log's losses, every checkpoint, the average
and the optimizer's state must be those of a training that nobody killed, bit by bit.
"""

import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from functools import partial

from aiayn.storage import RunFolder, load_tensors
from aiayn.training import train
from tests.soak.children import PLACES, Children, die_at, lines_of
from tests.training.number_words import number_training, write_numbers

SIGNALS = (signal.SIGKILL, signal.SIGTERM)
CLOCK, POWER = "at a moment", "all at a moment"
MOMENTS = (*PLACES, CLOCK, POWER)
# A training must come to its end at some time.
MOST_KILLS = 20
OF_NO_ACCOUNT = ("seconds", "tokens_per_second", "machine")


def soak_kills(folder, *, seconds, seed, count=1):
    """Kill trainings for a time, and check what they come to.

    Args:
        folder: An empty place.
        seconds: No new training is begun after so long.
        seed: Of everything that is random.
        count: Processes of each training.

    Returns:
        How many trainings, and kills by signal and moment.
    """
    draw, kills, trainings = random.Random(f"{seed} {count}"), Counter(), 0
    victim, expected, duration = prepare(folder, count)
    lines = {}
    for place in PLACES:
        lines[place] = lines_of(victim, count, place)
        assert result(victim.output) == expected, "two trainings of one seed differ"
        shutil.rmtree(victim.output)
    began = time.monotonic()
    while time.monotonic() - began < seconds or not trainings:
        kills += _kill_until_done(victim, count, draw, duration, lines)
        found = result(victim.output)
        assert found == expected, f"seed {seed}: {difference(found, expected)}"
        trainings += 1
        shutil.rmtree(victim.output)
    return {"trainings": trainings, "kills": kills.total(), "by kind": dict(kills)}


def prepare(folder, count=1):
    """A short training with everything in it, and what it comes to by itself.

    Args:
        folder: An empty place.
        count: Processes of each training.

    Returns:
        The training's configuration, its `result`, and how many seconds it took.
    """
    config = replace(
        number_training(write_numbers(folder / "corpus"), folder / "whole"),
        steps=12,
        validate_every=4,
        validation_sentences=2,
        log_every=3,
    )
    # Here, so that whatever is loaded on first use is there before the first fork.
    train(replace(config, output=folder / "loaded"))
    began = time.monotonic()
    Children(config, count).succeed()
    duration = time.monotonic() - began
    return replace(config, output=folder / "run"), result(config.output), duration


def _kill_until_done(config, count, draw, duration, lines):
    """Begin, kill, resume, kill, … until one comes to the end; count the kills."""
    kills, statuses = Counter(), None
    while statuses != [0] * count:
        moment = draw.choice(MOMENTS) if kills.total() < MOST_KILLS else None
        by = signal.SIGKILL if moment == POWER else draw.choice(SIGNALS)
        rank = draw.randrange(count)
        # Rather early: the further a training has come, the less is left to be killed.
        share = draw.random() * draw.random()
        later, number = share * duration, 1 + int(share * lines.get(moment, 0))
        first = partial(die_at, moment, number, by) if moment in PLACES else None
        children = Children(config, count, rank, first)
        if moment in (CLOCK, POWER):
            time.sleep(later)
            for victim in range(count) if moment == POWER else [rank]:
                children.signal(victim, by)
        statuses = children.wait()
        said = children.said.read_text()
        assert "Traceback" not in said, said
        assert moment is not None or statuses == [0] * count, f"{statuses}: {said}"
        # A process that lost its partner says so; one alone has no reason to complain.
        ends = (0, 130, -signal.SIGTERM, -signal.SIGKILL, *([2] if count > 1 else []))
        assert all(status in ends for status in statuses), f"{statuses}: {said}"
        if statuses != [0] * count:
            kills[f"{by.name} {moment}"] += 1
    return kills


def result(output):
    """All that a training has left but times: the log, the weights, the state."""
    run = RunFolder(output)
    log = [
        {key: value for key, value in record.items() if key not in OF_NO_ACCOUNT}
        for record in run.read_log()
    ]
    tensors, info = load_tensors(run.state)
    for name in ("seconds", "timed_from"):
        info["progress"].pop(name)
    files = {path.name: path.read_bytes() for path in sorted(output.iterdir())}
    for name in (run.state.name, run.log.name, run.config.name):
        del files[name]
    state = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    return {"log": log, "state": state, "info": info, "files": files}


def difference(found, expected):
    """Which parts differ, in words."""
    parts = [part for part in expected if found[part] != expected[part]]
    logs = f"{found['log']} instead of {expected['log']}" if "log" in parts else ""
    names = sorted(found["files"]), sorted(expected["files"])
    return f"{parts} differ; files {names}; {logs}"
