"""Measuring: one point after the other, each in a process of its own; results on disk after each."""

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from comparison.comparing import commit, describe_machine

from growing.corpora import measure_corpus
from growing.plan import PANELS, Point, points

Results = dict[str, Any]


def run(panels: Sequence[str], quick: bool, go_on: bool, file: Path) -> Results:
    """Measure panels, one after the other; with `go_on` only what the file does not have yet. Return all results."""
    results: Results = json.loads(file.read_text()) if file.exists() else {"panels": {}}
    when = {"date": datetime.now(UTC).date().isoformat(), "commit": commit()}
    # Processes are forked from one that has imported torch and done nothing with it, so that they start at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["regard.training.loop"])
    for name in panels:
        measured = results["panels"].get(name, []) if go_on else []
        results["machine"], results["panels"][name] = describe_machine(), measured
        known = {(one["line"], one["value"]) for one in measured}
        for point in points(PANELS[name], quick):
            if (point.line, point.value) in known:
                continue
            print(point.title, end=" … ", file=sys.stderr, flush=True)
            facts = _measure_apart(context, point)
            print(_describe(facts), file=sys.stderr, flush=True)
            measured.append({"line": point.line, "value": point.value, **facts, **when})
            write(results, file)
    return results


def write(results: Results, file: Path) -> None:
    """Write results, whole or not at all: a point a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    panels = [
        f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(one)}" for one in measured) + "\n ]"
        for name, measured in results["panels"].items()
    ]
    machine = json.dumps(results["machine"])
    partial.write_text(f'{{"machine": {machine},\n "panels": {{\n ' + ",\n ".join(panels) + "\n}}\n")
    partial.replace(file)


def _describe(facts: dict[str, Any]) -> str:
    def show(name: str, figure: float) -> str:
        if name.endswith("_memory"):
            return f"{figure / 2**20:,.0f} MiB"
        return f"{figure * 1e6:,.4g} µs" if name.endswith("_seconds") else f"{figure:,.2f}"

    return ", ".join(f"{name.replace('_', ' ')} {show(name, figure)}" for name, figure in facts.items())


# ---- one point -------------------------------------------------------------------------------------------------------


def _measure_apart(context: Any, point: Point) -> dict[str, Any]:
    """Measure in a process of its own, so that memory is the point's alone."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(point, theirs))
    process.start()
    theirs.close()
    try:
        facts: dict[str, Any] = ours.recv()
    except EOFError:
        process.join()
        sys.exit(f"{point.title}: could not be measured (exit code {process.exitcode})")
    process.join()
    return facts


def _work(point: Point, connection: Connection) -> None:
    connection.send(measures()[point.panel](point))


def measures() -> dict[str, Callable[[Point], dict[str, Any]]]:
    """Return what measures a point, by the name of its panel."""
    from growing.models import measure_beam, measure_length, measure_vocabulary

    return {
        "length": measure_length,
        "corpus": measure_corpus,
        "vocabulary": measure_vocabulary,
        "beam": measure_beam,
        "processes": measure_processes,
    }


def measure_processes(point: Point) -> dict[str, Any]:
    """Train by the real command, with so many processes of one thread; target tokens a second, from its log."""
    import processes

    with TemporaryDirectory(prefix="growth-") as temporary:
        # Four pieces a step, so that four processes have something to do.
        steps, batch_tokens = (4, 500) if point.quick else (4, 16_384)
        prepared = processes.prepare(Path(temporary), "tiny", steps, batch_tokens)
        return {"tokens_a_second": processes.measure(prepared, point.value, 1)}
