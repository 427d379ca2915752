"""Trainings in forked children, and ways to kill one of them.

A fork has torch loaded already, so a kill costs a tenth of a second and not five. No
CUDA, no threads: neither survives a fork.
"""

import math
import os
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

from tqdm import tqdm

import aiayn
from aiayn.errors import InputError
from aiayn.storage import RunFolder
from aiayn.training import resume_training, train

# Its own lock is shared by all forks, and one that is killed would keep it for ever.
tqdm.set_lock(threading.RLock())

PACKAGE = Path(aiayn.__file__).parent
# Where a child may be killed: at a line of these files, or of any.
PLACES = {
    name: frozenset(str(path) for pattern in patterns for path in PACKAGE.glob(pattern))
    for name, patterns in {
        "anywhere": ("**/*.py",),
        "in a step": ("training/trainer.py", "training/*loss.py"),
        "in a validation": ("inference/*.py",),
        "while a file is written": ("storage.py",),
        "in an average": ("training/averaging.py",),
    }.items()
}
# Seconds in which a process may notice that its partner has died, or come to its end
# after its partner has. Then it is killed too, as torchrun would after a death: one
# that waits to meet its partner waits for hours.
GRACE, AMPLE = 2.0, 60.0


class Children:
    """The processes of one training.

    Args:
        config: The training; it is resumed where its folder holds one.
        count: How many processes.
        victim: Which of them runs what comes first.
        first: Called in the victim before it trains, if anything is.
    """

    def __init__(self, config, count=1, victim=0, first=None):
        self.config, self.said = config, config.output.parent / "said"
        # Once and now: whoever looks later may find that the folder has gone.
        self._resumes = RunFolder(config.output).config.exists()
        self.said.write_text("")
        self.pids = []
        # Held until the end, lest another program takes the port before they meet.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        port = self._held.getsockname()[1]
        for rank in range(count):
            pid = os.fork()
            if not pid:
                self._be(rank, count, port, first if rank == victim else None)
            self.pids.append(pid)

    def signal(self, rank, number):
        """Send one of them a signal, if it still lives."""
        with suppress(ProcessLookupError):
            os.kill(self.pids[rank], number)

    def wait(self):
        """Each one's exit status, or minus the signal that ended it."""
        statuses, deadline = {}, math.inf
        while len(statuses) < len(self.pids):
            for rank in set(range(len(self.pids))) - set(statuses):
                pid, status = os.waitpid(self.pids[rank], os.WNOHANG)
                if pid:
                    statuses[rank] = os.waitstatus_to_exitcode(status)
                    left = GRACE if statuses[rank] else AMPLE
                    deadline = min(deadline, time.monotonic() + left)
                elif time.monotonic() > deadline:
                    self.signal(rank, signal.SIGKILL)
            time.sleep(0.002)
        self._held.close()
        return [statuses[rank] for rank in sorted(statuses)]

    def succeed(self):
        """Wait for all, of whom none may fail."""
        statuses = self.wait()
        assert not any(statuses), f"{statuses}: {self.said.read_text()}"

    def _be(self, rank, count, port, first):
        """What a child does from its first moment to its last."""
        output = os.open(self.said, os.O_WRONLY | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if count > 1:
            os.environ.update(
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(count),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
            )
        if first is not None:
            first()
        os._exit(_train(self.config, self._resumes))


def _train(config, resumes):
    """Train or resume, as the command line would; the exit status."""
    try:
        if resumes:
            resume_training(config.output)
        else:
            train(config)
    except KeyboardInterrupt:
        return 130
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def die_at(place, number, by):
    """Send this process a signal at the number-th line that it runs in a place."""
    left = [number]

    def count():
        left[0] -= 1
        if not left[0]:
            sys.settrace(None)
            os.kill(os.getpid(), by)

    _at_each_line(PLACES[place], count)


def lines_of(config, count, place):
    """How many lines the first process of a training runs in a place."""
    told = config.output.with_name("lines")

    def begin():
        lines = [0]
        exit_with = os._exit

        def count_one():
            lines[0] += 1

        def tell_and_exit(status):
            told.write_text(str(lines[0]))
            exit_with(status)

        os._exit = tell_and_exit
        _at_each_line(PLACES[place], count_one)

    Children(config, count, first=begin).succeed()
    return int(told.read_text())


def _at_each_line(files, note):
    """Call note at every line of these files from now on, in this process."""

    def in_frame(frame, event, argument):
        if event == "line":
            note()
        return in_frame

    def at_call(frame, event, argument):
        return in_frame if frame.f_code.co_filename in files else None

    sys.settrace(at_call)
