"""The sentences of a file, in the three forms that corpora have, and the text file that is made of them."""

import html
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.corpora.describe import Form, Piece, Text
from regard.corpora.unpack import open_text
from regard.errors import CorpusError
from regard.files import sync
from regard.progress import Display

_LONGEST_LINE = 1 << 24  # bytes, as for all text here
_LARGEST_SET = 1 << 27  # bytes of a file of segments, which is read at once
_SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_KEPT_TAGS = re.compile(rb"</?(?:title|description)>")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def write_text(text: Text, files: Mapping[Piece, Path], folder: Path, display: Display) -> dict[str, Any]:
    """Write a text of its pieces' files and return its number of lines and its SHA-256.

    Raises `CorpusError` if it is not the text that the catalogue knows.
    """
    path = folder / text.name
    temporary = path.with_name(f".{path.name}.writing")
    digest, lines = sha256(), 0
    with display.job(f"writing {text.name}", text.lines) as job, temporary.open("wb") as out:
        for piece in text.pieces:
            for line in _chosen(text, files[piece], piece.form):
                block = line + b"\n"
                out.write(block)
                digest.update(block)
                lines += 1
                if lines % 10_000 == 0:
                    job.advance(10_000)
    found = {"lines": lines, "sha256": digest.hexdigest()}
    for name, expected in (("lines", text.lines), ("sha256", text.sha256)):
        if expected is not None and found[name] != expected:
            temporary.unlink()
            source = files[text.pieces[0]]
            problem = f"gives {text.name} with {name} {found[name]}, and the catalogue knows {expected}"
            raise CorpusError(source, None, f"not the text that it should be: {problem}")
    sync(temporary)
    temporary.replace(path)
    return found


def _chosen(text: Text, path: Path, form: Form) -> Iterator[bytes]:
    """Yield the sentences of a file that belong to a text."""
    sentences = read_sentences(path, form)
    if text.keep is None and text.column is None:
        yield from sentences
        return
    for number, sentence in enumerate(sentences, start=1):
        try:
            line = sentence.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(path, number, f"not UTF-8 (byte 0x{sentence[error.start]:02x})") from None
        if text.keep is not None and not text.keep(number, line):
            continue
        if text.column is None:
            yield sentence
            continue
        columns = line.split("\t")
        if len(columns) <= text.column:
            raise CorpusError(path, number, f"has {len(columns)} columns, expected at least {text.column + 1}")
        yield columns[text.column].encode()


def read_sentences(path: Path, form: Form) -> Iterator[bytes]:
    """Yield the sentences of a file, plain or gzip, as they are but for white space around them in tags."""
    match form:
        case "lines":
            return _lines(path)
        case "talks":
            return _talks(path)
        case "segments":
            return _segments(path)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield lines, which end at a line feed and nowhere else; a carriage return before it is dropped."""
    with open_text(path) as stream:
        start = _BYTE_ORDER_MARK
        while line := stream.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise CorpusError(path, None, f"has a line longer than {_LONGEST_LINE:,} bytes; is this a text file?")
            yield line.removeprefix(start).removesuffix(b"\n").removesuffix(b"\r")
            start = b""


def _talks(path: Path) -> Iterator[bytes]:
    """Yield the sentences of WIT3's training files: all but lines of tags; titles and descriptions are sentences."""
    for line in _lines(path):
        plain = _KEPT_TAGS.sub(b"", line).strip()
        if not plain.startswith(b"<"):
            yield plain


def _segments(path: Path) -> Iterator[bytes]:
    """Yield the segments of a test set in SGML or XML, entities resolved and white space made single spaces."""
    with open_text(path) as stream:
        content = stream.read(_LARGEST_SET + 1)
    if len(content) > _LARGEST_SET:
        raise CorpusError(path, None, f"larger than {_LARGEST_SET:,} bytes, which no test set is")
    for found in _SEGMENT.finditer(content):
        try:
            yield " ".join(html.unescape(found[1].decode("utf-8")).split()).encode()
        except UnicodeDecodeError:
            line = content.count(b"\n", 0, found.start()) + 1
            raise CorpusError(path, line, "not UTF-8") from None
