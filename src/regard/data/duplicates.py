"""Finding repeats among any number of pairs in constant memory, by way of files.

A pair is known by 8 bytes of its hash: among ten million pairs, two different ones are taken for the same with a
chance of one in 400,000. The hashes are spread over some files by their value, so that equal ones are in the same file,
and each file is small enough to be sorted in memory.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_PARTS = 64
_ROWS_AT_ONCE = 1 << 17
_ENTRY = np.dtype([("hash", np.uint64), ("row", np.int64)])


class DuplicateFinder:
    """Takes pairs one after the other, then tells for each where it was first seen; a row is a pair's number."""

    def __init__(self, folder: Path) -> None:
        self.rows = 0
        self._folder = folder
        self._paths = [folder / f"hashes-{part}.bin" for part in range(_PARTS)]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._files = [stack.enter_context(path.open("wb")) for path in self._paths]
            self._stack = stack.pop_all()
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
        part = entries["hash"] % np.uint64(_PARTS)
        order = np.argsort(part, kind="stable")
        bounds = np.searchsorted(part[order], np.arange(1, _PARTS, dtype=np.uint64))
        for file, own in zip(self._files, np.split(entries[order], bounds), strict=True):
            file.write(own.tobytes())
        self.rows += len(digests)

    def find_first(self) -> NDArray[np.int64]:
        """Return for each row the first row that has the same pair: itself, unless it is a repeat; mapped from disk."""
        self._stack.close()
        if not self.rows:
            return np.empty(0, np.int64)
        # Written in full before it is mapped: a full disk refuses what is written, but kills who writes to a map.
        with (self._folder / "first.bin").open("wb") as file:
            for start in range(0, self.rows, _ROWS_AT_ONCE):
                file.write(bytes(8 * min(_ROWS_AT_ONCE, self.rows - start)))
        first = np.memmap(self._folder / "first.bin", np.int64, "r+", shape=(self.rows,))
        for path in self._paths:
            entries = np.fromfile(path, _ENTRY)
            rows, leaders = _lead(entries)
            first[rows] = leaders
        return np.asarray(first)


def _lead(entries: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in the order of their hashes, and for each the first row with the same hash."""
    entries = entries[np.argsort(entries["hash"], kind="stable")]
    begins = np.ones(len(entries), bool)
    begins[1:] = entries["hash"][1:] != entries["hash"][:-1]
    group = np.cumsum(begins) - 1
    rows: NDArray[np.int64] = entries["row"]
    return rows, rows[begins][group]
