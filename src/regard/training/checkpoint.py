"""Checkpoints: everything a training needs to go on as if it had never stopped.

A checkpoint is a folder with weights, optimizer state and progress. It is written under a temporary name, synced and
renamed, and carries checksums of all its files, so that a folder with its final name is whole or is found out.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import copymode

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from regard.data.batches import Position
from regard.errors import DiskError, FileFormatError, TrainingError
from regard.files import checksum, disk_error, new_folder, read_json, read_record, remove_folder, write_json
from regard.model_folder import WEIGHTS, check_weights, load_weights, named_weights
from regard.training.optimizer import Adam
from regard.training.validation import Validation

FORMAT = 2
OPTIMIZER, PROGRESS, CHECKSUMS = "optimizer.safetensors", "progress.json", "checksums.json"
_CONTENTS = (WEIGHTS, OPTIMIZER, PROGRESS)
_NAME = re.compile(r"step-(\d{8,})")
_BESIDE = ("format", "regular", "optimizer_steps")  # the progress, in its file


@dataclass
class TrainingState:
    """How far a training is."""

    step: int = 0
    position: Position = field(default_factory=Position)
    target_tokens: int = 0
    seconds: float = 0.0
    skipped: int = 0
    skipped_in_a_row: int = 0
    validations: list[Validation] = field(default_factory=list)
    data: str = ""  # the fingerprint of the token store


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk; a `regular` one was validated and may become part of the average."""

    path: Path
    step: int
    regular: bool


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return where the checkpoint of a step is."""
    return folder / f"step-{step:08}"


def write_checkpoint(
    folder: Path, model: nn.Module, optimizer: Adam, state: TrainingState, regular: bool
) -> Checkpoint:
    """Write the checkpoint of a step below `folder`; raises `TrainingError` if the disk does not take it."""
    path = checkpoint_path(folder, state.step)
    weights = {name: weight.cpu() for name, weight in named_weights(model).items()}
    moments = {name: part.cpu() for name, part in optimizer.state().items()}
    try:
        with new_folder(path) as temporary:
            save_file(weights, temporary / WEIGHTS)
            save_file(moments, temporary / OPTIMIZER)
            progress = {**asdict(state), "optimizer_steps": optimizer.steps, "position": state.position.to_dict()}
            write_json(temporary / PROGRESS, {"format": FORMAT, "regular": regular, **progress})
            for name in (WEIGHTS, OPTIMIZER):
                copymode(temporary / PROGRESS, temporary / name)  # safetensors lets nobody but the owner read
            write_json(temporary / CHECKSUMS, {name: checksum(temporary / name) for name in _CONTENTS})
    except (OSError, SafetensorError, DiskError) as error:
        needed = sum(tensor.nbytes for tensor in (*weights.values(), *moments.values()))
        told = error if isinstance(error, DiskError) else disk_error(path, error, needed)
        raise TrainingError(
            f"{told}. Earlier checkpoints are as they were; run the same command again when there is room"
        ) from error
    return Checkpoint(path, state.step, regular)


def read_checkpoint(path: Path, model: nn.Module, optimizer: Adam) -> TrainingState:
    """Load weights and optimizer state from a checkpoint, and return how far it is."""
    progress = read_record(path / PROGRESS, TrainingState, beside=_BESIDE, may_miss=("data",))
    optimizer_steps = read_json(path / PROGRESS).get("optimizer_steps")
    if type(optimizer_steps) is not int:
        raise FileFormatError(path / PROGRESS, "not what regard writes there")
    weights = named_weights(model)
    check_weights(path / WEIGHTS, {name: tuple(weight.shape) for name, weight in weights.items()})
    load_weights(model, load_file(path / WEIGHTS))
    state = optimizer.state()
    check_weights(path / OPTIMIZER, {name: tuple(part.shape) for name, part in state.items()})
    stored = load_file(path / OPTIMIZER)
    for name, part in state.items():
        part.copy_(stored[name])
    optimizer.steps = optimizer_steps
    return progress


def checkpoint_folders(folder: Path) -> list[Path]:
    """Return the folders with a checkpoint's name, whole or not, from the newest to the oldest."""
    found = [(int(match[1]), path) for path in folder.glob("step-*") if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def list_checkpoints(folder: Path) -> Iterator[Checkpoint]:
    """Yield a run's checkpoints from the newest to the oldest, those left out that are damaged; reads every byte."""
    for path in checkpoint_folders(folder):
        if find_damage(path) is None:
            yield describe_checkpoint(path)


def describe_checkpoint(path: Path) -> Checkpoint:
    """Return what is known of a checkpoint that is whole."""
    facts = read_json(path / PROGRESS)
    step, regular = facts.get("step"), facts.get("regular")
    if type(step) is not int or type(regular) is not bool:
        raise FileFormatError(path / PROGRESS, "not what regard writes there")
    return Checkpoint(path, step, regular)


def find_damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint: a file that is missing, cut off or changed; None if it is whole."""
    try:
        sums = read_json(path / CHECKSUMS)
        for name in _CONTENTS:
            if checksum(path / name) != sums.get(name):
                return f"{path / name}: its contents have changed since it was written"
        version = read_json(path / PROGRESS).get("format")
    except FileFormatError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or path}: can't be read: {error.strerror}"
    return None if version == FORMAT else f"{path}: checkpoint of unknown format {version!r}"


def remove_checkpoints(checkpoints: list[Checkpoint]) -> None:
    """Remove checkpoints from the disk."""
    for checkpoint in checkpoints:
        remove_folder(checkpoint.path)
