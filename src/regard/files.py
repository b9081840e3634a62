"""Files and folders that a reader sees old or new, never half written."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.errors import FileFormatError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder to write to; when the block ends well, sync it and give it its name.

    What was there under that name is replaced. If the block fails, the temporary folder is removed.
    """
    temporary = path.with_name(f".{path.name}.writing")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in sorted(temporary.rglob("*")):
            sync(file)
        sync(temporary)
        if path.exists():
            old = path.with_name(f".{path.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
            temporary.rename(path)
            shutil.rmtree(old)
        else:
            temporary.rename(path)
        sync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_file(path: Path, text: str) -> None:
    """Write a text file under a temporary name, sync it, and give it its name."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text(text, encoding="utf-8")
    sync(temporary)
    temporary.replace(path)
    sync(path.parent)


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
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object for people to read as well."""
    write_file(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, largest: int = 1 << 26) -> dict[str, Any]:
    """Read a JSON object of at most `largest` bytes; raises `FileFormatError` for anything else."""
    try:
        if path.stat().st_size > largest:
            raise FileFormatError(path, f"larger than {largest:,} bytes, which no file of this kind is")
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(path, f"can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise FileFormatError(path, f"not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise FileFormatError(path, "not a JSON object")
    return values
