"""The memory of a process and all that it started."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_PROC = Path("/proc")


class PeakMemory:
    """Watches a process and its descendants while a block runs; `peak` is the most they held together, in bytes.

    What counts is the proportional set size (PSS): resident memory, with a page that N processes share counted as one
    Nth in each, so that the sum over processes counts it once.
    """

    def __init__(self, process: int, interval: float = 0.1) -> None:
        self.peak = 0
        self._process = process
        self._interval = interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.peak = max(self.peak, sum(map(proportional_set_size, family(self._process))))
            self._over.wait(self._interval)


def family(process: int) -> list[int]:
    """Return a process and its descendants."""
    parents = {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; the parent is the second field after it.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # gone in the meantime
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def proportional_set_size(process: int) -> int:
    """Return a process's PSS in bytes; 0 if it is gone."""
    try:
        lines = (_PROC / str(process) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return int(lines.partition("\nPss:")[2].split()[0]) * 1024 if "\nPss:" in lines else 0
