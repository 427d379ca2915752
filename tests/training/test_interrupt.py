"""Ctrl-C and SIGTERM: the first is noted, the second ends the training."""

import signal
import threading

import pytest

from aiayn.training.train import _stop_request

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="Python delivers signals to the main thread only",
)
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_the_first_signal_is_noted_and_the_second_raises(number):
    before = [signal.getsignal(one) for one in SIGNALS]
    with _stop_request() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_in_another_thread_no_signal_is_handled():
    """There, Python would refuse."""
    noted = []

    def wait():
        with _stop_request() as stop:
            noted.append(stop.is_set())

    before = [signal.getsignal(one) for one in SIGNALS]
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert noted == [False]
    assert [signal.getsignal(one) for one in SIGNALS] == before
