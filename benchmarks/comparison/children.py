"""A toolkit at work in a child process of its own, seen from the command that compares."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from comparison.environments import clean_environment
from comparison.job import Facts, Job, Setting

_HERE = Path(__file__).parent.parent


class ChildError(Exception):
    """A child has ended without an answer; the text is the last line it wrote."""


class Child:
    """A child process with one job."""

    def __init__(self, python: Path, module: str, job: Job, log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-m", module, job.to_json()],
                env=_environment(module),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.axes: dict[str, list[Any]] = self._answer()["axes"]

    def measure(self, setting: Setting) -> Facts:
        """Let the child do its work once."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # if the child is gone, the answer, which will not come, says why
            print(json.dumps(setting), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Facts:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            said = self._log.read_text(errors="replace").strip().splitlines() or [""]
            raise ChildError(f"exit code {code}: {said[-1]} (all of it: {self._log})")
        answer: Facts = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if error is not None:
            self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


def _environment(module: str) -> dict[str, str]:
    """Let a child find these files; regard's own also finds regard where this process does."""
    variables = clean_environment()
    paths = [str(_HERE)]
    if module == "comparison.peers.regard" and "PYTHONPATH" in os.environ:
        paths.append(os.environ["PYTHONPATH"])
    return {**variables, "PYTHONPATH": os.pathsep.join(paths), "TOKENIZERS_PARALLELISM": "false"}
