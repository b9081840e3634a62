"""What a corpus's folder was made from: `origin.json`, with the checksum of everything that was read and written."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.corpora.describe import Corpus, Download
from regard.errors import CorpusError, FetchError
from regard.files import checksum, read_json, write_json

NAME = "origin.json"


@dataclass
class Record:
    """The facts of a corpus's folder."""

    path: Path
    downloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the name of the file: its address or path, size and SHA-256."""
    texts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the name of the text: its lines and SHA-256."""

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """Read a folder's record; an empty one if it has none."""
        path = folder / NAME
        if not path.exists():
            return cls(path)
        values = read_json(path)
        return cls(path, dict(values.get("downloads", {})), dict(values.get("texts", {})))

    def write(self, corpus: Corpus) -> None:
        """Write it, with what the catalogue says of the corpus."""
        about = {"corpus": corpus.name, "origin": corpus.origin, "licence": corpus.licence}
        write_json(self.path, {**about, "downloads": self.downloads, "texts": self.texts})

    def has_whole(self, name: str) -> bool:
        """Say whether a text is there, as it was when it was written."""
        path = self.path.parent / name
        return name in self.texts and path.is_file() and checksum(path) == self.texts[name].get("sha256")

    def check_download(self, download: Download, path: Path, *, fetched: bool) -> None:
        """Compare a file with the catalogue's checksum and with the one recorded earlier, and record it.

        A fetched file that is not what it should be is removed. Raises `FetchError` for it, and `CorpusError` for one
        of the user's.
        """
        found = {"sha256": checksum(path)}
        kind, _, expected = (download.checksum or "").partition(":")
        if path.name == download.file and expected:
            found[kind] = found.get(kind) or _md5(path)
            if found[kind] != expected:
                _refuse(path, f"its {kind.upper()} is {found[kind]}, and the catalogue's {expected}", fetched)
        before = self.downloads.get(path.name, {}).get("sha256", found["sha256"])
        if before != found["sha256"]:
            advice = f"if the new one is right, delete {self.path} and the texts beside it"
            _refuse(path, f"its SHA-256 is {found['sha256']}, and was {before} the first time; {advice}", fetched)
        origin = {"address": download.address} if fetched else {"path": str(path.absolute())}
        self.downloads[path.name] = {**origin, "size": path.stat().st_size, "sha256": found["sha256"]}


def _refuse(path: Path, problem: str, fetched: bool) -> None:
    if not fetched:
        raise CorpusError(path, None, f"not the file that it should be: {problem}")
    path.unlink()
    raise FetchError(f"{path.name}: not the file that it should be, so it is removed: {problem}")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
