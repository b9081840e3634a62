"""Does memory grow with time? Watch a training, and the translation of sentences and of empty lines.

    python benchmarks/memory_growth.py

A small model is trained for 1,000 steps and translates 100,000 sentences, then 10 million empty lines. These are the
real commands, each in a process of its own, watched from outside. What is counted is anonymous memory, as pages of
mapped files can be dropped at any time. After a warm-up the samples are averaged in blocks, and a line is fitted
through the blocks. Its slope is printed with its standard error. The exit code is 1 if a slope is above the limit.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

BLOCKS = 20
WARM_UP = 0.2  # of the way, before the first block
LIMITS = {"step": 5000, "sentence": 50, "empty line": 0.5}  # bytes; each is 5 MB over the whole way
SETTINGS = (
    *("model.d_model=64", "model.d_ff=256", "model.heads=4", "model.encoder_layers=2", "model.decoder_layers=2"),
    *("data.vocabulary_size=2000", "training.batch_tokens=2048", "training.warmup=200", "training.log_steps=5"),
    *("training.checkpoint_steps=250", "training.average_checkpoints=2", "training.validation_sentences=20"),
)

Samples = list[tuple[int, int]]  # how far, and bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="training steps that are measured")
    parser.add_argument("--sentences", type=int, default=100_000, help="translated sentences that are measured")
    parser.add_argument("--empty-lines", type=int, default=10_000_000, help="empty lines that are measured")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        regard("demo", "--write-corpus", folder / "corpus")
        good = report("training", "step", train(folder, whole_way(options.steps)))
        sentences = varied((folder / "corpus" / "train.en").read_bytes().splitlines(keepends=True))
        good &= report("translating", "sentence", translate(folder, sentences, whole_way(options.sentences)))
        good &= report("translating", "empty line", translate(folder, repeat(b"\n"), whole_way(options.empty_lines)))
    sys.exit(0 if good else 1)


def whole_way(measured: int) -> int:
    return round(measured / (1 - WARM_UP))


# ---- the commands ----------------------------------------------------------------------------------------------------


def train(folder: Path, steps: int) -> Samples:
    """Train, and look at the memory whenever the log has another line."""
    corpus = [folder / "corpus" / f"{part}.{side}" for part in ("train", "valid") for side in ("en", "de")]
    settings = [part for one in (*SETTINGS, f"training.steps={steps}") for part in ("--set", one)]
    files = ["--train", *corpus[:2], "--valid", *corpus[2:]]
    command = ["train", *files, "--out", folder / "run", "--processes", "1", "--threads", "1", *settings]
    samples: Samples = []
    with start(*command) as process:
        while process.poll() is None:
            step = last_step(folder / "run" / "log.jsonl")
            if step and (not samples or samples[-1][0] < step):
                samples.append((step, anonymous_bytes(process.pid)))
            time.sleep(0.02)
    return [(step, size) for step, size in finished(process, samples) if size]


def last_step(log: Path) -> int:
    if not log.exists():
        return 0
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 1000))
        lines = file.read().split(b"\n")[:-1]
    return int(json.loads(lines[-1]).get("step", 0)) if len(lines) > 1 else 0


def translate(folder: Path, lines: Iterator[bytes], count: int) -> Samples:
    """Translate so many lines through pipes, and look at the memory a hundred times."""
    samples: Samples = []
    command = ["translate", folder / "run", "--threads", "1", "--processes", "1"]
    with start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        threading.Thread(target=feed, args=(process, islice(lines, count)), daemon=True).start()
        for number, _ in enumerate(process.stdout, start=1):
            if number % (count // 100) == 0 and number < count:
                samples.append((number, anonymous_bytes(process.pid)))
    assert number == count, f"{number:,} lines came out, {count:,} went in"
    return finished(process, samples)


def feed(process: "subprocess.Popen[bytes]", lines: Iterable[bytes]) -> None:
    with process.stdin as stream:
        stream.writelines(lines)


def varied(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield sentences, now and then an empty line, and now and then a paragraph that has to be split."""
    for number, line in enumerate(cycle(lines)):
        if number % 1000 == 500:
            yield b" ".join(one.strip() for one in lines[number % len(lines) :][:20]) + b"\n"
        else:
            yield line if number % 100 else b"\n"


def start(*arguments: object, **streams: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "regard", *map(str, arguments), "--device", "cpu", "--progress", "quiet"]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **streams)


def finished(process: "subprocess.Popen[bytes]", samples: Samples) -> Samples:
    if process.returncode:
        sys.exit(f"the command ended with exit code {process.returncode}")
    return samples


def regard(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "regard", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def anonymous_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has just ended
        return 0
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024 if "RssAnon:" in status else 0


# ---- the slope -------------------------------------------------------------------------------------------------------


def report(title: str, unit: str, samples: Samples) -> bool:
    """Print the slope of memory over what was done; True if it is within the limit."""
    way, sizes = np.array(samples, dtype=float).T
    late = way > WARM_UP * way[-1]
    blocks = [
        (way[late][part].mean(), sizes[late][part].mean())
        for part in np.array_split(np.arange(late.sum()), min(BLOCKS, late.sum()))
    ]
    slope, error = fit(np.array(blocks))
    limit = LIMITS[unit]
    print(
        f"{title}: {slope:+,.2f} ± {error:,.2f} bytes per {unit} over the last {way[-1] - way[late][0]:,.0f} of "
        f"{way[-1]:,.0f} {unit}s ({late.sum()} samples); {blocks[0][1] / 1e6:,.1f} MB at first, "
        f"{blocks[-1][1] / 1e6:,.1f} MB at last, {sizes.max() / 1e6:,.1f} MB at most; limit {limit:,g}: "
        f"{'passed' if slope <= limit else 'FAILED'}",
        flush=True,
    )
    return bool(slope <= limit)


def fit(points: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> tuple[float, float]:
    """Return the slope of a line through points, and its standard error."""
    x, y = (points - points.mean(axis=0)).T
    slope = (x @ y) / (x @ x)
    rest = y - slope * x
    return float(slope), float(np.sqrt((rest @ rest) / (len(x) - 2) / (x @ x)))


if __name__ == "__main__":
    main()
