"""What does preparing cost beside SentencePiece alone? Both work on the same text with the same threads, in turns.

    python benchmarks/preparation.py data/multi30k/train.en data/multi30k/train.de
    python benchmarks/preparation.py pairs.tsv.gz --threads 1 2 4 --rounds 5

SentencePiece's own time is that of one call with all lines, which lie in memory already. Ours is all that `regard
prepare` does with a vocabulary that is there: reading twice, finding repeats, judging, encoding, writing and checking.
Shown are medians over the rounds, and the ratio within each round: its median and quartiles, and the median of that of
CPU time, to which other work on the machine adds little. A thread is a core that the process may use.
"""

import argparse
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import NamedTuple

from comparison.comparing import commit, describe_machine
from sentencepiece import SentencePieceProcessor

from regard.data.prepare import prepare
from regard.progress import QuietDisplay
from regard.settings import Corpus, Settings, preset
from regard.text.corpus import read_pairs

SIDES = ("source", "target")


class Taken(NamedTuple):
    """What some work took: seconds on the clock, and of all cores together."""

    seconds: float
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="source and target, or one tab-separated file of pairs")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15, help="two at least, as quartiles need")
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    given = parser.parse_args()
    if len(given.files) > 2:
        parser.error("expected source and target, or one file of pairs")
    corpus = Corpus(**dict(zip(SIDES if len(given.files) == 2 else ("pairs",), given.files, strict=True)))
    lines = [text for pair in read_pairs(corpus) for text in (pair.source, pair.target)]
    machine = describe_machine()
    print(
        f"{machine['processor']}, {machine['cores']} cores, commit {commit()}: {given.files[0]}, {len(lines):,} lines\n"
    )
    print("| threads | SentencePiece | preparing | ratio | quartiles | ratio of CPU time |")
    print("| --- | --- | --- | --- | --- | --- |")
    with TemporaryDirectory(prefix="preparation-") as temporary:
        folder = Path(temporary)
        settings = learn(corpus, given.vocabulary_size, folder)
        for threads in given.threads:
            with only_cores(threads):
                print(row(threads, *measure(settings, lines, threads, given.rounds, folder)), flush=True)


def learn(corpus: Corpus, size: int, folder: Path) -> Settings:
    """Learn a vocabulary; return settings that prepare the corpus with it."""
    tiny = preset("tiny")
    changes = {"train": (corpus,), "vocabulary_size": size}
    settings = tiny.model_copy(update={"data": tiny.data.model_copy(update=changes)})
    prepare(settings, folder / "learned", QuietDisplay())
    found = {"vocabulary": folder / "learned" / "vocabulary.spm"}
    return settings.model_copy(update={"data": settings.data.model_copy(update=found)})


def measure(
    settings: Settings, lines: list[str], threads: int, rounds: int, folder: Path
) -> tuple[list[Taken], list[Taken]]:
    """Return what SentencePiece took in each round, and what preparing took."""
    processor = SentencePieceProcessor(model_file=str(settings.data.vocabulary))
    alone, ours = [], []
    for _ in range(rounds):
        alone.append(timed(lambda: processor.encode(lines, num_threads=threads)))
        shutil.rmtree(folder / "run", ignore_errors=True)
        ours.append(timed(lambda: prepare(settings, folder / "run", QuietDisplay())))
    return alone, ours


def row(threads: int, alone: Sequence[Taken], ours: Sequence[Taken]) -> str:
    """Write a line of the table."""
    ratios = [mine.seconds / other.seconds for mine, other in zip(ours, alone, strict=True)]
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    cpu = median(mine.cpu_seconds / other.cpu_seconds for mine, other in zip(ours, alone, strict=True))
    seconds = " | ".join(f"{median(one.seconds for one in taken):.2f} s" for taken in (alone, ours))
    return f"| {threads} | {seconds} | {middle:.2f} | {low:.2f}–{high:.2f} | {cpu:.2f} |"


def timed(work: Callable[[], object]) -> Taken:
    """Do some work and return what it took."""
    started, cpu_started = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - started, time.process_time() - cpu_started)


@contextmanager
def only_cores(number: int) -> Iterator[None]:
    """Let this process use so many cores; that is how many threads a preparation has."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    main()
