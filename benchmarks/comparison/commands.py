"""Running a toolkit's own command in a child."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from comparison.memory import PeakMemory


class CommandError(Exception):
    """A toolkit's command failed."""


def run(command: Sequence[object], variables: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it said on both channels; raises `CommandError`."""
    process = _start(command, variables)
    return _finish(process)


def peak_memory(command: Sequence[object], variables: Mapping[str, str] | None = None) -> int:
    """Run a command and return the most memory, in bytes, that it and what it started held."""
    process = _start(command, variables)
    with PeakMemory(process.pid) as memory:
        _finish(process)
    return memory.peak


def script(name: str) -> Path:
    """Return the path of a command of this environment."""
    return Path(sys.executable).with_name(name)


def _start(command: Sequence[object], variables: Mapping[str, str] | None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    with process:
        for line in process.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            said.append(line)
    if process.returncode:
        raise CommandError(f"{process.args}: exit code {process.returncode}: {''.join(said[-1:]).strip()}")
    return "".join(said)
