"""Unpacking without trust: chosen members of an archive, each to a path that is ours, within bounds.

An archive that holds a link, a device or a name that points outside is refused as a whole: no corpus has one. What a
file unpacks to is bounded by its size: text packs to a third or a fifth of its length, never to a hundredth.
"""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self

from regard.errors import CorpusError
from regard.progress import Display, Job

_BLOCK_BYTES = 1 << 20
_SMALL = 1 << 24  # bytes; a file may always unpack to so many
_RATIO = 100  # times its own size
_MEMBERS = 100_000
_HEADER_BYTES = 1 << 20  # a tar header's extension is read into memory
_EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_DAMAGE = (EOFError, OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def is_archive(path: Path) -> bool:
    """Say by a file's name whether it is an archive with members."""
    return path.name.endswith((".tgz", ".tar", ".tar.gz", ".zip"))


def unpack(archive: Path, wanted: Mapping[str, Path], display: Display) -> None:
    """Write the members of an archive that are wanted to the paths given for them.

    Raises `CorpusError` if the archive is damaged, holds anything that no corpus has, or misses a member.
    """
    missing = set(wanted)
    with _explain_damage(archive), display.job(f"unpacking {archive.name}", unit="bytes") as job:
        members = _zip_members(archive) if archive.suffix == ".zip" else _tar_members(archive)
        for number, (name, stream) in enumerate(members):
            if number >= _MEMBERS:
                raise CorpusError(archive, None, f"holds more than {_MEMBERS:,} files; no corpus does")
            plain = str(PurePosixPath(name))
            if stream is not None and plain in missing:
                missing.remove(plain)
                _write(stream, wanted[plain], job)
    if missing:
        raise CorpusError(archive, None, f"does not hold {', '.join(sorted(missing))}")


@contextmanager
def open_text(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; one that is packed by gzip is unpacked, within bounds."""
    with _explain_damage(path), path.open("rb") as file:
        if file.peek(2).startswith(b"\x1f\x8b"):
            yield io.BufferedReader(_Bounded(gzip.GzipFile(fileobj=file), path))
        else:
            yield file


def _write(stream: IO[bytes], path: Path, job: Job) -> None:
    with path.open("wb") as out:
        while block := stream.read(_BLOCK_BYTES):
            out.write(block)
            job.advance(len(block))


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's trouble, not the file's
        raise CorpusError(path, None, f"damaged, incomplete or not what its name says: {error}") from None


# ---- members ---------------------------------------------------------------------------------------------------------


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the name of each member and, for a file, its contents, to be read before the next one."""
    with open_text(archive) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
        for member in tar:
            _check_name(archive, member.name)
            if not (member.isreg() or member.isdir()) or member.issparse():
                raise CorpusError(archive, None, f"holds {member.name!r}, which is a link, a device or the like")
            yield member.name, tar.extractfile(member) if member.isreg() else None


class _Header(tarfile.TarInfo):
    """A header whose extensions are too short to fill the memory."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Self:
        """Read a header's block."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENSIONS and found.size > _HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {found.size:,} bytes")
        return found


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(archive) as packed:
        limit = _limit(archive)
        for member in packed.infolist():
            _check_name(archive, member.filename)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise CorpusError(archive, None, f"holds {member.filename!r}, which is a link, a device or the like")
            limit -= member.file_size  # zipfile gives no more than this
            if limit < 0:
                raise CorpusError(archive, None, _too_much(archive))
            if member.is_dir():
                yield member.filename, None
            else:
                with packed.open(member) as stream:
                    yield member.filename, stream


def _check_name(archive: Path, name: str) -> None:
    """Raise `CorpusError` for a name that leads out of the folder it is in, on any system."""
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in name:
        raise CorpusError(archive, None, f"holds {name!r}, which points outside its folder; refused")


# ---- bounds ----------------------------------------------------------------------------------------------------------


class _Bounded(io.RawIOBase):
    """A stream that ends in an error when more comes out of it than a file of its size should give."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, path: Path) -> None:
        self._stream, self._path, self._left = stream, path, _limit(path)

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what fits."""
        block = self._stream.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            raise CorpusError(self._path, None, _too_much(self._path))
        buffer[: len(block)] = block
        return len(block)


def _limit(path: Path) -> int:
    return max(_SMALL, _RATIO * path.stat().st_size)


def _too_much(path: Path) -> str:
    return f"unpacks to more than {_limit(path):,} bytes, which no text of this size does; refused"
