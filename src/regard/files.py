"""Files and folders that a reader sees old or new, never half written."""

import ctypes
import errno
import json
import os
import re
import shutil
import stat
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from regard.errors import DiskError, FileFormatError, RegardError, SettingsError, UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

_THE_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # the others are mistakes, such as a missing right
_NUMBER = re.compile(r"os error (\d+)")  # as safetensors tells it
# Python's TOML takes a time that grows as the square of a key's parts. Comments may have any number of dots.
_MOST_PARTS = 50
_KEYS = re.compile(r"\n\s*#.*|[=\n]")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder to write to; when the block ends well, sync it and give it its name.

    What was there under that name is replaced. If anything fails, it stays, and the temporary folder is removed.
    """
    temporary, old = path.with_name(f".{path.name}.writing"), path.with_name(f".{path.name}.old")
    _make_parents(path.parent)
    if old.exists() and not path.exists():  # killed between the two renames of `_replace`
        old.rename(path)
    for leftover in (temporary, old):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in sorted(temporary.rglob("*")):
            sync(file)
        sync(temporary)
        _replace(path, temporary, old)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed left below `folder`: folders half written or half removed."""
    for ending in ("writing", "removing", "old"):
        for path in folder.glob(f".*.{ending}"):
            final = path.with_name(path.name[1:].removesuffix(f".{ending}"))
            if ending == "old" and not final.exists():  # killed between the two renames of `_replace`
                path.rename(final)
            else:
                shutil.rmtree(path, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, under another name first, so that no reader takes what is left of it for the whole."""
    doomed = path.with_name(f".{path.name}.removing")
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed)


def write_file(path: Path, contents: str | bytes) -> None:
    """Write a file under a temporary name, sync it, and give it its name; text becomes UTF-8.

    Raises `DiskError` or `UserError` if it can't be written; then what had that name stays, and nothing else is left.
    """
    temporary = path.with_name(f".{path.name}.writing")
    raw = contents.encode() if isinstance(contents, str) else contents
    with explain_disk_errors(path, len(raw)):
        try:
            temporary.write_bytes(raw)
            sync(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


# ---- disks that do not take it ---------------------------------------------------------------------------------------


@contextmanager
def explain_disk_errors(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turn a system's refusal to write `path`, which needs so many bytes, into an error of ours."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error, needed) from None


def disk_error(path: Path, error: Exception, needed: int | None = None) -> RegardError:
    """Return the error that says what can't be written, why, and how much room is needed and left.

    A full or failing disk is a `DiskError`; anything else, such as a missing right, is the user's to mend.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (told := _NUMBER.search(str(error))):
        number = int(told[1])
    reason = os.strerror(number) if number else str(error)
    if number not in _THE_DISKS:
        return UserError(f"{path}: can't be written: {reason}")
    room = [f"needs {_amount(needed)}"] if needed is not None else []
    if number == errno.ENOSPC:
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        room.append(f"{_amount(shutil.disk_usage(there).free)} free on this disk")
    amounts = f" ({', '.join(room)})" if room else ""
    return DiskError(f"{path}: can't be written: {reason}{amounts}")


def _amount(count: int) -> str:
    return f"{count:,} bytes" if count < 100_000 else f"{count / 1e6:,.1f} MB"


# ---- reading and checking --------------------------------------------------------------------------------------------


def sync(path: Path) -> None:
    """Make sure that a file's or folder's contents are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's contents."""
    digest = sha256()
    with open_file(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all, for people to read as well."""
    write_file(path, format_json(values))


def format_json(values: Mapping[str, Any]) -> str:
    """Return a JSON object as the text of a file, for people to read as well."""
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def read_json(path: Path, largest: int = 1 << 24) -> dict[str, Any]:
    """Read a JSON object of at most `largest` bytes; raises `FileFormatError` for anything else."""
    try:
        values = json.loads(read_text(path, largest))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path, f"not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise FileFormatError(path, "not a JSON object")
    return values


def read_record(path: Path, kind: type[Record], beside: Collection[str] = (), may_miss: Collection[str] = ()) -> Record:
    """Read a JSON object as a dataclass; raises `FileFormatError` unless it has its fields, and none but `beside` them.

    Those in `may_miss` have a default, for files that were written before there was such a field.
    """
    from pydantic import TypeAdapter, ValidationError  # takes a while to import

    values = read_json(path)
    known = {field.name for field in fields(kind)}
    try:
        if not known.difference(may_miss) <= values.keys() <= known.union(beside):
            raise ValueError("fields are missing, or not known")
        return TypeAdapter(kind).validate_python({name: values[name] for name in known & values.keys()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FileFormatError(path, f"damaged, or not what regard writes there: {where}: {first['msg']}") from None
    except ValueError as error:
        raise FileFormatError(path, f"damaged, or not what regard writes there: {error}") from None


def read_toml(path: Path, largest: int = 1 << 20) -> dict[str, Any]:
    """Read a TOML file of at most `largest` bytes; raises `SettingsError` for what is no TOML."""
    contents = read_bytes(path, largest)
    try:
        text = contents.decode("utf-8-sig")
        if any(part.count(".") > _MOST_PARTS for part in _KEYS.split(text)):
            raise ValueError(f"a name of more than {_MOST_PARTS} parts")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(str(path), [f"not valid TOML: {error}"]) from None


def read_text(path: Path, largest: int = 1 << 24) -> str:
    """Read a text file of at most `largest` bytes; raises `FileFormatError` for anything else."""
    try:
        return read_bytes(path, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.object[error.start]:#04x} at position {error.start:,}"
        raise FileFormatError(path, f"not UTF-8 text: {problem}") from None


def read_bytes(path: Path, largest: int) -> bytes:
    """Read a file of at most `largest` bytes; raises `FileFormatError` for a larger one, or one that can't be read."""
    try:
        with open_file(path) as file:
            contents = file.read(largest + 1)
    except OSError as error:
        raise FileFormatError(path, f"can't be read: {error.strerror or error}") from None
    if len(contents) > largest:
        raise FileFormatError(path, f"larger than {largest:,} bytes, which no file of this kind is")
    return contents


def open_file(path: Path) -> IO[bytes]:
    """Open a file to read; raises `OSError` for what is none: a pipe would wait for ever, a device may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which makes a difference for a pipe only: no waiting
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is not a file, but a pipe or a device", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _make_parents(folder: Path) -> None:
    """Make a folder and those above it, so that their names are on the disk."""
    if not folder.is_dir():
        _make_parents(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def _replace(path: Path, new: Path, old: Path) -> None:
    """Give `new` the name `path`; what had that name becomes `old`."""
    if not path.exists():
        new.rename(path)
    elif _exchange(new, path):
        new.rename(old)
    else:
        path.rename(old)
        try:
            new.rename(path)
        except BaseException:
            old.rename(path)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places at once; False where the system can't."""
    if sys.platform != "linux":
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:  # a C library without it
        return False
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
