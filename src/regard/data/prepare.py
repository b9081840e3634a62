"""Preparing: from corpora to a vocabulary and token stores, with a report of what was kept and why the rest was not.

The text is read three times, each time as a stream: to check and count it and to find repeats, to learn the vocabulary
from an even sample, and to encode it. So memory does not grow with the corpus. In a run's folder this writes

    vocabulary.spm     the subwords
    data/train/        the token store of the training pairs
    data/valid/        that of the validation pairs, if there are any
    data/segmentations/  other ways to cut the training pairs into subwords, with data.subword_dropout
    data/report.json   what was kept
    data/inputs.json   what all this was made from; written last, so what has it is whole
"""

import gc
import operator
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import padding
from regard.data.duplicates import DuplicateFinder
from regard.data.inputs import check_inputs, describe_inputs
from regard.data.report import PartReport, Report, SegmentationReport
from regard.data.segmentations import DRAWN, VariedStore, write_segmentations
from regard.data.store import Store, StoreWriter
from regard.errors import CorpusError, FileFormatError, UserError
from regard.files import explain_disk_errors, read_json, read_record, write_json
from regard.progress import Display, Job
from regard.settings import Corpus, DataSettings, Settings
from regard.system import cores
from regard.text.corpus import PairChunk, read_pair_chunks
from regard.text.vocabulary import Vocabulary

__all__ = ["Prepared", "Report", "open_prepared", "prepare"]

_SEGMENTATIONS = "segmentations"

CHUNK = 2048
"""Pairs that are read, encoded and written together."""

_MOST_THREADS = 8  # that encode: an eighth of the work is done under Python's lock, so that more would only wait

EncodedPairs = tuple[list[list[int]], list[list[int]]]
"""The ids of the sources, and those of as many targets."""


@dataclass(frozen=True)
class Prepared:
    """What training needs of the data."""

    vocabulary: Vocabulary
    train: Store
    valid: Store | None
    report: Report

    def training_store(self, seed: int) -> Store:
        """Return the store that training reads: sentences as they are, or cut another way in each epoch."""
        if self.report.segmentations is None:
            return self.train
        return VariedStore(self.train.folder, self.train.folder.with_name(_SEGMENTATIONS), seed)


def prepare(settings: Settings, out: Path, display: Display) -> Prepared:
    """Make vocabulary and token stores in a run's folder, or open what is there if it is made from the same.

    Raises `UserError` if what is there was made from other text or settings or is damaged, or if no pair is left to
    train on; `DiskError` if the disk is full.
    """
    data, folder = settings.data, out / "data"
    if not data.train:
        raise UserError("data.train: no training corpus")
    inputs = describe_inputs(data)
    if (folder / "inputs.json").exists():
        check_inputs(folder, read_json(folder / "inputs.json"), inputs)
        prepared = open_prepared(out)
        for store in (prepared.training_store(seed=0), prepared.valid):
            if store is not None:
                store.check()
        return prepared
    with explain_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _scratch_folder(folder / ".duplicates") as scratch:
            train_pairs, first = _survey(data, scratch, display)
            vocabulary = _make_vocabulary(data, train_pairs, display)
            vocabulary.save(out / "vocabulary.spm")
            report = _encode(settings, folder, vocabulary, train_pairs, first, display)
        write_json(folder / "report.json", report.to_dict())
        write_json(folder / "inputs.json", inputs)
    for line in report.lines():
        display.say(line)
    return _open_stores(out, vocabulary)


def open_prepared(out: Path) -> Prepared:
    """Open what an earlier preparation made in a run's folder."""
    return _open_stores(out, Vocabulary.load(out / "vocabulary.spm"))


def _open_stores(out: Path, vocabulary: Vocabulary) -> Prepared:
    report = read_record(out / "data" / "report.json", Report, may_miss=("segmentations",))
    train = Store.open(out / "data" / "train")
    valid = Store.open(out / "data" / "valid") if report.valid and report.valid.kept else None
    for store in (train, valid):
        if store is not None and store.vocabulary != vocabulary.fingerprint:
            raise FileFormatError(out / "vocabulary.spm", f"not the vocabulary that {store.folder} was made with")
    prepared = Prepared(vocabulary, train, valid, report)
    for store in (prepared.training_store(seed=0), valid):
        if store is not None:
            store.check_numbers(len(vocabulary))
    return prepared


