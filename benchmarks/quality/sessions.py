"""A training by its command, timed: all the sessions that a run took, however each of them ended."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from comparison.comparing import commit, describe_machine

from quality.plan import ResultError
from quality.standards import ROOT
from regard.files import write_json

FINISHED = Path("model") / "model.json"
_SESSIONS = "sessions.json"
# `regard`, but not without the process that times it.
_START = "from regard.system import die_with_parent; die_with_parent(); from regard.cli.main import main; main()"
_HEARTBEAT = 5.0  # seconds; a killed session counts up to its last beat


def train(command: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Train in `folder`, or go on with it, and return its sessions: when, how long, with which code, where.

    Raises `ResultError` if the training does not end with a model, or if a part of its time is not known.
    """
    earlier = read_sessions(folder)
    was_finished = (folder / FINISHED).exists()
    if not earlier and (was_finished or any(folder.glob("checkpoints/step-*"))):
        raise ResultError(f"{folder}: trained without this command, so its time is not known; choose another --runs")
    session = {"began": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit(), "machine": _machine()}
    started = time.monotonic()
    with _started(command) as process:
        while True:
            code = _wait(process)
            sessions = [*earlier, {**session, "seconds": round(time.monotonic() - started, 1)}]
            # A folder without settings is not the run's yet, and must stay empty for it.
            if not was_finished and (folder / "settings.toml").exists():
                write_json(folder / _SESSIONS, {"sessions": sessions})
            if code is not None:
                break
    if code or not (folder / FINISHED).exists():
        raise ResultError(f"{folder}: training ended with exit code {code}; run the same command again to go on")
    return earlier if was_finished else sessions


def read_sessions(folder: Path) -> list[dict[str, Any]]:
    """Return the sessions that a run has had so far."""
    path = folder / _SESSIONS
    return list(json.loads(path.read_text(encoding="utf-8"))["sessions"]) if path.exists() else []


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start one of regard's commands; who stops this process stops that one, and waits for its checkpoint."""
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *command[1:]],
        cwd=ROOT,
        process_group=0,  # so that Ctrl-C reaches it once, through this process: a second one would kill it
    )

    def forward(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {one: signal.signal(one, forward) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        with process:
            yield process
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_HEARTBEAT)
    except subprocess.TimeoutExpired:
        return None


def _commit() -> str:
    return commit(besides=("benchmarks/quality.json", "docs"))  # which change with every result


def _machine() -> str:
    machine = describe_machine()
    return f"{machine['processor']}, {machine['cores']} cores"
