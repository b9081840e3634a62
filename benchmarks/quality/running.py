"""Running: train, score on the validation set, score once on the test set, store the row."""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quality.plan import Command, Plan, ResultError
from quality.sessions import FINISHED, train
from quality.standards import ROOT
from quality.store import Row, add_row, missing_seeds, read_rows


def run(plan: Plan, seeds: Sequence[int], again: bool, file: Path) -> None:
    """Measure the seeds that `file` does not have, or all of them `again`, one after the other."""
    wanted = missing_seeds(read_rows(file), plan, seeds, again)
    if wanted:
        plan.check_files()
    for seed in seeds:
        if seed not in wanted:
            _say(f"{plan.name}, seed {seed}: is in {file.name} already; --again measures it again")
            continue
        row = measure(plan, seed)
        add_row(file, row)
        _say(f"{plan.name}, seed {seed}: {_describe(row)}")


def measure(plan: Plan, seed: int) -> Row:
    """Train a seed's model, or go on with it, and return all that is to be known of it."""
    folder = ROOT / plan.folder(seed)
    commands = [plan.train_command(seed)]
    sessions = train(commands[0], folder)
    facts = json.loads((folder / FINISHED).read_text(encoding="utf-8"))
    curve = validation_curve(folder / "log.jsonl")
    scores = {}
    for part, texts in (("valid", plan.validation), ("test", plan.test)):
        if texts is not None:
            commands.append(plan.evaluate_command(seed, texts, part))
            scores[part] = _evaluate(commands[-1])
    return {
        "name": plan.name,
        "seed": seed,
        **plan.identity(),
        "overrides": list(plan.overrides),
        "commands": [shlex.join(command) for command in commands],
        "date": sessions[-1]["began"].partition("T")[0],
        "commit": _all(sessions, "commit"),
        "machine": _all(sessions, "machine"),
        "processes": json.loads((folder / "processes.json").read_text(encoding="utf-8")),
        "sessions": len(sessions),
        "seconds": round(sum(session["seconds"] for session in sessions), 1),
        "weights": facts["weights"],
        "steps": facts["step"],
        "tokens_a_second": round(facts["target_tokens"] / facts["seconds"]),
        "best": best(curve),
        "valid_scores": scores["valid"],
        "test_scores": scores.get("test"),
        "log": curve,
    }


def _evaluate(command: Command) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ResultError(f"{shlex.join(command)}: exit code {done.returncode}")
    return [
        {
            "metric": score["name"],
            "value": round(score["value"], 3),
            "interval": [round(end, 3) for end in score["interval"]],
            "signature": score["signature"],
            "detail": score["detail"],
        }
        for score in json.loads(done.stdout)["scores"]
    ]


def validation_curve(log: Path) -> dict[str, list[float | None]]:
    """Return a run's validations, a column a quantity; `seconds` are those of the last line of training before each."""
    curve: dict[str, list[float | None]] = {"step": [], "seconds": [], "loss": [], "perplexity": [], "bleu": []}
    seconds = 0.0
    for line in log.read_text(encoding="utf-8").splitlines():
        facts = json.loads(line)
        if facts["event"] == "training":
            seconds = facts["seconds"]
        elif facts["event"] == "validation":
            for name, column in curve.items():
                value = seconds if name == "seconds" else facts[name]
                column.append(None if value is None else round(value, 3))
    return curve


def best(curve: dict[str, list[float | None]]) -> dict[str, float | None]:
    """Return the lowest perplexity and the highest BLEU of all validations."""
    perplexities, bleus = ([value for value in curve[name] if value is not None] for name in ("perplexity", "bleu"))
    return {"perplexity": min(perplexities, default=None), "bleu": max(bleus, default=None)}


def _all(sessions: Sequence[dict[str, Any]], name: str) -> str:
    """Return what the sessions had, each thing once: a run may have changed machines."""
    return "; ".join(dict.fromkeys(session[name] for session in sessions))


def _describe(row: Row) -> str:
    parts = [f"{part} {row[f'{part}_scores'][0]['value']:.2f}" for part in ("valid", "test") if row[f"{part}_scores"]]
    return f"BLEU {', '.join(parts)}; {row['seconds'] / 60:.1f} min of training"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
