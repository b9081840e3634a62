"""Is a core better used by a process or by a thread? Train the same steps both ways, in turns.

    python benchmarks/processes.py --rounds 3

Each training is the real command, on the embedded corpus, in a folder of its own; its speed is read from its log, so
that starting up, preparing and validating count for nothing. The ways take turns, so that what else the machine does
hits all of them; shown is the median of the rounds, and ratios within them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from regard.system import cores

REGARD = [sys.executable, "-m", "regard"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="of a training; the first quarter is warm-up")
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--batch-tokens", type=int, default=2500)
    options = parser.parse_args()
    together = cores()
    ways = {"one": (1, 1), "threads": (1, together), "processes": (together, 1)}
    with TemporaryDirectory() as place:
        prepared = prepare(Path(place), options.preset, options.steps, options.batch_tokens)
        speeds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, (processes, threads) in ways.items():
                speeds[way].append(measure(prepared, processes, threads))
    print(f"preset {options.preset}, {options.batch_tokens:,} tokens a step, {options.rounds} rounds, {together} cores")
    for way, (processes, threads) in ways.items():
        gain = speedup(speeds, way, "one")
        print(
            f"{processes} process{'es' * (processes > 1)} of {threads} thread{'s' * (threads > 1)}: "
            f"{median(speeds[way]):,.0f} target tokens/s, {gain:.2f} times one core ({gain / processes / threads:.0%})"
        )
    print(f"{together} processes are {speedup(speeds, 'processes', 'threads'):.2f} times as fast as {together} threads")


def speedup(speeds: dict[str, list[float]], way: str, other: str) -> float:
    """The median over the rounds of how many times faster one way is."""
    return median(one / two for one, two in zip(speeds[way], speeds[other], strict=True))


def prepare(place: Path, preset: str, steps: int, batch_tokens: int) -> Path:
    """Write the corpus and prepare a run's folder that is copied for each training."""
    run("demo", "--write-corpus", str(place / "corpus"))
    log_steps = steps // 4
    recipe = place / "recipe.toml"
    recipe.write_text(
        f"""preset = {preset!r}
        [[data.train]]
        source = "corpus/train.en"
        target = "corpus/train.de"
        [training]
        steps = {steps}
        batch_tokens = {batch_tokens}
        log_steps = {log_steps}
        checkpoint_steps = {steps}
        checkpoint_minutes = 0
        """
    )
    run("prepare", str(recipe), "--out", str(place / "prepared"))
    return place / "prepared"


def measure(prepared: Path, processes: int, threads: int) -> float:
    """Train, and return the target tokens a second after the warm-up."""
    out = prepared.with_name("run")
    shutil.copytree(prepared, out)
    recipe = prepared.with_name("recipe.toml")
    run("train", str(recipe), "--out", str(out), "--processes", str(processes), "--threads", str(threads))
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    found = [line["tokens_per_second"] for line in lines if line["event"] == "training"]
    shutil.rmtree(out)
    return median(found[1:])


def run(*words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([*REGARD, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"regard {' '.join(words)}: {done.stderr}")


if __name__ == "__main__":
    main()
