"""A disk that fails under a training: full, read-only, or taken away and put back.

None of it is imitated. A full disk is the system's own limit on the size of a file. A
read-only folder belongs to somebody else. A folder is moved away by another process.
Each time the training must end with a sentence. Once the disk is well again, it must
come to the same bits as the training that nothing happened to.
"""

import os
import random
import resource
import shutil
import time
from collections import Counter
from functools import partial

from aiayn.storage import RunFolder
from tests.soak.children import Children
from tests.soak.kills import difference, prepare, result

FAULTS = ("full", "read-only", "away")
NOBODY = 65534
MOST_FAULTS = 8
# Bytes: what a training prints must find room too.
SMALLEST = 4096


def soak_disk(folder, *, seconds, seed):
    """Let the disk fail under trainings for a time, and check what they come to.

    Args:
        folder: An empty place.
        seconds: No new training is begun after so long.
        seed: Of everything that is random.

    Returns:
        How many trainings, and faults of each kind that ended one.
    """
    draw, faults, trainings = random.Random(seed), Counter(), 0
    config, expected, duration = prepare(folder)
    folder.chmod(0o755)  # for somebody else to look into
    largest = max(len(content) for content in expected["files"].values()) * 4
    began = time.monotonic()
    while time.monotonic() - began < seconds or not trainings:
        done, tried = False, 0
        while not done:
            kind = draw.choice(FAULTS) if tried < MOST_FAULTS else None
            tried += 1
            moment, size = draw.uniform(0, duration), draw.randrange(SMALLEST, largest)
            status = _train(config, kind, moment, size)
            done = status == 0
            if not done:
                faults[kind] += 1
        found = result(config.output)
        assert found == expected, f"seed {seed}: {difference(found, expected)}"
        trainings += 1
        shutil.rmtree(config.output)
    return {"trainings": trainings, "by fault": dict(faults)}


def _train(config, kind, moment, size):
    """Train or resume under a fault; the exit status, which is 2 for a sentence."""
    run, away = config.output, config.output.with_name("away")
    first = {
        "full": partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size)),
        "read-only": _be_nobody if not os.getuid() else partial(run.chmod, 0o555),
    }
    if kind == "read-only":
        run.mkdir(exist_ok=True)
    children = Children(config, first=first.get(kind))
    if kind == "away":
        time.sleep(moment)
        if RunFolder(run).config.exists():  # an empty one may be made anew
            run.rename(away)
    [status] = children.wait()
    said = children.said.read_text()
    if away.exists():
        assert not run.exists(), f"half a run was made anew: {sorted(run.iterdir())}"
        away.rename(run)
    if kind == "read-only":
        run.chmod(0o755)
    assert status in (0, 2), f"{kind}: {status}: {said}"
    assert status == 0 or "Traceback" not in said, said
    return status


def _be_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
