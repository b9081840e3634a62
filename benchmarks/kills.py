"""Kill a real training by SIGKILL at random moments, start it again by the same command, and compare checksums.

    python benchmarks/kills.py                  # 60 kills, some minutes
    python benchmarks/kills.py --kills 200 --seed 7

Trainings with one and with two processes are killed while they prepare, start, train, write a checkpoint, average and
write the model, and at moments that are chosen by nothing but the dice; with two processes either of them is killed. At
the end, the model, all checkpoints with their optimizer state, the vocabulary and the token store must have the
checksums of a run that was never killed. The exit code is 1 if one has not, or if a process stays behind.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, cycle, islice
from pathlib import Path

from regard.text.grammar import make_splits

SETTINGS = """
[model]
d_model = 128
d_ff = 256
heads = 4
encoder_layers = 1
decoder_layers = 1

[data]
vocabulary_size = 2000
train = [{source = "train.en", target = "train.de"}]
valid = [{source = "valid.en", target = "valid.de"}]

[training]
steps = 48
batch_tokens = 600
micro_batch_tokens = 150
warmup = 20
learning_rate = 0.003
log_steps = 1
checkpoint_steps = 6
checkpoint_minutes = 0.01
average_checkpoints = 4
validation_sentences = 10

[search]
extra_length = 5
"""
PHASES = ("preparing", "starting", "training", "checkpoint", "averaging", "model", "any")
# How often each is aimed at in one run, in this order: what is killed before a phase can't reach it.
AIMS = {"preparing": 2, "starting": 1, "training": 3, "checkpoint": 4, "any": 2, "averaging": 1, "model": 2}
PATIENCE = 1200.0  # seconds that a moment, or an end, may take on a machine that has other work to do as well


class StuckError(Exception):
    """A process that neither came to its moment nor ended."""


# ---- where a run is --------------------------------------------------------------------------------------------------


class Watch:
    """Tells what a run is doing, by what is in its folder and by what it says; what an earlier kill left counts not."""

    def __init__(self, out: Path) -> None:
        self.out, self.errors = out, out.parent / f"{out.name}.err"
        self._stale = {path.stat().st_ino for path in self._temporary()}

    def phase(self) -> str:
        fresh = {path.name for path in self._temporary() if self._inode(path) not in self._stale}
        if ".model.writing" in fresh:
            return "model"
        if not (self.out / "data" / "inputs.json").exists():
            return "preparing"
        if fresh:
            return "checkpoint"
        if "training (" not in self.errors.read_text():
            return "starting"
        return "averaging" if (self.out / "checkpoints" / "step-00000048").exists() else "training"

    def steps(self) -> int:
        log = self.out / "log.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def _temporary(self) -> list[Path]:
        return [*self.out.glob(".model.*"), *(self.out / "checkpoints").glob(".step-*")]

    @staticmethod
    def _inode(path: Path) -> int:
        try:
            return path.stat().st_ino
        except OSError:  # it is gone already
            return 0


def make_condition(aim: str, watch: Watch, dice: random.Random) -> Callable[[], bool]:
    """Return what tells that the moment has come."""
    if aim == "any":
        when = time.monotonic() + dice.uniform(0, 6)
        return lambda: time.monotonic() >= when
    if aim == "training":
        steps = watch.steps() + dice.randint(1, 8)
        return lambda: watch.phase() == aim and watch.steps() >= steps
    if aim == "preparing":
        return lambda: (watch.out / "data").exists() and watch.phase() == aim
    return lambda: watch.phase() == aim


# ---- processes -------------------------------------------------------------------------------------------------------


def start(corpus: Path, out: Path, processes: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "regard", "train", corpus / "recipe.toml", "--out", out, "--progress", "plain"]
    command += ["--device", "cpu", "--processes", processes, "--threads", 1]
    with (out.parent / f"{out.name}.err").open("w") as errors:
        return subprocess.Popen(
            list(map(str, command)), stderr=errors, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )


def helpers_of(process: "subprocess.Popen[str]") -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise StuckError(what)
        time.sleep(0.001)


def kill_once(aim: str, corpus: Path, out: Path, processes: int, dice: random.Random) -> tuple[str, str] | None:
    """Start a training and kill it; return where it was and who was killed, or None if it ended before."""
    watch = Watch(out)
    process = start(corpus, out, processes)
    reached = make_condition(aim, watch, dice)
    wait_until(lambda: reached() or process.poll() is not None, f"waiting for {aim}")
    time.sleep(dice.uniform(0, 0.03))
    helpers = helpers_of(process)
    victim = dice.choice([process.pid, *helpers])
    phase = watch.phase() if (out / "data").exists() else "starting"
    if process.poll() is not None:
        if process.returncode != 0:
            raise StuckError(f"ended by itself with code {process.returncode}; see {out}.err")
        return None
    os.kill(victim, signal.SIGKILL)
    wait_until(
        lambda: process.poll() is not None, f"the first process, after {'it' if not helpers else 'one'} was killed"
    )
    wait_until(lambda: not any(map(is_alive, helpers)), "a helper that stayed behind")
    return phase, "first" if victim == process.pid else "helper"


# ---- runs ------------------------------------------------------------------------------------------------------------


def write_corpus(folder: Path) -> Path:
    folder.mkdir(parents=True)
    splits = make_splits()
    for name, pairs in (("train", splits.train[:3000]), ("valid", splits.valid[:20])):
        (folder / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in pairs), encoding="utf-8")
        (folder / f"{name}.de").write_text("".join(f"{pair.target}\n" for pair in pairs), encoding="utf-8")
    (folder / "recipe.toml").write_text(SETTINGS)
    return folder


def run_to_end(corpus: Path, out: Path, processes: int) -> None:
    process = start(corpus, out, processes)
    wait_until(lambda: process.poll() is not None, "the end of a run")
    if process.returncode:
        raise StuckError(f"ended with code {process.returncode}: {(out.parent / f'{out.name}.err').read_text()}")


def checksums(out: Path) -> dict[str, str]:
    """Return the checksums of all that training computed; times and the memory in use are no part of it."""
    places = ("model/*.safetensors", "checkpoints/*/*.safetensors", "vocabulary.spm", "data/*/*.bin")
    files = sorted(chain.from_iterable(out.glob(place) for place in places))
    found = {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    losses = [(facts["event"], facts["step"], facts["loss"]) for facts in log]
    return {**found, "losses of log.jsonl": hashlib.sha256(json.dumps(losses).encode()).hexdigest()}


def aims(kills: int) -> Iterator[list[str]]:
    """Yield what to aim at in each run, until there are enough."""
    endless = cycle([aim for aim, count in AIMS.items() for _ in range(count)])
    each = sum(AIMS.values())
    for first in range(0, kills, each):
        yield list(islice(endless, min(each, kills - first)))


def torture(work: Path, kills: int, seed: int) -> tuple[Counter[tuple[int, str, str]], dict[int, list[bool]]]:
    """Return how often which process was killed where, and for each number of processes whether runs were equal."""
    corpus = write_corpus(work / "corpus")
    fell: Counter[tuple[int, str, str]] = Counter()
    equal: dict[int, list[bool]] = {}
    for processes in (1, 2):
        dice = random.Random(f"{seed} {processes}")
        whole = work / f"whole-{processes}"
        run_to_end(corpus, whole, processes)
        expected = checksums(whole)
        equal[processes] = []
        wanted, number = kills // 2 + (processes == 1) * (kills % 2), 0
        while (done := sum(count for key, count in fell.items() if key[0] == processes)) < wanted:
            out, number = work / f"killed-{processes}-{number}", number + 1
            for aim in next(aims(wanted - done)):
                if killed := kill_once(aim, corpus, out, processes, dice):
                    fell[processes, *killed] += 1
                    print(f"{processes} process(es): {killed[1]} killed while {killed[0]}", file=sys.stderr, flush=True)
            run_to_end(corpus, out, processes)
            found = checksums(out)
            equal[processes].append(found == expected)
            differing = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
            print(f"run {out.name}: {'equal' if not differing else f'differs in {sorted(differing)}'}", file=sys.stderr)
            if not differing:
                shutil.rmtree(out)
    return fell, equal


def print_table(fell: Counter[tuple[int, str, str]], equal: dict[int, list[bool]]) -> None:
    columns = [(1, "first"), (2, "first"), (2, "helper")]
    print(f"{'killed while':14}{'1 process':>12}{'first of 2':>12}{'second of 2':>13}")
    for phase in (*[one for one in PHASES if one != "any"], "total"):
        counts = [
            sum(count for key, count in fell.items() if key[::2] == column and phase in (key[1], "total"))
            for column in columns
        ]
        print(f"{phase:14}{counts[0]:>12}{counts[1]:>12}{counts[2]:>13}")
    for processes, results in equal.items():
        told = "equal to the run never killed" if all(results) else "NOT EQUAL"
        print(f"{len(results)} runs of {processes} process(es), {sum(results)} of them {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=60, help="how many in all (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the victims (default 1)")
    parser.add_argument("--work", type=Path, help="a new folder to work in, which is kept; else a temporary one")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="regard-kills-") as temporary:
        try:
            fell, equal = torture(options.work or Path(temporary), options.kills, options.seed)
        except StuckError as error:
            sys.exit(f"stuck: {error}")
    print_table(fell, equal)
    print(f"{sum(fell.values())} kills, seed {options.seed}, {time.monotonic() - began:.0f} s")
    sys.exit(0 if all(map(all, equal.values())) else 1)


if __name__ == "__main__":
    main()
