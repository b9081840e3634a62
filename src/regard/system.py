"""What the operating system tells: cores and memory. Needs no torch."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_UNLIMITED = 1 << 62
_CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def die_with_parent() -> None:
    """Let Linux kill this process when its parent is no more: one that is stopped can't see to that by itself."""
    if sys.platform == "linux":
        death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def memory_used() -> int:
    """Return the resident memory of this process in bytes; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_peak() -> int:
    """Return the most resident memory that this process has had, in bytes; 0 where the system does not tell."""
    try:
        return 1024 * _kilobytes(Path("/proc/self/status"), "VmHWM")
    except (OSError, ValueError):
        return 0


def memory_available() -> int:
    """Return the bytes that can be had before the system or a container's limit ends somebody; a lot if none tells."""
    found = [_UNLIMITED]
    with suppress(OSError, ValueError):
        found.append(1024 * _kilobytes(Path("/proc/meminfo"), "MemAvailable"))
    with suppress(OSError, ValueError):
        own = Path("/proc/self/cgroup").read_text(encoding="ascii").rpartition("0::/")[2].strip()
        folder = _CGROUPS / own
        found += [_left_in_group(one) for one in (folder, *folder.parents) if one.is_relative_to(_CGROUPS)]
    return min(found)


def _left_in_group(folder: Path) -> int:
    """Return what a control group of Linux may still take; its file cache does not count."""
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return _UNLIMITED
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return _UNLIMITED
    cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    return max(0, int(limit) - used + cached)


def _kilobytes(path: Path, name: str) -> int:
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ValueError(name)


def memory_total() -> int:
    """Return the machine's memory in bytes; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 0
