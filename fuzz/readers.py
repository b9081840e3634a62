"""Every reader of regard as a function of bytes that raises nothing, and good files of each.

A `RegardError` is what a reader should end with; anything else is a finding.

The fuzzer (fuzz.py) and the tests (tests/test_rubbish.py) feed these.
"""

import atexit
import gzip
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from regard.cli.lines import read_input
from regard.data.store import Store, StoreWriter
from regard.errors import RegardError
from regard.files import read_json, read_toml
from regard.model_folder import FACTS, SETTINGS, VOCABULARY, WEIGHTS, read_model, read_settings, read_weights
from regard.settings import Corpus, parse_override, read_recipe
from regard.shortlist import Shortlist
from regard.text.corpus import read_lines, read_pairs
from regard.text.vocabulary import Vocabulary

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "tests" / "stored" / "model-format-1"
MODEL_FILES = (SETTINGS, VOCABULARY, WEIGHTS, FACTS)
STORE_FILES = ("store.json", "tokens.bin", "offsets.bin", "lines.bin")
TEXT = "One sentence.\r\n\nzwei Sätze, “drei”\t四つ\n\u2028\x0b😀 end".encode()


@dataclass(frozen=True)
class Reader:
    """What reads, and good files that mutations begin with."""

    read: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


@cache
def scratch() -> Path:
    """A folder for the files that are read; where there is one, in memory."""
    memory = Path("/dev/shm")
    folder = mkdtemp(prefix="regard-fuzz-", dir=memory if memory.is_dir() else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def written(data: bytes, name: str) -> Path:
    path = scratch() / name
    path.write_bytes(data)
    return path


def recipes() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "recipes").glob("*.toml"))] + [stored(SETTINGS)]


def stored(name: str) -> bytes:
    return (MODEL / name).read_bytes()


# ---- the readers -----------------------------------------------------------------------------------------------------


def recipe(data: bytes) -> None:
    with suppress(RegardError):
        read_recipe(written(data, "recipe.toml")).to_toml()
    with suppress(RegardError):
        parse_override(data.decode("utf-8", "surrogateescape"))


def toml(data: bytes) -> None:
    with suppress(RegardError):
        read_toml(written(data, "file.toml"))


def json(data: bytes) -> None:
    with suppress(RegardError):
        read_json(written(data, "file.json"))


def text(data: bytes) -> None:
    path = written(data, "file.txt")
    with suppress(RegardError):
        list(read_lines(path))
    # What is translated may be anything but a broken gzip file: as many lines come in as there are.
    with suppress(RegardError):
        lines = list(read_input([path], lambda _: None))
        if not data.startswith(b"\x1f\x8b"):
            data = data.removeprefix(b"\xef\xbb\xbf")
            assert len(lines) == data.count(b"\n") + bool(data and not data.endswith(b"\n"))


def tsv(data: bytes) -> None:
    with suppress(RegardError):
        list(read_pairs(Corpus(pairs=written(data, "file.tsv"))))


def packed(data: bytes) -> None:
    path = written(data, "file.gz")
    for read in (read_lines, lambda path: read_input([path], lambda _: None)):
        with suppress(RegardError):
            list(read(path))


def sentencepiece(data: bytes) -> None:
    with suppress(RegardError):
        vocabulary = Vocabulary(data)
        for sentence in ("the cat ▁ sat\0", "中 ü ﬀ ①\ud800", "x" * 300):
            ids = vocabulary.encode(sentence)
            vocabulary.decode(ids)
            vocabulary.word_numbers(ids)
        everything = range(len(vocabulary))
        vocabulary.decode(everything)
        vocabulary.pieces(everything)
        vocabulary.word_numbers(everything)


def safetensors(data: bytes) -> None:
    with suppress(RegardError):
        settings, vocabulary = expected()
        read_weights(written(data, WEIGHTS), settings, vocabulary)


@cache
def expected() -> tuple:
    return read_settings(MODEL / SETTINGS), len(Vocabulary.load(MODEL / VOCABULARY))


def shortlist(data: bytes) -> None:
    with suppress(RegardError):
        vocabulary = stored_vocabulary()
        found = Shortlist.load(written(data, "shortlist.safetensors"), vocabulary)
        for token in range(len(vocabulary)):
            assert max(found.rows([token])) < len(vocabulary)


@cache
def stored_vocabulary() -> Vocabulary:
    return Vocabulary.load(MODEL / VOCABULARY)


def shortlists() -> list[bytes]:
    vocabulary = stored_vocabulary()
    starts = np.arange(len(vocabulary) + 1, dtype=np.int32)
    always = np.array([3, 4, 9], np.int32)
    path = scratch() / "shortlist.safetensors"
    Shortlist(vocabulary.fingerprint, always, starts, np.full(len(vocabulary), 7, np.int32)).save(path)
    return [path.read_bytes()]


def model_folder(data: bytes) -> None:
    """Read a model one of whose files, chosen by the first byte, is replaced by the rest."""
    folder = scratch() / "model"
    if not folder.exists():
        shutil.copytree(MODEL, folder)
    with suppress(RegardError):
        replaced(folder, MODEL_FILES, data, lambda: read_model(folder))


def store(data: bytes) -> None:
    """Open a token store one of whose files, chosen by the first byte, is replaced by the rest."""
    folder = scratch() / "store"
    if not folder.exists():
        write_store(folder)

    def read() -> None:
        found = Store.open(folder)
        found.check_numbers(vocabulary_size=10)
        for row in range(len(found)):
            assert max(*found.source(row), *found.target(row)) < 10
            found.locate(row)

    with suppress(RegardError):
        replaced(folder, STORE_FILES, data, read)


def write_store(folder: Path) -> None:
    with StoreWriter(folder, "fingerprint", 10) as writer:
        writer.begin_corpus("only")
        writer.add([[5, 3], [3]], [[6, 7, 3], [9, 3]], [1, 2])


def replaced(folder: Path, names: tuple[str, ...], data: bytes, read: Callable[[], object]) -> None:
    path = folder / names[(data or b"\0")[0] % len(names)]
    good = path.read_bytes()
    try:
        path.write_bytes(data[1:])
        read()
    finally:
        path.write_bytes(good)


def numbered(folder: Path, names: tuple[str, ...]) -> list[bytes]:
    return [bytes([number]) + (folder / name).read_bytes() for number, name in enumerate(names)]


def stores() -> list[bytes]:
    folder = scratch() / "store"
    if not folder.exists():
        write_store(folder)
    return numbered(folder, STORE_FILES)


READERS = {
    "recipe": Reader(recipe, recipes),
    "toml": Reader(toml, recipes),
    "json": Reader(json, lambda: [stored(FACTS)]),
    "text": Reader(text, lambda: [TEXT, b"\xef\xbb\xbf" + TEXT, b"\n" * 9]),
    "tsv": Reader(tsv, lambda: [b"a\tb\n" * 3 + TEXT.replace(b"\n", b"\t")]),
    "gzip": Reader(packed, lambda: [gzip.compress(TEXT, mtime=0), gzip.compress(b"a\n", mtime=0) * 2]),
    "sentencepiece": Reader(sentencepiece, lambda: [stored(VOCABULARY)]),
    "safetensors": Reader(safetensors, lambda: [stored(WEIGHTS)]),
    "shortlist": Reader(shortlist, shortlists),
    "model_folder": Reader(model_folder, lambda: numbered(MODEL, MODEL_FILES)),
    "store": Reader(store, stores),
}
