"""Stopping a training from outside: Ctrl-C and SIGTERM let the step end and a checkpoint be written."""

import signal
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


def ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the first one; it tells the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C or SIGTERM into a request; a second one ends the process as usual."""
    request = StopRequest()

    def ask(number: int, frame: FrameType | None) -> None:
        request.signal_number = number
        for one in _SIGNALS:
            signal.signal(one, before[one])

    before = {}
    try:
        for one in _SIGNALS:
            before[one] = signal.signal(one, ask)
    except ValueError:  # only a process's main thread may do this; elsewhere the caller handles signals
        yield request
        return
    try:
        yield request
    finally:
        for one in _SIGNALS:
            signal.signal(one, before[one])
