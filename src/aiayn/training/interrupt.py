"""Ctrl-C during training ends it between two steps, with everything saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Whether somebody asked the training to stop."""

    made: bool = False


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Take note of the first Ctrl-C or SIGTERM; let a second one through.

    Python delivers signals to the main thread alone; in any other, nothing is caught.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        # None: not Python's own, as inside of R, and Python could not put it back.
        if (handler := signal.getsignal(number)) is not None
    }

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        request.made = True
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        restore()