@contextmanager
def _scratch_folder(path: Path) -> Iterator[Path]:
    """Make a folder for the time of the block, always under the same name: what a killed process left is removed."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# ---- first reading: checks, counts, repeats --------------------------------------------------------------------------


def _survey(data: DataSettings, folder: Path, display: Display) -> tuple[int, NDArray[np.int64]]:
    """Read all text once; return how many training pairs there are and, for each pair, the row where it was first seen.

    Rows are counted from the first training pair to the last validation pair.
    """
    with display.job("reading", unit="pairs") as job, DuplicateFinder(folder) as finder:

        def read(corpora: Sequence[Corpus]) -> int:
            for chunk in (chunk for corpus in corpora for chunk in read_pair_chunks(corpus, CHUNK)):
                finder.add(zip(chunk.sources, chunk.targets, strict=True))
                job.advance(len(chunk.sources))
            return finder.rows

        train_pairs = read(data.train)
        read(data.valid)
        return train_pairs, finder.find_first()


# ---- second reading: the vocabulary ----------------------------------------------------------------------------------


def _make_vocabulary(data: DataSettings, pairs: int, display: Display) -> Vocabulary:
    if data.vocabulary is not None:
        vocabulary = Vocabulary.load(data.vocabulary)
        if data.subword_dropout and not vocabulary.is_byte_pair_encoding:
            raise UserError(
                f"data.subword_dropout: {data.vocabulary} is no byte-pair encoding, so there are no merges to leave "
                "out; set it to 0, or train the vocabulary with --model_type=bpe"
            )
        return vocabulary
    sample = _sample(data.train, pairs, max(1, data.vocabulary_sentences // 2))
    with display.job(
        "learning the vocabulary", total=min(2 * pairs, data.vocabulary_sentences), unit="sentences"
    ) as job:
        sentences = _counted(islice(sample, data.vocabulary_sentences), job)
        return Vocabulary.train(sentences, data.vocabulary_size, data.character_coverage, data.normalization)


def _sample(corpora: Sequence[Corpus], pairs: int, wanted: int) -> Iterator[str]:
    """Yield both sides of `wanted` of the pairs, evenly spread; of all of them if there are fewer."""
    wanted = min(wanted, pairs)
    here = 0
    for chunk in (chunk for corpus in corpora for chunk in read_pair_chunks(corpus, CHUNK)):
        before = np.arange(here, here + len(chunk.sources) + 1) * wanted // pairs  # how many are taken before each pair
        for place in np.flatnonzero(np.diff(before)).tolist():
            yield chunk.sources[place]
            yield chunk.targets[place]
        here += len(chunk.sources)


def _counted(sentences: Iterable[str], job: Job) -> Iterator[str]:
    for number, sentence in enumerate(sentences, start=1):
        if number % CHUNK == 0:
            job.advance(CHUNK)
        yield sentence


# ---- third reading: the stores ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """One of the two stores to be made: where, of which corpora, and which of their pairs are dropped."""

    folder: Path
    corpora: Sequence[Corpus]
    first: NDArray[np.int64]  # of each pair of these corpora: the row where it was first seen
    first_row: int
    max_length: int
    max_ratio: float
    drop_duplicates: bool


def _encode(
    settings: Settings,
    folder: Path,
    vocabulary: Vocabulary,
    train_pairs: int,
    first: NDArray[np.int64],
    display: Display,
) -> Report:
    """Write the stores and report on them."""
    data, piece_tokens = settings.data, settings.training.piece_tokens
    train = _Part(
        folder / "train", data.train, first[:train_pairs], 0, data.max_length, data.max_ratio, data.drop_duplicates
    )
    # Validation drops only what the model may be too small for: a choice between models rests on it.
    valid = _Part(folder / "valid", data.valid, first[train_pairs:], train_pairs, data.max_length, np.inf, False)
    with display.job("encoding", total=len(first), unit="pairs") as job, _without_looking_for_cycles():
        train_report = _write_store(train, vocabulary, job)
        if not train_report.kept:
            told = "\n".join(train_report.lines("training", data.max_length, data.max_ratio))
            raise UserError(f"no pair is left to train on\n{told}")
        valid_report = _write_store(valid, vocabulary, job) if data.valid else None
    store = Store.open(train.folder)
    segmentations = _draw_segmentations(data, store, vocabulary, display) if data.subword_dropout else None
    return Report(
        train=train_report,
        valid=valid_report,
        vocabulary_size=len(vocabulary),
        byte_share=_byte_share(store, vocabulary),
        padding=padding(store, piece_tokens),
        piece_tokens=piece_tokens,
        max_length=data.max_length,
        max_ratio=data.max_ratio,
        segmentations=segmentations,
    )


def _draw_segmentations(
    data: DataSettings, store: Store, vocabulary: Vocabulary, display: Display
) -> SegmentationReport:
    with display.job("drawing segmentations", unit="words") as job:
        folder = store.folder.with_name(_SEGMENTATIONS)
        words, growth = write_segmentations(folder, store, vocabulary, data.subword_dropout, data.max_length, job)
    return SegmentationReport(data.subword_dropout, words, DRAWN, growth)


def _write_store(part: _Part, vocabulary: Vocabulary, job: Job) -> PartReport:
    counts = np.zeros(len(_OUTCOMES), np.int64)
    done = repeats = leaked = 0
    with StoreWriter(part.folder, vocabulary.fingerprint, len(vocabulary)) as writer:
        for corpus in part.corpora:
            writer.begin_corpus(str(corpus.files[0]), corpus.weight)
            for chunk, (sources, targets) in _encode_ahead(read_pair_chunks(corpus, CHUNK), vocabulary):
                count = len(chunk.sources)
                first = part.first[done : done + count]
                if len(first) < count:
                    raise CorpusError(corpus.files[0], None, "has grown while it was read")
                repeated = first < np.arange(part.first_row + done, part.first_row + done + count)
                outcomes = _judge(chunk, sources, targets, repeated, part)
                kept = np.flatnonzero(outcomes == 0).tolist()
                lines = [chunk.first_line + i for i in kept]
                writer.add([sources[i] for i in kept], [targets[i] for i in kept], lines)
                counts += np.bincount(outcomes, minlength=len(_OUTCOMES))
                leaks = first < part.first_row
                leaked += int(np.count_nonzero(leaks[kept]))
                repeats += int(np.count_nonzero((repeated & ~leaks)[kept]))
                done += count
                job.advance(count)
    store = Store.open(part.folder)
    return PartReport(
        read=done,
        **dict(zip(_OUTCOMES, counts.tolist(), strict=True)),
        repeats=repeats,
        leaked=leaked,
        source_tokens=store.source_tokens,
        target_tokens=store.target_tokens,
        longest_source=store.longest_source,
        longest_target=store.longest_target,
    )


def _encode_ahead(chunks: Iterable[PairChunk], vocabulary: Vocabulary) -> Iterator[tuple[PairChunk, EncodedPairs]]:
    """Yield each chunk with its ids, while those that follow are being encoded, each by a thread of its own.

    SentencePiece works outside of Python's lock, so that reading and writing hardly add to its time. Its own threads
    would share one chunk, and all of them wait while the last is done and its ids become Python's numbers.
    """
    threads = min(cores(), _MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[tuple[PairChunk, Future[EncodedPairs]]] = deque()
        for chunk in chunks:
            ahead.append((chunk, pool.submit(_encode_chunk, chunk, vocabulary)))
            if len(ahead) > threads:
                yield _wait_for(*ahead.popleft())
        while ahead:
            yield _wait_for(*ahead.popleft())


def _wait_for(chunk: PairChunk, encoded: Future[EncodedPairs]) -> tuple[PairChunk, EncodedPairs]:
    return chunk, encoded.result()


@contextmanager
def _without_looking_for_cycles() -> Iterator[None]:
    """Pause the search for cycles: a list for each sentence has none, and looking takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _encode_chunk(chunk: PairChunk, vocabulary: Vocabulary) -> EncodedPairs:
    encoded = vocabulary.encode_batch(chunk.sources + chunk.targets)
    return encoded[: len(chunk.sources)], encoded[len(chunk.sources) :]


