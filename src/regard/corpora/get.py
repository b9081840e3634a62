"""Getting a corpus: its files found in a folder or fetched, checked, unpacked, and written as text files.

A corpus's folder holds

    train.en, train.de, …   the text files, a sentence a line
    origin.json             where they are from, and the checksums of all that was read and written
    downloads/              what was fetched; it may be removed

What is there and whole is not made again.
"""

import fcntl
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from regard.corpora.describe import Corpus, Download, Piece, Text
from regard.corpora.fetch import PAUSES, fetch
from regard.corpora.record import Record
from regard.corpora.sentences import write_text
from regard.corpora.unpack import is_archive, unpack
from regard.errors import CorpusError, UserError
from regard.progress import Display


@dataclass(frozen=True)
class Got:
    """What a corpus's folder holds now."""

    folder: Path
    texts: tuple[str, ...]
    written: tuple[str, ...]
    """Those that were not there before."""


def get(
    corpus: Corpus, folder: Path, display: Display, *, source: Path | None = None, pauses: Sequence[float] = PAUSES
) -> Got:
    """Make a corpus's text files in `folder`, of files in the folder `source` or of what is fetched.

    Raises `UserError` or `FetchError` if that is impossible, and says why.
    """
    if source is not None and not source.is_dir():
        raise UserError(f"{source}: no such folder")
    with _locked(folder):
        record = Record.read(folder)
        todo = [text for text in corpus.texts if not record.has_whole(text.name)]
        if source is not None:
            todo = _available(corpus, todo, source, display)
        files = {
            piece: _obtain(corpus, piece, folder, source, record, display, pauses)
            for piece in dict.fromkeys(piece for text in todo for piece in text.pieces)
        }
        with _unpacked(files, folder / ".unpacked", display) as plain:
            for text in todo:
                record.texts[text.name] = write_text(text, plain, folder, display)
        there = tuple(text.name for text in corpus.texts if text.name in record.texts)
        _check_lines(corpus, folder, record)
        if todo:
            record.write(corpus)
    return Got(folder, there, tuple(text.name for text in todo))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise UserError(f"{folder}: can't be made or written to: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{folder}: another process is getting a corpus here; wait for it") from None
        yield


# ---- where files are -------------------------------------------------------------------------------------------------


def _available(corpus: Corpus, texts: Iterable[Text], source: Path, display: Display) -> list[Text]:
    """Return the texts whose files are in a folder, and say which are not; raise if one of those is needed."""
    found: list[Text] = []
    missing: list[Text] = []
    for text in texts:
        there = all(_find(corpus, piece, source) for piece in text.pieces)
        (found if there else missing).append(text)
    files = sorted({piece.download for text in missing if not text.extra for piece in text.pieces})
    if files:
        raise CorpusError(source, None, f"does not hold {', '.join(files)}, also not below {corpus.name}/")
    if missing:
        display.say(f"not in {source}, and left out: {summary(text.name for text in missing)}")
    return found


def _find(corpus: Corpus, piece: Piece, source: Path) -> Path | None:
    """Return the file in a folder that has a piece: the download under one of its names, or the member, unpacked."""
    download = corpus.by_file[piece.download]
    names = [download.file, *download.also] + ([piece.member] if piece.member else [])
    places = [folder / name for name in names for folder in (source / corpus.name, source)]
    return next((place for place in places if place.is_file()), None)


def _obtain(
    corpus: Corpus,
    piece: Piece,
    folder: Path,
    source: Path | None,
    record: Record,
    display: Display,
    pauses: Sequence[float],
) -> Path:
    """Return the file that has a piece, checked: the user's, one fetched earlier, or one fetched now."""
    download = corpus.by_file[piece.download]
    if source is not None:
        found = _find(corpus, piece, source)
        assert found is not None
        record.check_download(download, found, fetched=False)
        return found
    path = folder / "downloads" / download.file
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        fetch(download.address, path, display, size=download.size, pauses=pauses)
    record.check_download(download, path, fetched=True)
    return path


# ---- what is in them -------------------------------------------------------------------------------------------------


@contextmanager
def _unpacked(files: Mapping[Piece, Path], scratch: Path, display: Display) -> Iterator[dict[Piece, Path]]:
    """Give each piece's plain file; members of archives are unpacked for the time of the block, each archive once."""
    shutil.rmtree(scratch, ignore_errors=True)
    plain = dict(files)
    archives: dict[Path, dict[str, Path]] = {}
    for number, (piece, path) in enumerate(files.items()):
        if is_archive(path):
            assert piece.member is not None
            plain[piece] = archives.setdefault(path, {}).setdefault(piece.member, scratch / str(number))
    try:
        if archives:
            scratch.mkdir()
        for archive, wanted in archives.items():
            unpack(archive, wanted, display)
        yield plain
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_lines(corpus: Corpus, folder: Path, record: Record) -> None:
    """Raise `CorpusError` if two texts of a part differ in their number of lines."""
    first: dict[str, Text] = {}
    for text in (text for text in corpus.texts if text.name in record.texts):
        other = first.setdefault(text.part, text)
        ours, theirs = record.texts[text.name]["lines"], record.texts[other.name]["lines"]
        if ours != theirs:
            raise CorpusError(
                folder / text.name, None, f"has {ours:,} lines, but {other.name} has {theirs:,}; the origin is damaged"
            )


def summary(names: Iterable[str]) -> str:
    """Write names of texts briefly: train.{en,de} for train.en and train.de."""
    parts: dict[str, list[str]] = {}
    for part, _, language in (name.rpartition(".") for name in names):
        parts.setdefault(part, []).append(language)
    return ", ".join(
        f"{part}.{{{','.join(languages)}}}" if len(languages) > 1 else f"{part}.{languages[0]}"
        for part, languages in parts.items()
    )


def describe_download(download: Download) -> str:
    """Say what is known of a download, in words."""
    size = "size not known" if download.size is None else f"{download.size:,} bytes"
    known = download.checksum or "no checksum known; recorded at the first fetch and checked ever after"
    return f"{download.address}\n    {size}; {known}"
