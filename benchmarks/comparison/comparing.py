"""The whole comparison: environments, materials, one work after the other, results on disk."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from comparison.environments import RECIPES, InstallError, make_environment, versions
from comparison.job import Facts
from comparison.materials import make_materials
from comparison.rounds import Plan, compare
from comparison.shapes import SHAPES
from comparison.works import OURS, WORKS, Work

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Options:
    """What the command was asked for."""

    works: Sequence[str]
    peers: Sequence[str]
    rounds: int
    quick: bool
    keep_settings: bool
    folder: Path
    out: Path


def run(options: Options) -> None:
    """Measure the works that were asked for and write the results, after every round."""
    results = json.loads(options.out.read_text()) if options.out.exists() else {"works": {}, "versions": {}}
    peers = [peer for peer in options.peers if any(_takes_part(peer, WORKS[name]) for name in options.works)]
    pythons, failures = _environments(peers, options.folder)
    results["versions"] |= _all_versions(pythons)
    for name in options.works:
        say(WORKS[name].title)
        started = time.monotonic()
        known = results["works"].get(name, {}).get("entries", {}) if options.keep_settings else {}
        plan = _plan(WORKS[name], options, pythons, known)
        missing = _missing_entries(WORKS[name], failures)
        entries = [entry for entry in WORKS[name].entries if entry.peer in pythons]
        for rounds, found in enumerate(compare(WORKS[name], entries, plan, say), start=1):
            compare_outputs(found)
            facts = {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), "quick": options.quick}
            facts["machine"] = describe_machine()
            results["works"][name] = {**facts, "rounds": rounds, "entries": found | missing}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
        say(f"  {(time.monotonic() - started) / 60:.1f} minutes")


def _plan(work: Work, options: Options, pythons: Mapping[str, Path], known: Mapping[str, Facts]) -> Plan:
    logs = options.folder / "logs"
    logs.mkdir(exist_ok=True)
    materials = make_materials(SHAPES[work.shape], options.folder / "materials")
    settings = {entry: facts["setting"] for entry, facts in known.items() if "setting" in facts}
    rounds = options.rounds if work.varies else 1
    return Plan(pythons, materials, logs, rounds, options.quick, settings)


def _missing_entries(work: Work, failures: Mapping[str, str]) -> dict[str, Facts]:
    """Return the entries that can't take part because their environment could not be made."""
    return {
        entry.name: {"precision": entry.precision, "failure": f"not installed: {failures[entry.peer]}"}
        for entry in work.entries
        if entry.peer in failures
    }


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


def compare_outputs(found: Mapping[str, Facts]) -> None:
    """Say of each entry which share of its translations are ours in float32, token for token; keep no outputs."""
    outputs = {name: facts.pop("outputs") for name, facts in found.items() if "outputs" in facts}
    if OURS not in outputs:
        return
    for name, theirs in outputs.items():
        if name != OURS:
            same = [one == other for one, other in zip(outputs[OURS], theirs, strict=True)]
            found[name]["same_as_ours"] = sum(same) / len(same)


def _takes_part(peer: str, work: Work) -> bool:
    return any(entry.peer == peer for entry in work.entries)


def _environments(peers: Sequence[str], folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return each peer's interpreter, and for those that could not be installed the reason."""
    pythons, failures = {OURS: Path(sys.executable)}, {}
    for peer in peers:
        say(f"environment: {peer}")
        try:
            pythons[peer] = make_environment(RECIPES[peer], folder)
        except InstallError as error:
            failures[peer] = str(error)
            say(f"  not installed: {error}")
    return pythons, failures


def _all_versions(pythons: Mapping[str, Path]) -> dict[str, str]:
    packages = {OURS: ("regard", "torch")} | {name: recipe.packages for name, recipe in RECIPES.items()}
    found: dict[str, str] = {}
    for peer, python in pythons.items():
        found |= versions(python, packages[peer])
    return {"Python": platform.python_version(), **found}


def describe_machine() -> dict[str, Any]:
    """Return what the machine is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": f"{pages / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def commit(besides: Sequence[str] = ()) -> str:
    """Return the commit of this tree, with a plus sign if there are changes in other files than `besides`."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(_HERE), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", *(f":(top,exclude){path}" for path in besides))
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")
