"""Corpora: lines of text files, and pairs of them, streamed with their line numbers.

A line ends at "\\n" and nowhere else; one "\\r" right before it is dropped. Whatever else Unicode or Python calls a
line break (U+2028, U+0085, form feed, a lone "\\r") is text. Files are UTF-8, plain or gzip.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from regard.errors import CorpusError
from regard.settings import Corpus

MAX_LINE_BYTES = 1 << 24
"""Longest line in bytes: far beyond any sentence, so that a file that is not text can't fill the memory."""

_BLOCK_BYTES = 1 << 18
_PAIRS_AT_ONCE = 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


class Pair(NamedTuple):
    """A sentence and its translation, with the number of their line (the first is 1)."""

    source: str
    target: str
    line: int


class PairChunk(NamedTuple):
    """Pairs of lines that follow each other: their sources, as many targets, and the number of their first line."""

    sources: list[str]
    targets: list[str]
    first_line: int


# ---- lines -----------------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their ends; raises `CorpusError` for whatever is not text."""
    return chain.from_iterable(
        _decode(path, first_line, block).removesuffix("\n").split("\n") for first_line, block in _read_blocks(path)
    )


def _read_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the file in blocks of whole lines, each with the number of its first line.

    Checking, decoding and splitting a block at a time is several times as fast as doing it line by line.
    """
    line, begun = 1, b""
    try:
        with path.open("rb") as file:
            packed = path.suffix == ".gz" or file.peek(2).startswith(_GZIP_MAGIC)
            stream = gzip.GzipFile(fileobj=file) if packed else file
            chunk = stream.read(_BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK)
            while chunk:
                head, newline, tail = chunk.rpartition(b"\n")
                if newline:
                    block = begun + head + newline
                    yield line, block
                    line, begun = line + block.count(b"\n"), tail
                else:
                    begun += tail
                if len(begun) > MAX_LINE_BYTES:
                    raise CorpusError(path, line, f"longer than {MAX_LINE_BYTES:,} bytes; is this a text file?")
                chunk = stream.read(_BLOCK_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(path, None, f"damaged or incomplete gzip file: {error}") from None
    except OSError as error:
        raise CorpusError(path, None, f"can't be read: {error.strerror or error}") from None
    if begun:
        yield line, begun


def _decode(path: Path, first_line: int, block: bytes) -> str:
    """Decode whole lines; the number of a broken one is looked for only where there is one."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        problem = f"not UTF-8 (byte 0x{block[error.start]:02x}); convert the file first, for example with iconv"
        raise CorpusError(path, line, problem) from None
    if "\0" in text:
        line = first_line + text.count("\n", 0, text.index("\0"))
        raise CorpusError(path, line, "contains a NUL character; is this a text file in UTF-8?")
    return text.replace("\r\n", "\n") if "\r" in text else text  # one character is found much sooner than two


# ---- pairs -----------------------------------------------------------------------------------------------------------


def read_pairs(corpus: Corpus) -> Iterator[Pair]:
    """Yield a corpus's pairs in the order of its lines, empty ones too; raises as `read_pair_chunks` does."""
    for sources, targets, first_line in read_pair_chunks(corpus, _PAIRS_AT_ONCE):
        yield from map(Pair, sources, targets, count(first_line))


def read_pair_chunks(corpus: Corpus, size: int) -> Iterator[PairChunk]:
    """Yield a corpus's pairs, `size` of them at a time: several times as fast as one by one.

    Raises `CorpusError` where the two files differ in their number of lines or a line of a tab-separated file has less
    than two columns.
    """
    if corpus.pairs is not None:
        return _read_table(corpus.pairs, size)
    assert corpus.source is not None
    assert corpus.target is not None
    return _read_in_step(corpus.source, corpus.target, size)


def _read_in_step(source: Path, target: Path, size: int) -> Iterator[PairChunk]:
    sources, targets = read_lines(source), read_lines(target)
    for first_line in count(1, size):
        chunk = PairChunk(list(islice(sources, size)), list(islice(targets, size)), first_line)
        ours, theirs = len(chunk.sources), len(chunk.targets)
        if ours != theirs:
            rest = sum(1 for _ in (sources if ours > theirs else targets))
            short, long = (target, source) if ours > theirs else (source, target)
            ends, has = first_line - 1 + min(ours, theirs), first_line - 1 + max(ours, theirs) + rest
            problem = f"ends after {_lines(ends)}, but {long} has {has:,}; each line needs its partner"
            raise CorpusError(short, None, problem)
        if not ours:
            return
        yield chunk


def _read_table(path: Path, size: int) -> Iterator[PairChunk]:
    lines = read_lines(path)
    for first_line in count(1, size):
        rows = [text.split("\t", 2) for text in islice(lines, size)]
        if not rows:
            return
        if (line := next((line for line, row in enumerate(rows, first_line) if len(row) < 2), None)) is not None:
            raise CorpusError(path, line, "no tab: expected the source, a tab and the target")
        yield PairChunk([row[0] for row in rows], [row[1] for row in rows], first_line)


def _lines(number: int) -> str:
    return f"{number:,} line" if number == 1 else f"{number:,} lines"


# ---- languages -------------------------------------------------------------------------------------------------------

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_ROLES = frozenset({"src", "source", "tgt", "trg", "target", "ref", "hyp", "in", "out"})


def guess_languages(source: Path, target: Path) -> tuple[str, str] | None:
    """Read the languages off two file names, such as `train.en.gz` and `train.de.gz`.

    The names, split at dots, must differ in one part only, and that part must look like a language's code. Returns None
    where nothing can be read off.
    """
    ours, theirs = source.name.split("."), target.name.split(".")
    if len(ours) != len(theirs):
        return None
    different = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    if len(different) != 1 or not all(map(_is_language_code, different[0])):
        return None
    return different[0]


def _is_language_code(text: str) -> bool:
    return _LANGUAGE_CODE.fullmatch(text) is not None and text.lower() not in _ROLES
