"""Lines in and lines out, for verbs that give one line for each line they get."""

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, Unpack

import typer

from regard.errors import CorpusError, UserError
from regard.files import disk_error
from regard.progress import Display, QuietDisplay
from regard.text.corpus import MAX_LINE_BYTES

if TYPE_CHECKING:
    from regard.translation import SearchChanges, Translation
    from regard.translator import Translator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_STANDARD_INPUT = Path("-")

# ---- in --------------------------------------------------------------------------------------------------------------


def check_input(files: Sequence[Path]) -> None:
    """Raise `UserError` for a file that is missing or a folder, before any work is done."""
    for path in files or [_STANDARD_INPUT]:
        if path == _STANDARD_INPUT:
            if sys.stdin is None:
                raise UserError("standard input is closed; give it text, or name a file")
        elif path.is_dir():
            raise CorpusError(path, None, "is a folder; give a text file")
        elif not path.exists():
            raise CorpusError(path, None, "no such file")


def read_input(files: Sequence[Path], warn: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of the files, plain or gzip, or of standard input if there are none or where one is "-".

    A line ends at "\\n" only. Bytes that are not UTF-8 become U+FFFD, and their line is named: a stream that is being
    translated does not stop for one bad byte.
    """
    for path in files or [_STANDARD_INPUT]:
        name = "standard input" if path == _STANDARD_INPUT else path
        with _open_input(path) as file:
            try:
                packed = file.peek(2).startswith(_GZIP_MAGIC)  # type: ignore[attr-defined]
                yield from _decode(name, gzip.GzipFile(fileobj=file) if packed else file, warn)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise CorpusError(name, None, f"damaged or incomplete gzip file: {error}") from None
            except OSError as error:
                raise CorpusError(name, None, f"can't be read: {error.strerror or error}") from None


@contextmanager
def _open_input(path: Path) -> Iterator[IO[bytes]]:
    if path == _STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise CorpusError(path, None, f"can't be read: {error.strerror}") from None
    with file:
        yield file


def _decode(name: Path | str, stream: IO[bytes] | gzip.GzipFile, warn: Callable[[str], None]) -> Iterator[str]:
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise CorpusError(name, number, f"longer than {MAX_LINE_BYTES:,} bytes; is this a text file?")
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
            if not raw:  # a mark and nothing else is an empty file
                return
        line = raw[:-1].removesuffix(b"\r") if raw.endswith(b"\n") else raw
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            warn(f"{name}, line {number:,}: not UTF-8; what is not was replaced by U+FFFD")
            yield line.decode("utf-8", "replace")


# ---- out -------------------------------------------------------------------------------------------------------------


@contextmanager
def open_output(path: Path | None, files: Sequence[Path] = ()) -> Iterator[TextIO]:
    """Open a file to write to, or give standard output; raises `UserError` if it can't be or is one of `files`.

    If the disk is full, what is there are whole lines, and the `DiskError` says how many.
    """
    if path is None:
        if sys.stdout is None:
            raise UserError("standard output is closed; give it a reader, or name a file with --output")
        yield sys.stdout
        return
    if path.exists() and any(os.path.samestat(path.stat(), _status(one)) for one in files or [_STANDARD_INPUT]):
        raise UserError(f"{path}: is read and written at the same time; choose another --output")
    try:
        file = path.open("w", encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UserError(f"{path}: can't be written: {error.strerror}") from None
    try:
        yield file
        file.close()  # which writes what is left
    except BrokenPipeError:  # a pipe with a name, whose reader is gone
        raise
    except OSError as error:
        with suppress(OSError):  # it tries to write again
            file.close()
        told = disk_error(path, error)
        raise type(told)(f"{told}; {_keep_whole_lines(path)}") from None
    finally:
        with suppress(OSError):
            file.close()


def _keep_whole_lines(path: Path) -> str:
    """Cut a file after its last whole line, and say how many there are."""
    if not path.is_file():
        return "some lines are missing"
    lines = end = position = 0
    with path.open("r+b") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            end = position + block.rfind(b"\n") + 1 if b"\n" in block else end
            position += len(block)
        file.truncate(end)
    return f"what is there are the first {lines:,} lines" if lines else "it is empty"


def _status(path: Path) -> os.stat_result:
    return os.fstat(sys.stdin.fileno()) if path == _STANDARD_INPUT else path.stat()


def one_line(text: str) -> str:
    """Return a text that can be written as one line: a model is free to produce a line end."""
    return text.replace("\n", " ")


def one_column(text: str) -> str:
    """Return a text that can be written as one of several columns."""
    return one_line(text).replace("\t", " ")


def complaints(display: Display) -> Callable[[str], None]:
    """Return what tells of bad lines: the display, or plain standard error where the display shows nothing."""
    return (lambda text: print(text, file=sys.stderr)) if isinstance(display, QuietDisplay) else display.say


class Failures:
    """Lines that could not be translated: each is named when it comes, all are counted."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.count = 0

    def watch(self, translations: "Iterable[Translation]") -> "Iterator[Translation]":
        """Pass translations on, and name those that failed."""
        for number, translation in enumerate(translations, start=1):
            if translation.error is not None:
                self.tell(number, translation.error)
            yield translation

    def tell(self, number: int, error: str) -> None:
        """Name a line that failed, and count it."""
        self.count += 1
        self._say(f"line {number:,} could not be translated: {error}")

    def end(self) -> None:
        """End with exit code 1 if any line failed."""
        if self.count:
            lines = "1 line" if self.count == 1 else f"{self.count:,} lines"
            self._say(f"{lines} could not be translated; an empty line stands for each")
            raise typer.Exit(1)


def translate_all(
    translator: "Translator",
    sources: Sequence[str],
    display: Display,
    failures: Failures,
    title: str = "translating",
    **changes: "Unpack[SearchChanges]",
) -> Iterator[str]:
    """Yield the translation of each line, as a line, and show how far it is."""
    with display.job(title, len(sources), "lines") as job:
        for translation in failures.watch(translator.translate_lines(sources, **changes)):
            yield one_line(translation.text)
            job.advance()
