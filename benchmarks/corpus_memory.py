"""Does memory grow with the corpus? Prepare synthetic corpora of several sizes and walk through part of an epoch.

    python benchmarks/corpus_memory.py --pairs 50000 5000000

Each size runs in a process of its own. Shown are the peak of anonymous memory (what the process itself holds; pages of
mapped files can be dropped at any time and are not in it) in each stage, and the time a pair takes; and how much longer
encoding takes than what of it is spent inside SentencePiece.
"""

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sentencepiece import SentencePieceProcessor

from regard.data.batches import collate, largest_pieces, steps
from regard.data.prepare import prepare
from regard.progress import Job, QuietDisplay
from regard.settings import Corpus, DataSettings, Settings, TrainingSettings

STEPS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 1_000_000])
    parser.add_argument("--vocabulary-sentences", type=int, default=100_000, help="sample that teaches the vocabulary")
    parser.add_argument("--folder", type=Path, help="where to put the corpora (default: a temporary folder)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(measure(options.child, options.vocabulary_sentences), sys.stdout)
        return
    print(f"vocabulary of 16,000 from at most {options.vocabulary_sentences:,} sentences; batches of {STEPS} steps")
    for pairs in options.pairs:
        with TemporaryDirectory(dir=options.folder) as folder:
            write_corpus(Path(folder), pairs)
            child = [sys.executable, __file__, "--child", folder]
            child += ["--vocabulary-sentences", str(options.vocabulary_sentences)]
            show(pairs, json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout))


def show(pairs: int, found: Mapping[str, Mapping[str, Any]]) -> None:
    print(f"\n{pairs:,} pairs")
    print(f"{'stage':28} {'peak MB':>8} {'seconds':>9} {'µs a pair':>10}")
    for stage, figures in found["stages"].items():
        print(f"{stage:28} {figures['peak']:8.0f} {figures['seconds']:9.2f} {figures['seconds'] / pairs * 1e6:10.2f}")
    totals = found["totals"]
    print(f"peak anonymous {totals['peak']:.0f} MB, peak with mapped files {totals['resident']:.0f} MB", end="; ")
    print(f"encoding takes {totals['encoding']:.2f} times the time inside SentencePiece", end=", ")
    print(f"with reading {totals['both']:.2f} times")


# ---- the corpus ------------------------------------------------------------------------------------------------------


def write_corpus(folder: Path, pairs: int) -> None:
    """Write two files of made-up words, with frequencies and lengths as in real text."""
    random = np.random.default_rng(1)
    for name in ("source", "target"):
        letters = random.choice(list("eeeetttaaaooinshrdlucmfwypvbgkqjxz"), (40_000, 10))
        words = np.array(["".join(row[: 2 + index % 9]) for index, row in enumerate(letters)], dtype=object)
        with (folder / name).open("w", encoding="utf-8") as file:
            for start in range(0, pairs, 10_000):
                lengths = np.clip(random.lognormal(2.4, 0.5, min(10_000, pairs - start)).astype(int), 1, 60)
                drawn = iter(words[np.minimum(random.zipf(1.3, lengths.sum()), len(words)) - 1])
                file.writelines(" ".join(islice(drawn, length)) + "\n" for length in lengths.tolist())


# ---- the measurement -------------------------------------------------------------------------------------------------


class Meter(QuietDisplay):
    """Notes the time and the peak of anonymous memory of each stage; a job of the preparation is a stage."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._stage = "start"
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        figures = self.stages.setdefault(name, {"peak": anonymous_megabytes(), "seconds": 0.0})
        before, self._stage, started = self._stage, name, time.monotonic()
        yield
        figures["seconds"] += time.monotonic() - started
        figures["peak"] = max(figures["peak"], anonymous_megabytes())
        self._stage = before

    @contextmanager
    def job(self, title: str, total: int | None = None, unit: str = "lines", done: int = 0) -> Iterator[Job]:
        with self.stage(title):
            yield Job(title, total, unit, self)

    def _watch(self) -> None:
        while True:
            figures = self.stages.get(self._stage)
            if figures is not None:
                figures["peak"] = max(figures["peak"], anonymous_megabytes())
            time.sleep(0.01)


def anonymous_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def measure(folder: Path, vocabulary_sentences: int) -> dict[str, dict[str, Any]]:
    """Prepare the corpus and walk through part of an epoch."""
    corpus = Corpus(source=folder / "source", target=folder / "target")
    data = DataSettings(train=(corpus,), vocabulary_size=16_000, vocabulary_sentences=vocabulary_sentences)
    settings = Settings(data=data, training=TrainingSettings(batch_tokens=8192))
    meter, inside = Meter(), Stopwatch()
    with meter.stage("preparing, all of it"):
        prepared = prepare(settings, folder / "run", meter)
    store, piece_tokens = prepared.train, settings.training.piece_tokens
    with meter.stage("largest pieces"):
        largest_pieces(store, piece_tokens)
    with meter.stage("batches"):
        for _, step in islice(steps(store, piece_tokens, settings.training.pieces, seed=1), STEPS):
            for rows in step:
                collate(store, rows)
    stages = meter.stages
    totals = {
        "peak": max(figures["peak"] for figures in stages.values()),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "encoding": stages["encoding"]["seconds"] / inside.seconds,
        "both": (stages["reading"]["seconds"] + stages["encoding"]["seconds"]) / inside.seconds,
    }
    return {"stages": stages, "totals": totals}


class Stopwatch:
    """Adds up the time inside SentencePiece's encoding."""

    def __init__(self) -> None:
        self.seconds = 0.0
        encode = SentencePieceProcessor.encode

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.monotonic()
            try:
                return encode(*arguments, **options)
            finally:
                self.seconds += time.monotonic() - started

        SentencePieceProcessor.encode = timed  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
