"""What training writes down: `log.jsonl`, and TensorBoard's files if they are wanted."""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from regard.errors import MissingExtraError
from regard.files import write_file
from regard.training.step import StepReport


@dataclass
class Interval:
    """Sums since the last line of the log."""

    steps: int = 0
    smoothed: float = 0.0
    plain: float = 0.0
    tokens: int = 0
    norm: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def add(self, report: StepReport) -> None:
        """Count a step."""
        self.steps += 1
        self.smoothed += report.smoothed
        self.plain += report.plain
        self.tokens += report.tokens
        self.norm += report.norm

    def facts(self) -> dict[str, float]:
        """Return means a token and a step, and the speed in real target tokens a second."""
        tokens = max(self.tokens, 1)
        return {
            "loss": self.smoothed / tokens,
            "perplexity": math.exp(min(self.plain / tokens, 700)),
            "gradient_norm": self.norm / max(self.steps, 1),
            "tokens_per_second": self.tokens / max(time.monotonic() - self.started, 1e-9),
        }


class Log:
    """A JSON object for each event, appended and flushed at once; and the same to TensorBoard if that is wanted."""

    def __init__(self, path: Path, from_step: int, board_folder: Path | None = None) -> None:
        # What a killed run logged past the checkpoint that this one goes on from, is logged again.
        kept = [line for line, facts in read_log(path) if facts.get("step", 0) <= from_step]
        write_file(path, "".join(kept))
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._board = None if board_folder is None else _open_board(board_folder, from_step)

    def write(self, event: str, facts: Mapping[str, Any]) -> None:
        """Append what happened at a step."""
        self._file.write(json.dumps({"event": event, **facts}) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in facts.items():
                if name != "step" and isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, facts["step"])

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a log's complete lines with what they say; a line cut off by a kill is passed over."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict):
            yield line, facts


def _open_board(folder: Path, from_step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
    return SummaryWriter(str(folder), purge_step=from_step + 1)
