"""Lines of standard input or of files, for verbs that give one line out for each one in."""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from regard.errors import UserError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


def read_input(files: Sequence[Path], warn: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of the files, or of standard input if there are none.

    A line ends at "\\n" only. Bytes that are not UTF-8 become U+FFFD, and their line is named: a stream that is being
    translated does not stop for one bad byte.
    """
    if not files:
        yield from _decode("standard input", sys.stdin.buffer, warn)
    for path in files:
        with ExitStack() as stack:
            try:
                file = stack.enter_context(path.open("rb"))
                packed = file.peek(2).startswith(_GZIP_MAGIC)
                lines: Iterable[bytes] = gzip.GzipFile(fileobj=file) if packed else file
                yield from _decode(str(path), lines, warn)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise UserError(f"{path}: damaged or incomplete gzip file: {error}") from None
            except OSError as error:
                raise UserError(f"{path}: can't be read: {error.strerror or error}") from None


def _decode(name: str, stream: Iterable[bytes], warn: Callable[[str], None]) -> Iterator[str]:
    for number, raw in enumerate(stream, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            warn(f"{name}, line {number:,}: not UTF-8; what is not was replaced by U+FFFD")
            yield line.decode("utf-8", "replace")


def one_line(text: str) -> str:
    """Return a text that can be written as one line: a model is free to produce a line end."""
    return text.replace("\n", " ")


def one_column(text: str) -> str:
    """Return a text that can be written as one of several columns."""
    return one_line(text).replace("\t", " ")
