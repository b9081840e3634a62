"""Finding repeats among any number of pairs in constant memory, by way of files.

A pair is known by 8 bytes of its hash: among ten million pairs, two different ones are taken for the same with a
chance of one in 400,000. The hashes are spread over some files by their value, so that equal ones are in the same file,
and each file is small enough to be sorted in memory. Few pairs need no files: their hashes never leave the memory.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

_PARTS = 64
_ROWS_AT_ONCE = 1 << 17  # that are kept in memory before they go to the files
_ENTRY = np.dtype([("hash", np.uint64), ("row", np.int64)])


class DuplicateFinder:
    """Takes pairs one after the other, then tells for each where it was first seen; a row is a pair's number."""

    def __init__(self, folder: Path) -> None:
        self.rows = 0
        self._folder = folder
        self._waiting: list[NDArray[Any]] = []  # entries that are in no file yet
        self._spread_rows = 0
        self._files: list[BinaryIO] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Take the next pairs: source and target of each."""
        # A line has no newline in it, so one between source and target can't be mistaken.
        digests = [blake2b(f"{source}\n{target}".encode(), digest_size=8).digest() for source, target in pairs]
        entries = np.empty(len(digests), _ENTRY)
        entries["hash"] = np.frombuffer(b"".join(digests), np.uint64)
        entries["row"] = np.arange(self.rows, self.rows + len(digests))
        self._waiting.append(entries)
        self.rows += len(digests)
        if self.rows - self._spread_rows >= _ROWS_AT_ONCE:
            self._spread()

    def find_first(self) -> NDArray[np.int64]:
        """Return for each row the first row that has the same pair: itself, unless it is a repeat.

        The rows of many pairs are mapped from disk.
        """
        if not self.rows:
            return np.empty(0, np.int64)
        if not self._files:
            first = np.empty(self.rows, np.int64)
            _fill(first, np.concatenate(self._waiting))
            return first
        if self._waiting:
            self._spread()
        self._stack.close()
        first = self._map_rows()
        for file in self._files:
            _fill(first, np.fromfile(file.name, _ENTRY))
        return np.asarray(first)

    def _spread(self) -> None:
        """Write the entries that wait, each to the file of its hash."""
        if not self._files:
            paths = [self._folder / f"hashes-{part}.bin" for part in range(_PARTS)]
            self._files = [self._stack.enter_context(path.open("wb")) for path in paths]
        entries = np.concatenate(self._waiting)
        part = entries["hash"] % np.uint64(_PARTS)
        order = np.argsort(part, kind="stable")
        bounds = np.searchsorted(part[order], np.arange(1, _PARTS, dtype=np.uint64))
        for file, own in zip(self._files, np.split(entries[order], bounds), strict=True):
            file.write(own.tobytes())
        self._waiting, self._spread_rows = [], self.rows

    def _map_rows(self) -> NDArray[np.int64]:
        """Map a file of a number for each row."""
        # Written in full before it is mapped: a full disk refuses what is written, but kills who writes to a map.
        with (self._folder / "first.bin").open("wb") as file:
            for start in range(0, self.rows, _ROWS_AT_ONCE):
                file.write(bytes(8 * min(_ROWS_AT_ONCE, self.rows - start)))
        return np.memmap(self._folder / "first.bin", np.int64, "r+", shape=(self.rows,))


def _fill(first: NDArray[np.int64], entries: NDArray[Any]) -> None:
    """Write into `first`, for the row of each entry, the first row with the same hash."""
    entries = entries[np.argsort(entries["hash"], kind="stable")]
    begins = np.ones(len(entries), bool)
    begins[1:] = entries["hash"][1:] != entries["hash"][:-1]
    group = np.cumsum(begins) - 1
    rows = entries["row"]
    first[rows] = rows[begins][group]
