"""What a run's data was made from: the settings that matter and the contents of the files, to be compared later.

Data must not change under a run. Files are compared by their contents, so a corpus may be moved or touched.
"""

from pathlib import Path
from typing import Any

from regard.errors import CorpusError, UserError
from regard.files import checksum
from regard.settings import Corpus, DataSettings

Inputs = dict[str, Any]

_SETTINGS = (
    "vocabulary_size",
    "character_coverage",
    "normalization",
    "vocabulary_sentences",
    "max_length",
    "max_ratio",
    "drop_duplicates",
)


def describe_inputs(data: DataSettings) -> Inputs:
    """Return what the data is made from, by the names of the settings; reads every file once."""
    inputs: Inputs = {f"data.{name}": getattr(data, name) for name in _SETTINGS}
    if data.subword_dropout:  # left out where it is not used: data that was prepared before there was such a setting
        inputs["data.subword_dropout"] = data.subword_dropout
    inputs["data.vocabulary"] = _describe_file(data.vocabulary)
    for part in ("train", "valid"):
        for number, corpus in enumerate(getattr(data, part)):
            inputs |= _describe_corpus(f"data.{part}[{number}]", corpus)
    return inputs


def check_inputs(folder: Path, before: Inputs, now: Inputs) -> None:
    """Raise `UserError`, with all that changed, if data was made from something else than what is given now."""
    names = sorted(before.keys() | now.keys())
    changes = [_describe_change(name, before.get(name), now.get(name)) for name in names]
    if any(changes):
        advice = "give what it was made from, choose another --out, or delete this folder"
        told = "\n".join(f"  {change}" for change in changes if change)
        raise UserError(f"{folder}: this data was made from something else; {advice}\n{told}")


def _describe_corpus(name: str, corpus: Corpus) -> Inputs:
    files = {f"{name}.{side}": _describe_file(getattr(corpus, side)) for side in ("source", "target", "pairs")}
    return {**{key: file for key, file in files.items() if file}, f"{name}.weight": corpus.weight}


def _describe_file(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    try:
        return {"path": str(path), "sha256": checksum(path)}
    except OSError as error:
        raise CorpusError(path, None, f"can't be read: {error.strerror or error}") from None


def _describe_change(name: str, before: object, now: object) -> str:
    """Say in one line what changed, or nothing if nothing did."""
    if isinstance(before, dict) and isinstance(now, dict):
        if before.get("sha256") == now["sha256"]:
            return ""
        moved = before.get("path") != now["path"]
        return f"{name}: was {before.get('path')}, now {now['path']}" if moved else f"{name}: {now['path']} has changed"
    return "" if before == now else f"{name}: was {_show(before)}, now {_show(now)}"


def _show(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("path"))
    return "not there" if value is None else str(value)
