"""Stopping from outside."""

import os
import signal
import threading

import pytest

from regard.training.stop import TrainingStopped, stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_request(number):
    with stop_on_signal() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        assert stop.signal_number == number


def test_a_second_ctrl_c_ends_the_process_as_usual():
    with pytest.raises(KeyboardInterrupt), stop_on_signal():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_afterwards_signals_do_what_they_did_before():
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with stop_on_signal():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    with stop_on_signal():
        os.kill(os.getpid(), signal.SIGTERM)
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop.requested
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_of_the_main_thread_signals_are_left_alone():
    found = []

    def work():
        with stop_on_signal() as stop:
            found.append((stop.requested, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGTERM))]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 143)])
def test_the_message_says_how_to_go_on_and_the_exit_code_is_the_shells(tmp_path, number, code):
    stopped = TrainingStopped(tmp_path, 1234, number)
    assert stopped.exit_code == code
    assert str(stopped) == f"stopped after step 1,234; run the same command again to go on ({tmp_path})"
