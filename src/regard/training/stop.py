"""Stopping a training from outside: Ctrl-C and SIGTERM let the step end and a checkpoint be written."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from regard.errors import RegardError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopRequest:
    """Whether somebody has asked the training to stop, and by which signal."""

    signal_number: int | None = None

    @property
    def requested(self) -> bool:
        """Say whether to stop after this step."""
        return self.signal_number is not None


class TrainingStopped(RegardError):  # noqa: N818 (not an error: somebody wanted it)
    """A training was asked to stop, and has written a checkpoint."""

    def __init__(self, folder: Path, step: int, signal_number: int | None) -> None:
        self.exit_code = 128 + (signal_number or signal.SIGTERM)
        super().__init__(f"stopped after step {step:,}; run the same command again to go on ({folder})")


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C or SIGTERM into a request; a second one ends the process as usual.

    A signal that is ignored, as a shell arranges for what it runs in the background, stays ignored.
    """
    request = StopRequest()
    before = {one: signal.getsignal(one) for one in _SIGNALS}
    ours = [one for one in _SIGNALS if before[one] != signal.SIG_IGN]

    def ask(number: int, frame: FrameType | None) -> None:
        request.signal_number = number
        give_back()

    def give_back() -> None:
        for one in ours:
            signal.signal(one, before[one])

    if threading.current_thread() is not threading.main_thread():  # only that may do this; its owner handles signals
        yield request
        return
    try:
        for one in ours:
            signal.signal(one, ask)
        yield request
    finally:
        give_back()
