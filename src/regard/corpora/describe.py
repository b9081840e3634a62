"""The words a catalogue is written in: what is fetched, and which lines of it become which text file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

Form = Literal["lines", "segments", "talks"]
"""How a file holds its sentences: a line each; in <seg> elements of SGML or XML; or as lines between lines of tags."""

Keep = Callable[[int, str], bool]
"""Says whether a sentence is kept, by its number (the first is 1) and its whole line."""


@dataclass(frozen=True)
class Download:
    """A file at its origin."""

    file: str
    address: str
    size: int | None = None
    """In bytes, where it is known."""
    checksum: str | None = None
    """'sha256:…' or 'md5:…', where it is known; else it is recorded at the first fetch and checked ever after."""
    also: tuple[str, ...] = ()
    """Other names of a file with the same text, for `--from`."""


@dataclass(frozen=True)
class Piece:
    """The sentences of one file: of a download, or of a member of it if that is an archive."""

    download: str
    member: str | None = None
    form: Form = "lines"


@dataclass(frozen=True)
class Text:
    """A text file to be written, a sentence a line: its pieces, one after the other."""

    name: str
    pieces: tuple[Piece, ...]
    keep: Keep | None = None
    column: int | None = None
    """Of tab-separated lines, this column alone, counted from 0."""
    lines: int | None = None
    sha256: str | None = None
    extra: bool = False
    """Whether the corpus can be used without it, if a folder given with `--from` does not have it."""

    @property
    def part(self) -> str:
        """The name without the language: texts of the same part belong together line by line."""
        return self.name.rpartition(".")[0]

    @property
    def language(self) -> str:
        """The language's code, which is the name's ending."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Corpus:
    """A corpus of the catalogue."""

    name: str
    about: str
    languages: tuple[str, ...]
    pairs: str
    """How many pairs it has to train on; 'about' where that is not counted here."""
    origin: str
    licence: str
    downloads: tuple[Download, ...]
    texts: tuple[Text, ...]
    recipe: str | None = None
    """A recipe of ours that trains on it."""
    notes: str = ""

    @property
    def by_file(self) -> Mapping[str, Download]:
        """The downloads by the names of their files."""
        return {download.file: download for download in self.downloads}

    @property
    def known_size(self) -> int:
        """Bytes of the downloads whose size is known."""
        return sum(download.size or 0 for download in self.downloads)

    @property
    def of_unknown_size(self) -> int:
        """How many downloads have a size that is not known."""
        return sum(download.size is None for download in self.downloads)


def every(number: int) -> Keep:
    """Keep every so-many-th sentence."""
    return lambda count, _: count % number == 0


def all_but_every(number: int) -> Keep:
    """Keep what `every` does not."""
    return lambda count, _: count % number != 0


def share_of_sources(first: int, end: int) -> Keep:
    """Keep the lines whose first column falls in a range of thousandths.

    The place is a checksum of the sentence, so all translations of a sentence are kept together, and a sentence stays
    in its part when the corpus grows.
    """

    def keep(_: int, line: str) -> bool:
        source = line.partition("\t")[0].strip()
        return first <= int.from_bytes(sha256(source.encode()).digest()[:8], "big") % 1000 < end

    return keep
