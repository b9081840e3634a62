"""How many processes translate a stream: chosen by timing its first lines, whose translations are written like any.

The lines are cut into small windows, which are translated in turns with all threads and with one. Threads inside an
operation wait for each other, processes do not: unless the threads are nearly as many times faster as there are, a
process of one thread on each core is the better use of the cores.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TypeVar

Result = TypeVar("Result")

LINES = 32  # of a window that is timed
_LEAST = 4 * LINES  # lines that are needed to tell: two windows each way, the first of them to get warm
_ENOUGH = 1.0  # seconds each way, after which the difference is clear
_WORTH = 15.0  # seconds of work for which it pays to start other processes, which takes them some
_NEARLY = 0.9  # of the speed that the cores have together


@dataclass(frozen=True)
class Plan:
    """Processes, the threads of each (None: as many as torch likes), and why, if that was found out by a trial."""

    processes: int
    threads: int | None
    reason: str | None = None

    def describe(self) -> str:
        """Say it in a line."""
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        who = (
            f"1 process of {threads}"
            if self.processes == 1
            else f"{self.processes} processes of {threads} share the lines"
        )
        return f"{who} ({self.reason})" if self.reason else who


class _Times:
    """How fast windows were translated in one way; the first of several is left out, as it is slower."""

    def __init__(self) -> None:
        self._windows: list[tuple[int, float]] = []

    def add(self, characters: int, seconds: float) -> None:
        self._windows.append((max(1, characters), seconds))

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self._windows[1:])

    @property
    def speed(self) -> float:
        """Characters a second."""
        counted = self._windows[1:] or self._windows
        return sum(characters for characters, _ in counted) / max(1e-9, sum(seconds for _, seconds in counted))


class Trial:
    """A trial on the first texts of a stream; when `run` is over, `choice` is made and `done` texts are translated."""

    def __init__(self, texts: Sequence[str], characters: int, threads: int) -> None:
        """Try `threads` threads against one, on a stream of about `characters`, or of the texts at least."""
        self.done = 0
        self.choice = Plan(1, threads)
        self._texts = texts
        self._left = max(characters, sum(map(len, texts)))
        self._threads = threads
        self._times = {threads: _Times(), 1: _Times()}

    def run(self, do: Callable[[int, Sequence[str]], Result], use_threads: Callable[[int], None]) -> Iterator[Result]:
        """Yield `do(first, texts)` for some windows, of which `first` texts went before; for none if there are few."""
        if len(self._texts) < _LEAST:
            return
        for threads in cycle((self._threads, 1)):
            window = self._texts[self.done : self.done + LINES]
            use_threads(threads)
            start = time.perf_counter()
            result = do(self.done, window)
            seconds = time.perf_counter() - start
            characters = sum(map(len, window))
            self._times[threads].add(characters, seconds)
            self._left -= characters
            self.done += len(window)
            over = self._is_over()
            if over:
                use_threads(self.choice.threads or self._threads)
            yield result
            if over:
                return

    def _is_over(self) -> bool:
        """Say whether nothing more is to be learned, and choose if so."""
        together, alone = self._times[self._threads], self._times[1]
        if self._left / together.speed < _WORTH:
            return True
        if min(together.seconds, alone.seconds) < _ENOUGH and self.done + LINES <= len(self._texts):
            return False
        gain = together.speed / alone.speed
        told = f"{self._threads} threads in one process are {gain:.2f} times as fast as one"
        threads_win = gain > _NEARLY * self._threads
        self.choice = Plan(1, self._threads, told) if threads_win else Plan(self._threads, 1, told)
        return True
