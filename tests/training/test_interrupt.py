"""Who is told to stop, and what is left alone."""

import signal
import threading

import pytest

from aiayn.training.interrupt import stop_request


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="Python delivers signals to the main thread alone",
)
def test_the_first_signal_is_noted_and_the_handlers_come_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_request() as request:
        assert not request.made
        signal.raise_signal(signal.SIGINT)
        assert request.made
        assert signal.getsignal(signal.SIGTERM) == before[1]
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert after == before


def test_a_handler_that_python_cannot_put_back_is_left_alone(monkeypatch):
    """Where Python runs inside of another program, that one may have set it."""
    taken = []
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda *words: taken.append(words))
    with stop_request() as request:
        assert not request.made
    assert taken == []
