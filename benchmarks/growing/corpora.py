"""Points that need text on disk: the size of the corpus."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from growing.clock import status
from growing.plan import Point
from regard.data.batches import collate, steps
from regard.data.prepare import Prepared, prepare
from regard.progress import Job, QuietDisplay
from regard.settings import Corpus, Settings, preset

DATA = Path(__file__).parents[3] / "shared" / "data"  # where outside data lies, if there is any
_VOCABULARY = 8000
_LEARNED_FROM = 20_000  # sentences that teach the vocabulary: as many as the smallest corpus has
_SENTENCES = 100_000  # that are made up, on each side; pairs are drawn from them
_STEPS = 12  # of training
_WALKED_STEPS = 200  # batches that are made without training on them


# ---- the size of the corpus ------------------------------------------------------------------------------------------


def measure_corpus(point: Point) -> dict[str, Any]:
    """Prepare a made-up corpus, make batches of it and train on some; tell peaks of memory and CPU time a token.

    Memory is what the process holds itself: pages of mapped files can be dropped at any time and are not in it. CPU
    time, of all threads, is told because the largest corpora take long, and other work may come in between.
    """
    with TemporaryDirectory(prefix="growth-") as temporary:
        folder = Path(temporary)
        write_corpus(folder, point.value)
        settings = _settings(folder, _VOCABULARY // 8 if point.quick else _VOCABULARY)
        display = JobTimer()
        with Meter() as preparing:
            prepared = prepare(settings, folder / "run", display)
        learning = display.seconds["learning the vocabulary"]  # from a sample, however large the corpus is
        tokens = prepared.train.source_tokens + prepared.train.target_tokens
        batches, training = _walk(prepared, settings, point.quick)
        return {
            "preparation_memory": preparing.peak,
            "preparation_seconds": (preparing.seconds - learning) / tokens,
            "learning": learning,
            "batches_seconds": batches,
            **training,
        }


def write_corpus(folder: Path, pairs: int) -> None:
    """Write two files of made-up words, with frequencies and lengths as in real text: sentences drawn from some."""
    random = np.random.default_rng(1)
    for name in ("source", "target"):
        sentences = _make_sentences(random, min(pairs, _SENTENCES))
        with (folder / name).open("w", encoding="utf-8") as file:
            for start in range(0, pairs, _SENTENCES):
                drawn = random.integers(0, len(sentences), min(_SENTENCES, pairs - start))
                file.writelines(sentences[number] for number in drawn.tolist())


def _make_sentences(random: np.random.Generator, count: int) -> list[str]:
    letters = random.choice(list("eeeetttaaaooinshrdlucmfwypvbgkqjxz"), (40_000, 10))
    words = np.array(["".join(row[: 2 + index % 9]) for index, row in enumerate(letters)], dtype=object)
    lengths = np.clip(random.lognormal(2.4, 0.5, count).astype(int), 1, 60)
    drawn = iter(words[np.minimum(random.zipf(1.3, lengths.sum()), len(words)) - 1])
    return [" ".join(islice(drawn, length)) + "\n" for length in lengths.tolist()]


def _settings(folder: Path, vocabulary: int) -> Settings:
    tiny = preset("tiny")
    corpus = Corpus(source=folder / "source", target=folder / "target")
    changes = {"train": (corpus,), "vocabulary_size": vocabulary, "vocabulary_sentences": _LEARNED_FROM}
    return tiny.model_copy(update={"data": tiny.data.model_copy(update=changes)})


def _walk(prepared: Prepared, settings: Settings, quick: bool) -> tuple[float, dict[str, Any]]:
    """Return CPU seconds a token of making batches; and of training, with its peak of memory."""
    import torch

    from regard.machine import choose_machine
    from regard.model.build import build_model
    from regard.training.distributed import World
    from regard.training.step import Stepper

    training = settings.training
    plan = steps(prepared.train, training.piece_tokens, training.pieces, seed=1)
    tokens, started = 0, time.process_time()
    for _, step in islice(plan, 2 if quick else _WALKED_STEPS):
        tokens += sum(batch.src.size + batch.tgt.size for batch in (collate(prepared.train, rows) for rows in step))
    batches = (time.process_time() - started) / tokens
    machine = choose_machine("cpu", "float32", threads=1)
    torch.manual_seed(1)
    with Meter() as meter:
        model = build_model(settings.model, len(prepared.vocabulary)).train()
        stepper = Stepper(model, prepared.train, training, machine, World())
        found = [
            (stepper.take(step, number, rate=1e-4).tokens, time.process_time())
            for number, (_, step) in enumerate(islice(plan, 2 if quick else _STEPS), start=1)
        ]
    seconds = found[-1][1] - found[0][1]  # the first step is warm-up
    return batches, {"training_memory": meter.peak, "training_seconds": seconds / sum(n for n, _ in found[1:])}


class JobTimer(QuietDisplay):
    """Notes the CPU seconds of each job."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def job(self, title: str, total: int | None = None, unit: str = "lines", done: int = 0) -> Iterator[Job]:
        started = time.process_time()
        with super().job(title, total, unit, done) as job:
            yield job
        self.seconds[title] = time.process_time() - started


class Meter:
    """Watches this process while a block runs: `peak` of anonymous memory in bytes, CPU `seconds` of all threads."""

    def __enter__(self) -> "Meter":
        self.peak, self._over = status("RssAnon"), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self.seconds = -time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time()
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.peak = max(self.peak, status("RssAnon"))