_OUTCOMES = ("kept", "empty", "duplicates", "too_long", "ratio")


def _judge(
    chunk: PairChunk,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    repeated: NDArray[np.bool_],
    part: _Part,
) -> NDArray[np.int64]:
    """Return the outcome of each pair, as its place in `_OUTCOMES`: the first reason to drop it, if there is one."""
    lengths = np.array([list(map(len, sources)), list(map(len, targets))])  # (2, pairs)
    longer, shorter = lengths.max(axis=0), lengths.min(axis=0)
    empty = _are_empty(chunk.sources) | _are_empty(chunk.targets)
    reasons = [empty, repeated & part.drop_duplicates, longer > part.max_length, longer > part.max_ratio * shorter]
    return np.select(reasons, range(1, len(_OUTCOMES)), default=0)


def _are_empty(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Say of each text whether it is white space alone, or nothing."""
    return np.fromiter(map(operator.not_, map(str.strip, texts)), bool, len(texts))


def _byte_share(store: Store, vocabulary: Vocabulary) -> float:
    """Return the share of a store's tokens that stand for a byte of a character without a subword."""
    is_byte = np.zeros(len(vocabulary), bool)
    is_byte[vocabulary.byte_ids] = True
    step = 1 << 20
    found = sum(np.count_nonzero(is_byte[store.tokens[at : at + step]]) for at in range(0, len(store.tokens), step))
    return found / len(store.tokens)
