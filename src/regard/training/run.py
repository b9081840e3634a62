"""A run's folder: what a training writes, and the lock that keeps a second one out."""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from regard.errors import UserError
from regard.files import write_file
from regard.model_folder import SETTINGS, VOCABULARY, read_settings
from regard.settings import Settings, resolve
from regard.training.origin import Origin

_MAY_BE_THERE = frozenset({".lock", f".{SETTINGS}.writing", "corpus"})  # in a folder that becomes a run's


class Run:
    """The places inside a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / SETTINGS
        self.vocabulary = folder / VOCABULARY
        self.log = folder / "log.jsonl"
        self.checkpoints = folder / "checkpoints"
        self.model = folder / "model"
        self.prepared = folder / "data" / "inputs.json"  # written last, when all of the data is ready
        self.workforce = folder / "processes.json"
        self.origin = folder / "origin.json"  # of a fine-tuning: the model it began from
        self.tensorboard = folder / "tensorboard"


@contextmanager
def open_run(folder: Path, settings: Settings, origin: Origin | None = None, patience: float = 0.0) -> Iterator[Run]:
    """Open a run's folder for writing, a new one or one to go on with; wait `patience` seconds for another to end.

    Raises `UserError` if another process is at work in it, if its settings or the model it began from are others, or if
    it is not a run's folder.
    """
    run = Run(folder)
    try:
        str(folder.absolute()).encode("utf-8")
    except UnicodeEncodeError:  # told now, not when the first weights are to be written
        raise UserError(f"{folder}: its name is not UTF-8, so weights can't be written there") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: can't be made: {error.strerror}") from None
    if not run.settings.exists() and any(path.name not in _MAY_BE_THERE for path in folder.iterdir()):
        raise UserError(f"{folder}: not empty, and not a run's folder; choose another for --out")
    with (folder / ".lock").open("a") as lock:
        _lock(lock, folder, time.monotonic() + patience)
        if run.prepared.exists() or any(run.checkpoints.glob("step-*")):
            _check_same(run, settings, origin)
        else:  # a new run, or one that failed on its corpora: their names may be corrected
            _begin(run, settings, origin)
        yield run


def _lock(lock: TextIO, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise UserError(
                    f"{folder}: another process is training here; wait for it, or choose another --out"
                ) from None
        except OSError as error:
            raise UserError(f"{folder}: can't be locked: {error.strerror}; choose another disk for --out") from None
        time.sleep(0.1)


def with_absolute_paths(settings: Settings) -> Settings:
    """Return settings whose paths, taken from the current folder on, mean the same from everywhere."""
    return resolve(settings.model_dump(mode="json", exclude_none=True))


def _begin(run: Run, settings: Settings, origin: Origin | None) -> None:
    write_file(run.settings, settings.to_toml())  # first: what has it is a run's folder
    if origin is None:
        run.origin.unlink(missing_ok=True)
    else:
        origin.write(run.origin)


def _check_same(run: Run, settings: Settings, origin: Origin | None) -> None:
    """Refuse to go on with other settings, or from another model, than the run began with, and say what differs."""
    differences = setting_differences(read_settings(run.settings), settings)
    began = Origin.read(run.origin)
    if began != origin and not (began is not None and began.is_same(origin)):
        before, now = (one.describe() if one else "none (a model trained from nothing)" for one in (began, origin))
        differences.insert(0, f"model that it began from: was {before}, now {now}")
    if differences:
        raise UserError(
            "\n".join(
                [
                    f"{run.folder}: this run began with other settings; resuming changes nothing, so use the same "
                    "settings or another --out",
                    *(f"  {line}" for line in differences),
                ]
            )
        )


def setting_differences(before: Settings, now: Settings) -> list[str]:
    """Return a line for each setting that differs."""
    old, new = before.model_dump(mode="json"), now.model_dump(mode="json")
    return [
        f"{section}.{name}: was {shown(old[section][name])}, now {shown(value)}"
        for section, values in new.items()
        for name, value in values.items()
        if old[section][name] != value
    ]


def shown(value: object) -> str:
    """Return a setting's value for people."""
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)
