"""What training writes down: `log.jsonl`, and TensorBoard's files if they are wanted."""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from regard.errors import MissingExtraError
from regard.files import explain_disk_errors, write_file
from regard.training.step import StepReport


@dataclass
class Interval:
    """Sums since the last line of the log, over the steps that changed the weights."""

    steps: int = 0
    objective: float = 0.0
    smoothed: float = 0.0
    plain: float = 0.0
    tokens: int = 0
    norm: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def add(self, report: StepReport) -> None:
        """Count a step, unless it was skipped: one that is not a number would hide all the others."""
        if not report.is_finite:
            return
        self.steps += 1
        self.objective += report.objective
        self.smoothed += report.smoothed
        self.plain += report.plain
        self.tokens += report.tokens
        self.norm += report.norm

    def facts(self) -> dict[str, float]:
        """Return means a token and a step (NaN without a step), and the speed in real target tokens a second."""
        steps, tokens = self.steps or math.nan, self.tokens or math.nan
        return {
            "objective": self.objective / tokens,
            "loss": self.smoothed / tokens,
            "perplexity": math.exp(min(self.plain / tokens, 700)),
            "gradient_norm": self.norm / steps,
            "tokens_per_second": self.tokens / max(time.monotonic() - self.started, 1e-9),
        }


class Log:
    """A JSON object for each event, appended and flushed at once; and the same to TensorBoard if that is wanted."""

    def __init__(self, path: Path, from_step: int, board_folder: Path | None = None) -> None:
        # What a killed run logged past the checkpoint that this one goes on from, is logged again.
        kept = [line for line, facts in read_log(path) if _step(facts) <= from_step]
        write_file(path, "".join(kept))
        self._board = None if board_folder is None else _open_board(board_folder, from_step)
        self._path = path
        self._file = path.open("ab", buffering=0)  # a disk that is full says so at once, and not again at the end

    def write(self, event: str, facts: Mapping[str, Any]) -> None:
        """Append what happened at a step; a number that is none, which JSON does not have, is null.

        Raises `DiskError` if the disk does not take it.
        """
        values = {name: None if _is_no_number(value) else value for name, value in facts.items()}
        line = f"{json.dumps({'event': event, **values}, allow_nan=False, ensure_ascii=False)}\n".encode()
        with explain_disk_errors(self._path, len(line)):
            while line:
                line = line[self._file.write(line) :]
        if self._board is not None:
            for name, value in values.items():
                if name != "step" and isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, facts["step"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a log's complete lines with what they say; a line cut off by a kill is passed over."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]:
        try:
            facts = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict):
            yield f"{line}\n", facts


def require_tensorboard() -> None:
    """Raise `MissingExtraError` if TensorBoard's package is not installed."""
    if find_spec("tensorboard") is None:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard")


def _step(facts: Mapping[str, Any]) -> int:
    step = facts.get("step", 0)
    return step if isinstance(step, int) else 0


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _open_board(folder: Path, from_step: int) -> Any:
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=from_step + 1)
