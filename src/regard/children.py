"""Child processes on this machine that work with the process that started them, and are gone when it is gone.

A child's standard input is a lifeline: its parent, the first of the processes, holds the other end and never writes to
it after the start, so that the system itself tells children when the parent is no more, even when that was killed. Its
standard output is for its last words, by which the parent says why a child failed. Everything else goes through a
store that the parent keeps.
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
from datetime import timedelta
from importlib import import_module
from typing import Any

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from regard.errors import LostOthersError, ProcessError, RegardError, UserError

MEETING = timedelta(minutes=2)  # the longest way from being there to being connected

Work = Callable[..., None]
"""What a child does, called with its rank, the number of all processes, their store and the arguments; a function of a
module, which children import."""

_HOST = "127.0.0.1"
_LAST_WORDS = 10.0  # seconds in which a child that failed has ended

# A line of JSON says where to import from and what to do. (multiprocessing would run the caller's script again.)
_START = (
    "import json, sys; task = json.loads(sys.stdin.buffer.readline()); sys.path[:] = task.pop('path'); "
    "from regard.system import die_with_parent; die_with_parent(); "  # before torch, which takes seconds to import
    "from regard.children import do_task; do_task(**task)"
)

_FAILURES = {kind.__name__: kind for kind in (LostOthersError, UserError, ProcessError)}


# ---- seen from the parent --------------------------------------------------------------------------------------------


@contextmanager
def start_children(processes: int, work: Work, arguments: Sequence[Any], advice: str = "") -> Iterator["Children"]:
    """Be the first of `processes` processes while the block runs; the others run `work(rank, size, store, *arguments)`.

    Arguments are what JSON can hold; `advice` is told with a child that was lost. A `LostOthersError` in the block
    becomes what a child raised, if that is a `UserError`, or a `ProcessError`.
    """
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False, timeout=MEETING)
    children = Children(store, advice)
    try:
        for rank in range(1, processes):
            task = {"work": f"{work.__module__}:{work.__name__}", "port": store.port, "arguments": arguments}
            children.add(_Child(rank, processes, task))
        yield children
    except LostOthersError as error:
        raise children.explain(error) from error
    finally:
        children.dismiss()


class Children:
    """The children of this process, and the store by which all talk."""

    def __init__(self, store: Store, advice: str) -> None:
        self.store = store
        self._advice = advice
        self._all: list[_Child] = []

    def add(self, child: "_Child") -> None:
        """Count a child as one of these."""
        self._all.append(child)

    def check(self) -> None:
        """Raise `LostOthersError` if a child has ended, which none does by itself."""
        if any(child.has_ended for child in self._all):
            raise LostOthersError("a child process has ended")

    def await_all(self) -> None:
        """Wait until all are there, however long that takes, unless one of them ends."""
        while self.store.add("here", 0) < len(self._all):
            self.check()
            time.sleep(0.02)

    def explain(self, error: LostOthersError) -> RegardError:
        """Return what ended the first of those that failed by themselves."""
        deadline = time.monotonic() + _LAST_WORDS
        while time.monotonic() < deadline:
            ended = [child for child in self._all if child.has_ended]
            failures = [failure for child in ended if (failure := child.failure(self._advice)) is not None]
            if failures:
                return failures[0]
            if len(ended) == len(self._all):
                break
            time.sleep(0.02)
        return error

    def dismiss(self) -> None:
        """See to it that all end."""
        for child in self._all:
            child.dismiss()


class _Child:
    """A child's process."""

    def __init__(self, rank: int, size: int, task: dict[str, Any]) -> None:
        self.rank, self.size = rank, size
        self._last_words: bytes | None = None
        line = json.dumps({"path": sys.path, "rank": rank, "size": size, **task})
        # A session of its own: Ctrl-C in the terminal is for the parent, which tells the others.
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

    def failure(self, advice: str) -> RegardError | None:
        """Return why the child has ended, once it has; None if it only lost others."""
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
        return ProcessError(f"{name} {how}{hint}{advice and f'; {advice}'}")

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


# ---- seen from a child -----------------------------------------------------------------------------------------------


def do_task(work: str, rank: int, size: int, port: int, arguments: Sequence[Any]) -> None:
    """Do a child's work, `module:function`, wait for the parent to end, and leave last words if it fails."""
    for one in (signal.SIGINT, signal.SIGTERM):  # the parent decides, also when all are sent the signal
        signal.signal(one, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    last_words = os.dup(1)
    os.dup2(2, 1)
    try:
        store = TCPStore(_HOST, port, is_master=False, timeout=MEETING)
        store.add("here", 1)
        import_function(work)(rank, size, store, *arguments)
        threading.Event().wait()  # the parent knows when all are done
    except RegardError as error:
        kind = next((name for name, one in _FAILURES.items() if isinstance(error, one)), ProcessError.__name__)
        os.write(last_words, json.dumps([kind, str(error)]).encode())
    except BaseException:
        os.write(last_words, json.dumps([ProcessError.__name__, traceback.format_exc()]).encode())
    os._exit(0)


def import_function(name: str) -> Callable[..., Any]:
    """Return the function of a name such as `module:function`."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _end_with_parent() -> None:
    """End this process when the parent lets go of the lifeline or is no more."""
    os.read(0, 1)
    os._exit(0)
