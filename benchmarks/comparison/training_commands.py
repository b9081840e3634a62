"""Training by a toolkit's own command: what eole, OpenNMT-py and Sockeye have in common here."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.commands import peak_memory, run
from comparison.job import Engine, Facts, Job, Setting

_REPORT = re.compile(r"Step\s+(\d+)/.*bsz:\s*[\d.]+/\s*([\d.]+)/.*?[\d.]+/\s*([\d.]+) tok/s")


@dataclass(frozen=True)
class Length:
    """How many steps to take; the first `warmup` are not measured, and a report comes every `warmup` steps."""

    warmup: int
    steps: int

    @property
    def total(self) -> int:
        """All steps."""
        return self.warmup + self.steps


Command = Callable[[Path, Length], Sequence[object]]
"""Writes what a command needs into a folder, and returns the command."""


def training(job: Job, name: str, prepare: Command, read_speed: Callable[[str, Length], Facts]) -> Engine:
    """Run a toolkit's command anew for each measurement, in one process with so many threads as the setting says."""
    folder = job.material(f"{name}-{job.kind}")

    def measure(setting: Setting) -> Facts:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        length = Length(*job.steps(sample=setting.get("sample", False)))
        command = prepare(folder, length)
        variables = {"OMP_NUM_THREADS": str(setting["threads"]), "MKL_NUM_THREADS": str(setting["threads"])}
        if job.kind == "memory":
            return {"figure": peak_memory(command, variables)}
        return read_speed(run(command, variables), length)

    return Engine(measure, {"threads": [2] if job.kind == "memory" else [2, 1]})


def write_vocabulary(job: Job, path: Path, specials: int = 4) -> None:
    """Write a vocabulary, a token a line: as many as the model has, less the toolkit's own special tokens.

    The ids below the letters are bytes that never come; here they only fill the matrix up to its size.
    """
    letters = job.read("letters.json")
    fill = [f"byte{number}" for number in range(job.shape.vocabulary - specials - len(letters))]
    path.write_text("".join(f"{token}\n" for token in [*letters, *fill]))


def write_settings(path: Path, settings: dict[str, Any]) -> None:
    """Write settings as JSON, which every reader of YAML understands."""
    path.write_text(json.dumps(settings, indent=1))


def read_reports(said: str, length: Length) -> Facts:
    """Return the speed that OpenNMT's reports tell, those of the warm-up left out.

    A report says how many real target tokens a batch had on average and how many a second were computed since the last
    report, so that its tokens and seconds can be added to those of others.
    """
    reports = [(int(step), float(size), float(speed)) for step, size, speed in _REPORT.findall(said)]
    measured = [(size, speed) for step, size, speed in reports if step > length.warmup]
    if len(measured) != length.steps // length.warmup:
        raise ValueError(
            f"{len(measured)} reports of speed after the warm-up, expected {length.steps // length.warmup}"
        )
    tokens = sum(size for size, _ in measured)
    seconds = sum(size / speed for size, speed in measured)
    return {"figure": tokens / seconds, "tokens_a_step": tokens / len(measured)}
