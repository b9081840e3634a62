"""A real disk that is small, for tests of what happens when it is full."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096  # what such a disk takes for a file of one byte


class SmallDisk:
    """A disk in memory, at `path`, that can be filled up to so many bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, leave: int) -> None:
        """Take all the room but `leave` bytes."""
        free = shutil.disk_usage(self.path).free
        assert free >= leave
        self._ballast.write_bytes(bytes(free - leave))

    def make_room(self) -> None:
        """Give it back."""
        self._ballast.unlink()

    def leftovers(self) -> list[Path]:
        """Everything that is only there while something is written or removed."""
        endings = (".writing", ".removing", ".old", ".duplicates")
        return [path for path in self.path.rglob(".*") if path.name.endswith(endings)]


@contextmanager
def mounted(path: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a disk of `size` bytes; skips the test where that is not allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here; that needs Linux and the rights of root")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
