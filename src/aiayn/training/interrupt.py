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
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def note(number: int, frame: FrameType | None) -> None:
        request.made = True
        for each in signals:
            signal.signal(each, before[each])

    for number in signals:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number in signals:
            signal.signal(number, before[number])
