"""Who is told to stop, and what is left alone."""

import signal
import threading

import pytest

from aiayn.training.interrupt import stop_request

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="Python delivers signals to the main thread alone",
)
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_the_first_signal_is_noted_and_the_handlers_come_back(number):
    before = [signal.getsignal(one) for one in SIGNALS]
    with stop_request() as request:
        assert not request.made
        assert all(signal.getsignal(one) not in before for one in SIGNALS)
        signal.raise_signal(number)
        assert request.made
        assert [signal.getsignal(one) for one in SIGNALS] == before
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_a_handler_that_python_cannot_put_back_is_left_alone(monkeypatch):
    """Where Python runs inside of another program, that one may have set it."""
    taken = []
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda *words: taken.append(words))
    with stop_request() as request:
        assert not request.made
    assert taken == []
