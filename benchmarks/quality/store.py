"""Results on disk: a row for each run, in the order of names and seeds, whoever came first."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quality.plan import Plan, ResultError
from quality.standards import ROOT
from regard.files import write_file

RESULTS = ROOT / "benchmarks" / "quality.json"
Row = dict[str, Any]


def read_rows(file: Path) -> list[Row]:
    """Return all rows; none if nothing was measured yet."""
    return list(json.loads(file.read_text(encoding="utf-8"))["runs"]) if file.exists() else []


def add_row(file: Path, row: Row) -> None:
    """Store a row, in place of the one with its name and seed if there is one."""
    with _locked(file.parent):
        others = [one for one in read_rows(file) if _key(one) != _key(row)]
        rows = sorted([*others, row], key=_key)
        write_file(file, '{"runs": [\n' + ",\n".join(map(_written, rows)) + "\n]}\n")


def missing_seeds(rows: Sequence[Row], plan: Plan, seeds: Sequence[int], again: bool) -> list[int]:
    """Return the seeds that are to be run: with `again` all of them.

    Raises `ResultError` if rows that stay have this name and are of something else.
    """
    there = {row["seed"]: row for row in rows if row["name"] == plan.name}
    identity = plan.identity()
    for seed, row in there.items():
        differences = [name for name, value in identity.items() if row[name] != value]
        if differences and not (again and seed in seeds):
            raise ResultError(
                f"{plan.name}, seed {seed}: measured with other {', '.join(differences)}; choose another --name, or "
                "measure all its seeds with --again"
            )
    return [seed for seed in seeds if again or seed not in there]


def _key(row: Row) -> tuple[str, int]:
    return row["name"], row["seed"]


def _written(row: Row) -> str:
    """Write a row with a field a line: the log of a run is one of them."""
    return " {\n" + ",\n".join(f"  {json.dumps(name)}: {_json(value)}" for name, value in row.items()) + "\n }"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep out others that add a row: two trainings may end at the same time."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
