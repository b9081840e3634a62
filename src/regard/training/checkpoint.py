"""Checkpoints: everything a training needs to go on as if it had never stopped.

A checkpoint is a folder with weights, optimizer state and progress. It is written under a temporary name, synced and
renamed, and carries checksums, so that a folder with its final name is whole or is found out.
"""

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.data.batches import Position
from regard.errors import FileFormatError
from regard.files import checksum, new_folder, read_json, write_json
from regard.model_folder import WEIGHTS, check_weights, load_weights, named_weights
from regard.training.validation import Validation

FORMAT = 1
OPTIMIZER, PROGRESS = "optimizer.safetensors", "progress.json"
_ADAM = ("exp_avg", "exp_avg_sq", "step")


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


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk; a `regular` one was validated and may become part of the average."""

    path: Path
    step: int
    regular: bool


def write_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: TrainingState, regular: bool
) -> Checkpoint:
    """Write the checkpoint of a step below `folder`."""
    path = folder / f"step-{state.step:08}"
    with new_folder(path) as temporary:
        save_file({name: weight.cpu() for name, weight in named_weights(model).items()}, temporary / WEIGHTS)
        save_file(_optimizer_tensors(model, optimizer), temporary / OPTIMIZER)
        sums = {name: checksum(temporary / name) for name in (WEIGHTS, OPTIMIZER)}
        progress = {**asdict(state), "position": state.position.to_dict()}
        write_json(temporary / PROGRESS, {"format": FORMAT, "regular": regular, "sha256": sums, **progress})
    return Checkpoint(path, state.step, regular)


def read_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainingState:
    """Load weights and optimizer state from a checkpoint, and return how far it is."""
    facts = read_json(path / PROGRESS)
    weights = named_weights(model)
    check_weights(path / WEIGHTS, {name: tuple(weight.shape) for name, weight in weights.items()})
    load_weights(model, load_file(path / WEIGHTS))
    stored = load_file(path / OPTIMIZER)
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            key: _placed(stored[f"{name}.{key}"], key, parameter) for key in _ADAM if f"{name}.{key}" in stored
        }
    return TrainingState(
        step=facts["step"],
        position=Position.from_dict(facts["position"]),
        target_tokens=facts["target_tokens"],
        seconds=facts["seconds"],
        skipped=facts["skipped"],
        skipped_in_a_row=facts["skipped_in_a_row"],
        validations=[Validation(**row) for row in facts["validations"]],
    )


def list_checkpoints(folder: Path) -> Iterator[Checkpoint]:
    """Yield a run's checkpoints from the newest to the oldest, those left out that are damaged."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        if find_damage(path) is None:
            yield Checkpoint(path, int(path.name.removeprefix("step-")), bool(read_json(path / PROGRESS)["regular"]))


def find_damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint: a file that is missing, cut off or changed; None if it is whole."""
    try:
        facts = read_json(path / PROGRESS)
        if facts.get("format") != FORMAT:
            return f"{path}: checkpoint of unknown format {facts.get('format')!r}"
        for name, expected in facts["sha256"].items():
            if checksum(path / name) != expected:
                return f"{path / name}: its contents have changed since it was written"
    except (FileFormatError, OSError, KeyError, AttributeError) as error:
        return str(error) if isinstance(error, FileFormatError) else f"{path}: incomplete ({error})"
    return None


def remove_checkpoints(checkpoints: list[Checkpoint]) -> None:
    """Remove checkpoints from the disk, each under a name first that no reader takes for a checkpoint's."""
    for checkpoint in checkpoints:
        doomed = checkpoint.path.with_name(f".{checkpoint.path.name}.removing")
        checkpoint.path.rename(doomed)
        shutil.rmtree(doomed)


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state: dict[str, Any] = optimizer.state.get(parameter, {})
        tensors |= {f"{name}.{key}": state[key].cpu() for key in _ADAM if key in state}
    return tensors


def _placed(tensor: Tensor, key: str, parameter: nn.Parameter) -> Tensor:
    """Put a tensor of optimizer state where fused Adam wants it: beside its weight."""
    return tensor.to(parameter.device) if key != "step" or parameter.device.type != "cpu" else tensor
