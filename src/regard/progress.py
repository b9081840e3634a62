"""The one display of long work: a bar in a terminal, plain lines elsewhere, JSON lines on request.

Everything goes to standard error, so that standard output stays free for results.
"""

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TextIO

Mode = Literal["auto", "terminal", "plain", "json", "quiet"]
Fact = str | int | float | None


@dataclass
class Job:
    """A piece of long work that counts what is done."""

    title: str
    total: int | None
    unit: str
    display: "Display"
    done: int = 0  # what an earlier run did is done as well, but says nothing about this one's speed
    note: str = ""
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._done_before = self.done

    def advance(self, count: int = 1, note: str | None = None) -> None:
        """Count `count` more units as done and, if given, replace the note behind the bar."""
        self.done += count
        if note is not None:
            self.note = note
        self.display.refresh(self)

    @property
    def rate(self) -> float:
        """Units a second since the job began."""
        return (self.done - self._done_before) / max(time.monotonic() - self.started, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time left, if the total is known and something has been done."""
        if self.total is None or self.done == self._done_before:
            return None
        return max(0, self.total - self.done) / self.rate


class Display(ABC):
    """What long work shows of itself; see `open_display`."""

    @abstractmethod
    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        """Show a line; a display for programs shows `facts` with it."""

    @abstractmethod
    def refresh(self, job: Job) -> None:
        """Show how far a job is."""

    @contextmanager
    def job(self, title: str, total: int | None = None, unit: str = "lines", done: int = 0) -> Iterator[Job]:
        """Show a job while the block runs; `done` is what an earlier run has done of it."""
        job = Job(title, total, unit, self, done)
        self.begin(job)
        try:
            yield job
        finally:
            self.end(job)

    @abstractmethod
    def begin(self, job: Job) -> None:
        """Show that a job begins."""

    @abstractmethod
    def end(self, job: Job) -> None:
        """Show that a job has ended, well or not."""


class QuietDisplay(Display):
    """Shows nothing."""

    def begin(self, job: Job) -> None:
        """Keep silent."""

    def end(self, job: Job) -> None:
        """Keep silent."""

    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        """Keep silent."""

    def refresh(self, job: Job) -> None:
        """Keep silent."""


class PlainDisplay(Display):
    """Lines of text: one where a job begins (a sign of life), one every `interval` seconds, one at its end."""

    def __init__(self, stream: TextIO, interval: float = 10.0) -> None:
        self.stream = stream
        self.interval = interval
        self._shown: dict[int, float] = {}

    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        """Write the line."""
        print(text, file=self.stream, flush=True)

    def begin(self, job: Job) -> None:
        """Write the title."""
        self._shown[id(job)] = time.monotonic()
        amount = "" if job.total is None else f" ({job.total:,} {job.unit})"
        self.say(f"{job.title}{amount} …")

    def refresh(self, job: Job) -> None:
        """Write a line if the last one is old enough."""
        now = time.monotonic()
        if now - self._shown[id(job)] >= self.interval:
            self._shown[id(job)] = now
            self.say(f"{job.title}: {describe(job)}")

    def end(self, job: Job) -> None:
        """Write what was done in how long, if the job was long enough to have shown itself."""
        del self._shown[id(job)]
        if time.monotonic() - job.started >= self.interval:
            self.say(f"{job.title}: {job.done:,} {job.unit} in {duration(time.monotonic() - job.started)}")


class JsonDisplay(Display):
    """One JSON object a line, for programs that start regard."""

    def __init__(self, stream: TextIO, interval: float = 1.0) -> None:
        self.stream = stream
        self.interval = interval
        self._shown: dict[int, float] = {}

    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        """Write the text and its facts."""
        self._write({"event": "message", "text": text, **(facts or {})})

    def begin(self, job: Job) -> None:
        """Write that the job begins."""
        self._shown[id(job)] = time.monotonic()
        self._write_job("begin", job)

    def refresh(self, job: Job) -> None:
        """Write the count if the last one is old enough."""
        now = time.monotonic()
        if now - self._shown[id(job)] >= self.interval:
            self._shown[id(job)] = now
            self._write_job("progress", job)

    def end(self, job: Job) -> None:
        """Write the final count."""
        del self._shown[id(job)]
        self._write_job("end", job)

    def _write_job(self, event: str, job: Job) -> None:
        counts: dict[str, Fact] = {"job": job.title, "done": job.done, "total": job.total, "unit": job.unit}
        self._write({"event": event, **counts, "seconds_left": job.seconds_left, "note": job.note})

    def _write(self, facts: Mapping[str, Fact]) -> None:
        print(json.dumps(facts, ensure_ascii=False), file=self.stream, flush=True)


class TerminalDisplay(Display):
    """A bar that moves, with lines said in between scrolling above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._console = Console(file=stream, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[note]}"),
            console=self._console,
            transient=True,
            refresh_per_second=4,
        )
        self._tasks: dict[int, TaskID] = {}

    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        """Print the line above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)

    def begin(self, job: Job) -> None:
        """Add a bar."""
        if not self._tasks:
            self._progress.start()
        self._tasks[id(job)] = self._progress.add_task(job.title, total=job.total, note="")

    def refresh(self, job: Job) -> None:
        """Move the bar."""
        note = job.note or f"{job.done:,} {job.unit}"
        self._progress.update(self._tasks[id(job)], completed=job.done, note=note)

    def end(self, job: Job) -> None:
        """Take the bar away."""
        self._progress.remove_task(self._tasks.pop(id(job)))
        if not self._tasks:
            self._progress.stop()


def open_display(mode: Mode = "auto", stream: TextIO | None = None) -> Display:
    """Return the display for a mode; 'auto' is a bar where standard error is a terminal, plain lines elsewhere."""
    stream = stream or sys.stderr
    if mode == "auto":
        mode = "terminal" if stream.isatty() else "plain"
    match mode:
        case "terminal":
            return TerminalDisplay(stream)
        case "plain":
            return PlainDisplay(stream)
        case "json":
            return JsonDisplay(stream)
        case "quiet":
            return QuietDisplay()


def describe(job: Job) -> str:
    """Say in one line how far a job is."""
    share = "" if job.total is None else f" of {job.total:,} ({job.done / max(job.total, 1):.0%})"
    left = "" if job.seconds_left is None else f", {duration(job.seconds_left)} left"
    note = f" · {job.note}" if job.note else ""
    return f"{job.done:,}{share} {job.unit}{left}{note}"


def duration(seconds: float) -> str:
    """Write a time as people say it: 8 s, 3 min 05 s, 2 h 07 min, 3 d 04 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600:02} h"
