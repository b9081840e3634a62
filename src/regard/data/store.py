"""The token store: a corpus as ids on disk, mapped into memory, so that any size of corpus takes constant memory.

A store is a folder:

    store.json    version, counts, corpora, the vocabulary's fingerprint and the contents' own
    tokens.bin    each pair's source ids, then its target ids, both with the end token (uint16, or uint32 if needed)
    offsets.bin   where each of these 2 N sequences begins, and where the last one ends (uint64)
    lines.bin     each pair's line number in its corpus (uint32)

The pairs of a corpus lie next to each other, in the order of their lines. Numbers are little-endian.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from copy import copy
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from regard.errors import FileFormatError
from regard.files import checksum, explain_disk_errors, format_json, new_folder, open_file, read_json, read_record

VERSION = 1

_FILES = ("tokens.bin", "offsets.bin", "lines.bin")
_OFFSET = np.dtype("<u8")
_LINE = np.dtype("<u4")
Rows = NDArray[np.int64]

_TOKEN_TYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


@dataclass(frozen=True)
class StoredCorpus:
    """A corpus in a store: its rows are `first` to `first + count`."""

    name: str
    weight: float
    first: int
    count: int


@dataclass(frozen=True)
class Description:
    """What store.json says."""

    version: int
    token_type: Literal["uint16", "uint32"]
    vocabulary: str
    fingerprint: str
    pairs: int
    tokens: int
    source_tokens: int
    longest_source: int
    longest_target: int
    corpora: tuple[StoredCorpus, ...]


# ---- reading ---------------------------------------------------------------------------------------------------------


_COUNTED = 1 << 16  # pairs whose tokens are counted at a time


class Store:
    """Pairs of token ids, mapped from disk; a row is a pair's number.

    `tokens` and `offsets` are the files themselves: the source of a row is sequence 2 row, its target the one after.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        self.folder = folder
        self.corpora = description.corpora
        self.vocabulary = description.vocabulary
        self.fingerprint = self._contents = description.fingerprint
        self.source_tokens = description.source_tokens
        self.target_tokens = description.tokens - description.source_tokens
        self.longest_source = description.longest_source
        self.longest_target = description.longest_target
        self._pairs = description.pairs
        self._token_type = description.token_type
        self.tokens = map_file(folder / "tokens.bin", _TOKEN_TYPES[description.token_type], description.tokens)
        self.offsets = map_file(folder / "offsets.bin", _OFFSET, 2 * description.pairs + 1)
        self._lines = map_file(folder / "lines.bin", _LINE, description.pairs)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map a store; raises `FileFormatError` if it is missing, damaged or of another version."""
        return cls(folder, read_description(folder))

    def __len__(self) -> int:
        return self._pairs

    @property
    def longest(self) -> int:
        """The most tokens that a sentence has, the end token counted."""
        return max(self.longest_source, self.longest_target)

    def of_first(self, corpora: int) -> Self:
        """Return the same store, of which a plan sees the first corpora alone."""
        part = copy(self)
        part.corpora = self.corpora[:corpora]
        return part

    def in_epoch(self, rows: Rows, epoch: int) -> Rows:
        """Return the rows of pairs in an epoch: here the same in all of them (see segmentations.py)."""
        return rows

    def source(self, row: int) -> NDArray[Any]:
        """Return the source ids of a pair, with the end token; a view."""
        return self._sequence(2 * row)

    def target(self, row: int) -> NDArray[Any]:
        """Return the target ids of a pair, with the end token; a view."""
        return self._sequence(2 * row + 1)

    def count_targets(self, vocabulary_size: int) -> NDArray[np.int64]:
        """Return how often each token is in a target."""
        counts = np.zeros(vocabulary_size, np.int64)
        for start in range(0, self._pairs, _COUNTED):
            rows = np.arange(start, min(start + _COUNTED, self._pairs))
            counts += np.bincount(self.read(2 * rows + 1)[0], minlength=vocabulary_size)
        return counts

    def lengths(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source and the target lengths of rows, end tokens counted."""
        start, middle, end = (self.offsets[2 * rows + part].astype(np.int64) for part in range(3))
        return middle - start, end - middle

    def read(self, sequences: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of sequences, one after the other, and the lengths; 2 · row is a source, the next a target."""
        starts = self.offsets[sequences].astype(np.int64)
        lengths = self.offsets[sequences + 1].astype(np.int64) - starts
        return self.tokens[runs(starts, lengths)].astype(np.int64), lengths

    def locate(self, row: int) -> tuple[str, int]:
        """Return the corpus that a pair is from and its line there."""
        corpus = next(corpus for corpus in reversed(self.corpora) if corpus.first <= row)
        return corpus.name, int(self._lines[row])

    def check(self) -> None:
        """Read every byte; raises `FileFormatError` if the contents are not those that were written."""
        digests = [checksum(self.folder / name) for name in _FILES]
        if _fingerprint(self._token_type, self.vocabulary, self.corpora, digests) != self._contents:
            raise self._damaged("its contents are not those that were prepared")

    def check_numbers(self, vocabulary_size: int) -> None:
        """Read everything once; raises `FileFormatError` if a sequence is none, or has ids that no subword has."""
        if not are_offsets(self.offsets, len(self.tokens)):
            raise self._damaged("a sequence ends before it begins, or offsets.bin does not belong to tokens.bin")
        if any(block.max() >= vocabulary_size for block in blocks(self.tokens)):
            raise self._damaged("tokens.bin has ids that the vocabulary does not have")

    def _damaged(self, how: str) -> FileFormatError:
        return FileFormatError(self.folder, f"damaged: {how}; {self.advice}")

    @property
    def advice(self) -> str:
        """What to do with data that is damaged."""
        return f"remove {self.folder.parent} and run the same command again, which prepares the same data"

    def _sequence(self, number: int) -> NDArray[Any]:
        return self.tokens[int(self.offsets[number]) : int(self.offsets[number + 1])]


def runs(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers start, start + 1, … of each run of a length, one run after the other."""
    shifts = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    return np.arange(len(shifts)) + shifts


def are_offsets(offsets: NDArray[Any], length: int) -> bool:
    """Say whether numbers rise from 0 to a length, as a sequence has its end token at least."""
    here = 0
    for block in blocks(offsets):
        if int(block[0]) < here or np.any(block[1:] <= block[:-1]):
            return False
        here = int(block[-1])
    return here == length and int(offsets[0]) == 0


def blocks(numbers: NDArray[Any], size: int = 1 << 20) -> Iterator[NDArray[Any]]:
    """Yield numbers in parts."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def map_file(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Map a file of `count` numbers; raises `FileFormatError` if it has others or can't be read."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
        if size != count * dtype.itemsize:
            raise FileFormatError(path, f"damaged: {size:,} bytes, expected {count * dtype.itemsize:,}")
        # An empty file can't be mapped.
        return np.asarray(np.memmap(path, dtype, mode="r")) if count else np.empty(0, dtype)
    except OSError as error:
        raise FileFormatError(path, f"can't be read: {error.strerror or error}") from None


def read_description(folder: Path) -> Description:
    """Read what store.json says; raises `FileFormatError` if that can't be."""
    path = folder / "store.json"
    version = read_json(path).get("version", VERSION)
    if version != VERSION:
        problem = f"token store of version {version!r}; this regard reads version {VERSION}"
        raise FileFormatError(path, f"{problem}: prepare the data again")
    description = read_record(path, Description)
    first = 0
    for corpus in description.corpora:
        if corpus.first != first or corpus.count < 0 or not 0 < corpus.weight < np.inf:
            raise FileFormatError(path, f"damaged: impossible numbers for {corpus.name}")
        first += corpus.count
    if first != description.pairs:
        raise FileFormatError(path, f"damaged: {description.pairs:,} pairs, but its corpora have {first:,}")
    return description


# ---- writing ---------------------------------------------------------------------------------------------------------


class StoreWriter:
    """Writes a store under a temporary name and gives it its own when the block ends without an error.

    Raises `DiskError` if the disk is full, `UserError` if it can't be written.
    """

    def __init__(self, folder: Path, vocabulary: str, vocabulary_size: int) -> None:
        self.folder = folder
        self.pairs = 0
        self._vocabulary = vocabulary
        self._token_type: Literal["uint16", "uint32"] = "uint16" if vocabulary_size <= 1 << 16 else "uint32"
        self._corpora: list[StoredCorpus] = []
        self._totals = np.zeros(2, np.int64)
        self._longest = np.zeros(2, np.int64)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(explain_disk_errors(self.folder))
            self._partial = stack.enter_context(new_folder(self.folder))
            self._tokens, self._offsets, self._lines = (
                stack.enter_context(closing(HashedFile(self._partial / name))) for name in _FILES
            )
            self._offsets.write(np.zeros(1, _OFFSET))
            self._stack = stack.pop_all()
        return self

    def begin_corpus(self, name: str, weight: float = 1.0) -> None:
        """Say that the pairs to come are of another corpus."""
        self._corpora.append(StoredCorpus(name, weight, self.pairs, 0))

    def add(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], lines: Sequence[int]) -> None:
        """Append pairs of ids, with their end tokens, and the line of each."""
        if not lines:
            return
        lengths = np.array([list(map(len, sources)), list(map(len, targets))]).T  # (pairs, 2)
        ends = int(self._totals.sum()) + np.cumsum(lengths)
        interleaved = chain.from_iterable(chain.from_iterable(zip(sources, targets, strict=True)))
        self._tokens.write(np.fromiter(interleaved, _TOKEN_TYPES[self._token_type], int(lengths.sum())))
        self._offsets.write(ends.astype(_OFFSET))
        self._lines.write(np.array(lines, _LINE))
        self._totals += lengths.sum(axis=0)
        self._longest = np.maximum(self._longest, lengths.max(axis=0))
        self._corpora[-1] = replace(self._corpora[-1], count=self._corpora[-1].count + len(lines))
        self.pairs += len(lines)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if error is not None:
                raise error
            # As it is: all that is in a new folder is synced before it has its name.
            (self._partial / "store.json").write_text(format_json(asdict(self._describe())), encoding="utf-8")

    def _describe(self) -> Description:
        digests = [file.digest for file in (self._tokens, self._offsets, self._lines)]
        return Description(
            version=VERSION,
            token_type=self._token_type,
            vocabulary=self._vocabulary,
            fingerprint=_fingerprint(self._token_type, self._vocabulary, self._corpora, digests),
            pairs=self.pairs,
            tokens=int(self._totals.sum()),
            source_tokens=int(self._totals[0]),
            longest_source=int(self._longest[0]),
            longest_target=int(self._longest[1]),
            corpora=tuple(self._corpora),
        )


def _fingerprint(token_type: str, vocabulary: str, corpora: Sequence[StoredCorpus], digests: Sequence[str]) -> str:
    """Return a hash of all that training depends on; `digests` are those of the files."""
    counts = [f"{corpus.weight} {corpus.first} {corpus.count}" for corpus in corpora]
    return hashlib.sha256("\n".join([token_type, vocabulary, *counts, *digests]).encode()).hexdigest()


class HashedFile:
    """A file of numbers that knows the hash of what was written to it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._hash = hashlib.sha256()

    def write(self, numbers: NDArray[Any]) -> None:
        """Append numbers."""
        self._file.write(numbers.data)
        self._hash.update(numbers.data)

    def close(self) -> None:
        """Write what is left; nothing can be appended any more."""
        self._file.close()

    @property
    def digest(self) -> str:
        """The SHA-256 of what was written."""
        return self._hash.hexdigest()
