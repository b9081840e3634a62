"""Time and memory of a process, as this process sees itself."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

_PROC = Path("/proc/self")


def typical_seconds(work: Callable[[], object], quick: bool) -> float:
    """Do some work once to warm up, then several times; return the median of its seconds."""
    work()
    taken: list[float] = []
    while len(taken) < (1 if quick else 3) or (sum(taken) < 1 and len(taken) < 9 and not quick):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return median(taken)


def status(name: str) -> int:
    """Return one of the sizes that Linux knows of this process, in bytes."""
    return int((_PROC / "status").read_text().partition(f"{name}:")[2].split()[0]) * 1024


def resident() -> int:
    """Return the resident memory in bytes."""
    return status("VmRSS")


def forget_peak() -> None:
    """Let the peak of resident memory begin anew, at what is resident now."""
    (_PROC / "clear_refs").write_text("5")


def peak() -> int:
    """Return the most resident memory since `forget_peak`, in bytes."""
    return status("VmHWM")
