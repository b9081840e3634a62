"""The other processes of this machine: started by the first one, told apart by their rank, and gone when it is gone.

A helper is a plain child process. Its standard input is a lifeline: the first process holds the other end and never
writes to it after the start, so that the system itself tells helpers when the first process is no more, even when that
was killed. Its standard output is for its last words, by which the first process says why a helper failed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from regard.errors import RegardError, TrainingError, UserError
from regard.system import die_with_parent
from regard.training.distributed import MEETING, LostOthersError, World, joined
from regard.training.stop import TrainingStopped

Work = Callable[..., None]
"""What a helper does, called with its `World` and the arguments; a function of a module, which helpers import."""

_HOST = "127.0.0.1"
_LAST_WORDS = 10.0  # seconds in which a helper that failed has ended

# A line of JSON says where to import from and what to do. (multiprocessing would run the caller's script again.)
_START = (
    "import json, sys; task = json.loads(sys.stdin.buffer.readline()); sys.path[:] = task.pop('path'); "
    "from regard.training.helpers import do_task; do_task(**task)"
)

_FAILURES = {kind.__name__: kind for kind in (LostOthersError, UserError, TrainingError)}


@contextmanager
def helped(processes: int, work: Work, arguments: tuple[Any, ...]) -> Iterator[World]:
    """Be the first of `processes` processes while the block runs; the others run `work(world, *arguments)`.

    Arguments are what JSON can hold. Raises what a helper raised, if that is ours, or `TrainingError` for one that was
    lost.
    """
    if processes == 1:
        yield World()
        return
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False, timeout=MEETING)
    helpers: list[_Helper] = []
    try:
        for rank in range(1, processes):
            task = {"work": f"{work.__module__}:{work.__name__}", "port": store.port, "arguments": arguments}
            helpers.append(_Helper(rank, processes, task))
        _await(helpers, store)
        with joined(0, processes, store) as world:
            yield world
    except LostOthersError as error:
        raise _explain(helpers, error) from error
    finally:
        for helper in helpers:
            helper.dismiss()


# ---- seen from the first process -------------------------------------------------------------------------------------


class _Helper:
    """A helper's process."""

    def __init__(self, rank: int, size: int, task: dict[str, Any]) -> None:
        self.rank, self.size = rank, size
        self._last_words: bytes | None = None
        line = json.dumps({"path": sys.path, "rank": rank, "size": size, **task})
        # A session of its own: Ctrl-C in the terminal is for the first process, which tells the others.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdin
        with suppress(BrokenPipeError):  # it has ended already, which is found out soon
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    @property
    def has_ended(self) -> bool:
        """Say whether the process is no more."""
        return self.process.poll() is not None

    def failure(self) -> RegardError | None:
        """Return why the helper has ended, once it has; None if it only lost others."""
        assert self.process.stdout
        if self._last_words is None:
            self._last_words = self.process.stdout.read()
        name = f"process {self.rank + 1} of {self.size}"
        if self._last_words:
            kind, message = json.loads(self._last_words)
            return None if kind == LostOthersError.__name__ else _FAILURES[kind](f"{name}: {message}")
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        hint = ", as systems do when memory runs out" if -code == signal.SIGKILL else ""
        return TrainingError(f"{name} {how}{hint}; run the same command again to go on from the last checkpoint")

    def dismiss(self) -> None:
        """Let go of the lifeline, and see to it that the process ends."""
        assert self.process.stdin
        assert self.process.stdout
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def _await(helpers: Sequence[_Helper], store: Store) -> None:
    """Wait until all helpers are there, however long that takes, unless one of them ends."""
    while store.add("here", 0) < len(helpers):
        if any(helper.has_ended for helper in helpers):
            raise LostOthersError("a helper ended before it was there")
        time.sleep(0.02)


def _explain(helpers: Sequence[_Helper], error: LostOthersError) -> RegardError:
    """Return what ended the first of the helpers that failed by itself."""
    deadline = time.monotonic() + _LAST_WORDS
    while time.monotonic() < deadline:
        ended = [helper for helper in helpers if helper.has_ended]
        failures = [failure for helper in ended if (failure := helper.failure()) is not None]
        if failures:
            return failures[0]
        if len(ended) == len(helpers):
            break
        time.sleep(0.02)
    return error


# ---- seen from a helper ----------------------------------------------------------------------------------------------


def do_task(work: str, rank: int, size: int, port: int, arguments: Sequence[Any]) -> None:
    """Do a helper's work, `module:function`, and leave last words if it fails."""
    for one in (signal.SIGINT, signal.SIGTERM):  # the first process decides, also when all are sent the signal
        signal.signal(one, signal.SIG_IGN)
    die_with_parent()
    threading.Thread(target=_end_with_first, daemon=True).start()
    last_words = os.dup(1)
    os.dup2(2, 1)
    try:
        store = TCPStore(_HOST, port, is_master=False, timeout=MEETING)
        store.add("here", 1)
        with joined(rank, size, store) as world:
            with suppress(TrainingStopped):  # the first process says so
                module, _, function = work.partition(":")
                getattr(import_module(module), function)(world, *arguments)
            threading.Event().wait()  # one that is slower may still need this one; the first knows when all are done
    except tuple(_FAILURES.values()) as error:
        kind = next(name for name, one in _FAILURES.items() if isinstance(error, one))
        os.write(last_words, json.dumps([kind, str(error)]).encode())
    except BaseException:
        os.write(last_words, json.dumps([TrainingError.__name__, traceback.format_exc()]).encode())
    os._exit(0)


def _end_with_first() -> None:
    """End this process when the first one lets go of the lifeline or is no more."""
    os.read(0, 1)
    os._exit(0)
